package mutant

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// schemata is a package in which every mutant is compiled in.
type schemata struct {
	names []string          // of mutants 1, 2, ..
	files map[string][]byte // by absolute path, those that differ from disk
}

// support is the file added to the package. Its names must clash with none of
// an algorithm's.
const support = `package %s

import (
	"os"
	"strconv"
)

var mutantAlive, _ = strconv.Atoi(os.Getenv(%q))

// mutantCond is v() unless one of two mutants is alive: a condition that is
// always true, or never. v keeps the order of evaluation.
func mutantCond(always, never int, v func() bool) bool {
	return mutantAlive == 0 && v() ||
		mutantAlive != 0 && (mutantAlive == always || mutantAlive != never && v())
}
`

// isCodec reports whether a file has encodings only.
func isCodec(file string) bool { return file == "codec.go" || strings.HasSuffix(file, "_codec.go") }

// mutate finds the mutants of the package in c.Dir: all but its tests, its codec.go or
// FORM_codec.go, whose faults the round trips of the conformance suite find, and what c puts
// outside.
func mutate(c Config) (*schemata, error) {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("mutant: %w", err)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("mutant: %w", err)
	}
	s := &schemata{files: map[string][]byte{}}
	m := &mutator{schemata: s, outside: c.Outside, inside: c.Inside, met: map[string]bool{}, replaced: make([]int, len(c.Replace))}
	name := ""
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") || isCodec(filepath.Base(path)) {
			continue
		}
		m.src, err = os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("mutant: %w", err)
		}
		m.fset = token.NewFileSet()
		file, err := parser.ParseFile(m.fset, path, m.src, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("mutant: %w", err)
		}
		name = file.Name.Name
		if text := m.file(file, c.Replace); text != nil {
			s.files[path] = text
		}
		if m.err != nil {
			return nil, fmt.Errorf("mutant: %s: %w", path, m.err)
		}
	}
	for i, r := range c.Replace {
		if m.replaced[i] != 1 {
			return nil, fmt.Errorf("mutant: %q: its old text stands %d times in the package, want once: %q",
				r.Name, m.replaced[i], r.Old)
		}
	}
	for _, name := range append(slices.Sorted(maps.Keys(c.Outside)), c.Inside...) {
		if !m.met[name] {
			return nil, fmt.Errorf("mutant: Inside or Outside names %q, which is no function of the package, nor a type with methods", name)
		}
	}
	if len(s.names) == 0 {
		return nil, fmt.Errorf("mutant: there is nothing to mutate in %s", dir)
	}
	added := filepath.Join(dir, "mutant_support.go")
	s.files[added] = fmt.Appendf(nil, support, name, alive)
	return s, nil
}

// A mutator walks one file after the other.
type mutator struct {
	*schemata
	outside  map[string]string
	inside   []string
	met      map[string]bool // names of the two that the package has
	replaced []int           // how often each old text was found

	// of the current file
	fset   *token.FileSet
	src    []byte
	edits  []edit
	copies []functionCopy
	err    error

	// of the current function
	function string
	seen     map[ast.Expr]bool // conditions that have their mutants
}

// An edit inserts text at an offset. Of edits at one offset, the one of higher
// rank stands further left.
type edit struct {
	offset, rank int
	text         string
}

// A functionCopy is the body of a function, from begin to end, that a replacement copies:
// nothing of another copy of it, or of a function around it, lives in the same mutant.
type functionCopy struct {
	Replacement
	begin, end int
}

// file returns the text of file with its mutants, or nil when it has none.
func (m *mutator) file(file *ast.File, replace []Replacement) []byte {
	m.edits, m.copies = nil, nil
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		m.function = m.functionName(f)
		if !m.isOutside() {
			m.guards(f.Body)
		}
	}
	for i, r := range replace {
		m.replaced[i] += bytes.Count(m.src, []byte(r.Old))
		if at := bytes.Index(m.src, []byte(r.Old)); at >= 0 {
			m.replace(file, r, at)
		}
	}
	if len(m.edits) == 0 {
		return nil
	}
	slices.SortStableFunc(m.edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(b.rank, a.rank))
	})
	var text []byte
	from := 0
	for _, e := range m.edits {
		text = append(append(text, m.src[from:e.offset]...), e.text...)
		from = e.offset
	}
	return append(text, m.src[from:]...)
}

// isOutside reports whether the current function, or the type whose method it
// is, is outside, or not inside.
func (m *mutator) isOutside() (yes bool) {
	receiver, _, _ := strings.Cut(m.function, ".")
	within := len(m.inside) == 0
	for _, name := range []string{m.function, receiver} {
		if _, out := m.outside[name]; out {
			m.met[name], yes = true, true
		}
		if slices.Contains(m.inside, name) {
			m.met[name], within = true, true
		}
	}
	return yes || !within
}

// functionName is Function or Type.Method.
func (m *mutator) functionName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	receiver, _, _ := strings.Cut(m.text(f.Recv.List[0].Type), "[") // but for type parameters
	return strings.TrimPrefix(receiver, "*") + "." + f.Name.Name
}

// guards finds the conditions of a function. What is a truth value by its form
// alone counts as one wherever it stands: a guard often has a name of its own.
func (m *mutator) guards(body *ast.BlockStmt) {
	m.seen = map[ast.Expr]bool{}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			m.guard(n.Cond, true)
		case *ast.ForStmt:
			if n.Cond != nil {
				m.guard(n.Cond, false) // always true would be endless
			}
		case *ast.SwitchStmt:
			if n.Tag == nil {
				for _, clause := range n.Body.List {
					for _, cond := range clause.(*ast.CaseClause).List {
						m.guard(cond, true)
					}
				}
			}
		case *ast.BinaryExpr:
			switch n.Op {
			case token.LAND, token.LOR, token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
				m.guard(n, true)
			}
		case *ast.UnaryExpr:
			if n.Op == token.NOT {
				m.guard(n, true)
			}
		case *ast.GenDecl:
			return n.Tok != token.CONST
		}
		return true
	})
}

// guard adds the mutants of a whole condition, and of its operands.
func (m *mutator) guard(cond ast.Expr, maybeTrue bool) {
	if m.seen[cond] {
		return
	}
	always := 0
	if maybeTrue {
		always = m.mutant(m.text(cond) + " -> true")
	}
	never := m.mutant(m.text(cond) + " -> false")
	m.wrap(cond, always, never)
	m.operands(cond)
}

// operands adds, for each operand of && or || in e, the mutant without it.
func (m *mutator) operands(e ast.Expr) {
	m.seen[e] = true
	switch e := e.(type) {
	case *ast.ParenExpr:
		m.operands(e.X)
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			m.operands(e.X)
		}
	case *ast.BinaryExpr:
		if e.Op != token.LAND && e.Op != token.LOR {
			return
		}
		for _, operand := range []ast.Expr{e.X, e.Y} {
			if inner, ok := operand.(*ast.BinaryExpr); ok && inner.Op == e.Op {
				m.operands(inner) // a && b && c has three operands
				continue
			}
			k := m.mutant(m.text(operand) + " dropped")
			if e.Op == token.LAND {
				m.wrap(operand, k, 0)
			} else {
				m.wrap(operand, 0, k)
			}
			m.operands(operand)
		}
	}
}

// mutant names one more mutant of the current function and returns its number.
// Names hold no line numbers, so that edits elsewhere do not change them.
func (m *mutator) mutant(what string) int {
	name := m.function + ": " + what
	for k := 2; slices.Contains(m.names, name); k++ {
		name = fmt.Sprintf("%s: %s #%d", m.function, what, k)
	}
	m.names = append(m.names, name)
	return len(m.names)
}

func (m *mutator) wrap(e ast.Expr, always, never int) {
	from, to := m.offset(e.Pos()), m.offset(e.End())
	size := to - from
	m.edits = append(m.edits,
		// The longer expression begins further left and ends further right.
		edit{from, size, fmt.Sprintf("mutantCond(%d, %d, func() bool { return ", always, never)},
		edit{to, -size, "})"})
}

// replace makes the function around m.src[at:] begin with a copy of itself that
// holds the new text and runs instead when the mutant is alive.
func (m *mutator) replace(file *ast.File, r Replacement, at int) {
	var body *ast.BlockStmt
	var results *ast.FieldList
	ast.Inspect(file, func(n ast.Node) bool {
		var b *ast.BlockStmt
		var t *ast.FuncType
		switch n := n.(type) {
		case *ast.FuncDecl:
			b, t = n.Body, n.Type
		case *ast.FuncLit:
			b, t = n.Body, n.Type
		}
		if b != nil && m.offset(b.Lbrace) < at && at+len(r.Old) <= m.offset(b.Rbrace) {
			body, results = b, t.Results // the innermost comes last
		}
		return true
	})
	if body == nil {
		m.err = fmt.Errorf("%q: its old text is not inside one function: %q", r.Name, r.Old)
		return
	}
	begin, end := m.offset(body.Lbrace)+1, m.offset(body.Rbrace)
	for _, other := range m.copies {
		if other.Name == r.Name && other.begin < end && begin < other.end {
			m.err = fmt.Errorf("%q: two replacements in one function, of which only one would live: %q and %q: "+
				"make them one, or give each a name of its own", r.Name, other.Old, r.Old)
			return
		}
	}
	m.copies = append(m.copies, functionCopy{r, begin, end})
	k := 1 + slices.Index(m.names, r.Name)
	if k == 0 {
		m.names = append(m.names, r.Name)
		k = len(m.names)
	}
	changed := string(m.src[begin:at]) + r.New + string(m.src[at+len(r.Old):end])
	if results == nil {
		changed += "\nreturn\n"
	}
	m.edits = append(m.edits, edit{
		begin, len(m.src),
		fmt.Sprintf(" if mutantAlive == %d { %s }; ", k, changed),
	})
}

func (m *mutator) offset(p token.Pos) int { return m.fset.Position(p).Offset }

// text is an expression on one line.
func (m *mutator) text(e ast.Expr) string {
	return strings.Join(strings.Fields(string(m.src[m.offset(e.Pos()):m.offset(e.End())])), " ")
}

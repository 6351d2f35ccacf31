package poundlock_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const module = "github.com/poundlock/poundlock"

// arrows says which parts of the module each part may import: an arrow runs
// down, never up, and may skip levels. A part is a directory with all below it;
// "." is the root package alone. Test files may import anything.
var arrows = map[string][]string{
	"cmd": {
		".", "server", "api", "lab", "catalog", "diagram", "history/recorder", "internal", "internal/faultnet", "internal/measure",
	},
	"bench":                   {".", "server", "internal"},
	"bench/spin":              {"algo", "check"},
	"bench/sections":          {"internal", "internal/faultnet", "algo", "consensus", "consensus/raft"},
	"server":                  {"server", "catalog", "node", "transport", "web", "internal", "internal/limit", "internal/measure"},
	"api":                     {".", "api", "internal"},
	".":                       {"node", "transport", "algo/sigma", "internal", "internal/compact", "internal/measure"},
	"web":                     {},
	"fence":                   {},
	"memlock":                 {},
	"internal":                {"internal", "internal/clock", "node", "transport", "quorum", "history"},
	"internal/faultnet":       {"transport"},
	"internal/compact":        {},
	"internal/limit":          {},
	"internal/measure":        {},
	"internal/announce":       {"protocol"},
	"internal/chamber":        {"protocol"},
	"internal/sessions":       {"protocol"},
	"internal/votes":          {"protocol"},
	"lab":                     {"lab", "catalog", "diagram", "history"},
	"catalog":                 {"algo", "algo/sigma", "causal", "elect", "link", "recovery", "consensus", "consensus/raft", "memory", "sim", "check", "hunt", "node"},
	"algotest":                {"algotest", "causal", "sim", "check", "hunt", "history", "scenario"},
	"hunt":                    {"sim", "check", "history", "scenario"},
	"sim":                     {"history", "scenario"},
	"check":                   {"check", "history", "scenario"},
	"causal":                  {"scenario"},
	"history":                 {"protocol"},
	"history/recorder":        {"history", "internal/clock"},
	"internal/clock":          {},
	"scenario":                {"protocol"},
	"diagram":                 {"scenario"},
	"node":                    {"transport", "link", "detector", "internal/compact", "internal/limit", "internal/measure"},
	"transport":               {"protocol"},
	"link":                    {"protocol"},
	"elect":                   {"protocol"},
	"recovery":                {"protocol"},
	"detector":                {"protocol"},
	"consensus":               {"protocol"},
	"consensus/raft":          {"consensus"},
	"consensus/consensustest": {"algotest"},
	"memory":                  {"protocol"},
	"algo":                    {"protocol", "quorum"},
	"algo/sigma":              {"protocol", "quorum"},
	"quorum":                  {"protocol"},
	"protocol":                {},
}

// noModules are the parts that import nothing but this module and the standard
// library.
var noModules = []string{
	"fence", "memlock", "algotest", "sim", "check", "hunt", "diagram", "history", "scenario", "causal", "link", "elect", "recovery", "detector",
	"consensus", "consensus/consensustest", "memory", "algo", "algo/sigma", "quorum", "protocol",
}

// linkedBy are the modules that only some parts may import; a bench is a module of its own.
var linkedBy = map[string][]string{"go.etcd.io/raft/v3": {"consensus/raft", "bench/sections"}}

// pure are the parts that know neither time nor chance nor concurrency: of the
// standard library they import only pureStandard, and they start no goroutine
// and use no channel.
var (
	pure         = []string{"algo", "algo/sigma", "quorum", "protocol", "history", "consensus", "consensus/raft", "memory", "link", "elect", "recovery", "detector"}
	pureStandard = []string{
		"bytes", "cmp", "container/heap", "encoding/binary", "encoding/hex", "errors", "fmt", "iter",
		"maps", "math", "math/bits", "slices", "sort", "strconv", "strings", "time", "unicode", "unicode/utf8", "unique",
	}
	// pureMore is what one of them imports beyond pureStandard: event files are read
	// from, and written to, what somebody else has opened.
	pureMore = map[string][]string{"history": {"bufio", "encoding/json", "io"}}
	// pureTime is what they use of package time: units, but no clock.
	pureTime = []string{"Duration", "Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour"}
)

// conventional are methods whose meaning the standard library fixes: they need
// no comment.
var conventional = []string{"Error", "Unwrap", "String"}

// Structural rules are ordinary tests.
func TestArchitecture(t *testing.T) {
	repository, err := readTree(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	if len(repository.files) < 10 {
		t.Fatalf("found only %d Go files: is this the root of the module?", len(repository.files))
	}
	for _, rule := range []func(*tree) []string{imports, purity, packageDocs, identifierDocs, outsidePaths} {
		for _, violation := range rule(repository) {
			t.Error(violation)
		}
	}
}

// A tree is the repository: its Go files, parsed, and all its text.
type tree struct {
	fset  *token.FileSet
	files map[string]*ast.File // by path
	text  map[string]string    // by path; of Go files too
}

func readTree(root fs.FS) (*tree, error) {
	t := &tree{fset: token.NewFileSet(), files: map[string]*ast.File{}, text: map[string]string{}}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.Name() == ".git": // of a second working tree
			return nil
		case d.IsDir() || !d.Type().IsRegular():
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		if slices.Contains(text, 0) {
			return nil // a picture or a program
		}
		t.text[name] = string(text)
		if path.Ext(name) != ".go" || slices.Contains(strings.Split(name, "/"), "testdata") {
			return nil
		}
		t.files[name], err = parser.ParseFile(t.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		return err
	})
	return t, err
}

// sources yields the Go files that are no tests, in order of their paths.
func (t *tree) sources(yield func(name string, f *ast.File) bool) {
	for _, name := range slices.Sorted(maps.Keys(t.files)) {
		if !strings.HasSuffix(name, "_test.go") && !yield(name, t.files[name]) {
			return
		}
	}
}

func (t *tree) at(p token.Pos) string {
	at := t.fset.Position(p)
	return fmt.Sprintf("%s:%d", at.Filename, at.Line)
}

// part returns the part that holds directory dir, "" if none does.
func part(dir string) string {
	for ; ; dir = path.Dir(dir) {
		if _, ok := arrows[dir]; ok && dir != "." {
			return dir
		}
		if dir == "." {
			return ""
		}
	}
}

// below returns the parts that from may import: by one arrow or several.
func below(from string) map[string]bool {
	found := map[string]bool{}
	var follow func(string)
	follow = func(p string) {
		for _, q := range arrows[p] {
			if !found[q] {
				found[q] = true
				follow(q)
			}
		}
	}
	follow(from)
	return found
}

func imports(t *tree) (bad []string) {
	for name, f := range t.sources {
		dir := path.Dir(name)
		from := part(dir)
		if dir == "." {
			from = "."
		}
		if from == "" {
			bad = append(bad, fmt.Sprintf("%s: %s stands in no part: add it to the arrows in arch_test.go", name, dir))
			continue
		}
		allowed := below(from)
		for _, spec := range f.Imports {
			target := strings.Trim(spec.Path.Value, `"`)
			inside, isOurs := strings.CutPrefix(target, module)
			to := part(strings.TrimPrefix(inside, "/"))
			if inside == "" {
				to = "."
			}
			switch {
			case isOurs && !allowed[to]:
				bad = append(bad, fmt.Sprintf("%s: %s must not import %s", t.at(spec.Pos()), from, target))
			case !isOurs && !mayLink(from, target):
				bad = append(bad, fmt.Sprintf("%s: %s must not link %s", t.at(spec.Pos()), from, target))
			case !isOurs && !standard(target) && slices.Contains(noModules, from):
				bad = append(bad, fmt.Sprintf("%s: %s must not import another module: %s", t.at(spec.Pos()), from, target))
			case standard(target) && slices.Contains(pure, from) && !slices.Contains(pureStandard, target) &&
				!slices.Contains(pureMore[from], target):
				bad = append(bad, fmt.Sprintf("%s: %s is pure and must not import %s", t.at(spec.Pos()), from, target))
			}
		}
	}
	return bad
}

// mayLink says that a part may import a package of a module that is not for all.
func mayLink(from, target string) bool {
	for m, parts := range linkedBy {
		if target == m || strings.HasPrefix(target, m+"/") {
			return slices.Contains(parts, from)
		}
	}
	return true
}

// standard says that an import path belongs to the standard library: its first
// element has no dot.
func standard(target string) bool {
	first, _, _ := strings.Cut(target, "/")
	return !strings.Contains(first, ".")
}

func purity(t *tree) (bad []string) {
	for name, f := range t.sources {
		if !slices.Contains(pure, part(path.Dir(name))) {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			what := ""
			switch n := n.(type) {
			case *ast.GoStmt:
				what = "a go statement"
			case *ast.ChanType, *ast.SendStmt, *ast.SelectStmt:
				what = "a channel"
			case *ast.UnaryExpr:
				if n.Op == token.ARROW {
					what = "a channel"
				}
			case *ast.SelectorExpr:
				x, ok := n.X.(*ast.Ident)
				if ok && x.Name == "time" && !slices.Contains(pureTime, n.Sel.Name) {
					what = "time." + n.Sel.Name
				}
			}
			if what != "" {
				bad = append(bad, fmt.Sprintf("%s: a pure package has %s", t.at(n.Pos()), what))
			}
			return true
		})
	}
	return bad
}

func packageDocs(t *tree) (bad []string) {
	documented := map[string]bool{}
	for name, f := range t.sources {
		documented[path.Dir(name)] = documented[path.Dir(name)] || f.Doc.Text() != ""
	}
	for _, dir := range slices.Sorted(maps.Keys(documented)) {
		if !documented[dir] {
			bad = append(bad, fmt.Sprintf("%s: the package has no comment", dir))
		}
	}
	return bad
}

// identifierDocs wants a comment at each exported identifier of a public
// package that is written by hand; one for a group of constants or variables is
// enough.
func identifierDocs(t *tree) (bad []string) {
	for name, f := range t.sources {
		if f.Name.Name == "main" || ast.IsGenerated(f) || slices.Contains(strings.Split(name, "/"), "internal") {
			continue
		}
		for _, d := range f.Decls {
			for _, id := range undocumented(d) {
				bad = append(bad, fmt.Sprintf("%s: %s has no comment", t.at(id.Pos()), id.Name))
			}
		}
	}
	return bad
}

func undocumented(d ast.Decl) (ids []*ast.Ident) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		method := d.Recv != nil
		if method && (!receiver(d.Recv).IsExported() || slices.Contains(conventional, d.Name.Name)) {
			return nil
		}
		if d.Name.IsExported() && d.Doc.Text() == "" {
			ids = append(ids, d.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && d.Doc.Text()+s.Doc.Text() == "" {
					ids = append(ids, s.Name)
				}
			case *ast.ValueSpec:
				for _, id := range s.Names {
					if id.IsExported() && d.Doc.Text()+s.Doc.Text()+s.Comment.Text() == "" {
						ids = append(ids, id)
					}
				}
			}
		}
	}
	return ids
}

// receiver returns the name of a method's type.
func receiver(list *ast.FieldList) (id *ast.Ident) {
	ast.Inspect(list.List[0].Type, func(n ast.Node) bool {
		if i, ok := n.(*ast.Ident); ok && id == nil {
			id = i
		}
		return id == nil
	})
	return id
}

var (
	// absolute is a path of somebody's own machine. The pattern is written so
	// that it does not match itself.
	absolute = regexp.MustCompile(`(^|[\s"'(=])/(work|home|Users|root)[/]\w`)
	// link is the target of a Markdown link within the repository.
	link = regexp.MustCompile(`\]\(([^)#:\s]+)(#[^)]*)?\)`)
)

// outsidePaths finds references to files that a clone does not have.
func outsidePaths(t *tree) (bad []string) {
	for _, name := range slices.Sorted(maps.Keys(t.text)) {
		for i, line := range strings.Split(t.text[name], "\n") {
			at := fmt.Sprintf("%s:%d", name, i+1)
			if absolute.MatchString(line) || strings.Contains(line, "../"+"shared") {
				bad = append(bad, fmt.Sprintf("%s: a path outside the repository: %s", at, strings.TrimSpace(line)))
			}
			if path.Ext(name) != ".md" {
				continue
			}
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				target := path.Join(path.Dir(name), m[1])
				if !t.has(target) {
					bad = append(bad, fmt.Sprintf("%s: the link leads nowhere: %s", at, m[1]))
				}
			}
		}
	}
	return bad
}

// has says that name is a file, or a directory with files.
func (t *tree) has(name string) bool {
	if _, ok := t.text[name]; ok {
		return true
	}
	for file := range t.text {
		if strings.HasPrefix(file, name+"/") {
			return true
		}
	}
	return false
}

// Each rule catches what it forbids, and no more.
func TestArchitectureRules(t *testing.T) {
	const doc = "// Package x is a fixture.\npackage x\n"
	for _, test := range []struct {
		name, file, text string
		rule             func(*tree) []string
		want             string // "" for none
	}{
		{"down", "node/a.go", doc + `import "` + module + `/protocol"`, imports, ""},
		{"up", "protocol/a.go", doc + `import "` + module + `/sim"`, imports, "protocol must not import"},
		{"skipping levels", "cmd/poundlock/a.go", doc + `import "` + module + `/quorum"`, imports, ""},
		{"sideways", "algo/a/a.go", doc + `import "` + module + `/algo/b"`, imports, "algo must not import"},
		{"the client links no other algorithm", "a.go", doc + `import "` + module + `/algo/b"`, imports, ". must not import"},
		{"the root", "node/a.go", doc + `import "` + module + `"`, imports, "node must not import"},
		{"tests only", "sim/a.go", doc + `import "` + module + `/algotest"`, imports, "sim must not import"},
		{"in a test", "sim/a_test.go", doc + `import "` + module + `/algotest"`, imports, ""},
		{"no arrow", "extra/a.go", doc, imports, "stands in no part"},
		{"I/O", "algo/a/a.go", doc + `import "os"`, imports, "pure and must not import os"},
		{"files of events", "history/a.go", doc + `import "io"`, imports, ""},
		{"files of events only there", "link/a.go", doc + `import "io"`, imports, "pure and must not import io"},
		{"a clock", "algo/a/a.go", doc + "import \"time\"\nvar t = time.Now()", purity, "time.Now"},
		{"a duration", "algo/a/a.go", doc + "import \"time\"\nconst d = time.Hour", purity, ""},
		{"chance", "quorum/a.go", doc + `import "math/rand/v2"`, imports, "pure and must not import math/rand/v2"},
		{"an impure part", "sim/a.go", doc + `import "math/rand/v2"`, imports, ""},
		{"another module", "sim/a.go", doc + `import "example.org/m"`, imports, "another module"},
		{"raft", "consensus/raft/a.go", doc + `import "go.etcd.io/raft/v3/raftpb"`, imports, ""},
		{"raft elsewhere", "catalog/a.go", doc + `import "go.etcd.io/raft/v3"`, imports, "catalog must not link"},
		{"raft at the client", "a.go", doc + `import "` + module + `/consensus/raft"`, imports, ". must not import"},
		{"raft at an algorithm", "algo/a/a.go", doc + `import "` + module + `/consensus/raft"`, imports, "algo must not import"},
		{"goroutine", "algo/a/a.go", doc + "func f() { go f() }", purity, "a go statement"},
		{"channel", "algo/a/a.go", doc + "func f(c chan int) {}", purity, "a channel"},
		{"goroutine of a driver", "node/a.go", doc + "func f() { go f() }", purity, ""},
		{"package comment", "sim/a.go", "package sim", packageDocs, "sim: the package has no comment"},
		{"package comment elsewhere", "sim/a.go", doc, packageDocs, ""},
		{"function", "sim/a.go", doc + "func F() {}", identifierDocs, "F has no comment"},
		{"method", "sim/a.go", doc + "type t int\nfunc (t) F() {}\n// T is.\ntype T int\nfunc (t *T) G() {}", identifierDocs, "G has no comment"},
		{"conventional method", "sim/a.go", doc + "// T is.\ntype T int\nfunc (t T) String() string", identifierDocs, ""},
		{"type", "sim/a.go", doc + "type T int", identifierDocs, "T has no comment"},
		{"constant", "sim/a.go", doc + "const C = 1", identifierDocs, "C has no comment"},
		{"group", "sim/a.go", doc + "// The constants.\nconst (\n\tC = 1\n\tD = 2\n)", identifierDocs, ""},
		{"internal", "internal/x/a.go", doc + "func F() {}", identifierDocs, ""},
		{"relative path", "README.md", "See .." + "/shared/notes.", outsidePaths, "outside the repository"},
		{"absolute path", "sim/a.go", doc + "// See /ho" + "me/me/notes.", outsidePaths, "outside the repository"},
		{"dead link", "docs/a.md", "[b](b.md)", outsidePaths, "leads nowhere: b.md"},
		{"link out", "docs/a.md", "[b](../../b.md#c)", outsidePaths, "leads nowhere"},
		{"links", "docs/a.md", "[a](a.md#x), [up](../docs), [web](https://example.org/a)", outsidePaths, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			fixture, err := readTree(fstest.MapFS{test.file: {Data: []byte(test.text)}})
			if err != nil {
				t.Fatal(err)
			}
			bad := test.rule(fixture)
			if test.want == "" && len(bad) == 0 {
				return
			}
			if len(bad) != 1 || test.want == "" || !strings.Contains(bad[0], test.want) {
				t.Errorf("got %q, want one with %q", bad, test.want)
			}
		})
	}
}

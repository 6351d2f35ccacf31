package poundlock_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const module = "github.com/poundlock/poundlock"

// A part is a directory with all below it that no other part holds; "." is the root package
// alone. It may import the parts it names, and what these may import: an arrow runs down, never
// up, and may skip levels. Test files may import anything. docs/architecture.md has this table.
type part struct {
	dir  string
	what string
	may  string // parts, with spaces between
	flags
}

type flags uint8

const (
	evidence flags = 1 << iota // shows that the rest works: no product imports it
	pure                       // knows neither time nor chance nor concurrency
	bare                       // imports nothing but this module and the standard library
)

var parts = []part{
	{".", "the client, for Go programs", "node internal", 0},
	{"fence", "checks of fencing tokens, for resources", "", bare},
	{"api", "locks over gRPC and HTTP", ". api internal internal/listen", 0},
	{"peers", "locks among one's own processes", ". internal/listen internal/members algo algo/ra1 wrap", 0},
	{"sections", "critical sections over a replicated object, among a program's own processes", "node algo internal/histogram internal/journal internal/listen internal/members", 0},
	{"sections/kv", "values by key, in sections", "sections", 0},
	{"metrics", "what programs tell Prometheus", ". peers sections internal/histogram internal/prom", 0},
	{"server", "a server of a cluster", "server node internal internal/listen internal/members internal/prom", 0},
	{"node", "runs algorithms on a network", "node/lease transport wrap internal/clock internal/histogram internal/limit internal/shrinkmap", 0},
	{"node/lease", "leases of sessions, and suspicion", "protocol", pure | bare},
	{"transport", "connections, frames and addresses", "protocol", 0},
	{"cmd/poundlock", "the lock", ". api metrics peers sections sections/kv server internal/kvapi internal/listen bench/load internal/cli internal/demo internal/devcluster internal/faultnet", 0},
	{"cmd/poundlock-lab", "the laboratory", "lab verify internal/cli", evidence},

	{"examples/worker", "a service of which one copy works", ". server", 0},
	{"examples/replicas", "a service whose replicas elect and lock without servers", "peers", 0},
	{"examples/lecture", "an algorithm of a lecture on three machines", "peers", 0},
	{"examples/shards", "a service that divides shards, without servers", "sections sections/kv", 0},
	{"examples/algorithm", "an algorithm of one's own, checked", "verify/check", evidence},

	{"protocol", "the contract between algorithms and what runs them", "", pure | bare},
	{"algo", "the algorithms", "protocol algo/quorum", pure | bare},
	{"algo/ra1", "Ricart and Agrawala's algorithm for groups", "protocol algo", pure | bare},
	{"algo/sigma", "Sigma, which the service runs", "protocol algo/quorum", pure | bare},
	{"algo/quorum", "sizes of quorums, voting sets", "protocol", pure | bare},
	{"wrap", "algorithms made of other algorithms", "protocol", pure | bare},
	{"wrap/consensus/raft", "consensus by etcd's raft", "wrap", pure},
	{"wrap/consensus/consensustest", "tests of what decides", "algo/algotest", evidence | bare},

	{"algo/algotest", "tests that every algorithm passes", "algo/algotest verify/check verify/sim verify/causal internal/lane", evidence | bare},
	{"verify", "the catalog of all algorithms", "verify/check verify/sim verify/live verify/hunt verify/causal algo algo/ra1 algo/sigma wrap", evidence},
	{"verify/causal", "judges the order of tries", "verify/scenario", evidence | bare},
	{"verify/check", "explores every run", "verify/check verify/world", evidence | bare},
	{"verify/sim", "runs in virtual time", "verify/world verify/workload", evidence | bare},
	{"verify/live", "runs on a network", "verify/sim node internal/faultnet", evidence},
	{"verify/hunt", "random runs, made short", "verify/sim verify/check", evidence | bare},
	{"verify/diagram", "pictures of runs", "verify/scenario", evidence | bare},
	{"verify/world", "what the environment of a system may do", "verify/history verify/scenario", evidence | bare},
	{"verify/workload", "what users do, and when", "protocol", evidence | bare},
	{"verify/scenario", "runs as text", "protocol", evidence | bare},
	{"verify/history", "what happened, and judges of it", "protocol", pure | bare},
	{"verify/history/recorder", "writes histories; programs may import it", "verify/history internal/clock", 0},
	{"lab", "experiments", "lab verify verify/diagram", evidence},
	{"bench", "measures beside other systems", ". server bench/load internal algo verify", evidence},
	{"bench/sections", "sections beside raft", "sections bench/load internal internal/faultnet algo wrap/consensus/raft", evidence},
	{"bench/load", "makes load, for benches and the demo", "transport verify/history internal", 0},

	{"internal", "what several of these need", "node algo/quorum algo/sigma internal/clock internal/freeaddr internal/histogram internal/limit internal/members internal/shrinkmap", 0},
	{"internal/cli", "what the programs have in common", "protocol internal internal/cli internal/lane", 0},
	{"internal/clock", "one clock for all processes of a machine", "", 0},
	{"internal/demo", "servers that are killed while workers count", ". bench/load internal verify/history/recorder", 0},
	{"internal/devcluster", "the development cluster of a user", ". server internal internal/cli", 0},
	{"internal/exampletest", "runs examples as they print", "internal/freeaddr", 0},
	{"internal/faultnet", "networks with faults", "transport", 0},
	{"internal/freeaddr", "finds free addresses of loopback", "", bare},
	{"internal/histogram", "histograms of durations", "", 0},
	{"internal/kvapi", "how commands reach values in sections", "sections sections/kv transport", 0},
	{"internal/faultdisk", "disks that lose power", "internal/journal", evidence},
	{"internal/journal", "what happened to a process, on disk", "internal", 0},
	{"internal/lane", "says which tests run", "", bare},
	{"internal/listen", "where processes listen", "internal transport", 0},
	{"internal/members", "who the members of a system are", "transport", bare},
	{"internal/limit", "what one host may take, and have logged", "", 0},
	{"internal/prom", "how processes tell Prometheus", "internal/histogram", 0},
	{"internal/shrinkmap", "maps that give memory back", "", 0},
}

// linkedBy are the modules that only some parts may import; a bench is a module of its own.
var linkedBy = map[string][]string{"go.etcd.io/raft/v3": {"wrap/consensus/raft", "bench/sections"}, "github.com/hashicorp/raft": {"bench/sections"}}

// linked are the modules that cmd/poundlock links.
var linked = []string{
	"connectrpc.com/connect",
	"connectrpc.com/grpchealth",
	"github.com/beorn7/perks",
	"github.com/cespare/xxhash/v2",
	"github.com/munnerz/goautoneg",
	"github.com/prometheus/client_golang",
	"github.com/prometheus/client_model",
	"github.com/prometheus/common",
	"github.com/prometheus/procfs",
	"github.com/spf13/cobra",
	"github.com/spf13/pflag",
	"go.yaml.in/yaml/v3",
	"golang.org/x/sys",
	"golang.org/x/term",
	"google.golang.org/protobuf",
}

// A pure part imports only pureStandard of the standard library, starts no goroutine and
// uses no channel.
var (
	pureStandard = []string{
		"bytes", "cmp", "container/heap", "encoding/binary", "encoding/hex", "errors", "fmt", "hash/fnv", "iter",
		"maps", "math", "math/bits", "slices", "sort", "strconv", "strings", "time", "unicode", "unicode/utf8", "unique",
	}
	// pureMore is what one of them imports beyond pureStandard: event files are read
	// from, and written to, what somebody else has opened.
	pureMore = map[string][]string{"verify/history": {"bufio", "encoding/json", "io"}}
	// pureTime is what they use of package time: units, but no clock.
	pureTime = []string{"Duration", "Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour"}
)

// conventional are methods whose meaning the standard library fixes: they need
// no comment.
var conventional = []string{"Error", "Unwrap", "String"}

// Whoever locks needs no checker: what is no evidence links none.
func TestProductWithoutEvidence(t *testing.T) {
	for _, p := range parts {
		for q := range p.below() {
			if !p.is(evidence) && named(q).is(evidence) {
				t.Errorf("%s is product and may import %s, which is evidence", p.dir, q)
			}
		}
	}
}

// TestLinked holds what the lock links: no evidence, and no module that draws.
func TestLinked(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}} {{with .Module}}{{.Path}}{{end}}", "./cmd/poundlock").Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		path, from, _ := strings.Cut(strings.TrimSpace(line), " ")
		if from != "" && from != module {
			modules[from] = true
		}
		dir, ours := strings.CutPrefix(path, module+"/")
		if p := partOf(dir); ours && p.is(evidence) {
			t.Errorf("cmd/poundlock links %s, of %s", dir, p.dir)
		}
	}
	if found := slices.Sorted(maps.Keys(modules)); !slices.Equal(found, linked) {
		t.Errorf("cmd/poundlock links %q, want %q", found, linked)
	}
}

// TestArchitectureTable holds the table of docs/architecture.md equal to this one.
func TestArchitectureTable(t *testing.T) {
	const file, begin, end = "docs/architecture.md", "<!-- parts: of arch_test.go -->\n", "<!-- end of parts -->"
	var b strings.Builder
	b.WriteString("| part | what it is | may import |\n|---|---|---|\n")
	for _, p := range parts {
		what := p.what
		if p.is(evidence) {
			what += " (evidence)"
		}
		if p.is(pure) {
			what += " (pure)"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", p.dir, what, strings.Join(strings.Fields(p.may), ", "))
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), begin)
	table, _, found := strings.Cut(rest, end)
	if !found || table != b.String() {
		t.Errorf("%s: want between %q and %q:\n%s", file, begin, end, &b)
	}
}

// Structural rules are ordinary tests.
func TestArchitecture(t *testing.T) {
	t.Parallel()
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

func (p part) is(f flags) bool { return p.flags&f != 0 }

// partOf returns the part that holds directory dir, or one without a name.
func partOf(dir string) part {
	for ; ; dir = path.Dir(dir) {
		for _, p := range parts {
			if p.dir == dir && dir != "." {
				return p
			}
		}
		if dir == "." {
			return part{}
		}
	}
}

// named returns the part of a name, which is in the table.
func named(dir string) part {
	i := slices.IndexFunc(parts, func(p part) bool { return p.dir == dir })
	if i < 0 {
		panic(dir + " stands in no row of the table of parts")
	}
	return parts[i]
}

// below returns the parts that p may import, by one arrow or several.
func (p part) below() map[string]bool {
	found := map[string]bool{}
	var follow func(part)
	follow = func(p part) {
		for _, dir := range strings.Fields(p.may) {
			if !found[dir] {
				found[dir] = true
				follow(named(dir))
			}
		}
	}
	follow(p)
	return found
}

func imports(t *tree) (bad []string) {
	for name, f := range t.sources {
		dir := path.Dir(name)
		from := partOf(dir)
		if dir == "." {
			from = named(".")
		}
		if from.dir == "" {
			bad = append(bad, fmt.Sprintf("%s: %s stands in no part: add it to the arrows in arch_test.go", name, dir))
			continue
		}
		allowed := from.below()
		for _, spec := range f.Imports {
			target := strings.Trim(spec.Path.Value, `"`)
			inside, isOurs := strings.CutPrefix(target, module)
			to := partOf(strings.TrimPrefix(inside, "/")).dir
			if inside == "" {
				to = "."
			}
			switch {
			case isOurs && !allowed[to]:
				bad = append(bad, fmt.Sprintf("%s: %s must not import %s", t.at(spec.Pos()), from.dir, target))
			case !isOurs && !mayLink(from.dir, target):
				bad = append(bad, fmt.Sprintf("%s: %s must not link %s", t.at(spec.Pos()), from.dir, target))
			case !isOurs && !standard(target) && from.is(bare):
				bad = append(bad, fmt.Sprintf("%s: %s must not import another module: %s", t.at(spec.Pos()), from.dir, target))
			case standard(target) && from.is(pure) && !slices.Contains(pureStandard, target) &&
				!slices.Contains(pureMore[from.dir], target):
				bad = append(bad, fmt.Sprintf("%s: %s is pure and must not import %s", t.at(spec.Pos()), from.dir, target))
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
		if !partOf(path.Dir(name)).is(pure) {
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
	link = regexp.MustCompile(`\]\(([^)#:\s]*)(#[^)]*)?\)`)
	// notInAnchor is what GitHub leaves out of a heading to make its anchor.
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// hasAnchor says that a heading of a page has this anchor.
func hasAnchor(page, anchor string) bool {
	for line := range strings.Lines(page) {
		title := strings.TrimLeft(line, "#")
		words := notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
		if title != line && "#"+strings.ReplaceAll(words, " ", "-") == anchor {
			return true
		}
	}
	return false
}

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
				if m[1] == "" {
					target = name
				}
				if !t.has(target) {
					bad = append(bad, fmt.Sprintf("%s: the link leads nowhere: %s", at, m[1]))
				} else if path.Ext(target) == ".md" && m[2] != "" && !hasAnchor(t.text[target], m[2]) {
					bad = append(bad, fmt.Sprintf("%s: the link leads to no heading: %s%s", at, m[1], m[2]))
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
		{"up", "protocol/a.go", doc + `import "` + module + `/verify/sim"`, imports, "protocol must not import"},
		{"skipping levels", "cmd/poundlock/a.go", doc + `import "` + module + `/algo/quorum"`, imports, ""},
		{"sideways", "algo/a/a.go", doc + `import "` + module + `/algo/b"`, imports, "algo must not import"},
		{"the client links no other algorithm", "a.go", doc + `import "` + module + `/algo/b"`, imports, ". must not import"},
		{"the root", "node/a.go", doc + `import "` + module + `"`, imports, "node must not import"},
		{"tests only", "verify/sim/a.go", doc + `import "` + module + `/algo/algotest"`, imports, "verify/sim must not import"},
		{"in a test", "verify/sim/a_test.go", doc + `import "` + module + `/algo/algotest"`, imports, ""},
		{"no arrow", "extra/a.go", doc, imports, "stands in no part"},
		{"I/O", "algo/a/a.go", doc + `import "os"`, imports, "pure and must not import os"},
		{"files of events", "verify/history/a.go", doc + `import "io"`, imports, ""},
		{"files of events only there", "wrap/reliable/a.go", doc + `import "io"`, imports, "pure and must not import io"},
		{"a clock", "algo/a/a.go", doc + "import \"time\"\nvar t = time.Now()", purity, "time.Now"},
		{"a duration", "algo/a/a.go", doc + "import \"time\"\nconst d = time.Hour", purity, ""},
		{"chance", "algo/quorum/a.go", doc + `import "math/rand/v2"`, imports, "pure and must not import math/rand/v2"},
		{"an impure part", "verify/sim/a.go", doc + `import "math/rand/v2"`, imports, ""},
		{"another module", "verify/sim/a.go", doc + `import "example.org/m"`, imports, "another module"},
		{"raft", "wrap/consensus/raft/a.go", doc + `import "go.etcd.io/raft/v3/raftpb"`, imports, ""},
		{"raft elsewhere", "verify/catalog/a.go", doc + `import "go.etcd.io/raft/v3"`, imports, "verify must not link"},
		{"raft at the client", "a.go", doc + `import "` + module + `/wrap/consensus/raft"`, imports, ". must not import"},
		{"raft at an algorithm", "algo/a/a.go", doc + `import "` + module + `/wrap/consensus/raft"`, imports, "algo must not import"},
		{"goroutine", "algo/a/a.go", doc + "func f() { go f() }", purity, "a go statement"},
		{"channel", "algo/a/a.go", doc + "func f(c chan int) {}", purity, "a channel"},
		{"goroutine of a driver", "node/a.go", doc + "func f() { go f() }", purity, ""},
		{"package comment", "verify/sim/a.go", "package sim", packageDocs, "verify/sim: the package has no comment"},
		{"package comment elsewhere", "verify/sim/a.go", doc, packageDocs, ""},
		{"function", "verify/sim/a.go", doc + "func F() {}", identifierDocs, "F has no comment"},
		{"method", "verify/sim/a.go", doc + "type t int\nfunc (t) F() {}\n// T is.\ntype T int\nfunc (t *T) G() {}", identifierDocs, "G has no comment"},
		{"conventional method", "verify/sim/a.go", doc + "// T is.\ntype T int\nfunc (t T) String() string", identifierDocs, ""},
		{"type", "verify/sim/a.go", doc + "type T int", identifierDocs, "T has no comment"},
		{"constant", "verify/sim/a.go", doc + "const C = 1", identifierDocs, "C has no comment"},
		{"group", "verify/sim/a.go", doc + "// The constants.\nconst (\n\tC = 1\n\tD = 2\n)", identifierDocs, ""},
		{"internal", "internal/x/a.go", doc + "func F() {}", identifierDocs, ""},
		{"relative path", "README.md", "See .." + "/shared/notes.", outsidePaths, "outside the repository"},
		{"absolute path", "verify/sim/a.go", doc + "// See /ho" + "me/me/notes.", outsidePaths, "outside the repository"},
		{"dead link", "docs/a.md", "[b](b.md)", outsidePaths, "leads nowhere: b.md"},
		{"link out", "docs/a.md", "[b](../../b.md#c)", outsidePaths, "leads nowhere"},
		{"dead anchor", "docs/a.md", "# X\n[a](a.md#y)", outsidePaths, "leads to no heading: a.md#y"},
		{"links", "docs/a.md", "# The `X`, 1\n[a](a.md#the-x-1), [here](#the-x-1), [up](../docs), [web](https://example.org/a)", outsidePaths, ""},
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

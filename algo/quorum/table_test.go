package quorum

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

// The table of sizes in the page of the algorithm is what the forms have.
func TestTable(t *testing.T) {
	const page = "../../docs/algorithms/maekawa.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const head = "| N | sqrt(N) | bound | cyclic | grid | majority | plane |\n|---|---|---|---|---|---|---|\n"
	_, rest, found := strings.Cut(string(text), head)
	if !found {
		t.Fatalf("%s has no table that begins with\n%s", page, head)
	}
	got, _, _ := strings.Cut(rest, "\n\n")
	var want []string
	for _, n := range []int{
		3, 4, 7, 8, 9, 13, 16, 20, 21, 25, 31, 36, 49, 57, 64, 73, 91, 100, 133, 993, 1000, 65536,
	} {
		plane := ""
		if Plane.Defined(n) {
			plane = fmt.Sprint(len(Plane.Of(0, n)))
		}
		least, most := n, 0
		for i := range n {
			k := len(Grid.Of(i, n))
			least, most = min(least, k), max(most, k)
		}
		grid := fmt.Sprint(most)
		if least < most {
			grid = fmt.Sprintf("%d..%d", least, most)
		}
		want = append(want, fmt.Sprintf("| %d | %.1f | %d | %d | %s | %d | %s |",
			n, math.Sqrt(float64(n)), Least(n), len(Cover(n)), grid, len(Majorities.Of(0, n)), plane))
	}
	if w := strings.Join(want, "\n"); got != w {
		t.Errorf("the table of %s should be\n%s%s", page, head, w)
	}
}

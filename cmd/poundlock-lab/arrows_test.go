package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// No arrow of a picture passes within 4 pixels of the dot of another process's step, as if that passed
// the message on, and no label covers the number of a row.
func TestArrows(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.svg")
	for _, pattern := range []string{"../../docs/algorithms/*.svg", "../../docs/figures/*/*.svg"} {
		more, err2 := filepath.Glob(pattern)
		if files = append(files, more...); err == nil {
			err = err2
		}
	}
	if err != nil || len(files) < 60 {
		t.Fatalf("%d pictures: %v", len(files), err)
	}
	arrows := 0
	for _, name := range files {
		svg, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		n, bad := unclear(svg)
		arrows += n
		for _, what := range bad {
			t.Errorf("%s: %s", name, what)
		}
	}
	if arrows < 300 {
		t.Errorf("only %d arrows were found", arrows)
	}
}

// The test sees what it is to see.
func TestUnclear(t *testing.T) {
	const (
		dot      = `<circle cx="100" cy="20" r="3" class="dot"/>`
		straight = `<line x1="0" y1="10" x2="200" y2="30" class="arrow"/>`
		bent     = `<path d="M0 10Q100 0 200 30" class="arrow"/>`
		bentInto = `<path d="M0 0Q100 38 200 0" class="arrow"/>`
		own      = `<circle cx="198" cy="30" r="3" class="dot"/>`
		label    = `<rect x="30" y="2" width="60" height="12" class="plate"/>`
	)
	for svg, want := range map[string]int{
		dot + straight:               1,
		own + straight:               0,
		dot + bent:                   0,
		dot + bentInto:               1,
		dot + own + straight + label: 2,
	} {
		if n, bad := unclear([]byte(svg)); n != 1 || len(bad) != want {
			t.Errorf("%s: %d arrows, %q, want %d", svg, n, bad, want)
		}
	}
}

var (
	arrowLine = regexp.MustCompile(`<line x1="(\S+)" y1="(\S+)" x2="(\S+)" y2="(\S+)" class="arrow"/>`)
	arrowPath = regexp.MustCompile(`<path d="M(\S+) (\S+)Q(\S+) (\S+) (\S+) (\S+)" class="arrow"/>`)
	arrowDot  = regexp.MustCompile(`<circle cx="(\S+)" cy="(\S+)" r="3" class="dot"/>`)
	arrowText = regexp.MustCompile(`<rect x="(\S+)" y="(\S+)" width="\S+" height="12" class="plate( looped)?"/>`)
)

// unclear says which arrows of a picture pass a dot that is neither where they begin nor where they end, and
// which labels cover numbers of rows. n is how many arrows there are.
func unclear(svg []byte) (n int, bad []string) {
	const (
		near    = 4  // pixels
		own     = 10 // from the end of an arrow to its own dot
		numbers = 50
	)
	curves := [][]float64{} // x and y of both ends and of the knee between
	for _, m := range arrowLine.FindAllSubmatch(svg, -1) {
		c := floats(m[1:])
		curves = append(curves, []float64{c[0], c[1], (c[0] + c[2]) / 2, (c[1] + c[3]) / 2, c[2], c[3]})
	}
	for _, m := range arrowPath.FindAllSubmatch(svg, -1) {
		curves = append(curves, floats(m[1:]))
	}
	for _, c := range curves {
		for _, m := range arrowDot.FindAllSubmatch(svg, -1) {
			d := floats(m[1:])
			if math.Hypot(d[0]-c[0], d[1]-c[1]) < own || math.Hypot(d[0]-c[4], d[1]-c[5]) < own {
				continue
			}
			for k := range 201 {
				u := float64(k) / 200
				x := (1-u)*(1-u)*c[0] + 2*u*(1-u)*c[2] + u*u*c[4]
				y := (1-u)*(1-u)*c[1] + 2*u*(1-u)*c[3] + u*u*c[5]
				if math.Hypot(d[0]-x, d[1]-y) < near {
					bad = append(bad, fmt.Sprintf("the arrow from %v to %v passes the dot at %v", c[:2], c[4:], d))
					break
				}
			}
		}
	}
	for _, m := range arrowText.FindAllSubmatch(svg, -1) {
		if at := floats(m[1:3]); at[0] < numbers {
			bad = append(bad, fmt.Sprintf("the label at %v covers the number of its row", at))
		}
	}
	return len(curves), bad
}

// floats reads numbers that drawings wrote.
func floats(texts [][]byte) (list []float64) {
	for _, text := range texts {
		v, _ := strconv.ParseFloat(string(bytes.TrimSpace(text)), 64)
		list = append(list, v)
	}
	return list
}

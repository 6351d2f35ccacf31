package main

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

func TestParseTries(t *testing.T) {
	if got, err := parseTries("1,0,1,1"); err != nil || fmt.Sprint(got) != "[1 0 1 1]" {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range []string{"", "1,1,1", "1,1,1,2", "1,1,x,1", "0,0,0,1", "1,1,1,1,1"} {
		if got, err := parseTries(text); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", text)) {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}

func TestReadSpin(t *testing.T) {
	const out = `State-vector 68 byte, depth reached 24, errors: 0
   153736 states, stored
   660433 states, matched
   814169 transitions (= stored+matched)
`
	if r, err := readSpin([]byte(out)); err != nil || r.States != 153736 || r.Transitions != 814169 {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := readSpin([]byte(strings.Replace(out, "errors: 0", "errors: 1", 1))); err == nil {
		t.Error("an error that Spin found is passed over")
	}
}

// Claims that do not hold are errors, and so are states that differ.
func TestClaims(t *testing.T) {
	c := &comparison{}
	for range forms {
		c.runs = append(c.runs, []run{{States: 1000, cpu: 1e9, wall: 1e9}})
	}
	c.runs[4][0].States, c.runs[5][0].States = 900, 900
	if err := c.err(1); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(r [][]run){
		"poundlock, one core: 0.50 of":        func(r [][]run) { r[1][0].cpu = 2e9 },
		"poundlock, two workers: 0.91 of":     func(r [][]run) { r[3][0].wall = 11e8 },
		"--exact found 999 states, Spin 1000": func(r [][]run) { r[2][0].States = 999 },
		"shifted found 1000 states":           func(r [][]run) { r[4][0].States = 1000 },
	} {
		d := &comparison{}
		for _, r := range c.runs {
			d.runs = append(d.runs, []run{r[0]})
		}
		change(d.runs)
		if err := d.err(1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	// One of two rounds shows 0.7, the other one 0.5.
	for i := range c.runs {
		c.runs[i] = append(c.runs[i], c.runs[i][0])
	}
	c.runs[3][0].wall, c.runs[3][1].wall = 20e8, 14e8
	if c.err(1) == nil || c.err(0.6) != nil || c.err(0.8) == nil {
		t.Errorf("with slack the best round counts: %v, %v, %v", c.err(1), c.err(0.6), c.err(0.8))
	}
}

// Spin's model has the states of the checker's. More of it is explored by .ci/run.
func TestSameStates(t *testing.T) {
	for _, tool := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("there is no %s here: nobody saw whether Spin's model has the states of the checker's", tool)
		}
	}
	dir := t.TempDir()
	if err := compile(dir, []int{1, 0, 1, 0}); err != nil {
		t.Fatal(err)
	}
	spin, err := measure(forms[0], exec.Command(dir+"/pan", "-w14"), readSpin)
	if err != nil {
		t.Fatal(err)
	}
	v, err := verdict(forms[1], []int{1, 0, 1, 0})
	if err != nil || v.States != spin.States || v.States < 1000 {
		t.Errorf("%d states, Spin %d; %v", v.States, spin.States, err)
	}
}

// Command spin measures the checker beside Spin, in one run on one machine, on a
// model with the same reachable states: Ricart and Agrawala's algorithm for four
// processes that enter once each.
//
//	go run ./bench/spin [--rounds 3] [--tries 1,1,1,1] [--slack 1]
//
// Spin compiles its model with -O2 -DSAFETY -DNOREDUCE. It runs alternately with the
// checker, each in a process of its own, and the median round counts. Rates of one
// core are distinct states for each second of processor time, so that other programs
// disturb them less; those of two workers are for each second on the clock, beside
// Spin's. Bytes a state are the largest resident memory over the states.
//
// The exit status is 1 when something failed, when the two find different numbers of
// states, or when a ratio is smaller than what is claimed; 2 when it was called
// wrongly. With --slack 0.6 the best round counts, 0.6 of what is claimed is enough, and
// up to five times as many rounds are made until one shows it.
// Without Spin, or a C compiler, it says so and compares nothing.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == child {
		end(explore(os.Args[2]))
	}
	rounds := flag.Int("rounds", 3, "`number` of rounds; their median counts")
	tries := flag.String("tries", "1,1,1,1", "`numbers` of tries of the four processes, 0 or 1")
	slack := flag.Float64("slack", 1, "`part` of the claimed ratios that is enough; below 1 in the best round")
	flag.Parse()
	entries, err := parseTries(*tries)
	if err != nil || flag.NArg() > 0 || *rounds < 1 || *rounds > 100 || !(*slack > 0 && *slack <= 1) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench/spin:", err)
		}
		fmt.Fprintln(os.Stderr, "want --rounds from 1 to 100, --slack above 0 and at most 1, and no argument")
		flag.Usage()
		os.Exit(2)
	}
	for _, tool := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			fmt.Fprintf(os.Stderr, "SKIPPED: there is no %s here, so nothing is compared with Spin (Debian: apt-get install spin gcc)\n", tool)
			return
		}
	}
	c, err := compare(entries, *rounds, *slack)
	if err == nil {
		c.print(os.Stdout)
		err = c.err(*slack)
	}
	end(err)
}

// parseTries reads how often each of the four processes tries.
func parseTries(text string) ([]int, error) {
	parts := strings.Split(text, ",")
	if len(parts) != 4 {
		return nil, fmt.Errorf("--tries %q: want four numbers", text)
	}
	var entries []int
	for _, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 || n > 1 {
			return nil, fmt.Errorf("--tries %q: %q is neither 0 nor 1", text, p)
		}
		entries = append(entries, n)
	}
	if sum(entries) < 2 {
		return nil, fmt.Errorf("--tries %q: want at least two processes that try", text)
	}
	return entries, nil
}

func end(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/spin:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

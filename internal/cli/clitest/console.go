package clitest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/proctest"
)

// A shellCommand is one command of a console block, with the output that follows it. A line
// "..." there stands for any lines.
type shellCommand struct {
	text   string
	output []string
}

// consoles are the console blocks of a document.
func consoles(document string) (blocks [][]shellCommand) {
	for i, part := range strings.Split(document, "```") {
		body, found := strings.CutPrefix(part, "console\n")
		if i%2 == 0 || !found {
			continue
		}
		var block []shellCommand
		for line := range strings.Lines(body) {
			line = strings.TrimSuffix(line, "\n")
			if text, command := strings.CutPrefix(line, "$ "); command {
				block = append(block, shellCommand{text: text})
			} else if last := &block[len(block)-1]; !strings.HasPrefix(line, "poundlock: waiting for lock ") { // on a terminal alone
				last.output = append(last.output, line)
			}
		}
		blocks = append(blocks, block)
	}
	return blocks
}

// What differs from run to run: times, incarnations, processes, and the columns that follow.
var unstable = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\b\d+(\.\d+)?(ms|s)\b`), "TIME"},
	{regexp.MustCompile(`\b[0-9a-f]{16}\b`), "INCARNATION"},
	{regexp.MustCompile(`[\w.-]+/\d+\b`), "HOST/PID"},
	{regexp.MustCompile(` +`), " "},
}

func stable(line string) string {
	for _, v := range unstable {
		line = v.what.ReplaceAllString(line, v.as)
	}
	return strings.TrimSpace(line)
}

// asSaid reports whether lines are what a document says.
func asSaid(said, lines []string) bool {
	if len(said) == 0 {
		return len(lines) == 0
	}
	if said[0] == "..." {
		for i := range len(lines) + 1 {
			if asSaid(said[1:], lines[i:]) {
				return true
			}
		}
		return false
	}
	return len(lines) > 0 && stable(said[0]) == stable(lines[0]) && asSaid(said[1:], lines[1:])
}

// A console is a shell that is told one command after the other.
type console struct {
	t     *testing.T
	tell  *os.File
	out   proctest.Log
	told  int
	where int               // in out: what comes next
	alias *strings.Replacer // from addresses of this test to those of the document
}

func newConsole(t *testing.T, program string) *console {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("SKIPPED: needs bash")
	}
	bin := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", RunAsProgram, os.Args[0])
	if err := os.WriteFile(filepath.Join(bin, program), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	listen, tell, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := &console{t: t, tell: tell, alias: strings.NewReplacer()}
	cmd := exec.Command(bash, "--norc", "-c", `while read -r -u 3 line; do eval "$line"; done; kill -9 $(jobs -p) 2>/dev/null; wait`)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	cmd.ExtraFiles = []*os.File{listen}
	cmd.Stdout, cmd.Stderr = &c.out, &c.out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listen.Close()
	t.Cleanup(func() {
		tell.Close()
		cmd.Wait()
	})
	return c
}

// run gives the lines that come while a command runs, and until there are so many.
func (c *console) run(text string, lines int) (found []string) {
	c.t.Helper()
	c.told++
	mark := fmt.Sprintf("told %d", c.told)
	fmt.Fprintf(c.tell, "%s\necho %s\n", text, mark)
	for end := time.Now().Add(Patience); ; time.Sleep(5 * time.Millisecond) {
		found = nil
		said, done := c.out.String()[c.where:], false
		whole := said[:strings.LastIndexByte(said, '\n')+1]
		for line := range strings.Lines(whole) {
			line = strings.TrimSuffix(line, "\n")
			switch {
			case line == mark:
				done = true
			case strings.Contains(line, " Killed "): // of bash, about its job
			default:
				found = append(found, c.alias.Replace(line))
			}
		}
		if done && len(found) >= lines {
			c.where += len(whole)
			return found
		}
		if time.Now().After(end) {
			c.t.Fatalf("%s: %d lines, want %d:\n%s", text, len(found), lines, said)
		}
	}
}

// Consoles does what the console blocks of a document show of a program, with real
// processes, and sees what they show. There are so many blocks of it at least.
func Consoles(t *testing.T, document, program string, least int) {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	called := regexp.MustCompile(`\b` + program + ` `)
	blocks := slices.DeleteFunc(consoles(string(text)), func(block []shellCommand) bool {
		return !slices.ContainsFunc(block, func(c shellCommand) bool { return called.MatchString(c.text) })
	})
	if len(blocks) < least {
		t.Fatalf("%d console blocks of %s, want %d", len(blocks), program, least)
	}
	for _, block := range blocks {
		t.Run(block[len(block)-1].text, func(t *testing.T) {
			t.Parallel()
			c := newConsole(t, program)
			hold := filepath.Join(t.TempDir(), "over")
			there, back := []string{"sleep 5", "while ! test -e " + hold + "; do sleep 0.05; done"}, []string{}
			for _, address := range regexp.MustCompile(`127\.0\.0\.1:\d+`).FindAllString(block[0].text, -1) {
				free := proctest.FreeAddr(t)
				there, back = append(there, address, free), append(back, free, address)
			}
			c.alias = strings.NewReplacer(back...)
			for i, cmd := range block {
				if i == len(block)-1 {
					if err := os.WriteFile(hold, nil, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				want := len(cmd.output)
				if slices.Contains(cmd.output, "...") {
					want = 0
				}
				real := strings.NewReplacer(there...).Replace(cmd.text)
				// The servers start, and a holder that asks them anew needs a moment.
				end := time.Now().Add(Patience)
				got := c.run(real, want)
				for strings.HasPrefix(cmd.text, "poundlock status") && !asSaid(cmd.output, got) && time.Now().Before(end) {
					time.Sleep(50 * time.Millisecond)
					got = c.run(real, 0)
				}
				if !asSaid(cmd.output, got) {
					t.Fatalf("$ %s\n%s\nthe document says\n%s", cmd.text, strings.Join(got, "\n"), strings.Join(cmd.output, "\n"))
				}
			}
		})
	}
}

// Package exampletest runs the commands that an example prints in its documentation.
package exampletest

import (
	"bufio"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/freeaddr"
)

const variable = "EXAMPLETEST"

// Main is the TestMain of an example: its test's program is the example where Start has started it.
func Main(m *testing.M, main func()) {
	if os.Getenv(variable) == "" {
		os.Exit(m.Run())
	}
	main()
}

// Commands are the arguments of the commands that the comment of main.go prints, with free addresses in place of those there.
func Commands(t *testing.T) (commands [][]string) {
	t.Helper()
	text, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	free := map[string]string{}
	for _, printed := range regexp.MustCompile(`(?m)^//\tgo run \./\S+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
		args := regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllStringFunc(printed[1], func(addr string) string {
			if free[addr] == "" {
				found, err := freeaddr.Find(1)
				if err != nil {
					t.Fatal(err)
				}
				free[addr] = found[0]
			}
			return free[addr]
		})
		commands = append(commands, strings.Fields(args))
	}
	return commands
}

// A Process is an example that runs.
type Process struct {
	*exec.Cmd
	t *testing.T

	mu    sync.Mutex
	lines []string
	ended chan struct{} // closed when there are no more
}

// Start starts the example.
func Start(t *testing.T, args []string) *Process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{Cmd: exec.Command(exe, args...), t: t, ended: make(chan struct{})}
	p.Env = append(os.Environ(), variable+"=1")
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	if err == nil {
		err = p.Cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill(); <-p.ended; _ = p.Wait() })
	go func() {
		defer close(p.ended)
		for in := bufio.NewScanner(out); in.Scan(); {
			p.mu.Lock()
			p.lines = append(p.lines, in.Text())
			p.mu.Unlock()
		}
	}()
	return p
}

// Lines are those that it has printed.
func (p *Process) Lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines[:len(p.lines):len(p.lines)]
}

// End ends it with a signal, and returns when all that it has printed is there.
func (p *Process) End(s os.Signal) {
	p.t.Helper()
	if err := p.Process.Signal(s); err != nil {
		p.t.Error(err)
	}
	<-p.ended
}

// Await waits until one of them prints a line that a pattern fits, and returns it and what the
// pattern finds.
func Await(t *testing.T, processes []*Process, pattern string) (p *Process, found []string) {
	t.Helper()
	fits := regexp.MustCompile(pattern)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		for _, p := range processes {
			for _, line := range p.Lines() {
				if found := fits.FindStringSubmatch(line); found != nil {
					return p, found
				}
			}
		}
	}
	var said []string
	for _, p := range processes {
		said = append(said, strings.Join(p.Lines(), "\n"))
	}
	t.Fatalf("nobody says %q:\n%s", pattern, strings.Join(said, "\n"))
	return nil, nil
}

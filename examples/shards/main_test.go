package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/proctest"
)

// TestMain makes this binary the example, for the processes of the test.
func TestMain(m *testing.M) {
	if os.Getenv("SHARDS_EXAMPLE") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Three processes divide the shards, also when one has gone, and when it is back.
func TestShards(t *testing.T) {
	dir := proctest.SocketDir(t)
	var members []string
	for _, name := range []string{"a", "b", "c"} {
		members = append(members, name+"=unix:"+filepath.Join(dir, name))
	}
	lines := map[string]chan string{}
	start := func(name string, flags ...string) *exec.Cmd {
		p := exec.Command(os.Args[0], append(append(flags, name), members...)...)
		p.Env = append(os.Environ(), "SHARDS_EXAMPLE=1")
		p.Stderr = os.Stderr
		out, err := p.StdoutPipe()
		if err == nil {
			err = p.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Process.Kill() })
		printed := make(chan string, 100)
		lines[name] = printed
		go func() {
			for in := bufio.NewScanner(out); in.Scan(); {
				printed <- in.Text()
			}
		}()
		return p
	}
	until := func(name, want string) {
		t.Helper()
		for last := time.After(time.Minute); ; {
			select {
			case line := <-lines[name]:
				if line == fmt.Sprint(name, " has ", want) {
					return
				}
			case <-last:
				t.Fatalf("%s does not say that it has %s", name, want)
			}
		}
	}
	a := start("a", "-bootstrap")
	b := start("b", "-bootstrap")
	c := start("c", "-bootstrap")
	thirds := func() {
		t.Helper()
		until("a", "0 3 6 9")
		until("b", "1 4 7 10")
		until("c", "2 5 8 11")
	}
	thirds()
	end := func(p *exec.Cmd) {
		t.Helper()
		p.Process.Signal(os.Interrupt)
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
	end(c)
	until("a", "0 2 4 6 8 10")
	until("b", "1 3 5 7 9 11")
	os.Remove(filepath.Join(dir, "c"))
	c = start("c")
	thirds()
	end(c)
	until("b", "1 3 5 7 9 11")
	end(a)
	until("b", "0 1 2 3 4 5 6 7 8 9 10 11")
	b.Process.Kill()
	b.Wait()
}

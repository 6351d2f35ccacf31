package poundlock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/server"
)

// What a client held that was killed is somebody else's at once, though a server cannot be told; its connections may linger. That
// two processes say so, or one that was killed itself had begun to, changes nothing.
func TestCloseKilled(t *testing.T) {
	t.Parallel()
	for _, option := range []bool{false, true} {
		t.Run(fmt.Sprintf("option=%v", option), func(t *testing.T) {
			t.Parallel()
			closeKilled(t, option)
		})
	}
}

func closeKilled(t *testing.T, option bool) {
	l, config := startLocal(t)
	config.Lease, config.EndWithConnection = time.Minute, option
	killed, next := dial(t, config), dial(t, config) // the first one lives: it stands for connections that linger
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, name := range []string{"a", "b"} {
		if _, err := killed.Mutex(name).Lock(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := next.Mutex("a").TryLock(ctx); !errors.Is(err, poundlock.ErrNotAcquired) {
		t.Fatalf("%v: the lock is not held", err)
	}
	if err := l.Stop(3); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			bounded, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
			defer cancel()
			began := time.Now()
			err := poundlock.CloseKilled(bounded, config, killed.Secret())
			if took := time.Since(began); took > patience/2 {
				t.Errorf("it took %v", took)
			}
			if err == nil || !strings.Contains(err.Error(), "3 of 4 servers reachable, 4 wanted: s4") {
				t.Errorf("error %v, want one that names s4", err)
			}
		})
	}
	all.Wait()
	began := time.Now()
	for _, name := range []string{"a", "b"} {
		g, err := next.Mutex(name).Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Unlock()
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the next grants took %v, under a lease of %v", took, config.Lease)
	}
	if err := l.Start(3); err != nil {
		t.Fatal(err)
	}
	if err := poundlock.CloseKilled(ctx, config, next.Secret()+1); err != nil { // of a client that nobody knows
		t.Error(err)
	}
	if err := poundlock.CloseKilled(ctx, config, 0); err == nil {
		t.Error("a client without a secret is closed")
	}
}

// killedProgram is the variable that makes a test process the program that is killed: its value are the addresses of the servers.
const killedProgram = "POUNDLOCK_TEST_KILLED_PROGRAM"

// The program of TestKilledProgram, and nothing without it: it holds the lock "a" until it is killed.
func TestHolderToKill(t *testing.T) {
	addrs := os.Getenv(killedProgram)
	if addrs == "" {
		return
	}
	config := poundlock.Config{Lease: 10 * time.Second, EndWithConnection: true}
	for k, addr := range strings.Split(addrs, ",") {
		config.Servers = append(config.Servers, poundlock.Server{Name: fmt.Sprint("s", k+1), Addr: addr})
	}
	if _, err := dial(t, config).Mutex("a").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	fmt.Println("\ninside")
	select {}
}

// A program whose sessions end with its connections is followed as soon as it is killed, over TCP and over unix sockets.
func TestKilledProgram(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			var config poundlock.Config
			var addrs []string
			if network == "unix" {
				_, config = startLocal(t)
				for _, s := range config.Servers {
					addrs = append(addrs, s.Addr)
				}
			} else {
				config, addrs = startTCP(t)
			}
			program := exec.Command(os.Args[0], "-test.run=^TestHolderToKill$", "-test.v")
			program.Env = append(os.Environ(), killedProgram+"="+strings.Join(addrs, ","))
			out, err := program.StdoutPipe()
			if err == nil {
				err = program.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			defer program.Wait()
			defer program.Process.Kill()
			for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "inside"; {
			}
			next := dial(t, config)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if _, err := next.Mutex("a").TryLock(ctx); !errors.Is(err, poundlock.ErrNotAcquired) {
				t.Fatalf("%v: the program does not hold the lock", err)
			}
			program.Process.Kill()
			killed := time.Now()
			g, err := next.Mutex("a").Lock(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer g.Unlock()
			took := time.Since(killed)
			t.Logf("followed %v after the kill", took)
			if took > 5*time.Second { // of a lease of 10, of which three quarters are left at least
				t.Error("that is as late as the lease")
			}
		})
	}
}

// startTCP is startLocal on loopback.
func startTCP(t *testing.T) (config poundlock.Config, addrs []string) {
	t.Helper()
	for k := range 4 {
		addrs = append(addrs, proctest.FreeAddr(t))
		config.Servers = append(config.Servers, poundlock.Server{Name: fmt.Sprint("s", k+1), Addr: addrs[k]})
	}
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() { stop(); all.Wait() })
	for _, p := range config.Servers {
		s, err := server.New(server.Config{Name: p.Name, Servers: config.Servers})
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if err := s.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	return config, addrs
}

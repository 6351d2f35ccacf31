package poundlock_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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

// killedProgram is the variable that makes a test process the program that is killed: its value is the JSON of what it gives Config.
const killedProgram = "POUNDLOCK_TEST_KILLED_PROGRAM"

// A promise is what the program says of itself, and where it finds the servers.
type promise struct {
	Servers                     []poundlock.Server
	EndWithConnection, Outlived bool
}

// The program of TestKilledProgram, and nothing without it: it holds the lock "a" until it is killed.
func TestHolderToKill(t *testing.T) {
	text := os.Getenv(killedProgram)
	if text == "" {
		return
	}
	var p promise
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	config := poundlock.Config{Servers: p.Servers, Lease: 10 * time.Second, EndWithConnection: p.EndWithConnection, Outlived: p.Outlived}
	if _, err := dial(t, config).Mutex("a").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	fmt.Println("\ninside")
	select {}
}

// A program is followed as soon as it is killed where its sessions end with its connections, over TCP and over unix sockets, and where
// servers see its end: it has dialed their unix sockets itself, and nobody else acts for it.
func TestKilledProgram(t *testing.T) {
	for name, program := range map[string]struct {
		network string
		promise promise
		proxied bool
		waits   bool // the next one, for the lease
	}{
		"option,tcp":            {network: "tcp", promise: promise{EndWithConnection: true}},
		"option,unix":           {network: "unix", promise: promise{EndWithConnection: true}},
		"plain,tcp":             {network: "tcp", waits: true},
		"plain,unix":            {network: "unix", waits: runtime.GOOS != "linux"},
		"outlived,unix":         {network: "unix", promise: promise{Outlived: true}, waits: true},
		"plain,unix,by a proxy": {network: "unix", proxied: true, waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			var config poundlock.Config
			if program.network == "unix" {
				_, config = startLocal(t)
			} else {
				config = startTCP(t)
			}
			t.Parallel() // not before: what is about to become a program has the sockets, too, by which free addresses are found
			if program.promise.Servers = config.Servers; program.proxied {
				program.promise.Servers = proxies(t, config.Servers)
			}
			kill := startHolder(t, program.promise)
			next := dial(t, config)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if _, err := next.Mutex("a").TryLock(ctx); !errors.Is(err, poundlock.ErrNotAcquired) {
				t.Fatalf("%v: the program does not hold the lock", err)
			}
			kill()
			killed := time.Now()
			if program.waits {
				soon, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				if _, err := next.Mutex("a").Lock(soon); !errors.Is(err, poundlock.ErrNotAcquired) {
					t.Errorf("%v: followed %v after the kill, though somebody else may act for it", err, time.Since(killed))
				}
				return
			}
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

// startHolder starts the program and waits until it is inside.
func startHolder(t *testing.T, p promise) (kill func()) {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	program := exec.Command(os.Args[0], "-test.run=^TestHolderToKill$", "-test.v")
	program.Env = append(os.Environ(), killedProgram+"="+string(text))
	out, err := program.StdoutPipe()
	if err == nil {
		err = program.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		program.Process.Kill()
		program.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "inside"; {
	}
	return func() { program.Process.Kill() }
}

// proxies pass on what comes to other unix sockets, which are the servers' for who dials them.
func proxies(t *testing.T, servers []poundlock.Server) (proxied []poundlock.Server) {
	t.Helper()
	dir := t.TempDir()
	for _, s := range servers {
		path := filepath.Join(dir, s.Name)
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				near, err := l.Accept()
				if err != nil {
					return
				}
				far, err := net.Dial("unix", strings.TrimPrefix(s.Addr, "unix:"))
				if err != nil {
					near.Close()
					continue
				}
				go pass(near, far)
				go pass(far, near)
			}
		}()
		proxied = append(proxied, poundlock.Server{Name: s.Name, Addr: "unix:" + path})
	}
	return proxied
}

func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	to.Close()
}

// startTCP is startLocal on loopback.
func startTCP(t *testing.T) (config poundlock.Config) {
	t.Helper()
	for k := range 4 {
		config.Servers = append(config.Servers, poundlock.Server{Name: fmt.Sprint("s", k+1), Addr: proctest.FreeAddr(t)})
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
	return config
}

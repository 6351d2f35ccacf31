package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/internal/certs"
	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/cli/clitest"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// A cutter is a listener whose connections the test breaks.
type cutter struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (c *cutter) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.mu.Lock()
		c.conns = append(c.conns, conn)
		c.mu.Unlock()
	}
	return conn, err
}

// cut closes the connections that were accepted before.
func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		conn.Close()
	}
	c.conns = nil
}

// concatenate writes the files from, one after another, to a file.
func concatenate(t *testing.T, to string, from ...string) {
	t.Helper()
	var all bytes.Buffer
	for _, f := range from {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	if err := os.WriteFile(to, all.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestNewAuthorityUnderALock: a cluster changes from one authority to another, as
// docs/operations.md has it, while a lock is held. Every connection breaks after
// each step, so that handshakes use the new files; no session ends.
func TestNewAuthorityUnderALock(t *testing.T) {
	t.Parallel()
	lane.CI.Need(t, "five seconds of certificates that change under a lock")
	dir := t.TempDir()
	older, newer, used := dir+"/older", dir+"/newer", dir+"/used"
	for _, d := range []string{older, newer} {
		a, err := certs.Create(d)
		for _, s := range []certs.Subject{{Name: "server", Hosts: []string{"127.0.0.1"}}, {Name: "client"}} {
			if err == nil {
				_, err = a.Issue(s, 1)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(used, 0o700); err != nil {
		t.Fatal(err)
	}
	flags := func(name string) clusterFlags {
		return clusterFlags{
			tlsCert: certs.CertPath(used, name), tlsKey: certs.KeyPath(used, name), tlsCA: certs.CertPath(used, name+"-ca"),
		}
	}
	install := func(from, name string) {
		t.Helper()
		concatenate(t, certs.KeyPath(used, name), certs.KeyPath(from, name))
		concatenate(t, certs.CertPath(used, name), certs.CertPath(from, name))
	}
	oldCA, newCA := certs.CertPath(older, "ca"), certs.CertPath(newer, "ca")
	for _, name := range []string{"server", "client"} {
		install(older, name)
		concatenate(t, flags(name).tlsCA, oldCA)
	}
	var cutters []*cutter
	cluster := startTLS(t, serverTLS(t, flags("server")), func(l net.Listener) net.Listener {
		c := &cutter{Listener: l}
		cutters = append(cutters, c)
		return c
	})
	config := poundlock.Config{TLS: clientTLS(t, flags("client"))}
	for _, p := range cluster.table {
		config.Servers = append(config.Servers, poundlock.Server(p))
	}
	client, err := poundlock.Dial(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	grant, err := client.Mutex("held").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// A second client, whose sessions have numbers that can be seen.
	observer, err := node.Start(node.Config{
		Secret: node.NewSecret(), System: slots.System(4, slots.DefaultClockBound),
		Hosts: map[node.Kind]node.Host{node.Mutex: node.HostOf(sigma.Algorithm)}, Peers: cluster.table, TLS: clientTLS(t, flags("client")),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer observer.Close()
	if err := observer.WaitAlive(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	// cut breaks all connections, and returns once every session has a new one.
	cut := func() {
		t.Helper()
		time.Sleep(1100 * time.Millisecond) // files are looked at once a second
		for _, c := range cutters {
			c.cut()
		}
		for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			back := 0
			for _, c := range cutters {
				c.mu.Lock()
				back += len(c.conns)
				c.mu.Unlock()
			}
			if back >= 8 && answers(t, observer) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d of 8 connections are back; log:\n%s", back, &cluster.log)
			}
		}
	}
	for i, step := range []func(){
		func() { // both authorities, everywhere
			concatenate(t, flags("server").tlsCA, oldCA, newCA)
			concatenate(t, flags("client").tlsCA, oldCA, newCA)
		},
		func() { // new certificates, in any order
			install(newer, "client")
			install(newer, "server")
		},
		func() { // the old authority goes
			concatenate(t, flags("server").tlsCA, newCA)
			concatenate(t, flags("client").tlsCA, newCA)
		},
	} {
		step()
		cut()
		for _, s := range observer.Sessions() {
			if s.Number != 1 {
				t.Errorf("after step %d: session %d with server %d", i+1, s.Number, s.Peer)
			}
		}
		if err := grant.Context().Err(); err != nil {
			t.Fatalf("after step %d: %v", i+1, err)
		}
	}
	if err := grant.Unlock(); err != nil {
		t.Error(err)
	}
	// The test can fail: whoever still shows the old certificate is refused.
	install(older, "client")
	time.Sleep(1100 * time.Millisecond)
	for _, c := range cutters {
		c.cut()
	}
	time.Sleep(300 * time.Millisecond)
	if answers(t, observer) {
		t.Error("a client of the old authority is still served")
	}
}

// answers says that every server answers a control request of n now.
func answers(t *testing.T, n *node.Node) bool {
	t.Helper()
	for id := range 4 {
		if _, err := n.Call(t.Context(), protocol.ID(id), []byte(`{"ask":"sessions"}`)); err != nil {
			return false
		}
	}
	return true
}

// TestCAToLock: what ca makes is all that a cluster off loopback and its clients
// need, and its servers refuse who has none of it.
func TestCAToLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var table []string
	for i, port := range freePorts(t, 4) {
		table = append(table, fmt.Sprintf("s%d=127.0.0.1:%d", i+1, port))
	}
	program := func(args ...string) *exec.Cmd {
		c := exec.Command(os.Args[0], args...)
		c.Env = append(os.Environ(), clitest.RunAsProgram+"=1", "POUNDLOCK_SERVERS="+strings.Join(table, ","))
		c.Dir = dir
		return c
	}
	if out, err := program("ca", "made", "--client", "deploy").CombinedOutput(); err != nil {
		t.Fatalf("ca: %v\n%s", err, out)
	}
	identity := func(name string) []string {
		return []string{"--tls-ca", "made/ca.pem", "--tls-cert", "made/" + name + ".pem", "--tls-key", "made/" + name + ".key"}
	}
	var log proctest.Log
	for _, entry := range table {
		name, addr, _ := strings.Cut(entry, "=")
		_, port, _ := net.SplitHostPort(addr)
		// On all addresses, which a server without TLS refuses.
		c := program(append([]string{"serve", "--name", name, "--listen", "0.0.0.0:" + port}, identity(name)...)...)
		c.Stderr = &log
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			c.Process.Signal(syscall.SIGTERM)
			if err := c.Wait(); err != nil {
				t.Errorf("%s: %v\n%s", name, err, &log)
			}
		})
	}
	out, err := program(append(append([]string{"lock", "a", "-w", "30"}, identity("deploy")...), "--", "echo", "inside")...).CombinedOutput()
	if err != nil || string(out) != "inside\n" {
		t.Errorf("lock: %v\n%s\nservers:\n%s", err, out, &log)
	}
	out, err = program("lock", "a", "-w", "2", "--tls-ca", "made/ca.pem", "--", "echo", "inside").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != cli.ExitNoQuorum || !strings.Contains(string(out), "hint: the servers want to see a certificate") {
		t.Errorf("lock without a certificate: %v\n%s", err, out)
	}
}

// freePorts returns n ports at which nobody listens, on any address. They are below those
// of proctest.FreeAddr, so that tests of other packages do not take them.
func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range 100 {
		port := 10000 + rand.IntN(10000)
		if l, err := net.Listen("tcp", fmt.Sprint("0.0.0.0:", port)); err == nil {
			defer l.Close() // so that none comes twice
			if ports = append(ports, port); len(ports) == n {
				return ports
			}
		}
	}
	t.Fatal("no free port")
	return nil
}

// TestCertificateMetric: a scrape says when the certificate in use ends, also after a
// new one has come.
func TestCertificateMetric(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, err := certs.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	f := clusterFlags{tlsCert: certs.CertPath(dir, "server"), tlsKey: certs.KeyPath(dir, "server")}
	var last float64
	for _, days := range []int{1, 30} {
		subject := certs.Subject{Name: "server", Hosts: []string{"127.0.0.1"}}
		issue := a.Issue
		if last > 0 {
			issue = a.Renew
		}
		cert, err := issue(subject, days)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.serverTLS(); err != nil {
			t.Fatal(err)
		}
		r := prometheus.NewPedanticRegistry()
		r.MustRegister(certMetrics(f.store))
		for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			all, err := r.Gather()
			if err != nil || len(all) != 1 {
				t.Fatalf("%d metrics, %v", len(all), err)
			}
			if v := all[0].Metric[0].GetGauge().GetValue(); v == float64(cert.NotAfter.Unix()) && v > last {
				last = v
				break
			} else if time.Now().After(end) {
				t.Fatalf("%v, want %d", v, cert.NotAfter.Unix())
			}
		}
	}
	empty := prometheus.NewPedanticRegistry()
	empty.MustRegister(certMetrics(nil))
	if all, err := empty.Gather(); err != nil || len(all) != 0 {
		t.Errorf("without TLS: %d metrics, %v", len(all), err)
	}
}

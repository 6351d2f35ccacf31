package server

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/internal/private"
	"github.com/poundlock/poundlock/internal/prom"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/transport"
)

// connect connects to server i as a successor does. A server listens for them a moment after it serves.
func (d *dynasty) connect(t *testing.T, i int) (conn *net.UnixConn) {
	t.Helper()
	eventually(t, "it listens for successors", func() bool {
		var err error
		conn, err = net.DialUnix("unix", nil, &net.UnixAddr{Name: d.socket(i), Net: "unix"})
		return err == nil
	})
	t.Cleanup(func() { conn.Close() })
	return conn
}

// taken takes the table of server i as a successor that then says nothing.
func (d *dynasty) taken(t *testing.T, i int) *net.UnixConn {
	t.Helper()
	conn := d.connect(t, i)
	config := d.reigns[i].server.nodeConfig()
	var o offer
	if err := errors.Join(writeJSON(conn, config.Title()), readJSON(conn, &o)); err != nil {
		t.Fatal(err)
	}
	next, _, err := node.Restore(config, conn)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Node().Close(); err != nil {
		t.Error(err)
	}
	return conn
}

// tooSlow says nothing until the predecessor breaks off.
func (d *dynasty) tooSlow(t *testing.T, i int) {
	t.Helper()
	if err := wait(d.taken(t, i)); err != nil {
		t.Error(err)
	}
}

// displaced has somebody else take the address of server i while a successor, which then
// goes, has its table. It returns what holds the address.
func (d *dynasty) displaced(t *testing.T, i int) *os.File {
	t.Helper()
	conn := d.taken(t, i)
	path, _ := transport.Unix(d.table[i].Addr)
	other, err := private.Lock(path+".lock", unix.LOCK_EX)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	conn.Close()
	return other
}

// serving is what the metrics say.
func serving(t *testing.T, s *Server) float64 {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(prom.Metrics(s.metrics))
	all, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.GetName() == "poundlock_serving" {
			return m.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal("no metric poundlock_serving")
	return 0
}

// A successor that is too slow, and comes again at once, costs nobody a session: each
// attempt may take a quarter of the lease, and clients come back between two of them.
func TestSlowSuccessor(t *testing.T) {
	t.Parallel()
	lane.CI.Need(t, "six seconds of a successor that is slow")
	d := newDynasty(t, func(c *Config) { c.Lease = 4 * time.Second })
	cl := d.dial(t)
	g, err := cl.Mutex("held").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sessions := d.sessions()
	end := time.Now().Add(5 * time.Second) // longer than the lease
	for time.Now().Before(end) {
		d.tooSlow(t, 0)
		time.Sleep(20 * time.Millisecond)
	}
	eventually(t, "the clients are back", func() bool { return d.reigns[0].server.node.Away() == 0 })
	if now := d.sessions(); now != sessions {
		t.Errorf("hand-overs that failed cost sessions: %s, and now %s", sessions, now)
	}
	if err := context.Cause(g.Context()); err != nil {
		t.Error(err)
	}
}

// After a hand-over that failed another process may have the address: the server says
// that it does not serve, hears everything that it is told, and serves when it can.
func TestAddressTaken(t *testing.T) {
	d := newDynasty(t, func(c *Config) { c.Lease = time.Minute }) // a quarter of which is for the hand-over
	s := d.reigns[0].server
	if got := serving(t, s); got != 1 {
		t.Errorf("poundlock_serving is %v before", got)
	}
	other := d.displaced(t, 0)
	eventually(t, "it cannot listen", func() bool { return strings.Contains(d.log.String(), "cannot serve again") })
	if got := serving(t, s); got != 0 {
		t.Errorf("poundlock_serving is %v while the address is taken", got)
	}
	ended := make(chan error)
	go func() { ended <- s.SetTable(0, d.table) }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(atLast):
		t.Fatal("the slot table cannot be set")
	}
	other.Close()
	eventually(t, "it serves again", func() bool { return serving(t, s) == 1 })
	use(t, d.dial(t), "a")

	d.displaced(t, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	go func() { s.Drain(ctx); close(ended) }()
	select {
	case <-ended:
	case <-time.After(atLast):
		t.Fatal("it does not drain")
	}
	d.reigns[0].stop()
	select {
	case <-d.reigns[0].ended:
	case <-time.After(atLast):
		t.Fatal("it does not end")
	}
}

// A server that sits out does not serve.
func TestServingWhileMute(t *testing.T) {
	t.Parallel()
	d := newDynasty(t, func(c *Config) { c.SitOut = 300 * time.Millisecond })
	if s := d.reigns[0].server; serving(t, s) != 0 && s.Addr() == nil {
		t.Error("poundlock_serving is 1 while the server sits out")
	}
	eventually(t, "it serves", func() bool { return serving(t, d.reigns[0].server) == 1 })
}

// A table that was taken over is served, also where no later hand-over is possible.
func TestNoPlaceForHeirs(t *testing.T) {
	d := newDynasty(t, nil)
	cl := d.dial(t)
	g, err := cl.Mutex("held").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sessions := d.sessions()
	link := filepath.Join(d.dir, "link") // leads to the predecessor, and is no socket
	for _, suffix := range []string{"", ".lock"} {
		if err := os.Symlink(d.socket(0)+suffix, link+suffix); err != nil {
			t.Fatal(err)
		}
	}
	d.changes = func(c *Config) {
		if c.Name == d.table[0].Name {
			c.Handover = "unix:" + link
		}
	}
	d.handOver(0)
	eventually(t, "it says so", func() bool {
		return strings.Contains(d.log.String(), "the table cannot be handed over later")
	})
	eventually(t, "its clients are back", func() bool { return d.reigns[0].server.node.Away() == 0 })
	if now := d.sessions(); now != sessions {
		t.Errorf("sessions were %s, and are %s", sessions, now)
	}
	if err := errors.Join(context.Cause(g.Context()), g.Unlock()); err != nil {
		t.Error(err)
	}
	if err := d.end(0); err != nil {
		t.Error(err)
	}
	if guard, err := private.Lock(link+".lock", unix.LOCK_EX); err != nil {
		t.Errorf("the lock of the hand-over is not given up: %v", err)
	} else {
		guard.Close()
	}
	if err := os.Remove(d.socket(0)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

package main

import (
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/poundlock/poundlock/internal/proctest"
)

// The admin port of a peer tells how it is, and what it has counted.
func TestPeerAdmin(t *testing.T) {
	t.Parallel()
	c := &audited{t: t, dir: proctest.SocketDir(t)}
	p := c.program("peer", "--name", "p1", "--peers", "p1=unix:"+c.path("p", 0), "--bootstrap", "--api", "unix:"+c.path("x", 0),
		"--admin", "unix:"+c.path("admin", 0))
	var log proctest.Log
	p.Stderr = &log
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	c.processes[0] = p
	defer c.stop(0, syscall.SIGTERM)
	if h := c.until(0, http.StatusOK); h.Server != "p1" || !h.Serving || !h.Quorum {
		t.Errorf("%+v\n%s", h, &log)
	}
	body := c.scrape(0)
	for _, line := range []string{"poundlock_peer_healthy 1", "poundlock_peer_grants_total 0"} {
		if !strings.Contains(body, "\n"+line+"\n") {
			t.Errorf("no line %q in\n%s", line, body)
		}
	}
	if _, about, err := c.get(0, "/"); err != nil || !strings.Contains(about, `admin port of peer "p1"`) {
		t.Errorf("%s, %v", about, err)
	}
}

package faultnet_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/faultnet"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/server"
)

// Frames that overtake each other are a breach of the protocol: the sessions
// concerned end with an error that says so, and the lock is served by new ones once
// the network keeps the order again.
func TestSwappedSessions(t *testing.T) {
	var log proctest.Log // of both ends: each ends a session when it notices
	logger := slog.New(slog.NewTextHandler(&log, nil))
	cluster, err := server.StartLocal(server.LocalConfig{Dir: proctest.SocketDir(t), Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	var servers []faultnet.Server
	for _, s := range cluster.Servers() {
		servers = append(servers, faultnet.Server(s))
	}
	n, err := faultnet.NewNet([]string{"c1"}, servers)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	swap := func(k int) { n.Each(nil, nil, func(p *faultnet.Proxy) { p.SwapFrames(k) }) }
	swap(4)

	c := poundlock.Config{Lease: time.Second, Log: logger}
	for _, s := range n.Servers("c1") {
		c.Servers = append(c.Servers, poundlock.Server(s))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client, err := poundlock.Dial(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for !strings.Contains(log.String(), "link:") { // its error about the order of messages
		attempt, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		if g, err := client.Mutex("swapped").Lock(attempt); err == nil {
			g.Unlock()
		}
		cancel()
		if ctx.Err() != nil {
			t.Fatalf("no session ended because of the order of messages. Log:\n%s", &log)
		}
	}
	if text := log.String(); !strings.Contains(text, "session ended") {
		t.Errorf("an error without the end of a session. Log:\n%s", text)
	}
	swap(0)
	n.Break(nil, nil)
	if _, err := client.Mutex("swapped").Lock(ctx); err != nil {
		t.Errorf("in order again: %v", err)
	}
}

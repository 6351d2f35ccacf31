package server_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/server"
)

// What other programs call can be called without the names of internal packages.
func TestPublicTypes(t *testing.T) {
	l, err := server.StartLocal(server.LocalConfig{Dir: proctest.SocketDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	o, err := server.Observe(server.AskConfig{Servers: l.Servers(), Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	o.Sessions(ctx)
	var answers []server.Released = o.Release(ctx, server.Release{
		Name: []byte("a"), Request: node.RequestID(1<<62, 1), Reason: "a test",
	})
	for i, a := range answers {
		if a.Outcome != server.Unknown || a.Err != "" {
			t.Errorf("server %d knows a request that there is not: %+v", i, a)
		}
	}
}

// Servers that a local cluster does not have are an error.
func TestLocalNumbers(t *testing.T) {
	l, err := server.StartLocal(server.LocalConfig{Dir: proctest.SocketDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, f := range []func(int) error{l.Start, l.Stop} {
		for _, i := range []int{-1, 4, 99} {
			if err := f(i); err == nil || !strings.Contains(err.Error(), "want 0 to 3") {
				t.Errorf("server %d: %v", i, err)
			}
		}
	}
}

package peers_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/peers"
)

// TestElect: all name the highest member, and the next one when it has gone.
func TestElect(t *testing.T) {
	t.Parallel()
	for _, algorithm := range append(peers.Elections(), "") {
		t.Run(algorithm, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			c := peers.Config{Algorithm: algorithm, Lease: time.Second / 2, Bootstrap: true}
			dir := proctest.SocketDir(t)
			for k := range 3 {
				name := fmt.Sprint("p", k+1)
				c.Members = append(c.Members, peers.Peer{Name: name, Addr: "unix:" + filepath.Join(dir, name)})
			}
			var all []*peers.Election
			for _, p := range c.Members {
				c.Name = p.Name
				e, err := peers.Elect(c)
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				all = append(all, e)
			}
			want := func(name string, elections ...*peers.Election) {
				t.Helper()
				for _, e := range elections {
					var last peers.Leader
					for last = range e.Observe(ctx) {
						if last.Name == name {
							break
						}
					}
					if last.Name != name || e.Leader().Epoch < last.Epoch {
						t.Errorf("%+v leads, and now %+v, want %s", last, e.Leader(), name)
					}
				}
			}
			want("p3", all...)
			if err := all[0].SetTable(1, c.Members); err != nil {
				t.Error(err)
			}
			if err := all[0].SetTable(2, c.Members[:2]); err == nil || !strings.Contains(err.Error(), "peers: node: the members cannot change") {
				t.Error(err)
			}
			if err := all[2].Close(); err != nil {
				t.Fatal(err)
			}
			want("p2", all[0], all[1])
		})
	}
}

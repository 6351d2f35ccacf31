package node_test

import (
	"bytes"
	"context"
	"iter"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/poundlock/poundlock/algo/wme"
	"github.com/poundlock/poundlock/internal/counters"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/transport"
	"github.com/poundlock/poundlock/wrap/consensus"
	"github.com/poundlock/poundlock/wrap/reliable"
)

// A notebook is a journal in memory.
type notebook struct {
	appends func(record []byte) // nil: nothing; while Append is under way

	mu      sync.Mutex
	records [][]byte
	calls   []string
}

func (b *notebook) Where() string { return "memory" }

func (b *notebook) Records() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, r := range slices.Clone(b.records) {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (b *notebook) Append(record []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.records = append(b.records, bytes.Clone(record))
	b.calls = append(b.calls, "append")
	if b.appends != nil {
		b.appends(record)
	}
	return nil
}

func (b *notebook) Replace(records iter.Seq2[[]byte, error]) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.records = nil
	for r, err := range records {
		if err != nil {
			return err
		}
		b.records = append(b.records, bytes.Clone(r))
	}
	b.calls = append(b.calls, "replace")
	return nil
}

// noting starts two members, of which the first one has a notebook, and returns both with the configuration of that one.
func noting(t *testing.T, b *notebook) (nodes []*node.Node, c node.Config) {
	t.Helper()
	host := node.HostOf(consensus.With(wme.Second))
	nodes = cluster(t, 2, false, host, func(config *node.Config) {
		config.Hosts, config.Objects = map[node.Kind]node.Host{node.Replica: host}, map[string]node.Object{"o": &counters.Store{}}
		if config.ID == 0 {
			config.Journal, config.Orphan, config.JournalCut = b, func(string) func() { return func() {} }, 1
			c = *config
		}
	})
	return nodes, c
}

// No checkpoint is written between the end of a session and what its loop makes of that: what waited in it is gone.
func TestCheckpointDead(t *testing.T) {
	b := &notebook{}
	nodes, _ := noting(t, b)
	n := nodes[0]
	u := objectUser{newProbe(), make(chan error, 1)}
	must(t, n.Try(node.Replica, "o", u, false))
	<-u.crit
	large := counters.Add(strings.Repeat("x", 10<<10)) // a checkpoint is due after it
	b.mu.Lock()
	b.appends = func(record []byte) {
		if bytes.Contains(record, large) {
			b.appends, b.calls = nil, nil
			n.EndSession(1)
		}
	}
	b.mu.Unlock()
	n.Issue("o", large)
	eventually(t, "a checkpoint", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.appends == nil && slices.Contains(b.calls, "replace")
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.calls[0] != "append" {
		t.Error("a checkpoint has a session that is over")
	}
}

// After a restart a session has the usual bounds at once, though a peer that stays away never says how much it has got.
func TestJournalBounds(t *testing.T) {
	b := &notebook{}
	nodes, c := noting(t, b)
	for _, n := range nodes {
		n.Close()
	}
	l, err := transport.Listen(c.Peers[0].Addr)
	if err != nil {
		t.Fatal(err)
	}
	c.Listener, c.Joins = l, true
	c.Objects = map[string]node.Object{"o": &counters.Store{}}
	c.Dial = func(ctx context.Context, _ node.Peer) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	items, size := start(t, c).Room(1)
	if most := reliable.MaxItems; items > most {
		t.Errorf("%d messages more may wait, want at most %d", items, most)
	}
	if most := reliable.MaxBytes + 4*node.MaxOperation; size > most {
		t.Errorf("%d bytes more may wait, want at most %d", size, most)
	}
}

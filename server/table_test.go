package server

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/node"
)

// runs starts a server, and returns what Run returned once it has.
func runs(t *testing.T, c Config) (*Server, <-chan error) {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	gone := make(chan struct{})
	go func() {
		ended <- s.Run(ctx)
		close(gone)
	}()
	t.Cleanup(func() { cancel(); <-gone })
	<-s.serving
	return s, ended
}

func TestServerSetTable(t *testing.T) {
	dir := proctest.SocketDir(t)
	table := LocalServers(dir, 4)
	unserved, err := New(Config{Name: "s2", Servers: table})
	if err != nil {
		t.Fatal(err)
	}
	defer unserved.Close()
	if err := unserved.SetTable(1, table); err == nil {
		t.Error("a server that does not serve has a new table")
	}
	s, ended := runs(t, Config{Name: "s1", Servers: table, Epoch: 1})
	change := func(k int, p node.Peer) []node.Peer {
		c := slices.Clone(table)
		c[k] = p
		return c
	}
	elsewhere := "unix:" + filepath.Join(dir, "elsewhere")
	for _, x := range []struct {
		epoch uint64
		table []node.Peer
		want  string // "" for none
	}{
		{0, table, "epoch 0 cannot replace that of epoch 1"},
		{1, table, ""},
		{1, change(1, node.Peer{Name: "s2", Addr: elsewhere}), "two slot tables have epoch 1"},
		{2, change(1, node.Peer{Name: "s9", Addr: elsewhere}), "cannot change from s1, s2, s3, s4 to s1, s3, s4, s9"},
		{2, table[:3], "fewer than four"},
		{2, change(1, node.Peer{Name: "s2", Addr: "nonsense"}), `server s2: address "nonsense"`},
		{2, change(1, node.Peer{Name: "s2", Addr: elsewhere}), ""},
		{3, table, ""},
	} {
		err := s.SetTable(x.epoch, x.table)
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("epoch %d, %v: %v, want %q", x.epoch, x.table, err, x.want)
		}
	}
	select {
	case err := <-ended:
		t.Fatalf("it ends with %v", err)
	default:
	}
	if err := s.SetTable(4, change(0, node.Peer{Name: "s1", Addr: elsewhere})); err != nil {
		t.Error(err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, ErrMoved) || !strings.Contains(err.Error(), "s1 is at "+elsewhere) {
			t.Errorf("it ends with %v", err)
		}
	case <-time.After(atLast):
		t.Error("the server of a slot that has moved goes on")
	}
}

// Status is asked shard by shard, and shows the newest table.
func TestAskShards(t *testing.T) {
	t.Parallel()
	dir := proctest.SocketDir(t)
	var table []node.Peer
	for _, g := range []string{"b", "a"} {
		for i := range 4 {
			table = append(table, node.Peer{Name: fmt.Sprintf("%s/s%d", g, i+1), Addr: "unix:" + filepath.Join(dir, fmt.Sprint(g, i))})
		}
	}
	newer := slices.Clone(table)
	newer[0].Addr = "unix:" + filepath.Join(dir, "elsewhere")
	for _, p := range table[1:6] { // three of b, two of a
		runs(t, Config{Name: p.Name, Servers: newer, Epoch: 7})
	}
	const want = "a/s1: a/s1 7, a/s2: a/s2 7, a/s3: down, a/s4: down, b/s1: down, b/s2: b/s2 7, b/s3: b/s3 7, b/s4: b/s4 7"
	var answers []Answer
	eventually(t, want, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // for a there is no quorum: it takes two thirds
		defer cancel()
		var err error
		if answers, err = ask(ctx, AskConfig{Servers: table}); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range answers {
			state := "down"
			if a.Err == nil {
				state = fmt.Sprint(a.Status.Server, " ", a.Status.Epoch)
			}
			got = append(got, a.Server.Name+": "+state)
		}
		return strings.Join(got, ", ") == want
	})
	if got := answers[4].Server.Addr; got != newer[0].Addr {
		t.Errorf("b/s1 is at %s, want the address in the servers' table", got)
	}
}

// A server refuses locks of another shard, whoever sends them there.
func TestLocksOfAnotherShard(t *testing.T) {
	dir := proctest.SocketDir(t)
	var table []node.Peer
	for _, g := range []string{"a", "b"} {
		for i := range 4 {
			table = append(table, node.Peer{Name: fmt.Sprintf("%s/s%d", g, i+1), Addr: "unix:" + filepath.Join(dir, fmt.Sprint(g, i))})
		}
	}
	shards := slots.Split(table)
	for _, p := range shards[0].Servers {
		runs(t, Config{Name: p.Name, Servers: table})
	}
	n, err := node.Start(node.Config{
		Secret: node.NewSecret(), Hosts: slots.Hosts(), System: slots.System(4, slots.DefaultClockBound),
		Peers: shards[0].Servers, Shards: "a,b",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	ctx, cancel := context.WithTimeout(t.Context(), atLast)
	defer cancel()
	if err := n.WaitAlive(ctx, 4); err != nil {
		t.Fatal(err)
	}
	name := 0
	for shards.Of(fmt.Sprint(name)) != 1 {
		name++
	}
	u := make(user, 4)
	if err := n.Try(node.Mutex, fmt.Sprint(name), u, false); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-u:
		if want := fmt.Sprintf(`lock "%d" belongs to shard b, and a/s`, name); !strings.Contains(got, want) || !strings.HasPrefix(got, "rem ") {
			t.Errorf("%q, want %q", got, want)
		}
	case <-ctx.Done():
		t.Error("the lock is neither granted nor refused")
	}
}

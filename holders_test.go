package poundlock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/server"
	"github.com/poundlock/poundlock/server/status"
)

// TestHoldersOfOneLock: users and operators are told of all who share a lock, in the order in which they asked for it, with
// the group, which equal names of any length have in common; and of who is alone.
func TestHoldersOfOneLock(t *testing.T) {
	t.Parallel()
	l, config := startLocal(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var clients []*poundlock.Client
	for k := range 4 {
		config.Label = fmt.Sprint("c", k)
		clients = append(clients, dial(t, config))
	}
	const long = "readers of the book"
	if _, err := clients[0].Groups("book").Lock(ctx, long); err == nil {
		t.Fatal("a group with blanks is taken")
	}
	for group, shown := range map[string]string{poundlock.Shared: "shared", strings.ReplaceAll(long, " ", "-"): "~"} {
		var grants []*poundlock.Grant
		for _, c := range clients[:3] {
			g, err := c.Groups("book").Lock(ctx, group)
			if err != nil {
				t.Fatal(err)
			}
			grants = append(grants, g)
		}
		alone := make(chan *poundlock.Grant, 1)
		go func() {
			g, err := clients[3].RWMutex("book").Lock(ctx)
			if err != nil {
				t.Error(err)
			}
			alone <- g
		}()
		o := observe(t, l)
		var book status.Lock
		var cluster *status.Cluster
		eventually(t, "all supports are there, and one waits", func() bool {
			book = status.Lock{}
			cluster = status.Ask(ctx, o, server.LockQuery{}, func(x status.Lock) bool {
				book = x
				return true
			})
			return cluster.LossBudget == 2 && len(book.Waiters) == 1
		})
		o.Close()
		if !cluster.RestartSafe || cluster.HeldCount != 1 || cluster.LockCount != 1 || book.Waiters[0].Label != "c3" {
			t.Errorf("%+v\n%+v", cluster, book)
		}
		holders, err := clients[3].Holders(ctx, "book")
		if err != nil || len(holders) != 3 || len(book.Holders) != 3 {
			t.Fatalf("%v: %+v, %+v", err, holders, book.Holders)
		}
		for k, h := range holders {
			if h.ID != clients[k].ID() || h.Label != fmt.Sprint("c", k) || h.Held == 0 || h.Token == 0 || h.Token > grants[k].Token() {
				t.Errorf("holder %d is %+v, and has the token %d", k, h, grants[k].Token())
			}
			if h.Group != book.Group || !strings.HasPrefix(h.Group, shown) || len(h.Group) > 9 {
				t.Errorf("group %q is shown as %q and %q", group, h.Group, book.Group)
			}
			if b := book.Holders[k]; b.ID != h.ID || b.SupportsLive != 4 || b.LossBudget != 2 {
				t.Errorf("the status has %+v", b)
			}
		}
		if first, err := clients[3].Holder(ctx, "book"); err != nil || first.ID != clients[0].ID() {
			t.Errorf("one of them is %+v, %v", first, err)
		}
		for _, g := range slices.Backward(grants) {
			if err := g.Unlock(); err != nil {
				t.Error(err)
			}
		}
		g := <-alone
		if g == nil {
			return
		}
		eventually(t, "one is alone", func() bool {
			holders, err := clients[0].Holders(ctx, "book")
			return err == nil && len(holders) == 1 && holders[0].ID == clients[3].ID() && holders[0].Group == ""
		})
		if err := g.Unlock(); err != nil {
			t.Error(err)
		}
	}
	eventually(t, "nobody holds it", func() bool {
		holders, err := clients[0].Holders(ctx, "book")
		return err == nil && holders == nil
	})
}

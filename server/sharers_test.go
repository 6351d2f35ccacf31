package server

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/control"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// A crowd are the locks of a server as the test has them: by name, in order.
type crowd struct {
	t     *testing.T
	s     *Server
	locks []node.Lock
	pages int
	ask   func(page int) // before each page
}

func (c *crowd) Lock(name string) (found []node.Lock) {
	for _, l := range c.locks {
		if l.Name == name {
			found = append(found, l)
		}
	}
	return found
}

func (c *crowd) LocksPage(p node.Page) (found []node.Lock) {
	for _, l := range c.locks {
		if l.Name > p.After && len(found) < p.Limit {
			found = append(found, l)
		}
	}
	return found
}

// Call implements control.Caller.
func (c *crowd) Call(_ context.Context, _ protocol.ID, request []byte) ([]byte, error) {
	if c.pages++; c.ask != nil {
		c.ask(c.pages)
	}
	var q control.Query
	if err := json.Unmarshal(request, &q); err != nil {
		c.t.Fatal(err)
	}
	p := control.Page{Status: Status{Incarnation: "1"}}
	c.s.list(&p, c, q)
	b, err := json.Marshal(p)
	if len(b) > 2*pageBytes {
		c.t.Errorf("a page of %d bytes", len(b))
	}
	return b, err
}

// locks is what an observer makes of all pages: the names of the locks, each with its holders.
func (c *crowd) told(q control.Query) map[string][]string {
	c.t.Helper()
	all := map[string][]string{}
	c.pages = 0
	err := control.Pages(c.t.Context(), c, 0, time.Minute, q, func(p control.Page) bool {
		for _, l := range p.Locks {
			if all[l.Name] != nil {
				c.t.Errorf("lock %q comes twice", l.Name)
			}
			all[l.Name] = []string{}
			for _, h := range l.Holders() {
				all[l.Name] = append(all[l.Name], h.Request)
				if h.HeldMS != 5 || h.Group != "readers" {
					c.t.Errorf("holder %+v", h)
				}
			}
			if l.Name == "b" && len(l.Waiters) != 1 {
				c.t.Errorf("waiters %+v", l.Waiters)
			}
		}
		return true
	})
	if err != nil {
		c.t.Error(err)
	}
	return all
}

// crowded is a lock that so many hold. Their requests are older than the ids say.
func crowded(name string, holders int) (l node.Lock, requests []string) {
	l = node.Lock{Name: name, Kind: node.Mutex, Standing: protocol.Standing{Waiters: []protocol.Request{{User: 9, Since: 99999}}}}
	requests = []string{}
	for k := range holders {
		r := protocol.Request{User: protocol.ID(1<<20 - k), Since: int64(100 + k/2*2), Group: "readers"}
		if k%2 == 1 { // at the time of the one before
			r.User = protocol.ID(1<<20 - k + 2)
		}
		l.Standing.Holders = append(l.Standing.Holders, r)
		l.Held = append(l.Held, 5*time.Millisecond)
		requests = append(requests, node.RequestID(r.User, uint64(r.Since)))
	}
	return l, requests
}

// TestManySharers: the holders of one lock may fill many pages, and come whole, whatever becomes of them meanwhile.
func TestManySharers(t *testing.T) {
	t.Parallel()
	l := startLocal(t)
	c := &crowd{t: t, s: l.lives[0].server}
	want := map[string][]string{}
	for k, holders := range []int{1, 2500, 0, 2, 1300} {
		lock, requests := crowded(fmt.Sprintf("%c", 'a'+k), holders)
		c.locks, want[lock.Name] = append(c.locks, lock), requests
	}
	if got := c.told(control.Query{Ask: control.Locks}); !reflect.DeepEqual(got, want) || c.pages < 5 {
		t.Errorf("in %d pages: %d locks, %d holders of b, %d of e", c.pages, len(got), len(got["b"]), len(got["e"]))
	}
	if got := c.told(control.Query{Ask: control.OneLock, Name: []byte("b")}); !slices.Equal(got["b"], want["b"]) || len(got) != 1 {
		t.Errorf("alone: %d holders, want %d", len(got["b"]), len(want["b"]))
	}
	// The rest of its holders leave after the first page, or the lock itself goes.
	some := want["b"][:10]
	c.ask = func(page int) {
		if page == 2 {
			c.locks[1].Standing.Holders = c.locks[1].Standing.Holders[:10]
		}
	}
	if got := c.told(control.Query{Ask: control.Locks}); len(got) != 5 || !slices.Equal(got["b"][:10], some) || len(got["b"]) == 2500 {
		t.Errorf("%d locks, %d holders of b", len(got), len(got["b"]))
	}
	c.locks[1], _ = crowded("b", 2500)
	c.ask = func(page int) {
		if page == 2 {
			c.locks = slices.Delete(c.locks, 1, 2)
		}
	}
	if got := c.told(control.Query{Ask: control.Locks}); len(got) != 5 || len(got["b"]) < 10 {
		t.Errorf("%d locks, %d holders of b", len(got), len(got["b"]))
	}
}

// replies are pages as they stand.
type replies []string

func (r *replies) Call(context.Context, protocol.ID, []byte) ([]byte, error) {
	next := (*r)[0]
	*r = (*r)[1:]
	return []byte(next), nil
}

// TestPagesInOrder: a server whose pages do not go on is not asked for ever.
func TestPagesInOrder(t *testing.T) {
	lock := `"locks":[{"name":"a"}],"last":"YQ==","more":true`
	for _, pages := range []replies{
		{`{` + lock + `}`, `{` + lock + `}`},
		{`{` + lock + `,"rest":"1-1"}`, `{` + lock + `,"rest":"1-1"}`},
		{`{` + lock + `,"rest":"2-1"}`, `{` + lock + `,"rest":"1-1"}`},
		{`{` + lock + `,"rest":"x"}`},
		{`{"last":"YQ==","more":true,"rest":"1-1"}`},
	} {
		err := control.Pages(t.Context(), &pages, 0, time.Minute, control.Query{}, func(control.Page) bool { return true })
		if err == nil || err.Error() != "its pages are out of order" || len(pages) > 0 {
			t.Errorf("%v, and %d pages are left", err, len(pages))
		}
	}
}

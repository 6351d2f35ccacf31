package poundlock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/internal/control"
	"github.com/poundlock/poundlock/protocol"
)

// support makes the servers answer: one letter each, whom it supports, upper case
// if it knows the token; - nobody, ! no answer.
func (f *fakeNode) support(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = func(server protocol.ID) *control.Page {
		r := control.Request{ID: strings.ToLower(text[server : server+1]), Label: "label"}
		switch text[server] {
		case '!':
			return nil
		case '-':
			return &control.Page{}
		}
		if r.ID != text[server:server+1] {
			r.Token = 7
		}
		return &control.Page{Status: control.Status{Locks: []control.Lock{{Holder: &r}}}}
	}
}

func TestLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		e := c.Election("e")
		for _, x := range []struct{ last, servers, want string }{
			{"", "aaaa", "a"},
			{"", "aaa-", "a"},
			{"", "aaab", "a"},
			{"", "aaa!", "a"},
			{"", "aab-", "a"}, // still so when it is asked again
			{"", "aabb", "-"}, // one of them, but which?
			{"", "aA--", "A"}, // inside, and two servers have forgotten it
			{"", "AAbb", "A"},
			{"", "Abbb", "b"},
			{"", "A---", "-"}, // lost: the others are enough for somebody else
			{"", "----", "-"},
			{"", "---!", "-"},
			{"a", "aab-", "a"}, // it led, and nobody else can have got in
			{"a", "a---", "-"},
			{"a", "aabb", "a"},
			{"b", "aab-", "a"},
		} {
			f.support(x.servers)
			l, err := e.ask(t.Context(), Leader{ID: x.last})
			if err != nil {
				t.Fatal(err)
			}
			want := Leader{}
			if x.want != "-" {
				want = Leader{ID: strings.ToLower(x.want), Label: "label"}
				if want.ID != x.want {
					want.Token = 7
				}
			}
			if l != want {
				t.Errorf("last %q, servers %s: %+v, want %+v", x.last, x.servers, l, want)
			}
		}

		// One that is about to yield does not lead.
		f.support("aab-")
		time.AfterFunc(5*time.Millisecond, func() { f.support("abbb") })
		if l, err := e.Leader(t.Context()); err != nil || l.ID != "b" {
			t.Errorf("leader %+v, %v", l, err)
		}

		f.support("aa!!")
		begin := time.Now()
		_, err := e.Leader(t.Context())
		wantIs(t, err, ErrNoQuorum)
		if d := time.Since(begin); d != 10*time.Second || !strings.Contains(err.Error(), "s3: no route") {
			t.Errorf("%v after %v", err, d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = e.Leader(ctx)
		wantIs(t, err, ErrNoQuorum, context.DeadlineExceeded)

		// Servers that come back within the time.
		time.AfterFunc(5*time.Second, func() { f.support("aaa!") })
		if l, err := e.Leader(t.Context()); err != nil || l.ID != "a" {
			t.Errorf("leader %+v, %v", l, err)
		}
		for _, name := range []string{"", "a\nb"} {
			if _, err := c.Election(name).Leader(t.Context()); err == nil {
				t.Errorf("name %q is accepted", name)
			}
		}
		time.AfterFunc(time.Second, func() { c.Close() })
		f.support("!!!!")
		_, err = e.Leader(t.Context())
		wantIs(t, err, ErrClosed)
	})
}

// TestObserve: what is seen while the loop is busy is the last change only, an
// error comes once, and the end with the context, or with the client.
func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		at := func(after time.Duration, servers string) {
			time.AfterFunc(after, func() { f.support(servers) })
		}
		f.support("----")
		at(10*time.Second, "aaaa")
		at(20*time.Second, "AAAA")
		at(30*time.Second, "bbbb") // while the loop is busy
		at(35*time.Second, "----")
		at(39*time.Second, "cccc")
		at(60*time.Second, "!!!!")
		at(90*time.Second, "cccc")
		var seen []string
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		begin := time.Now()
		for l, err := range c.Election("e").Observe(ctx) {
			text := l.ID
			if l.Token != 0 {
				text += "+token"
			}
			if err != nil {
				wantIs(t, err, ErrNoQuorum)
				text = "unknown"
			}
			seen = append(seen, text)
			if text == "a+token" {
				time.Sleep(20 * time.Second)
			}
			if time.Since(begin) > 90*time.Second {
				time.AfterFunc(10*time.Second, cancel)
			}
		}
		if got := strings.Join(seen, " "); got != " a a+token c unknown c" {
			t.Errorf("saw %q", got)
		}

		for _, err := range c.Election("").Observe(t.Context()) {
			if err == nil || errors.Is(err, ErrNoQuorum) {
				t.Errorf("a name that is none: %v", err)
			}
		}
		f.support("!!!!") // an error has come when the client is closed
		time.AfterFunc(time.Minute, func() { c.Close() })
		var last error
		for _, err := range c.Election("e").Observe(t.Context()) {
			last = err
		}
		wantIs(t, last, ErrClosed)
		for range c.Election("e").Observe(t.Context()) {
			break
		}
	})
}

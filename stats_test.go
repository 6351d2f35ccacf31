package poundlock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// What a caller is told is what is counted.
func TestStats(t *testing.T) {
	c, f := newFake(t)
	ctx := t.Context()
	if s := c.Stats(); !reflect.DeepEqual(s.Servers, []ServerStats{{Name: "s0", Connected: true, RoundTrip: time.Millisecond}}) {
		t.Errorf("servers: %+v", s.Servers)
	}
	counted := func() Stats {
		s := c.Stats()
		s.Servers, s.Waits, s.Holds = nil, Histogram{Count: s.Waits.Count}, Histogram{Count: s.Holds.Count}
		return s
	}
	want := Stats{}
	check := func(what string) {
		t.Helper()
		if got := counted(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	g, err := c.Locks("a", "b").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want.Grants, want.Waits.Count, want.Held = 2, 2, 2
	check("two locks")
	if _, err := c.Mutex("a").TryLock(ctx); !errors.Is(err, ErrNotAcquired) {
		t.Fatal(err)
	}
	want.NotAcquired++
	check("a lock that is held")
	f.eject("a")
	<-g.Context().Done()
	want.Losses, want.Held = 1, 1
	check("one of them is lost")
	g.Unlock()
	want.Held, want.Holds.Count = 0, 2
	check("unlocked")

	f.hold = true // nobody tries yet
	short, cancel := context.WithCancel(ctx)
	ended := make(chan error)
	go func() {
		_, err := c.Mutex("c").Lock(short)
		ended <- err
	}()
	for c.Stats().Wanted != 1 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-ended; !errors.Is(err, ErrNotAcquired) {
		t.Fatal(err)
	}
	want.NotAcquired++
	check("given up")
	f.setAlive(1)
	over, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	if _, err := c.Mutex("d").Lock(over); !errors.Is(err, ErrNoQuorum) {
		t.Fatal(err)
	}
	want.NoQuorum++
	check("without a quorum")
}

// enter lets the user of a lock in, once it tries.
func (f *fakeNode) enter(name string, e node.Entry) {
	for {
		f.mu.Lock()
		u := f.users[name]
		f.inside[name] = u != nil
		f.mu.Unlock()
		if u != nil {
			f.calls <- func() { u.Crit(e) }
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// A token that is not the time of its request took one more round.
func TestSlowTokens(t *testing.T) {
	for _, x := range []struct {
		e    node.Entry
		slow uint64
	}{{node.Entry{Token: 7, Request: 7}, 0}, {node.Entry{Token: 8, Request: 7}, 1}, {node.Entry{Token: 8}, 0}} {
		c, f := newFake(t)
		f.hold = true // nobody tries yet
		ended := make(chan error)
		go func() {
			g, err := c.Mutex("a").Lock(t.Context())
			if err == nil {
				err = g.Unlock()
			}
			ended <- err
		}()
		x.e.Sessions = map[protocol.ID]uint64{0: 1, 1: 1, 2: 1, 3: 1}
		f.enter("a", x.e)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if got := c.Stats().SlowTokens; got != x.slow {
			t.Errorf("%+v: %d slow tokens", x.e, got)
		}
	}
}

type auditLine struct {
	Level, Msg, Lock, Request, Client, Label, Group, Reason string
	Token                                                   uint64 `json:",string"` // JSON readers round numbers beyond 2^53
	HeldMS                                                  *int64 `json:"held_ms"`
	Dropped                                                 int
}

func auditLines(t *testing.T, text string) (all []auditLine) {
	t.Helper()
	d := json.NewDecoder(bytes.NewBufferString(text))
	for d.More() {
		var l auditLine
		if err := d.Decode(&l); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		all = append(all, l)
	}
	return all
}

// written waits for so many lines: Close does for a second only.
func written(t *testing.T, log *proctest.Log, lines int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); strings.Count(log.String(), "\n") < lines; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d lines, want %d", strings.Count(log.String(), "\n"), lines)
		}
	}
}

func newAuditedFake(t *testing.T, audit, log *slog.Logger) (*Client, *fakeNode) {
	t.Helper()
	c, f := newFake(t)
	c.audit.close()
	c.config.Audit, c.config.Log = audit, log
	c.audit.start(c.id, c.config)
	return c, f
}

// The audit has a record for each grant, release and loss, and a log at debug has
// the same.
func TestAudit(t *testing.T) {
	var audit, log proctest.Log
	c, f := newAuditedFake(t, slog.New(slog.NewJSONHandler(&audit, nil)),
		slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	for k, lost := range []bool{false, true, false} {
		m := c.Mutex("a")
		if lost {
			m = m.In("readers-of-it")
		}
		g, err := m.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if k == 2 {
			for range 2 { // once
				if err := g.Downgrade("readers-of-it"); err != nil {
					t.Error(err)
				}
			}
		}
		if lost {
			f.eject("a")
			<-g.Context().Done()
		}
		g.Unlock()
	}
	written(t, &audit, 8)
	written(t, &log, 8)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	lines := auditLines(t, audit.String())
	var events []string
	for _, l := range lines {
		events = append(events, l.Msg+l.Group)
		request := fmt.Sprintf("%s-%016x", c.ID(), l.Token) // the fake's requests are as old as their tokens
		if l.Lock != "a" || l.Client != c.ID() || l.Label != "test" || l.Request != request || l.Level != "INFO" ||
			(l.HeldMS == nil) != (l.Msg == "grant") || (l.Reason == "") != (l.Msg != "loss") || strings.Contains(l.Reason, "lost") {
			t.Errorf("a record: %+v", l)
		}
	}
	want := []string{
		"grant", "release", "grantreaders-of-it", "lossreaders-of-it", "releasereaders-of-it",
		"grant", "downgradereaders-of-it", "releasereaders-of-it",
	}
	if !reflect.DeepEqual(events, want) {
		t.Errorf("events %v, want %v", events, want)
	}
	if same := auditLines(t, log.String()); len(same) != len(lines) || same[0].Level != "DEBUG" {
		t.Errorf("the log: %s", log.String())
	}
}

// A hanging handler takes nothing until it is let go.
type hanging struct {
	slog.Handler
	enter, leave chan struct{}
}

func (h *hanging) Handle(ctx context.Context, r slog.Record) error {
	h.enter <- struct{}{}
	<-h.leave
	return h.Handler.Handle(ctx, r)
}

// A logger that hangs keeps no lock waiting: what does not fit is counted, and said.
func TestAuditDrops(t *testing.T) {
	var audit proctest.Log
	h := &hanging{slog.NewJSONHandler(&audit, nil), make(chan struct{}, 2*maxAudit), make(chan struct{})}
	c, _ := newAuditedFake(t, slog.New(h), nil)
	const locks = maxAudit/2 + 50 // two records each
	for k := range locks {
		g, err := c.Mutex("a").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		g.Unlock()
		if k == 0 {
			<-h.enter // the first one hangs, and waits for nobody in the queue
		}
	}
	missing := c.Stats().Unaudited
	if missing != 2*locks-1-maxAudit {
		t.Errorf("%d records are missing", missing)
	}
	close(h.leave)
	written(t, &audit, 2*locks-int(missing)+1) // and that others are missing
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	var there, said int
	for _, l := range auditLines(t, audit.String()) {
		if l.Msg == "dropped" {
			said += l.Dropped
		} else {
			there++
		}
	}
	if said != int(missing) || there+said != 2*locks {
		t.Errorf("%d written, %d said to be missing, of %d", there, said, 2*locks)
	}
}

// What nobody wants to read is not made.
func TestNoAudit(t *testing.T) {
	c, _ := newAuditedFake(t, nil, slog.New(slog.NewTextHandler(new(bytes.Buffer), nil))) // at info
	g, err := c.Mutex("a").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g.Unlock()
	if k := len(c.audit.records); k != 0 || c.Stats().Unaudited != 0 {
		t.Errorf("%d records", k)
	}
}

package server

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/internal/control"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// wants has a client that speaks the wire by hand ask server i for a lock with a request
// of any time, and returns when the server has dealt with it or has ended the session.
// Afterwards the client says that it was told to whatever it is asked.
func (d *dynasty) wants(i int, name string, at uint64, stage sigma.Stage) {
	d.t.Helper()
	conn, err := net.Dial("unix", strings.TrimPrefix(d.table[i].Addr, "unix:"))
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { conn.Close() })
	say := func(items ...func([]byte) []byte) {
		b := transport.AppendHeader(nil, 0)
		for _, item := range items {
			b = item(b)
		}
		transport.EndFrame(b)
		conn.Write(b) // an error says that the server has seen enough
	}
	var members []string
	for _, p := range d.table {
		members = append(members, p.Name)
	}
	secret := node.NewSecret()
	hello := transport.Hello{
		From: node.ClientID(secret), To: protocol.ID(i), ToName: d.table[i].Name, Incarnation: secret, Session: 1,
		Members: strings.Join(members, ","), Kinds: []transport.Kind{{Number: uint8(node.Mutex), Algorithm: "sigma"}},
		ClockBound: time.Millisecond, Label: "stranger",
	}
	request := append(binary.AppendUvarint([]byte{sigma.Request}, at), 1, byte(stage))
	greeted, done := make(chan transport.Item, 1), make(chan struct{})
	var once sync.Once
	go func() {
		defer once.Do(func() { close(done) })
		for {
			b, err := transport.ReadFrame(conn, transport.MaxFrame)
			if err != nil {
				return
			}
			_, rest, err := transport.ReadHeader(b)
			for err == nil && len(rest) > 0 {
				var x transport.Item
				x, rest, err = transport.ReadItem(rest)
				switch x.Type {
				case transport.WelcomeItem, transport.RefuseItem:
					select {
					case greeted <- x:
					default:
					}
				case transport.PongItem:
					once.Do(func() { close(done) })
				case transport.CallItem:
					say(transport.Item{Type: transport.ReplyItem, Seq: x.Seq, Body: []byte(`{"outcome":"told"}`)}.Append)
				}
			}
		}
	}()
	say(hello.Append)
	if x := <-greeted; x.Type != transport.WelcomeItem {
		d.t.Fatalf("not welcome: %q", x.Body)
	}
	say(transport.Item{Type: transport.MessageItem, Seq: 1, Kind: uint8(node.Mutex), Name: []byte(name), Body: request}.Append,
		transport.Item{Type: transport.PingItem, Seq: 1}.Append)
	<-done
}

// Whatever time a client gives its request: a hold that the server gives is in its list
// of locks, in its audit and in its metrics, and has a request that a release can name.
func TestNoHoldUnseen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit")
	var audit *Audit
	d := newDynasty(t, func(c *Config) {
		if c.Name == "s1" && audit == nil {
			var err error
			if audit, err = OpenAudit("s1", path, slog.New(slog.DiscardHandler)); err != nil {
				t.Fatal(err)
			}
			c.Audit = audit
		}
	})
	now := uint64(time.Now().UnixNano())
	for _, at := range []uint64{0, 1, now, now + uint64(time.Hour), 1 << 62, 1<<63 - 1, 1 << 63, 1<<63 + now, 1<<64 - 2, 1<<64 - 1} {
		for _, stage := range []sigma.Stage{sigma.First, sigma.Again, sigma.Inside} {
			d.wants(0, fmt.Sprintf("%d-%d", at, stage), at, stage)
		}
	}
	s := d.reigns[0].server
	seen := map[string]string{} // the request that is supported, by lock
	ops := client(t, &Local{servers: d.table}, "ops")
	page, err := control.Ask(t.Context(), ops, 0, control.Query{Ask: control.Locks})
	if err != nil || page.More {
		t.Fatal(err, page.More)
	}
	for _, l := range page.Locks {
		if l.Holder == nil {
			continue
		}
		seen[l.Name] = l.Holder.Request
		got, err := control.Ask(t.Context(), ops, 0, control.Release{
			Ask: control.ForcedRelease, Name: []byte(l.Name), Request: l.Holder.Request, Reason: "unseen",
		})
		if err != nil || got.Released.Outcome != control.Told {
			t.Errorf("lock %s: a release of request %q: %v, %+v", l.Name, l.Holder.Request, err, got.Released)
		}
	}
	if len(seen) == 0 {
		t.Error("not even an honest request is granted")
	}
	_, metrics := get(t, startAdmin(t, s, nil), "/metrics", "text/plain")
	if want := fmt.Sprintf("poundlock_supports %d\n", len(seen)); !strings.Contains(metrics, want) {
		t.Errorf("want %q in the metrics", want)
	}
	if err := audit.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range readAudit(t, text) {
		if r.Event == "support" && seen[r.Lock] == r.Request {
			delete(seen, r.Lock)
		} else if r.Event != "end" {
			t.Errorf("the audit has %+v, which nobody sees", r)
		}
	}
	for name, request := range seen {
		t.Errorf("lock %s: request %q is not in the audit", name, request)
	}
}

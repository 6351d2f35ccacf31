package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/poundlock/poundlock/internal/limit"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

const (
	maxAudit   = 1 << 14  // records that may wait for the file
	auditBatch = 64 << 10 // bytes of one write
	auditClose = 2 * time.Second

	// What one client may have written: so many records at once, and then so many a second. More than
	// auditClients that write more than that at once share what one may.
	auditBurst   = 2 * maxAudit
	auditEvery   = time.Millisecond
	auditClients = 1 << 12
	auditTell    = 10 * time.Second // when a client that has become silent is told of
)

// AuditRecord is one line of the audit file. Those of all servers tell who held a
// lock: whose one request a quorum of them supported at the same time. A server supports
// several requests of one lock at a time where these share a group.
type AuditRecord struct {
	Time    time.Time `json:"time"`
	Server  string    `json:"server"`
	Event   string    `json:"event"` // support, downgrade (it shares from now on), end or dropped
	Lock    string    `json:"lock,omitempty"`
	Kind    string    `json:"kind,omitempty"`
	Group   string    `json:"group,omitempty"` // that shares the lock, as in the status; absent: alone
	Client  string    `json:"client,omitempty"`
	Label   string    `json:"label,omitempty"`
	Request string    `json:"request,omitempty"`
	HeldMS  *int64    `json:"held_ms,omitempty"` // downgrade and end
	Dropped uint64    `json:"dropped,omitempty"` // dropped: how many records are missing here
}

// An Audit writes a line for each support that a server gives or ends. It never
// keeps a lock waiting: what the file is too slow for is left out, and a line in
// its place, the log and a counter say how much.
type Audit struct {
	server  string
	path    string
	log     *slog.Logger
	records chan auditRecord
	reopen  chan struct{}
	closing chan struct{}
	done    chan struct{}

	written, dropped atomic.Uint64
	missing          atomic.Uint64 // dropped, and no line says so yet
	rate             limit.Rate[protocol.ID]

	out io.Writer // the writer's, as all below
	own *os.File  // to be closed; nil: standard output
	cut bool      // the last line is not whole
}

type auditRecord struct {
	node.Support
	at      time.Time
	missing int // records of the client that were left out before this one: it had too many
}

// OpenAudit begins to write to a file, to which it appends; "-" is standard output.
func OpenAudit(server, path string, log *slog.Logger) (*Audit, error) {
	a := &Audit{
		server: server, path: path, log: log,
		records: make(chan auditRecord, maxAudit),
		reopen:  make(chan struct{}, 1),
		closing: make(chan struct{}),
		done:    make(chan struct{}),
		out:     os.Stdout,
		rate:    auditRate(),
	}
	if path != "-" {
		if err := a.open(); err != nil {
			return nil, fmt.Errorf("server: audit: %w", err)
		}
	}
	go a.run()
	return a, nil
}

func auditRate() limit.Rate[protocol.ID] {
	return limit.Rate[protocol.ID]{Burst: auditBurst, Every: auditEvery, Most: auditClients}
}

func (a *Audit) open() error {
	f, err := os.OpenFile(a.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if a.own != nil {
		a.own.Close()
	}
	a.out, a.own, a.cut = f, f, false
	return nil
}

// Reopen opens the file again, after it has been renamed. If that fails, the old
// one stays in use, and the log says so. It does nothing without an audit.
func (a *Audit) Reopen() {
	if a == nil {
		return
	}
	select {
	case a.reopen <- struct{}{}:
	default:
	}
}

// Close writes what waits, for two seconds at most. a may be nil.
func (a *Audit) Close() error {
	if a == nil {
		return nil
	}
	close(a.closing)
	select {
	case <-a.done:
		return nil
	case <-time.After(auditClose):
		return fmt.Errorf("server: audit: %s takes no more: %d records are missing at its end", a.path, len(a.records))
	}
}

// noter is node.Config.Audit; nil without an audit.
func (a *Audit) noter() func(node.Support) {
	if a == nil {
		return nil
	}
	return a.note
}

func (a *Audit) note(s node.Support) {
	r := auditRecord{Support: s, at: time.Now()}
	var ok bool
	if r.missing, ok = a.rate.Take(s.Client, r.at); !ok {
		a.dropped.Add(1)
		return
	}
	select {
	case a.records <- r:
	default:
		a.dropped.Add(1)
		a.missing.Add(uint64(r.missing) + 1)
	}
}

func (a *Audit) run() {
	defer close(a.done)
	tell := time.NewTicker(auditTell)
	defer tell.Stop()
	for {
		select {
		case r := <-a.records:
			a.write(r)
		case now := <-tell.C:
			a.tellMissing(now)
		case <-a.reopen:
			if a.own == nil {
				a.log.Info("the audit is on standard output: there is no file to open again")
				break
			}
			if err := a.open(); err != nil {
				a.log.Error("the audit file cannot be opened again: the old one stays in use", "path", a.path, "error", err)
				break
			}
			a.log.Info("opened the audit file again", "path", a.path)
		case <-a.closing:
			for len(a.records) > 0 {
				a.write(<-a.records)
			}
			a.tellMissing(time.Now().Add(auditTell))
			if a.own != nil {
				a.own.Close()
			}
			return
		}
	}
}

// tellMissing writes what was left out of clients that have become silent.
func (a *Audit) tellMissing(now time.Time) {
	a.rate.Refused(now, func(client protocol.ID, missing int) {
		a.write(auditRecord{Support: node.Support{Client: client}, at: now, missing: missing})
	})
}

// write writes a record, and those that wait behind it, in one go.
func (a *Audit) write(r auditRecord) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if a.cut {
		b.WriteByte('\n')
	}
	missing := a.missing.Swap(0)
	if missing > 0 {
		e.Encode(AuditRecord{Time: time.Now(), Server: a.server, Event: "dropped", Dropped: missing})
	}
	count := a.encode(e, r)
	for b.Len() < auditBatch && len(a.records) > 0 {
		count += a.encode(e, <-a.records)
	}
	k, err := a.out.Write(b.Bytes())
	if err != nil {
		// How much of it can be read is not known: a count that is too large is honest.
		a.cut = a.cut || k > 0
		a.dropped.Add(count)
		a.missing.Add(count + missing)
		a.log.Error("the audit file cannot be written: records are missing", "path", a.path, "missing", count+missing, "error", err)
		return
	}
	a.cut = false
	a.written.Add(count)
	if missing > 0 {
		a.log.Error("audit records are missing: the file was too slow or full", "path", a.path, "missing", missing)
	}
}

// encode encodes a record, after what is missing of its client, and says how many these are.
func (a *Audit) encode(e *json.Encoder, r auditRecord) (count uint64) {
	line := AuditRecord{Time: r.at, Server: a.server, Client: hex(uint64(r.Client)), Label: r.Label}
	if r.missing > 0 {
		dropped := line
		dropped.Event, dropped.Dropped = "dropped", uint64(r.missing)
		e.Encode(dropped)
	}
	if r.Lock == "" {
		return 0
	}
	line.Event, line.Lock, line.Kind, line.Group = "support", r.Lock, r.Kind.String(), r.Group
	line.Request = node.RequestID(r.Client, r.Request)
	held := r.Held.Milliseconds()
	switch {
	case r.Ended:
		line.Event, line.HeldMS = "end", &held
	case r.Downgraded:
		line.Event, line.HeldMS = "downgrade", &held
	}
	e.Encode(line)
	return 1
}

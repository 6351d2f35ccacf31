package poundlock

import (
	"context"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

const (
	maxAudit  = 4096 // records that may wait for a logger
	auditTime = time.Second
)

// An auditor writes a record for each grant, release and loss, on a goroutine of its
// own: a logger that hangs must not keep a lock from being lost in time. What does
// not fit into its queue is left out and counted, and the next record that is
// written says how many there were.
type auditor struct {
	id      protocol.ID
	label   string
	audit   *slog.Logger // nil: off
	log     *slog.Logger // gets the same at level debug; nil: off
	records chan auditRecord
	closing chan struct{}
	done    chan struct{}
	dropped atomic.Uint64
	missing atomic.Uint64 // dropped, and no record says so yet
}

type auditRecord struct {
	event   string
	at      time.Time
	lock    string
	token   uint64
	request uint64
	user    string // its label, "" for none
	held    time.Duration
	cause   error
}

// start starts the auditor if somebody wants to read what it writes.
func (a *auditor) start(id protocol.ID, c Config) {
	a.id, a.label, a.audit, a.log = id, c.Label, c.Audit, c.Log
	a.closing, a.done = make(chan struct{}), make(chan struct{})
	if a.audit == nil && a.log == nil {
		close(a.done)
		return
	}
	a.records = make(chan auditRecord, maxAudit)
	go a.run()
}

// close writes what waits, for a second at most.
func (a *auditor) close() {
	close(a.closing)
	select {
	case <-a.done:
	case <-time.After(auditTime):
	}
}

// note never waits. Client.mu is held, so that the records of a grant come in order.
func (a *auditor) note(h *hold, event string) {
	if a.audit == nil && (a.log == nil || !a.log.Enabled(context.Background(), slog.LevelDebug)) {
		return
	}
	r := auditRecord{event: event, at: time.Now(), lock: h.line.name, token: h.token, request: h.request, user: h.section.label, cause: h.lost}
	if event != "grant" {
		r.held = r.at.Sub(h.entered)
	}
	select {
	case a.records <- r:
	default:
		a.dropped.Add(1)
		a.missing.Add(1)
	}
}

func (a *auditor) run() {
	defer close(a.done)
	for {
		select {
		case r := <-a.records:
			a.write(r)
		case <-a.closing:
			for len(a.records) > 0 {
				a.write(<-a.records)
			}
			return
		}
	}
}

func (a *auditor) write(r auditRecord) {
	client := slog.String("client", idText(a.id))
	if k := a.missing.Swap(0); k > 0 {
		a.emit(time.Now(), "dropped", client, slog.Uint64("dropped", k))
	}
	attributes := []slog.Attr{
		slog.String("lock", r.lock),
		slog.String("token", strconv.FormatUint(r.token, 10)), // JSON readers round numbers beyond 2^53
		slog.String("request", node.RequestID(a.id, r.request)),
		client,
		slog.String("label", node.FullLabel(a.label, r.user)),
	}
	if r.event != "grant" {
		attributes = append(attributes, slog.Int64("held_ms", r.held.Milliseconds()))
	}
	if r.event == "loss" {
		attributes = append(attributes, slog.String("reason", r.cause.Error()))
	}
	a.emit(r.at, r.event, attributes...)
}

func (a *auditor) emit(at time.Time, event string, attributes ...slog.Attr) {
	for _, to := range []struct {
		log   *slog.Logger
		level slog.Level
	}{{a.audit, slog.LevelInfo}, {a.log, slog.LevelDebug}} {
		if to.log == nil || !to.log.Enabled(context.Background(), to.level) {
			continue
		}
		r := slog.NewRecord(at, to.level, event, 0)
		r.AddAttrs(attributes...)
		// Like the functions of slog: a handler that fails has nobody to tell.
		_ = to.log.Handler().Handle(context.Background(), r)
	}
}

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

// An auditor writes a record for each grant, downgrade, release and loss, on a goroutine of its
// own: a logger that hangs must not keep a lock from being lost in time. What does
// not fit into its queue is left out and counted, and the next record that is
// written says how many there were.
type auditor struct {
	id      protocol.ID
	label   string
	audit   *slog.Logger // nil: off
	log     *slog.Logger // gets the same at level debug; nil: off
	records chan slog.Record
	closing chan struct{}
	done    chan struct{}
	dropped atomic.Uint64
	missing atomic.Uint64 // dropped, and no record says so yet
}

// start starts the auditor if somebody wants to read what it writes.
func (a *auditor) start(id protocol.ID, c Config) {
	a.id, a.label, a.audit, a.log = id, c.Label, c.Audit, c.Log
	a.closing, a.done = make(chan struct{}), make(chan struct{})
	if a.audit == nil && a.log == nil {
		close(a.done)
		return
	}
	a.records = make(chan slog.Record, maxAudit)
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
	r := slog.NewRecord(time.Now(), slog.LevelInfo, event, 0)
	r.AddAttrs(
		slog.String("lock", h.stay.name),
		slog.String("token", strconv.FormatUint(h.token, 10)), // JSON readers round numbers beyond 2^53
		slog.String("request", node.RequestID(a.id, h.stay.request)),
		slog.String("client", idText(a.id)),
		slog.String("label", node.FullLabel(a.label, h.section.label)),
	)
	if group := shared(h.stay.wants); group != "" {
		r.AddAttrs(slog.String("group", group))
	}
	if event != "grant" {
		r.AddAttrs(slog.Int64("held_ms", r.Time.Sub(h.section.client.began.Add(h.entered)).Milliseconds()))
	}
	if event == "loss" {
		r.AddAttrs(slog.String("reason", plain(h.lost.why)))
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

func (a *auditor) write(r slog.Record) {
	if k := a.missing.Swap(0); k > 0 {
		gap := slog.NewRecord(time.Now(), slog.LevelInfo, "dropped", 0)
		gap.AddAttrs(slog.String("client", idText(a.id)), slog.Uint64("dropped", k))
		a.emit(gap)
	}
	a.emit(r)
}

// emit has no word for a handler that fails, as the functions of slog have none.
func (a *auditor) emit(r slog.Record) {
	ctx := context.Background()
	if a.audit != nil && a.audit.Enabled(ctx, r.Level) {
		_ = a.audit.Handler().Handle(ctx, r.Clone())
	}
	if r.Level = slog.LevelDebug; a.log != nil && a.log.Enabled(ctx, r.Level) {
		_ = a.log.Handler().Handle(ctx, r)
	}
}

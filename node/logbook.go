package node

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/poundlock/poundlock/internal/limit"
)

// What the strangers of one host can make this node log: so much at once, and then one every so
// often. More hosts than maxWarned share what one may.
const (
	maxWarnings   = 20
	warningEvery  = time.Second
	maxWarned     = 256
	unloggedEvery = 10 * time.Second // when a host that has become silent is told of
)

// maxLate is how many records may wait for a log that hangs.
const maxLate = 64

// A record waits to be logged.
type record struct {
	who  string
	what string
	why  error
	args []any
}

// A logbook is the log of what peers do. One that goes on neither fills the disk nor hides what others do, and a
// log that hangs stops nobody.
type logbook struct {
	log     *slog.Logger
	rate    limit.Rate[string] // of what the peers of one host may have logged, by host
	missing atomic.Uint64      // warnings that were one too many of a host
	late    chan record        // what run is to log
	lost    atomic.Int64       // records that did not fit into late
}

func newLogbook(log *slog.Logger) *logbook {
	return &logbook{
		log: log, late: make(chan record, maxLate),
		rate: limit.Rate[string]{Burst: maxWarnings, Every: warningEvery, Most: maxWarned},
	}
}

// warn warns of what a peer did wrong, whose host is who; "" where that is this process's own.
// One that goes on neither fills the disk nor hides what others do wrong: the next warning about it that
// is let through counts those that were not. It reports whether this one was let through.
func (l *logbook) warn(who, what string, args ...any) bool {
	missing, ok := l.rate.Take(who, time.Now())
	if !ok {
		l.missing.Add(1)
		return false
	}
	if missing > 0 {
		args = append(args, "unlogged", missing)
	}
	l.log.Warn(what, args...)
	return true
}

// tellMissing says what was not logged about hosts that have become silent.
func (l *logbook) tellMissing(now time.Time) {
	l.rate.Refused(now, func(who string, missing int) {
		l.log.Warn("more of the same from one host was not logged", "host", who, "unlogged", missing)
	})
}

// later logs the end of a session on another goroutine: a log that hangs must not
// keep other sessions from ending in time. What does not fit into its queue is
// counted and not kept.
func (l *logbook) later(who, what string, why error, args ...any) {
	select {
	case l.late <- record{who, what, why, args}:
	default:
		l.lost.Add(1)
	}
}

// run logs what later queued until ctx ends, and then, for a second at
// most, what is left.
func (l *logbook) run(ctx context.Context) {
	tell := time.NewTicker(unloggedEvery)
	defer tell.Stop()
	for {
		select {
		case r := <-l.late:
			l.write(r)
		case now := <-tell.C:
			l.tellMissing(now)
		case <-ctx.Done():
			for end := time.Now().Add(time.Second); len(l.late) > 0 && time.Now().Before(end); {
				l.write(<-l.late)
			}
			return
		}
	}
}

func (l *logbook) write(r record) {
	if k := l.lost.Swap(0); k > 0 {
		l.log.Warn("the log was too slow for ends of sessions", "unlogged", k)
	}
	var e *end
	if errors.As(r.why, &e) && e.ordinary {
		l.log.Info(r.what, r.args...)
	} else {
		l.warn(r.who, r.what, r.args...)
	}
}

package server

import (
	"strconv"

	"github.com/poundlock/poundlock/internal/prom"
	"github.com/poundlock/poundlock/node"
)

// metrics are those of a server.
func (s *Server) metrics(o prom.Sink) {
	o.Gauge("server_info", "Which server of the slot table this is.", 1, "server", s.config.Name)
	o.Truth("clock_synchronized", "1 while the kernel knows its clock to be synchronised.", checkClock() == nil)
	if a := s.config.Audit; a != nil {
		o.Counter("audit_records_total", "Records written to the audit file.", a.written.Load())
		o.Counter("audit_dropped_total", "Records missing in the audit file, because it was too slow or full.", a.dropped.Load())
	}
	n := s.running()
	o.Truth("serving", "1 while this server accepts sessions, 0 also while it sits out.", n != nil && s.accepts.Load())
	if n == nil {
		return
	}
	o.Gauge("slot_table_epoch", "Epoch of the slot table that this server has.", float64(n.Epoch()))
	_, off, steps := n.Clock()
	o.Gauge("clock_step_seconds", "By how much the wall clock was set since this server started, in all: 0 again when it was set back.", off.Seconds())
	o.Counter("clock_steps_total", "How often the wall clock was set since this server started.", steps)
	nodeMetrics(o, n.Stats())
}

func nodeMetrics(o prom.Sink, s node.Stats) {
	o.Gauge("locks", "Locks that are not idle at this server.", float64(s.Instances))
	o.Gauge("lock_clients", "Pairs of a client and a lock that it holds or wants, or has just left: --max-waiters bounds them.", float64(s.Pairs))
	o.Gauge("waiters", "Requests that wait in the queues of all locks of this server.", float64(s.Waiting))
	o.Gauge("supports", "Supports that this server gives now: one a lock, or one for each holder that shares it.", float64(s.Supports))
	o.Counter("supports_given_total", "Supports given to a request, those that were passed on among them.", s.SupportsGiven)
	o.Counter("supports_ended_total", "Supports that ended, those that were passed on among them.", s.SupportsEnded)
	o.Counter("supports_passed_total", "Supports that went from one client to the next, or to several that share, in one step: hand-overs.", s.SupportsPassed)
	o.Histogram("support_duration_seconds", "How long the supports lasted that have ended.", s.SupportsHeld)
	for _, m := range s.Messages {
		o.Traffic("messages_total", "Messages of locks.", m.Sent, m.Received, "lock_kind", m.Kind.String(), "message", m.Name)
	}
	o.Traffic("network_bytes_total", "Bytes of frames from and to clients, after the handshake.", s.Clients.BytesSent, s.Clients.BytesReceived)
	o.Gauge("unacknowledged_bytes", "Bytes of messages that clients have not acknowledged.", float64(s.Unacked))
	o.Gauge("sessions", "Clients that have a session now.", float64(s.ClientSessions))
	o.Counter("sessions_began_total", "Sessions that began.", s.SessionsBegan)
	for cause, k := range s.SessionsEnded {
		o.Counter("sessions_ended_total", "Sessions that ended or were dropped.", k, "cause", cause)
	}
	for cause, k := range s.Refused {
		o.Counter("handshakes_refused_total", "Connections refused or broken off in their handshake.", k, "cause", cause)
	}
	o.Gauge("unfinished_bytes", "Bytes of memory for frames that are to come, or to be handled; small ones do not count.", float64(s.Frames.Unfinished))
	for cause, k := range map[string]uint64{"slow": s.Frames.Slow, "no_room": s.Frames.NoRoom, "too_large": s.Frames.TooLarge} {
		o.Counter("frames_refused_total", "Frames that did not come to their end: the connection was closed.", k, "cause", cause)
	}
	o.Counter("log_suppressed_total", "Warnings left out of the log, because one host caused too many.", s.Unlogged)
	for i, q := range s.Loops {
		o.Gauge("loop_queue_events", "Events that wait for an event loop.", float64(q.Queue), "loop", strconv.Itoa(i))
		o.Gauge("loop_queue_bytes", "Bytes of frames that events which wait for an event loop keep in memory.", float64(q.Bytes), "loop", strconv.Itoa(i))
	}
}

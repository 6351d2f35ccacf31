package server

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/poundlock/poundlock/internal/histogram"
	"github.com/poundlock/poundlock/node"
)

// Labels are bounded: names of servers, kinds of locks and messages, causes and
// shards. Never names of locks or ids of clients.
var (
	infoDesc    = desc("server_info", "Which server of the slot table this is.", "server")
	servingDesc = desc("serving", "1 while this server accepts sessions, 0 also while it sits out.")
	stepDesc    = desc("clock_step_seconds", "By how much the wall clock was set since this server started, in all: 0 again when it was set back.")
	stepsDesc   = desc("clock_steps_total", "How often the wall clock was set since this server started.")
	clockDesc   = desc("clock_synchronized", "1 while the kernel knows its clock to be synchronised.")
	epochDesc   = desc("slot_table_epoch", "Epoch of the slot table that this server has.")

	locksDesc    = desc("locks", "Locks that are not idle at this server.")
	pairsDesc    = desc("lock_clients", "Pairs of a client and a lock that it holds or wants, or has just left: --max-waiters bounds them.")
	waitersDesc  = desc("waiters", "Requests that wait in the queues of all locks of this server.")
	supportsDesc = desc("supports", "Supports that this server gives now: one a lock.")
	givenDesc    = desc("supports_given_total", "Supports given to a request, those that were passed on among them.")
	endedDesc    = desc("supports_ended_total", "Supports that ended, those that were passed on among them.")
	passedDesc   = desc("supports_passed_total", "Supports that went from one client to the next in one step: hand-overs.")
	heldDesc     = desc("support_duration_seconds", "How long the supports lasted that have ended.")

	messagesDesc = desc("messages_total", "Messages of locks.", "lock_kind", "message", "direction")
	bytesDesc    = desc("network_bytes_total", "Bytes of frames from and to clients, after the handshake.", "direction")
	unackedDesc  = desc("unacknowledged_bytes", "Bytes of messages that clients have not acknowledged.")

	sessionsDesc      = desc("sessions", "Clients that have a session now.")
	sessionsBeganDesc = desc("sessions_began_total", "Sessions that began.")
	sessionsEndedDesc = desc("sessions_ended_total", "Sessions that ended or were dropped.", "cause")
	refusedDesc       = desc("handshakes_refused_total", "Connections refused or broken off in their handshake.", "cause")

	queueEventsDesc = desc("shard_queue_events", "Events that wait for a shard.", "shard")
	queueBytesDesc  = desc("shard_queue_bytes", "Bytes of frames that events which wait for a shard keep in memory.", "shard")

	unfinishedDesc  = desc("unfinished_bytes", "Bytes of memory for frames that are to come, or to be handled; small ones do not count.")
	frameClosesDesc = desc("frames_refused_total", "Frames that did not come to their end: the connection was closed.", "cause")

	unloggedDesc = desc("log_suppressed_total", "Warnings left out of the log, because one host caused too many.")

	auditWrittenDesc = desc("audit_records_total", "Records written to the audit file.")
	auditDroppedDesc = desc("audit_dropped_total", "Records missing in the audit file, because it was too slow or full.")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("poundlock_"+name, help, labels, nil)
}

// Durations is what was measured, such as in poundlock.Stats, where it is called
// Histogram and described.
type Durations struct {
	Count  uint64
	Sum    float64
	Counts []uint64
}

// Histogram is the metric of what was measured, for the collectors of the programs
// that use this package.
func Histogram(d *prometheus.Desc, s Durations, labels ...string) prometheus.Metric {
	buckets := make(map[float64]uint64, histogram.Buckets)
	sum := uint64(0)
	for i := range histogram.Buckets {
		if s.Counts != nil {
			sum += s.Counts[i]
		}
		buckets[histogram.Bound(i).Seconds()] = sum
	}
	return prometheus.MustNewConstHistogram(d, s.Count, s.Sum, buckets, labels...)
}

// A collector tells Prometheus what a server has counted.
type collector struct{ s *Server }

// Describe implements prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		infoDesc, servingDesc, clockDesc, stepDesc, stepsDesc, epochDesc, locksDesc, pairsDesc, waitersDesc, supportsDesc, givenDesc, endedDesc, passedDesc,
		heldDesc, messagesDesc, bytesDesc, unackedDesc, sessionsDesc, sessionsBeganDesc, sessionsEndedDesc,
		refusedDesc, unfinishedDesc, frameClosesDesc, unloggedDesc, queueEventsDesc, queueBytesDesc, auditWrittenDesc, auditDroppedDesc,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	o := sink{out}
	o.gauge(infoDesc, 1, c.s.config.Name)
	synchronized := 0.0
	if checkClock() == nil {
		synchronized = 1
	}
	o.gauge(clockDesc, synchronized)
	if a := c.s.config.Audit; a != nil {
		o.counter(auditWrittenDesc, a.written.Load())
		o.counter(auditDroppedDesc, a.dropped.Load())
	}
	n := c.s.running()
	if n == nil {
		o.gauge(servingDesc, 0)
		return
	}
	serving := 0.0
	if c.s.accepts.Load() {
		serving = 1
	}
	o.gauge(servingDesc, serving)
	o.gauge(epochDesc, float64(n.Epoch()))
	_, off, steps := n.Clock()
	o.gauge(stepDesc, off.Seconds())
	o.counter(stepsDesc, steps)
	o.node(n.Stats())
}

// A sink takes metrics.
type sink struct{ out chan<- prometheus.Metric }

func (o sink) gauge(d *prometheus.Desc, v float64, labels ...string) {
	o.out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (o sink) counter(d *prometheus.Desc, v uint64, labels ...string) {
	o.out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

const sent, received = "sent", "received"

func (o sink) node(s node.Stats) {
	o.gauge(locksDesc, float64(s.Instances))
	o.gauge(pairsDesc, float64(s.Pairs))
	o.gauge(waitersDesc, float64(s.Waiting))
	o.gauge(supportsDesc, float64(s.Supports))
	o.counter(givenDesc, s.SupportsGiven)
	o.counter(endedDesc, s.SupportsEnded)
	o.counter(passedDesc, s.SupportsPassed)
	o.out <- Histogram(heldDesc, Durations(s.SupportsHeld))
	for _, m := range s.Messages {
		o.counter(messagesDesc, m.Sent, m.Kind.String(), m.Name, sent)
		o.counter(messagesDesc, m.Received, m.Kind.String(), m.Name, received)
	}
	o.counter(bytesDesc, s.Clients.BytesSent, sent)
	o.counter(bytesDesc, s.Clients.BytesReceived, received)
	o.gauge(unackedDesc, float64(s.Unacked))
	o.gauge(sessionsDesc, float64(s.ClientSessions))
	o.counter(sessionsBeganDesc, s.SessionsBegan)
	for cause, k := range s.SessionsEnded {
		o.counter(sessionsEndedDesc, k, cause)
	}
	for cause, k := range s.Refused {
		o.counter(refusedDesc, k, cause)
	}
	o.gauge(unfinishedDesc, float64(s.Frames.Unfinished))
	o.counter(frameClosesDesc, s.Frames.Slow, "slow")
	o.counter(frameClosesDesc, s.Frames.NoRoom, "no_room")
	o.counter(frameClosesDesc, s.Frames.TooLarge, "too_large")
	o.counter(unloggedDesc, s.Unlogged)
	for i, q := range s.Shards {
		o.gauge(queueEventsDesc, float64(q.Queue), strconv.Itoa(i))
		o.gauge(queueBytesDesc, float64(q.Bytes), strconv.Itoa(i))
	}
}

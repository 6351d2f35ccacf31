package server

import (
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/poundlock/poundlock/internal/histogram"
	"github.com/poundlock/poundlock/node"
)

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

// A collector tells Prometheus what a server has counted. Labels are bounded: names of servers, kinds of locks and
// messages, causes and shards. Never names of locks or ids of clients.
type collector struct{ s *Server }

// Describe implements prometheus.Collector: each metric describes itself.
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	o := sink(out)
	o.gauge("server_info", "Which server of the slot table this is.", 1, "server", c.s.config.Name)
	o.gauge("clock_synchronized", "1 while the kernel knows its clock to be synchronised.", one(checkClock() == nil))
	if a := c.s.config.Audit; a != nil {
		o.counter("audit_records_total", "Records written to the audit file.", a.written.Load())
		o.counter("audit_dropped_total", "Records missing in the audit file, because it was too slow or full.", a.dropped.Load())
	}
	n := c.s.running()
	o.gauge("serving", "1 while this server accepts sessions, 0 also while it sits out.", one(n != nil && c.s.accepts.Load()))
	if n == nil {
		return
	}
	o.gauge("slot_table_epoch", "Epoch of the slot table that this server has.", float64(n.Epoch()))
	_, off, steps := n.Clock()
	o.gauge("clock_step_seconds", "By how much the wall clock was set since this server started, in all: 0 again when it was set back.", off.Seconds())
	o.counter("clock_steps_total", "How often the wall clock was set since this server started.", steps)
	o.node(n.Stats())
}

// one is how a gauge says that something is so.
func one(so bool) float64 {
	if so {
		return 1
	}
	return 0
}

// A sink takes metrics: their names and what they are, and then names of labels, each with its value.
type sink chan<- prometheus.Metric

func (o sink) gauge(name, help string, v float64, labels ...string) {
	o.put(prometheus.GaugeValue, name, help, v, labels)
}

func (o sink) counter(name, help string, v uint64, labels ...string) {
	o.put(prometheus.CounterValue, name, help, float64(v), labels)
}

func (o sink) put(kind prometheus.ValueType, name, help string, v float64, labels []string) {
	var names, values []string
	for l := range slices.Chunk(labels, 2) {
		names, values = append(names, l[0]), append(values, l[1])
	}
	o <- prometheus.MustNewConstMetric(desc(name, help, names...), kind, v, values...)
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("poundlock_"+name, help, labels, nil)
}

// traffic tells what went out and what came in.
func (o sink) traffic(name, help string, sent, received uint64, labels ...string) {
	o.counter(name, help, sent, append(labels, "direction", "sent")...)
	o.counter(name, help, received, append(labels, "direction", "received")...)
}

func (o sink) node(s node.Stats) {
	o.gauge("locks", "Locks that are not idle at this server.", float64(s.Instances))
	o.gauge("lock_clients", "Pairs of a client and a lock that it holds or wants, or has just left: --max-waiters bounds them.", float64(s.Pairs))
	o.gauge("waiters", "Requests that wait in the queues of all locks of this server.", float64(s.Waiting))
	o.gauge("supports", "Supports that this server gives now: one a lock.", float64(s.Supports))
	o.counter("supports_given_total", "Supports given to a request, those that were passed on among them.", s.SupportsGiven)
	o.counter("supports_ended_total", "Supports that ended, those that were passed on among them.", s.SupportsEnded)
	o.counter("supports_passed_total", "Supports that went from one client to the next in one step: hand-overs.", s.SupportsPassed)
	o <- Histogram(desc("support_duration_seconds", "How long the supports lasted that have ended."), Durations(s.SupportsHeld))
	for _, m := range s.Messages {
		o.traffic("messages_total", "Messages of locks.", m.Sent, m.Received, "lock_kind", m.Kind.String(), "message", m.Name)
	}
	o.traffic("network_bytes_total", "Bytes of frames from and to clients, after the handshake.", s.Clients.BytesSent, s.Clients.BytesReceived)
	o.gauge("unacknowledged_bytes", "Bytes of messages that clients have not acknowledged.", float64(s.Unacked))
	o.gauge("sessions", "Clients that have a session now.", float64(s.ClientSessions))
	o.counter("sessions_began_total", "Sessions that began.", s.SessionsBegan)
	for cause, k := range s.SessionsEnded {
		o.counter("sessions_ended_total", "Sessions that ended or were dropped.", k, "cause", cause)
	}
	for cause, k := range s.Refused {
		o.counter("handshakes_refused_total", "Connections refused or broken off in their handshake.", k, "cause", cause)
	}
	o.gauge("unfinished_bytes", "Bytes of memory for frames that are to come, or to be handled; small ones do not count.", float64(s.Frames.Unfinished))
	for cause, k := range map[string]uint64{"slow": s.Frames.Slow, "no_room": s.Frames.NoRoom, "too_large": s.Frames.TooLarge} {
		o.counter("frames_refused_total", "Frames that did not come to their end: the connection was closed.", k, "cause", cause)
	}
	o.counter("log_suppressed_total", "Warnings left out of the log, because one host caused too many.", s.Unlogged)
	for i, q := range s.Shards {
		o.gauge("shard_queue_events", "Events that wait for a shard.", float64(q.Queue), "shard", strconv.Itoa(i))
		o.gauge("shard_queue_bytes", "Bytes of frames that events which wait for a shard keep in memory.", float64(q.Bytes), "shard", strconv.Itoa(i))
	}
}

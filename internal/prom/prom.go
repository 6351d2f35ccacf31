// Package prom is how processes tell Prometheus what they have counted.
package prom

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/poundlock/poundlock/internal/histogram"
)

// Metrics are a prometheus.Collector: what the function tells of at each scrape. Labels are bounded: names of servers,
// kinds of locks and messages, causes and event loops. Never names of locks or ids of clients.
type Metrics func(Sink)

// Describe implements prometheus.Collector: each metric describes itself.
func (Metrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m Metrics) Collect(out chan<- prometheus.Metric) { m(out) }

// A Sink takes metrics: their names after "poundlock_" and what they are, and then names of labels, each with its
// value.
type Sink chan<- prometheus.Metric

// Gauge takes a value of now.
func (o Sink) Gauge(name, help string, v float64, labels ...string) {
	o.put(prometheus.GaugeValue, name, help, v, labels)
}

// Truth takes whether something is so: 1 or 0.
func (o Sink) Truth(name, help string, so bool, labels ...string) {
	v := 0.0
	if so {
		v = 1
	}
	o.Gauge(name, help, v, labels...)
}

// Counter takes a number that only grows.
func (o Sink) Counter(name, help string, v uint64, labels ...string) {
	o.put(prometheus.CounterValue, name, help, float64(v), labels)
}

// Histogram takes what was measured.
func (o Sink) Histogram(name, help string, d histogram.Snapshot, labels ...string) {
	buckets := make(map[float64]uint64, histogram.Buckets)
	sum := uint64(0)
	for i := range histogram.Buckets {
		if d.Counts != nil {
			sum += d.Counts[i]
		}
		buckets[histogram.Bound(i).Seconds()] = sum
	}
	desc, values := describe(name, help, labels)
	o <- prometheus.MustNewConstHistogram(desc, d.Count, d.Sum, buckets, values...)
}

// Traffic takes what went out and what came in.
func (o Sink) Traffic(name, help string, sent, received uint64, labels ...string) {
	o.Counter(name, help, sent, append(labels, "direction", "sent")...)
	o.Counter(name, help, received, append(labels, "direction", "received")...)
}

func (o Sink) put(kind prometheus.ValueType, name, help string, v float64, labels []string) {
	desc, values := describe(name, help, labels)
	o <- prometheus.MustNewConstMetric(desc, kind, v, values...)
}

func describe(name, help string, labels []string) (desc *prometheus.Desc, values []string) {
	var names []string
	for l := range slices.Chunk(labels, 2) {
		names, values = append(names, l[0]), append(values, l[1])
	}
	return prometheus.NewDesc("poundlock_"+name, help, names, nil), values
}

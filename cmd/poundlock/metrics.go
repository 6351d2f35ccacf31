package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/certs"
	"github.com/poundlock/poundlock/server"
)

// A clientCollector tells Prometheus what the client of this process has counted: of the locks
// that its API holds, and of how the servers look from here.
type clientCollector struct{ client *poundlock.Client }

// Describe implements prometheus.Collector.
func (c clientCollector) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, out) }

// Collect implements prometheus.Collector.
func (c clientCollector) Collect(out chan<- prometheus.Metric) {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("poundlock_client_"+name, help, labels, nil)
	}
	metric := func(name, help string, kind prometheus.ValueType, v float64) {
		out <- prometheus.MustNewConstMetric(desc(name, help), kind, v)
	}
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	s := c.client.Stats()
	metric("grants_total", "Locks acquired.", counter, float64(s.Grants))
	metric("not_acquired_total", "Attempts and waits that ended without the lock.", counter, float64(s.NotAcquired))
	metric("no_quorum_total", "Attempts and waits that ended without a quorum of servers.", counter, float64(s.NoQuorum))
	metric("losses_total", "Locks lost while they were held.", counter, float64(s.Losses))
	metric("slow_tokens_total", "Grants whose fencing token took one more round.", counter, float64(s.SlowTokens))
	metric("locks_held", "Locks held now.", gauge, float64(s.Held))
	metric("locks_wanted", "Calls that wait for a lock now.", gauge, float64(s.Wanted))
	metric("quorum_reachable", "1 while a quorum of servers, of every group, can be reached from here.", gauge, truth(c.client.Healthy() == nil))
	out <- server.Histogram(desc("wait_seconds", "From the call to the grant, of grants."), server.Durations(s.Waits))
	out <- server.Histogram(desc("hold_seconds", "From the grant to the release."), server.Durations(s.Holds))

	connected := desc("server_connected", "1 while there is a live session with the server.", "server")
	roundTrip := desc("round_trip_seconds", "From a heartbeat to its answer.", "server")
	traffic := desc("network_bytes_total", "Bytes of frames from and to a server, after the handshake.", "server", "direction")
	for _, p := range s.Servers {
		out <- prometheus.MustNewConstMetric(connected, gauge, truth(p.Connected), p.Name)
		out <- server.Histogram(roundTrip, server.Durations(p.RoundTrips), p.Name)
		out <- prometheus.MustNewConstMetric(traffic, counter, float64(p.BytesSent), p.Name, "sent")
		out <- prometheus.MustNewConstMetric(traffic, counter, float64(p.BytesReceived), p.Name, "received")
	}
}

var certDesc = prometheus.NewDesc("poundlock_certificate_expiry_timestamp_seconds",
	"When the certificate in use ends, in seconds since 1970. Absent without TLS.", nil, nil)

// A certCollector tells Prometheus when a certificate ends; nil: there is none.
type certCollector struct{ store *certs.Store }

// Describe implements prometheus.Collector.
func (certCollector) Describe(out chan<- *prometheus.Desc) { out <- certDesc }

// Collect implements prometheus.Collector.
func (c certCollector) Collect(out chan<- prometheus.Metric) {
	if c.store == nil {
		return
	}
	if t := c.store.Until(); !t.IsZero() {
		out <- prometheus.MustNewConstMetric(certDesc, prometheus.GaugeValue, float64(t.Unix()))
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

package main

import (
	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/certs"
	"github.com/poundlock/poundlock/server"
)

// clientMetrics are what the client of this process has counted: of the locks that its API holds, and of how the
// servers look from here.
func clientMetrics(c *poundlock.Client) server.Metrics {
	return func(o server.Sink) {
		s := c.Stats()
		o.Counter("client_grants_total", "Locks acquired.", s.Grants)
		o.Counter("client_not_acquired_total", "Attempts and waits that ended without the lock.", s.NotAcquired)
		o.Counter("client_no_quorum_total", "Attempts and waits that ended without a quorum of servers.", s.NoQuorum)
		o.Counter("client_losses_total", "Locks lost while they were held.", s.Losses)
		o.Counter("client_slow_tokens_total", "Grants whose fencing token took one more round.", s.SlowTokens)
		o.Gauge("client_locks_held", "Locks held now.", float64(s.Held))
		o.Gauge("client_locks_wanted", "Calls that wait for a lock now.", float64(s.Wanted))
		o.Truth("client_quorum_reachable", "1 while a quorum of servers, of every shard, can be reached from here.", c.Healthy() == nil)
		o.Histogram("client_wait_seconds", "From the call to the grant, of grants.", server.Durations(s.Waits))
		o.Histogram("client_hold_seconds", "From the grant to the release.", server.Durations(s.Holds))
		for _, p := range s.Servers {
			o.Truth("client_server_connected", "1 while there is a live session with the server.", p.Connected, "server", p.Name)
			o.Histogram("client_round_trip_seconds", "From a heartbeat to its answer.", server.Durations(p.RoundTrips), "server", p.Name)
			o.Traffic("client_network_bytes_total", "Bytes of frames from and to a server, after the handshake.",
				p.BytesSent, p.BytesReceived, "server", p.Name)
		}
	}
}

// certMetrics are when a certificate ends; nil: there is none.
func certMetrics(store *certs.Store) server.Metrics {
	return func(o server.Sink) {
		if store == nil {
			return
		}
		if t := store.Until(); !t.IsZero() {
			o.Gauge("certificate_expiry_timestamp_seconds", "When the certificate in use ends, in seconds since 1970. Absent without TLS.", float64(t.Unix()))
		}
	}
}

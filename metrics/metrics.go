// Package metrics has collectors for Prometheus: of what a client, a peer or a member of a system of sections has
// counted, which their Stats have, too. A program that does not import it links nothing of Prometheus.
//
//	registry.MustRegister(metrics.Peer(member))
//
// Labels are names of members, servers, objects and messages, of which there are few, and causes: never names of locks.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/histogram"
	"github.com/poundlock/poundlock/internal/prom"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/peers"
	"github.com/poundlock/poundlock/sections"
)

// Client collects what a client has counted: of its locks, and of how the servers look from here. Names begin with
// poundlock_client_.
func Client(c *poundlock.Client) prometheus.Collector {
	return prom.Metrics(func(o prom.Sink) {
		s := c.Stats()
		locks(o, "client_", "a quorum of servers", s)
		o.Counter("client_slow_tokens_total", "Grants whose fencing token took one more round.", s.SlowTokens)
		o.Truth("client_quorum_reachable", "1 while a quorum of servers, of every shard, can be reached from here.", c.Healthy() == nil)
		for _, p := range s.Servers {
			if !p.Resting {
				o.Truth("client_server_connected", "1 while there is a live session with the server; absent while none is needed.",
					p.Connected, "server", p.Name)
			}
			o.Histogram("client_round_trip_seconds", "From a heartbeat to its answer.", histogram.Snapshot(p.RoundTrips), "server", p.Name)
			o.Traffic("client_network_bytes_total", "Bytes of frames from and to a server, after the handshake.",
				p.BytesSent, p.BytesReceived, "server", p.Name)
		}
	})
}

// Peer collects what a peer has counted. Names begin with poundlock_peer_. poundlock_peer_losses_total are locks that
// were lost, such as by a peer that was cut off from the majority.
func Peer(m *peers.Member) prometheus.Collector {
	return prom.Metrics(func(o prom.Sink) {
		s := m.Stats()
		locks(o, "peer_", "enough peers", s.Locks)
		members(o, "peer_", m.Healthy() == nil, s.Node)
	})
}

// Sections collects what a member has counted. Names begin with poundlock_sections_.
func Sections(m *sections.Member) prometheus.Collector {
	return prom.Metrics(func(o prom.Sink) {
		s := m.Stats()
		for _, x := range s.Objects {
			o.Counter("sections_operations_total", "Operations that the copy here has executed, those of all members.", x.Executed, "object", x.Name)
			o.Counter("sections_entered_total", "Sections of users of this member.", x.Entered, "object", x.Name)
			o.Counter("sections_ejections_total", "Sections of users of this member that were lost.", x.Ejected, "object", x.Name)
			o.Histogram("sections_wait_seconds", "From the call of Enter to the section.", x.Waits, "object", x.Name)
			o.Histogram("sections_operation_seconds", "From Do or DoAll to a result.", x.Done, "object", x.Name)
			o.Truth("sections_busy", "1 while a user of this member is inside, or waits.", x.Busy, "object", x.Name)
		}
		members(o, "sections_", m.Healthy() == nil, s.Node)
	})
}

// locks are about the users of a process. What they need is called enough.
func locks(o prom.Sink, prefix, enough string, s poundlock.Stats) {
	o.Counter(prefix+"grants_total", "Locks acquired.", s.Grants)
	o.Counter(prefix+"not_acquired_total", "Attempts and waits that ended without the lock.", s.NotAcquired)
	o.Counter(prefix+"no_quorum_total", "Attempts and waits that ended without "+enough+".", s.NoQuorum)
	o.Counter(prefix+"losses_total", "Locks lost while they were held.", s.Losses)
	o.Gauge(prefix+"locks_held", "Locks held now.", float64(s.Held))
	o.Gauge(prefix+"locks_wanted", "Calls that wait for a lock now.", float64(s.Wanted))
	o.Histogram(prefix+"wait_seconds", "From the call to the grant, of grants.", histogram.Snapshot(s.Waits))
	o.Histogram(prefix+"hold_seconds", "From the grant to the release.", histogram.Snapshot(s.Holds))
}

// members are about a member and its sessions with the others.
func members(o prom.Sink, prefix string, healthy bool, s node.Stats) {
	o.Truth(prefix+"healthy", "1 while this member reaches enough of the others to serve its users.", healthy)
	for _, p := range s.Peers {
		o.Truth(prefix+"member_up", "1 while there is a live session with the member.", p.Connected, "member", p.Name)
		o.Histogram(prefix+"round_trip_seconds", "From a heartbeat to its answer, of members that this one sends heartbeats.", p.RoundTrips, "member", p.Name)
		o.Traffic(prefix+"network_bytes_total", "Bytes of frames from and to the member, after the handshake.",
			p.BytesSent, p.BytesReceived, "member", p.Name)
	}
	o.Counter(prefix+"sessions_began_total", "Sessions with members that began.", s.SessionsBegan)
	for cause, k := range s.SessionsEnded {
		o.Counter(prefix+"sessions_ended_total", "Sessions with members that ended.", k, "cause", cause)
	}
	for cause, k := range s.Refused {
		o.Counter(prefix+"handshakes_refused_total", "Connections refused or broken off in their handshake.", k, "cause", cause)
	}
	for _, m := range s.Messages {
		o.Traffic(prefix+"messages_total", "Messages of the algorithm.", m.Sent, m.Received, "message", m.Name)
	}
	o.Gauge(prefix+"unacknowledged_bytes", "Bytes of messages that members have not acknowledged.", float64(s.Unacked))
}

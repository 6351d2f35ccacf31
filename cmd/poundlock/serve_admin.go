package main

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/certs"
	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/server"
	"github.com/poundlock/poundlock/transport"
)

// adminFlags are those of what serve tells its operators.
type adminFlags struct {
	addr  string
	audit string
}

func (f *adminFlags) register(s *pflag.FlagSet) {
	s.StringVar(&f.addr, "admin", "", "answer /metrics, /healthz and /debug/pprof/ at `HOST:PORT` or unix:/path, with the TLS of --tls-cert")
	s.StringVar(&f.audit, "audit", "", "append a line of JSON for each support given or ended to this `FILE`, - for standard output; SIGHUP opens it again")
}

// openAudit opens the audit file; nil when none is wanted. The caller closes it.
func (f *adminFlags) openAudit(c server.Config) (*server.Audit, error) {
	if f.audit == "" {
		return nil, nil
	}
	a, err := server.OpenAudit(c.Name, f.audit, c.Log)
	if err != nil {
		return nil, &cli.Status{Code: cli.ExitError, Err: fmt.Errorf("--audit: %w", err)}
	}
	return a, nil
}

// listen returns the admin port of s, which asks client whether there is a quorum; nil
// when none is wanted. The caller runs what it returns.
func (f *adminFlags) listen(s *server.Server, client *poundlock.Client, c server.Config, cluster *clusterFlags) (*server.Admin, error) {
	if f.addr == "" {
		return nil, nil
	}
	if err := transport.CheckListen(f.addr); err != nil {
		return nil, cli.Usagef("--admin: %w", err)
	}
	config, err := cluster.serverTLS()
	if err != nil {
		return nil, cli.Usagef("--admin: %w", err)
	}
	a, err := server.NewAdmin(s, server.AdminConfig{
		Listen: f.addr, TLS: config, ClientCerts: cluster.tlsCA != "", Insecure: c.Insecure,
		Quorum:     client.Available,
		Collectors: []prometheus.Collector{clientCollector{client}, certCollector{cluster.store}},
		Log:        c.Log,
	})
	switch {
	case errors.Is(err, server.ErrAdminInsecure):
		return nil, &cli.Status{
			Code: cli.ExitUsage,
			Err:  fmt.Errorf("--admin: %w", err),
			Hint: "give --tls-cert, --tls-key and --tls-ca, or --insecure on a network that you trust",
		}
	case err != nil:
		return nil, &cli.Status{Code: cli.ExitError, Err: fmt.Errorf("--admin: %w", err), Hint: portHint(err)}
	}
	c.Log.Info("serving metrics and health", "addr", a.Addr().String())
	return a, nil
}

// Metrics of the client of this process: of the locks that its API holds, and of how
// the servers look from here.
var (
	grantsDesc      = clientDesc("grants_total", "Locks acquired.")
	notAcquiredDesc = clientDesc("not_acquired_total", "Attempts and waits that ended without the lock.")
	noQuorumDesc    = clientDesc("no_quorum_total", "Attempts and waits that ended without a quorum of servers.")
	lossesDesc      = clientDesc("losses_total", "Locks lost while they were held.")
	slowDesc        = clientDesc("slow_tokens_total", "Grants whose fencing token took one more round.")
	waitsDesc       = clientDesc("wait_seconds", "From the call to the grant, of grants.")
	holdsDesc       = clientDesc("hold_seconds", "From the grant to the release.")
	heldDesc        = clientDesc("locks_held", "Locks held now.")
	wantedDesc      = clientDesc("locks_wanted", "Calls that wait for a lock now.")
	quorumDesc      = clientDesc("quorum_reachable", "1 while a quorum of servers, of every group, can be reached from here.")
	connectedDesc   = clientDesc("server_connected", "1 while there is a live session with the server.", "server")
	roundTripDesc   = clientDesc("round_trip_seconds", "From a heartbeat to its answer.", "server")
	peerBytesDesc   = clientDesc("network_bytes_total", "Bytes of frames from and to a server, after the handshake.", "server", "direction")
)

func clientDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("poundlock_client_"+name, help, labels, nil)
}

// A clientCollector tells Prometheus what a client has counted.
type clientCollector struct{ client *poundlock.Client }

// Describe implements prometheus.Collector.
func (clientCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		grantsDesc, notAcquiredDesc, noQuorumDesc, lossesDesc, slowDesc, waitsDesc, holdsDesc, heldDesc, wantedDesc,
		quorumDesc, connectedDesc, roundTripDesc, peerBytesDesc,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c clientCollector) Collect(out chan<- prometheus.Metric) {
	metric := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	s := c.client.Stats()
	metric(grantsDesc, counter, float64(s.Grants))
	metric(notAcquiredDesc, counter, float64(s.NotAcquired))
	metric(noQuorumDesc, counter, float64(s.NoQuorum))
	metric(lossesDesc, counter, float64(s.Losses))
	metric(slowDesc, counter, float64(s.SlowTokens))
	out <- server.Histogram(waitsDesc, server.Durations(s.Waits))
	out <- server.Histogram(holdsDesc, server.Durations(s.Holds))
	metric(heldDesc, gauge, float64(s.Held))
	metric(wantedDesc, gauge, float64(s.Wanted))
	metric(quorumDesc, gauge, truth(c.client.Healthy() == nil))
	for _, p := range s.Servers {
		metric(connectedDesc, gauge, truth(p.Connected), p.Name)
		out <- server.Histogram(roundTripDesc, server.Durations(p.RoundTrips), p.Name)
		metric(peerBytesDesc, counter, float64(p.BytesSent), p.Name, "sent")
		metric(peerBytesDesc, counter, float64(p.BytesReceived), p.Name, "received")
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

package main

import (
	"github.com/poundlock/poundlock/internal/certs"
	"github.com/poundlock/poundlock/internal/prom"
)

// certMetrics are when a certificate ends; nil: there is none.
func certMetrics(store *certs.Store) prom.Metrics {
	return func(o prom.Sink) {
		if store == nil {
			return
		}
		if t := store.Until(); !t.IsZero() {
			o.Gauge("certificate_expiry_timestamp_seconds", "When the certificate in use ends, in seconds since 1970. Absent without TLS.", float64(t.Unix()))
		}
	}
}

package poundlock_test

import (
	"testing"

	"github.com/poundlock/poundlock"
)

// BenchmarkLock is one acquisition and release without contention, on four
// servers in this process.
func BenchmarkLock(b *testing.B) {
	config, stop := cluster()
	defer stop()
	client, err := poundlock.Dial(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	m := client.Mutex("benchmark")
	b.ReportAllocs()
	for b.Loop() {
		g, err := m.Lock(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if err := g.Unlock(); err != nil {
			b.Fatal(err)
		}
	}
}

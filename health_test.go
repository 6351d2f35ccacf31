package poundlock

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestHealthInShards: Healthy wants every shard, Available any, and neither waits.
func TestHealthInShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, up, down, _ := halves(t)
		begin := time.Now()
		err := c.Healthy()
		wantIs(t, err, ErrNoQuorum)
		if text := fmt.Sprint(err); !strings.Contains(text, "shard b: ") || strings.Contains(text, "shard a: ") {
			t.Errorf("%v: want what shard b says", err)
		}
		if err := c.Available(); err != nil {
			t.Error(err)
		}
		up.down()
		for _, err := range []error{c.Healthy(), c.Available()} {
			wantIs(t, err, ErrNoQuorum)
			if text := fmt.Sprint(err); !strings.Contains(text, "shard b: ") || !strings.Contains(text, "shard a: ") {
				t.Errorf("%v: want what both shards say", err)
			}
		}
		up.up()
		down.up()
		if err := errors.Join(c.Healthy(), c.Available()); err != nil {
			t.Error(err)
		}
		c.Close()
		for _, err := range []error{c.Healthy(), c.Available()} {
			if wantIs(t, err, ErrClosed); errors.Is(err, ErrNoQuorum) {
				t.Errorf("%v: no server is to blame", err)
			}
		}
		if d := time.Since(begin); d != 0 {
			t.Errorf("it took %v", d)
		}
	})
}

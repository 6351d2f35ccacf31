package demo

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestCounter(t *testing.T) {
	c := counter{filepath.Join(t.TempDir(), "counter")}
	for i := range uint64(12) {
		if err := c.add(100+i, 0); err != nil {
			t.Fatalf("count %d: %v", i, err)
		}
	}
	if err := c.add(110, 0); !errors.Is(err, errFenced) {
		t.Errorf("a token smaller than one that was seen: %v", err)
	}
	if k, err := c.read(0); k != 12 || err != nil {
		t.Errorf("counted %d, %v, want 12", k, err)
	}
	if err := os.WriteFile(c.path, []byte("many"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.read(0); err == nil {
		t.Error("a file that is no counter is read")
	}
}

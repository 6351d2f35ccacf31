package e2e

import (
	le "encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// offsetVariable names the file by which the wall clock is off, in builds with the tag offsetclock.
const offsetVariable = "OFFSETCLOCK_FILE"

// An offset is a file by which the wall clock of a process is off.
type offset struct {
	t    *testing.T
	path string
}

func newOffset(t *testing.T, name string) offset {
	t.Helper()
	o := offset{t, filepath.Join(t.TempDir(), name)}
	if err := os.WriteFile(o.path, make([]byte, 8), 0o600); err != nil {
		t.Fatal(err)
	}
	return o
}

func (o offset) set(d time.Duration) {
	o.t.Helper()
	f, err := os.OpenFile(o.path, os.O_WRONLY, 0)
	if err != nil {
		o.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(le.LittleEndian.AppendUint64(nil, uint64(d)), 0); err != nil {
		o.t.Fatal(err)
	}
}

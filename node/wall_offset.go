//go:build offsetclock

package node

import (
	"encoding/binary"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// In a build with the tag offsetclock, for tests with real processes, the wall clock is off by
// the eight bytes of a file, a number of ns, little-endian. They may change at any moment.
var clockOffset = func() *int64 {
	name := os.Getenv("OFFSETCLOCK_FILE")
	if name == "" {
		return new(int64)
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		panic("node: OFFSETCLOCK_FILE: " + err.Error())
	}
	defer f.Close()
	page, err := syscall.Mmap(int(f.Fd()), 0, binary.Size(int64(0)), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic("node: OFFSETCLOCK_FILE: " + err.Error())
	}
	return (*int64)(unsafe.Pointer(&page[0]))
}()

func wall(t time.Time) int64 { return t.UnixNano() + atomic.LoadInt64(clockOffset) }

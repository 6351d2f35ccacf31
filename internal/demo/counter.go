package demo

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A counter is a file that workers count in: the resource that the lock is for.
// To add one is to read it, to wait for a moment, and to write it, so that two
// workers who do so at once lose a count. It is fenced: who comes with a token that
// is smaller than one it has seen is refused, at reading and at writing.
type counter struct{ path string }

// numbers is the text of the file: the count and the largest token. Its length is
// fixed, so that nothing of an older one is left.
const numbers = "%020d %020d\n"

// errFenced says that the counter has seen a larger token.
var errFenced = errors.New("the counter has seen a larger token")

// read returns the count.
func (c counter) read(token uint64) (count uint64, err error) {
	err = c.update(token, func(now uint64) uint64 { count = now; return now })
	return count, err
}

// add counts one, unless there is an error.
func (c counter) add(token uint64, hold time.Duration) error {
	count, err := c.read(token)
	if err != nil {
		return err
	}
	time.Sleep(hold)
	return c.update(token, func(uint64) uint64 { return count + 1 })
}

// update is one request to the resource, which takes them one at a time. Token 0 is
// that of those who have none, and is not compared.
func (c counter) update(token uint64, change func(count uint64) uint64) error {
	f, err := os.OpenFile(c.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	var count, largest uint64
	// An empty file is a counter at 0.
	if _, err := fmt.Fscanf(f, numbers, &count, &largest); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", c.path, err)
	}
	if token != 0 && token < largest {
		return errFenced
	}
	_, err = f.WriteAt(fmt.Appendf(nil, numbers, change(count), max(token, largest)), 0)
	return err
}

package load

import (
	"errors"
	"sync"
	"sync/atomic"
)

// Each calls f for 0 to count-1, atOnce of them at a time, and returns their errors: each goroutine ends with its first one.
func Each(count, atOnce int, f func(k int) error) error {
	var next atomic.Int64
	errs := make([]error, atOnce)
	var all sync.WaitGroup
	for w := range atOnce {
		all.Go(func() {
			for k := int(next.Add(1) - 1); k < count && errs[w] == nil; k = int(next.Add(1) - 1) {
				errs[w] = f(k)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

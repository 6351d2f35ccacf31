package memlock_test

import (
	"fmt"
	"sync"

	"github.com/poundlock/poundlock/memlock"
)

// Four goroutines, each with a slot of its own, count together.
func Example() {
	const n = 4
	lock := memlock.NewBakery(n)
	count := 0
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			for range 100 {
				lock.Lock(i)
				count++
				lock.Unlock(i)
			}
		})
	}
	all.Wait()
	fmt.Println(count)
	// Output: 400
}

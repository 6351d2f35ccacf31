package fence_test

import (
	"fmt"
	"sync"

	"github.com/poundlock/poundlock/fence"
)

// A file that is written under the lock "report", kept in memory.
type file struct {
	mu    sync.Mutex
	fence fence.Checker
	text  string
}

func (f *file) write(token uint64, text string) error {
	f.mu.Lock() // nothing comes between Check and the write
	defer f.mu.Unlock()
	if err := f.fence.Check("report", token); err != nil {
		return err
	}
	f.text = text
	return nil
}

func Example() {
	var f file
	fmt.Println(f.write(34, "written by the second holder"))
	fmt.Println(f.write(33, "written by the first holder, which slept"))
	fmt.Println(f.text)
	// Output:
	// <nil>
	// fence: lock "report": stale token 33: 34 was here
	// written by the second holder
}

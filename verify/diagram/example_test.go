package diagram_test

import (
	"fmt"
	"os"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/diagram"
)

// A run in which two processes want to enter, taken step by step.
func Example() {
	w, err := check.NewWalk(ricartagrawala.Algorithm, check.Config{Config: protocol.Config{N: 2}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 5 {
		steps := w.Possible()
		if _, err := w.Take(steps[len(steps)-1]); err != nil { // deliver rather than try
			fmt.Println(err)
			return
		}
	}
	run := w.Run()
	fmt.Println(len(run.Steps), "steps")
	if err := diagram.Text(os.Stdout, run, diagram.Width); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 5 steps
	//    1  try p2                    p2 sends REQUEST(1) to p1
	//    2  deliver p2 p1 REQUEST(1)  p1 sends REPLY(1) to p2
	//    3  deliver p1 p2 REPLY(1)    p2 enters with token 3
	//    4  exit p2                   p2 is in its remainder section
	//    5  try p1                    p1 sends REQUEST(2) to p2
	//
	// at the end
	//       p1  trying     clock 2, request 2, REPLYs missing 1
	//       p2  remainder  clock 1
	//       on their way: p1 to p2 REQUEST(2)
}

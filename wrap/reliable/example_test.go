package reliable_test

import (
	"fmt"

	"github.com/poundlock/poundlock/wrap/reliable"
)

// The second item is lost with its connection, and sent again on the next one.
func ExampleWindow() {
	var from, to reliable.Window
	for _, text := range []string{"a", "b"} {
		_, b := from.Next()
		if err := from.Push(append(b, text...)); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Printf("%s\n", from.Take(nil, 1))
	isNew, _ := to.Receive(1)
	fmt.Println(isNew)
	fmt.Printf("%s is lost\n", from.Take(nil, 1))

	if err := from.Restart(to.Received()); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%s\n", from.Take(nil, 1))
	// Output:
	// a
	// true
	// b is lost
	// b
}

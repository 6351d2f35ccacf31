package algotest_test

import (
	"fmt"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/protocol"
)

// A story from a paper: whoever holds the token enters without any message;
// at first that is the last process.
func ExampleSystem() {
	s := algotest.NewSystem(suzukikasami.Algorithm, protocol.Config{N: 4}, 0)
	for _, id := range []protocol.ID{3, 2, 2} {
		before := s.Sent
		s.Try(id)
		s.Settle()
		fmt.Println(s.Inside(), "after", s.Sent-before, "messages")
		s.Exit(id)
	}
	// Output:
	// [3] after 0 messages
	// [2] after 4 messages
	// [2] after 0 messages
}

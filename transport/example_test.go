package transport_test

import (
	"bytes"
	"fmt"

	"github.com/poundlock/poundlock/transport"
)

func Example() {
	b := transport.AppendHeader(nil, 3) // the slot table has epoch 3
	b = transport.AppendNamed(b, transport.MessageItem, 1, 1, "build", []byte("REQUEST"))
	b = transport.Item{Type: transport.AckItem, Seq: 8}.Append(b)
	transport.EndFrame(b)

	frame, err := transport.ReadFrame(bytes.NewReader(b), transport.MaxFrame)
	if err != nil {
		fmt.Println(err)
		return
	}
	h, items, err := transport.ReadHeader(frame)
	fmt.Println(h.Epoch, h.Check(), err)
	for len(items) > 0 {
		var i transport.Item
		if i, items, err = transport.ReadItem(items); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d %d %q %q\n", i.Type, i.Seq, i.Name, i.Body)
	}
	// Output:
	// 3 <nil> <nil>
	// 4 1 "build" "REQUEST"
	// 5 8 "" ""
}

package transport_test

import (
	"bytes"
	"fmt"

	"github.com/poundlock/poundlock/transport"
)

func Example() {
	b := transport.AppendHeader(nil, 3) // the slot table has epoch 3
	b = transport.AppendMessage(b, 1, 1, "build", []byte("REQUEST"))
	b = transport.Item{Type: transport.AckItem, Seq: 8}.Append(b)
	transport.EndFrame(b)

	frame, err := transport.ReadFrame(bytes.NewReader(b), transport.MaxFrame)
	if err != nil {
		fmt.Println(err)
		return
	}
	h, items, err := transport.ReadHeader(frame)
	fmt.Println(h.Check(4), err)
	for len(items) > 0 {
		var i transport.Item
		if i, items, err = transport.ReadItem(items); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d %d %q %q\n", i.Type, i.Seq, i.Name, i.Body)
	}
	// Output:
	// transport: its slot table has epoch 3, this process's has 4 <nil>
	// 4 1 "build" "REQUEST"
	// 5 8 "" ""
}

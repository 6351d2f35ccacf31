package node_test

import (
	"context"
	"fmt"
	"net"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// A visitor is inside for a moment.
type visitor struct {
	node *node.Node
	done chan struct{}
}

func (v *visitor) Crit(node.Entry) {
	fmt.Println("inside")
	v.node.Exit("garden")
}
func (v *visitor) Rem(why error)                    { fmt.Println("out"); close(v.done) }
func (v *visitor) Ejected()                         { fmt.Println("lost") }
func (v *visitor) Supported(map[protocol.ID]uint64) {}

// Two members, here in one process, exclude each other.
func ExampleStart() {
	var network memory
	peers := []node.Peer{{Name: "a", Addr: "a"}, {Name: "b", Addr: "b"}}
	nodes := make([]*node.Node, len(peers))
	for i, p := range peers {
		listener, err := network.Listen(p.Addr)
		if err != nil {
			fmt.Println(err)
			return
		}
		nodes[i], err = node.Start(node.Config{
			ID: protocol.ID(i), Hosts: mutexes(node.HostOf(ricartagrawala.Algorithm)), Peers: peers, Listener: listener,
			Dial: func(ctx context.Context, p node.Peer) (net.Conn, error) { return network.Dial(ctx, p.Addr) },
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer nodes[i].Close()
	}
	v := &visitor{nodes[0], make(chan struct{})}
	if err := nodes[0].Try(node.Mutex, "garden", v, false); err != nil {
		fmt.Println(err)
		return
	}
	<-v.done
	// Output:
	// inside
	// out
}

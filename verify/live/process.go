package live

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// lock is the name of the lock that all users want.
const lock = "lock"

// A process is one life of a process of the algorithm.
type process interface {
	// meet waits until it has sessions with so many others, and lets its users try.
	meet(ctx context.Context, others int) error
	try(u node.Sharer) error
	downgrade(to protocol.Group)
	exit()
	// drain has a server give nothing more to anybody.
	drain()
	// sent is how many messages of each kind it has sent.
	sent() []int
	// halt has it make no more connections: all that it has are to be broken, and nobody hears of it.
	halt()
	// close ends it. It says good-bye, unless it was halted.
	close()
}

// A role is what a process is told as it begins.
type role struct {
	ID      protocol.ID
	System  protocol.Config
	Grouped bool // users want groups
	Peers   []node.Peer
	Lease   time.Duration
	Label   string
	Joins   bool
}

// start starts the node of a role, at l where that is a member.
func (r *role) start(l net.Listener, host node.Host, log *slog.Logger, dial func(context.Context, node.Peer) (net.Conn, error)) (*node.Node, error) {
	c := node.Config{
		ID: r.ID, System: r.System, Hosts: map[node.Kind]node.Host{node.Mutex: host}, Peers: r.Peers, Listener: l,
		Lease: r.Lease, Label: r.Label, Log: log, Dial: dial, Joins: r.Joins,
	}
	if l == nil {
		c.Secret = node.NewSecret()
	}
	return node.Start(c)
}

// A local process is a node of this program.
type local struct {
	*node.Node
	l    net.Listener // nil of a client
	over chan struct{}
}

func startLocal(r role, l net.Listener, host node.Host, log *slog.Logger) (process, error) {
	v := &local{l: l, over: make(chan struct{})}
	var err error
	v.Node, err = r.start(l, host, log, v.dial)
	return v, err
}

// dial dials until the life is over.
func (v *local) dial(ctx context.Context, p node.Peer) (net.Conn, error) {
	if v.isOver() {
		return nil, errCrashed
	}
	c, err := transport.Dial(ctx, "", p.Addr, nil)
	if v.isOver() && err == nil { // meanwhile
		c.Close()
		return nil, errCrashed
	}
	return c, err
}

func (v *local) isOver() bool {
	select {
	case <-v.over:
		return true
	default:
		return false
	}
}

var errCrashed = errors.New("live: this process has crashed")

func (v *local) meet(ctx context.Context, others int) error { return meet(ctx, v.Node, others) }

func meet(ctx context.Context, n *node.Node, others int) error {
	if err := n.WaitAlive(ctx, others); err != nil {
		return err
	}
	return n.WaitMet(ctx)
}

func (v *local) try(u node.Sharer) error     { return v.Try(node.Mutex, lock, u, false) }
func (v *local) downgrade(to protocol.Group) { v.Downgrade(lock, to) }
func (v *local) exit()                       { v.Exit(lock) }
func (v *local) drain()                      { drain(v.Node) }
func (v *local) sent() []int                 { return sent(v.Node) }
func (v *local) close()                      { _ = v.Close() } // it never fails

func (v *local) halt() {
	close(v.over)
	if v.l != nil {
		v.l.Close()
	}
}

func drain(n *node.Node) {
	at, cancel := context.WithCancel(context.Background())
	cancel() // nobody waits until it has no holder
	n.Drain(at)
}

func sent(n *node.Node) (all []int) {
	for _, m := range n.Stats().Messages {
		all = append(all, int(m.Sent))
	}
	return all
}

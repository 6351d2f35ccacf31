package node

import (
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
)

// A process that is idle serves the next lock, as long as a new one would be like it: not after the end of a lease, nor when another
// message delay was measured since it was made.
func TestSpareProcesses(t *testing.T) {
	n, err := newNode(Config{
		Secret: 1, Peers: []Peer{{Name: "s1", Addr: "h:1"}, {Name: "s2", Addr: "h:2"}, {Name: "s3", Addr: "h:3"}, {Name: "s4", Addr: "h:4"}},
		Hosts: map[Kind]Host{Mutex: HostOf(sigma.Algorithm)},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer n.cancel()
	l := n.loops[0]
	used := func(name string) Instance {
		i := l.create(Mutex, name, nil)
		l.dropIfIdle(i)
		if !i.removed {
			t.Fatalf("%s is kept", name)
		}
		return i.process
	}
	first := used("a")
	if used("b") != first {
		t.Error("a new process is made")
	}
	l.make.trusts(0, 1)
	second := used("c")
	if second == first {
		t.Error("a process from before a session is used again")
	}
	if used("d") != second {
		t.Error("a new process is made")
	}
	i := l.create(Mutex, "e", nil)
	n.sessions.delay.Store(int64(30 * time.Millisecond))
	third := used("f")
	if third == second {
		t.Error("a process of another delay is used again")
	}
	l.dropIfIdle(i)
	if a, b := l.create(Mutex, "g", nil), l.create(Mutex, "h", nil); a.process == second || b.process == second {
		t.Error("a process of another delay is kept")
	}
}

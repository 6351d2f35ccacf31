package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/poundlock/poundlock/fence"
	"github.com/poundlock/poundlock/internal/clock"
	"github.com/poundlock/poundlock/internal/proctest"
)

// A resource is a counter that many processes read and write over a socket, with
// their tokens: a stale one is refused. A read counts as a use, or a stale holder
// could write after the next one has read. What those of one group add at the same time
// is added up; what anybody else has written between a read and a write is lost.
type resource struct {
	socket string
	open   bool // broken variant: every token is good

	mu      sync.Mutex
	fence   fence.Checker
	value   int
	written int            // increments that were accepted
	refused int            // uses that were not
	added   map[string]int // by each group
	writes  []porcupine.Operation
}

// A seen value is what a client has read last: at an instant, after so much was added by its group.
type seen struct {
	at    int64
	added int
}

// A use is one request to a resource.
type use struct {
	Group string
	Token uint64
	Write bool
	Value int
}

type answer struct {
	Value   int
	Refused string
}

func newResource(t *testing.T, open bool) *resource {
	t.Helper()
	r := &resource{
		socket: filepath.Join(proctest.SocketDir(t), "resource"), open: open,
		added: map[string]int{},
	}
	l, err := net.Listen("unix", r.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go r.serve(nc)
		}
	}()
	return r
}

// serve answers one client until its process has ended.
func (r *resource) serve(nc net.Conn) {
	defer nc.Close()
	in, out := json.NewDecoder(nc), json.NewEncoder(nc)
	var last seen
	for {
		var u use
		if in.Decode(&u) != nil || out.Encode(r.use(u, &last)) != nil {
			return
		}
	}
}

func (r *resource) use(u use, last *seen) answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.fence.CheckGroup("counter", u.Group, u.Token); err != nil && !r.open {
		r.refused++
		return answer{Refused: err.Error()}
	}
	if u.Write {
		r.value = u.Value + r.added[u.Group] - last.added
		r.written++
		if u.Group != "" {
			r.added[u.Group]++
		}
		r.writes = append(r.writes, porcupine.Operation{
			ClientId: len(r.writes), Call: last.at, Return: clock.Now(), Output: incremented{Read: r.value - 1, Wrote: r.value},
		})
	} else {
		*last = seen{clock.Now(), r.added[u.Group]}
	}
	return answer{Value: r.value}
}

// problems are what is wrong with the counter.
func (r *resource) problems() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.value != r.written {
		all = append(all, fmt.Sprintf("the counter is %d after %d increments", r.value, r.written))
	}
	return all
}

// increments are those that were accepted, as operations from the read to the write.
func (r *resource) increments() []porcupine.Operation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.writes)
}

func (r *resource) hasRefused() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused > 0
}

func (r *resource) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("%d increments, counter %d, %d uses with a stale token refused", r.written, r.value, r.refused)
}

// A remote is a resource as its clients see it. nil is none, which accepts all.
type remote struct {
	group string
	in    *json.Decoder
	out   *json.Encoder
}

var errRefused = errors.New("refused")

func dialResource(socket, group string) (*remote, error) {
	nc, err := net.Dial("unix", socket)
	if err != nil {
		return nil, err
	}
	return &remote{group, json.NewDecoder(nc), json.NewEncoder(nc)}, nil
}

func (r *remote) read(token uint64) (int, error) { return r.ask(use{Token: token}) }

func (r *remote) write(token uint64, value int) error {
	_, err := r.ask(use{Token: token, Write: true, Value: value})
	return err
}

func (r *remote) ask(u use) (int, error) {
	if r == nil {
		return 0, nil
	}
	u.Group = r.group
	var a answer
	if err := errors.Join(r.out.Encode(u), r.in.Decode(&a)); err != nil {
		return 0, fmt.Errorf("resource: %w", err)
	}
	if a.Refused != "" {
		return 0, fmt.Errorf("%w: %s", errRefused, a.Refused)
	}
	return a.Value, nil
}

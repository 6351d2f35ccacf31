// Package replica gives programs critical sections over a replicated object, which a node of
// package node hosts: Enter, Do, Exit, and the news that a section was lost.
//
// Sections exclude each other weakly. Who is suspected by mistake may believe to be inside while
// somebody else is; but of each operation it hears the truth. It was executed, once, after all
// operations of the sections before and with none of another section in between; or it was not
// executed, and never will be.
package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// What Do, Wait and Enter fail with.
var (
	// ErrEjected says that the section was lost. The operation that it is returned for was not
	// executed, and never will be.
	ErrEjected = errors.New("replica: ejected from the section: the operation was not executed and never will be")
	// ErrClosed says that this process is closing, or has failed. What becomes of an operation
	// that was open, this process does not learn.
	ErrClosed = errors.New("replica: closed")
	// ErrOpen says that an operation is open: Wait for its verdict first.
	ErrOpen = errors.New("replica: another operation of the section is open")
	// ErrExited says that the section has ended by Exit.
	ErrExited = errors.New("replica: the section has ended")
	// ErrResultTooLarge says that the operation was executed, and that its result, of more than
	// node.MaxOperation bytes, is withheld. The section goes on.
	ErrResultTooLarge = node.ErrResultTooLarge
	// ErrOperation says that something is no operation of the object, and why. No copy has changed, and the
	// section goes on.
	ErrOperation = node.ErrOperation
)

// A Replica is the object of one name at one member. Its methods may be called by many goroutines.
type Replica struct {
	n    *node.Node
	name string
	turn chan struct{} // has one element while a local user has the node's
}

// New returns the object called name, which n hosts.
func New(n *node.Node, name string) *Replica {
	return &Replica{n: n, name: name, turn: make(chan struct{}, 1)}
}

// Enter waits until a section is this caller's. Users of one process queue here, and come one after
// the other.
func (r *Replica) Enter(ctx context.Context) (*Section, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("replica: enter %q: %w", r.name, context.Cause(ctx))
	}
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("replica: enter %q: %w", r.name, context.Cause(ctx))
	}
	s := &Section{r: r, entered: make(chan struct{}), lost: make(chan struct{}), over: make(chan struct{})}
	if err := r.n.Try(node.Replica, r.name, user{s}, false); err != nil {
		<-r.turn
		if errors.Is(err, node.ErrClosed) || errors.Is(err, node.ErrFailed) {
			err = fmt.Errorf("%w: %w", ErrClosed, err)
		}
		return nil, fmt.Errorf("replica: enter %q: %w", r.name, err)
	}
	select {
	case <-s.entered:
		return s, nil
	case <-s.over:
		return nil, fmt.Errorf("replica: enter %q: %w", r.name, s.Err())
	case <-ctx.Done():
	}
	// The node answers at once, whatever the other members do.
	r.n.Cancel(r.name)
	select {
	case <-s.entered:
		s.Exit()
		<-s.over
	case <-s.over:
	}
	return nil, fmt.Errorf("replica: enter %q: %w", r.name, context.Cause(ctx))
}

// A Section is one stay of a user. Its methods may be called by several goroutines, but it has one
// operation at a time.
type Section struct {
	r       *Replica
	entered chan struct{} // closed by Crit
	lost    chan struct{} // closed when the section is over before Exit
	over    chan struct{} // closed by Rem

	mu     sync.Mutex
	err    error // why the section is over
	open   *verdict
	last   *verdict // the last operation's, also while it is open
	exited bool
	inside bool // the node has still to be told Exit
}

// A verdict is what becomes of one operation.
type verdict struct {
	known  chan struct{} // closed when the rest is set
	result []byte
	err    error
}

// Do executes an operation on the object. It returns the result, after it was executed, exactly
// once; or ErrResultTooLarge: it was executed, too; or ErrEjected: it was not executed, and never
// will be; or an error of ctx: then the operation is still open, Wait returns what becomes of it,
// and until then every Do fails with ErrOpen. With ErrClosed nobody here will know. With ErrOperation it
// was none for the object, no copy has changed, and the section goes on.
func (s *Section) Do(ctx context.Context, op []byte) ([]byte, error) {
	v, err := s.issue(op)
	if err != nil {
		return nil, err
	}
	return v.wait(ctx)
}

func (s *Section) issue(op []byte) (*verdict, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return nil, s.err
	case s.open != nil:
		return nil, ErrOpen
	}
	// The lock is held until the operation is queued: what follows on a loss of this section,
	// such as the next one's Try, is queued after it, and it does nothing.
	if err := s.r.n.Issue(s.r.name, op); err != nil {
		return nil, err
	}
	s.open = &verdict{known: make(chan struct{})}
	s.last = s.open
	return s.open, nil
}

// Wait returns what became of the last operation of Do, or the error of ctx if that is not known
// yet. It may be called again, and also after Exit.
func (s *Section) Wait(ctx context.Context) ([]byte, error) {
	s.mu.Lock()
	v := s.last
	s.mu.Unlock()
	if v == nil {
		return nil, errors.New("replica: the section has had no operation")
	}
	return v.wait(ctx)
}

func (v *verdict) wait(ctx context.Context) ([]byte, error) {
	select {
	case <-v.known:
		return v.result, v.err
	default:
	}
	select {
	case <-v.known:
		return v.result, v.err
	case <-ctx.Done():
		return nil, fmt.Errorf("replica: the operation is open still: %w", context.Cause(ctx))
	}
}

// Exit ends the section: at once, or when its open operation has a verdict. It must be called for
// a lost section, too, because other users of this process wait for that.
func (s *Section) Exit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.exited {
		return
	}
	s.exited = true
	if s.err == nil {
		s.err = ErrExited
	}
	s.leave()
}

// leave tells the node that the user has left. s.mu is held.
func (s *Section) leave() {
	if s.exited && s.inside && s.open == nil {
		s.inside = false
		s.r.n.Exit(s.r.name)
	}
}

// Ejected is closed when the section is lost: because somebody suspected this process, or because
// it closes. Err says which.
func (s *Section) Ejected() <-chan struct{} { return s.lost }

// Err is nil while the section lasts, and then ErrEjected, ErrExited, or wraps ErrClosed.
func (s *Section) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// decide makes the verdict of the open operation known. s.mu is held.
func (s *Section) decide(result []byte, err error) {
	if v := s.open; v != nil {
		v.result, v.err = result, err
		s.open = nil
		close(v.known)
	}
}

// lose ends a section that has not ended by Exit. s.mu is held.
func (s *Section) lose(err error) {
	if s.err == nil {
		s.err = err
		close(s.lost)
	}
}

// A user is a Section as the node sees it.
type user struct{ *Section }

// Crit implements node.User.
func (u user) Crit(node.Entry) {
	u.mu.Lock()
	u.inside = true
	u.mu.Unlock()
	close(u.entered)
}

// Outcome implements node.ObjectUser.
func (u user) Outcome(result []byte, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.decide(result, err)
	u.leave()
}

// Ejected implements node.User.
func (u user) Ejected() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.lose(ErrEjected)
	u.decide(nil, ErrEjected)
	u.leave()
}

// Rem implements node.User.
func (u user) Rem(why error) {
	u.mu.Lock()
	closed := ErrClosed
	if why != nil {
		closed = fmt.Errorf("%w: %w", ErrClosed, why)
	}
	u.lose(closed)
	u.decide(nil, closed)
	u.inside = false
	u.mu.Unlock()
	<-u.r.turn
	close(u.over)
}

// Supported implements node.User: the section counts on no sessions.
func (u user) Supported(map[protocol.ID]uint64) {}

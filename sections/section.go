package sections

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// What Do, Wait and Enter fail with.
var (
	// ErrEjected says that the section was lost. The operation that it is returned for was not
	// executed, and never will be.
	ErrEjected = errors.New("sections: ejected from the section: the operation was not executed and never will be")
	// ErrClosed says that this process is closing, or has failed. What becomes of an operation
	// that was open, this process does not learn.
	ErrClosed = errors.New("sections: closed")
	// ErrExited says that the section has ended by Exit.
	ErrExited = errors.New("sections: the section has ended")
	// ErrResultTooLarge says that the operation was executed, and that its result, of more than
	// MaxOperation bytes, is withheld. The section goes on.
	ErrResultTooLarge = node.ErrResultTooLarge
	// ErrOperation says that something is no operation of the object, and why. No copy has changed, and the
	// section goes on.
	ErrOperation = node.ErrOperation
)

// Enter waits until a section of an object is this caller's. Users of one process queue here, and come one after
// the other.
func (m *Member) Enter(ctx context.Context, object string) (*Section, error) {
	s, err := m.enter(ctx, object)
	if err != nil {
		return nil, fmt.Errorf("sections: enter %q: %w", object, err)
	}
	return s, nil
}

func (m *Member) enter(ctx context.Context, object string) (*Section, error) {
	r, err := m.find(ctx, object)
	if err != nil {
		return nil, err
	}
	for {
		s, err := m.enterAt(ctx, r)
		if err != nil || r.object() != nil {
			return s, err
		}
		if _, err = s.execute(ctx, append([]byte{begin}, object...)); err == nil {
			return s, nil
		}
		s.Exit()
		if !errors.Is(err, ErrEjected) {
			return nil, err
		}
	}
}

func (m *Member) enterAt(ctx context.Context, r *replica) (*Section, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	began := time.Now()
	s := &Section{
		n: m.n, r: r, maxState: m.c.MaxState, pipeline: pipeline{done: &r.done},
		entered: make(chan struct{}), lost: make(chan struct{}), over: make(chan struct{}),
	}
	if err := m.n.Try(node.Replica, r.name, user{s}, false); err != nil {
		<-r.turn
		return nil, closed(err)
	}
	select {
	case <-s.entered:
		r.entered.Add(1)
		r.waits.Add(time.Since(began))
		return s, nil
	case <-s.over:
		return nil, s.Err()
	case <-ctx.Done():
	}
	// The node answers at once, whatever the other members do.
	m.n.Cancel(r.name)
	select {
	case <-s.entered:
		s.Exit()
		<-s.over
	case <-s.over:
	}
	return nil, context.Cause(ctx)
}

// closed is what users are told of why this process goes, nil: because it closes.
func closed(why error) error {
	if why == nil {
		return ErrClosed
	}
	return fmt.Errorf("%w: %w", ErrClosed, why)
}

// With enters a section of an object, calls f in it and exits. The context of f ends with ctx, and when the section is lost: its
// cause is then what Err says. If the section was lost before f returned, the error is also ErrEjected, or ErrClosed: f's own where
// that says so already, and otherwise f's with the loss behind it.
func (m *Member) With(ctx context.Context, object string, f func(ctx context.Context, s *Section) error) error {
	s, err := m.Enter(ctx, object)
	if err != nil {
		return err
	}
	defer s.Exit() // should f panic
	inside, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() {
		select {
		case <-s.lost:
			end(s.Err())
		case <-inside.Done():
		}
	}()
	err = f(inside, s)
	s.Exit()
	switch loss := s.Err(); {
	case errors.Is(loss, ErrExited) || errors.Is(err, loss):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", err, loss)
	default:
		return loss
	}
}

// View calls f with the copy of an object that this member has. It may be old: operations that ended elsewhere may be missing, unless
// they ended before a Barrier began. At a durable member it
// returns once what f has seen is on disk. f must not change the object, nor keep it, and be short: no operation is executed here meanwhile.
func (m *Member) View(object string, f func(Object)) error {
	r, err := m.object(object)
	if err == nil {
		err = r.view(object, f)
	}
	if err != nil {
		return fmt.Errorf("sections: view %q: %w", object, err)
	}
	if err := m.n.Settle(); err != nil { // what f has seen might be lost still
		return fmt.Errorf("sections: view %q: %w", object, closed(nil))
	}
	return nil
}

// Barrier waits until the copy of an object that this member has shows all operations, of any member, that had ended when
// Barrier was called. It is a section with an operation that does nothing, and costs the same: it waits until the user inside has left.
// Inside of a section Do shows as much.
func (m *Member) Barrier(ctx context.Context, object string) error {
	r, err := m.find(ctx, object)
	if err == nil {
		err = m.barrier(ctx, r)
	}
	if err != nil {
		return fmt.Errorf("sections: barrier %q: %w", object, err)
	}
	return nil
}

func (m *Member) barrier(ctx context.Context, r *replica) error {
	for {
		s, err := m.enterAt(ctx, r)
		if err == nil {
			_, err = s.execute(ctx, []byte{empty})
			s.Exit()
		}
		if !errors.Is(err, ErrEjected) { // that would prove nothing: another member may have gone on before
			return err
		}
	}
}

// A Section is one stay of a user. Its methods may be called by several goroutines.
type Section struct {
	maxState int // of the object
	n        *node.Node
	r        *replica
	entered  chan struct{} // closed by Crit
	lost     chan struct{} // closed when the section is over before Exit
	over     chan struct{} // closed by Rem

	loads sync.Mutex // one Load at a time

	mu       sync.Mutex
	err      error // why the section is over
	pipeline pipeline
	gathers  bool       // advance is about to be called: see gather
	last     *Operation // the last one
	exited   bool
	inside   bool   // the node has still to be told Exit
	id       uint64 // the place of the first operation; 0: there was none
}

// Do executes an operation on the object. It returns the result, after it was executed, exactly
// once; or ErrResultTooLarge: it was executed, too; or ErrEjected or ErrNotIssued: it was not executed, and never
// will be; or an error of ctx: then the operation is still open, and Wait returns what becomes of it.
// With ErrClosed alone nobody here will know. With ErrOperation it
// was none for the object, no copy has changed, and the section goes on.
//
// Many goroutines may call it at once. Each operation has a fate of its own, and those that are called while one is under way
// travel together: that is how a section executes many in a second. See Start.
func (s *Section) Do(ctx context.Context, op []byte) ([]byte, error) {
	o, err := s.Start(ctx, op)
	if err != nil {
		return nil, err
	}
	return o.Wait(ctx)
}

// Start issues an operation and does not wait until it was executed: its Wait returns what Do does. Operations are executed in the order
// in which Start, Do and DoAll have been called. Start itself waits only while 8 MiB of operations have no verdict, and an error of it
// says that the operation never will be executed: ErrNotIssued with that of ctx, ErrOperation, or why the section is over.
func (s *Section) Start(ctx context.Context, op []byte) (*Operation, error) {
	if err := checkSize(len(op)); err != nil {
		return nil, err
	}
	return s.start(ctx, encodeOne(op))
}

// DoAll executes operations as if they were one: all of them, in their order and with nothing in between, or none; no View shows
// some of them. It costs what one does, and returns what Do does, a result for each. What Check refuses refuses all.
func (s *Section) DoAll(ctx context.Context, ops ...[]byte) ([][]byte, error) {
	all := encodeAll(ops)
	if err := checkSize(len(all) - 1); err != nil {
		return nil, err
	}
	return s.execute(ctx, all)
}

func checkSize(size int) error {
	if size > MaxOperation {
		return fmt.Errorf("%w: it has %d bytes, more than %d", ErrOperation, size, MaxOperation)
	}
	return nil
}

// ID is a fencing token, for what lies outside of the object: a number that grows from section to section of the object. What remembers
// the largest one that it was shown, and refuses smaller ones, refuses a user that has lost its section once a later one was there.
//
// It is the place of the section's first operation in the order of all. A section that has had none executes one that does nothing,
// so that ID may return what Do does: ErrEjected, or an error of ctx. It grows for as long as the object lives.
func (s *Section) ID(ctx context.Context) (uint64, error) {
	id := s.known()
	if id > 0 {
		return id, nil
	}
	_, err := s.execute(ctx, []byte{empty})
	return s.known(), err
}

func (s *Section) known() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

func (s *Section) execute(ctx context.Context, op []byte) ([][]byte, error) {
	o, err := s.start(ctx, op)
	if err != nil {
		return nil, err
	}
	return o.wait(ctx)
}

// start issues an operation in any form but each.
func (s *Section) start(ctx context.Context, op []byte) (*Operation, error) {
	if err := node.CheckOperation(s.r, op); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.never()
	}
	for s.pipeline.full() {
		room := s.pipeline.room()
		s.mu.Unlock()
		select {
		case <-room:
			s.mu.Lock()
		case <-ctx.Done():
			s.mu.Lock()
			return nil, notIssued(fmt.Errorf("%d bytes of operations have no verdict: %w", maxPipeline, context.Cause(ctx)))
		}
		if s.err != nil {
			return nil, s.never()
		}
	}
	o := &Operation{form: op[0], op: op, began: time.Now(), known: make(chan struct{})}
	s.last = o
	s.pipeline.push(o)
	if s.pipeline.open == nil {
		s.gather()
	}
	return o, nil
}

// gather issues those that wait, soon: whoever has had a verdict just now is about to issue another one, and if half of the users had
// to wait for the other half each operation would take twice as long. It waits a sixteenth of what the last one took at most, 10 ms at
// most, and not at all for a user that is alone. s.mu is held.
func (s *Section) gather() {
	if s.gathers {
		return
	}
	s.gathers = true
	const tries = 8
	pause := min(s.pipeline.took/16, 10*time.Millisecond) / tries
	go func() {
		for k := 0; k < 2*tries && s.comes(); k++ {
			if k < tries {
				runtime.Gosched()
			} else {
				time.Sleep(pause)
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.gathers = false
		s.advance()
	}()
}

// comes reports whether more operations may come soon.
func (s *Section) comes() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err == nil && len(s.pipeline.waiting) < s.pipeline.expected
}

// never is why nothing is issued any more. s.mu is held, and the section is over.
func (s *Section) never() error {
	if errors.Is(s.err, ErrClosed) {
		return notIssued(s.err)
	}
	return s.err
}

func notIssued(why error) error { return fmt.Errorf("%w: %w", ErrNotIssued, why) }

// advance issues those that wait, if none is under way, or leaves. s.mu is held until they are queued: what follows on a loss of this
// section, such as the next one's Try, is queued after it, and it does nothing.
func (s *Section) advance() {
	if p := &s.pipeline; p.open == nil && len(p.waiting) > 0 {
		s.n.Issue(s.r.name, p.next())
	}
	s.leave()
}

// Wait returns what became of the last operation of Do or Start, of those of DoAll, or of ID's: a result for each, none for ID. Or it
// returns the error of ctx if that is not known yet. It may be called again, and also after Exit. Where several goroutines issue
// operations, use Start.
func (s *Section) Wait(ctx context.Context) ([][]byte, error) {
	s.mu.Lock()
	o := s.last
	s.mu.Unlock()
	if o == nil {
		return nil, errors.New("sections: the section has had no operation")
	}
	return o.wait(ctx)
}

// Exit ends the section: at once, or when its open operations have verdicts. It must be called for
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
	if s.exited && s.inside && s.pipeline.idle() {
		s.inside = false
		s.n.Exit(s.r.name)
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
	u.id = cmp.Or(u.id, u.pipeline.outcome(result, err))
	if len(u.pipeline.waiting) > 0 {
		u.gather()
	}
	u.leave()
}

// Ejected implements node.User.
func (u user) Ejected() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.r.ejected.Add(1)
	u.lose(ErrEjected)
	u.pipeline.end(ErrEjected, ErrEjected)
	u.leave()
}

// Rem implements node.User.
func (u user) Rem(why error) {
	u.mu.Lock()
	gone := closed(why)
	u.lose(gone)
	u.pipeline.end(gone, notIssued(gone))
	u.inside = false
	u.mu.Unlock()
	<-u.r.turn
	close(u.over)
}

// Supported implements node.User: the section counts on no sessions.
func (u user) Supported(map[protocol.ID]uint64) {}

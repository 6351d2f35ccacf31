package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/poundlock/poundlock"
	pb "github.com/poundlock/poundlock/api/poundlockv1"
	"github.com/poundlock/poundlock/internal/slots"
)

// A grant is what one Lock asked for: waiting, held, lost or released. Guarded by
// Service.mu, but for what is constant: id, session, decided and left.
type grant struct {
	id      string
	names   []string // ascending
	wants   []string // groups of which to share with one, nil for none
	session *session

	state   pb.State
	lost    bool
	reason  string             // why it was lost or not acquired
	callers int                // Lock calls that wait for it
	cancel  context.CancelFunc // ends the attempt
	decided chan struct{}      // closed when the attempt has ended
	err     error              // why it was not acquired, once decided

	tokens   []uint64
	group    string
	section  section       // nil while waiting and when it has been left
	told     bool          // its client was told, or is about to be, that it is held
	promised time.Time     // until when the client was told that it is held
	left     chan struct{} // closed when a grant that is released has left its section
}

// A request is a LockRequest that was found good.
type request struct {
	id     string // "" to draw one
	names  []string
	groups []string // of which any one will do, nil for none
	wait   time.Duration
	try    bool
	ahead  time.Duration // its head start
}

func (s *Service) check(r *pb.LockRequest) (request, error) {
	want := request{id: r.GrantId, names: slices.Sorted(slices.Values(r.Names)), wait: defaultWait, try: r.Try}
	if len(r.Names) == 0 || len(r.Names) > maxNames {
		return want, failf(pb.Reason_REASON_INVALID, "%d names: want 1 to %d", len(r.Names), maxNames)
	}
	if err := slots.CheckNames(want.names); err != nil {
		return want, failf(pb.Reason_REASON_INVALID, "names: %w", err)
	}
	if r.WaitMs != nil {
		if want.wait = time.Duration(*r.WaitMs) * time.Millisecond; want.wait <= 0 || want.wait > maxWait {
			return want, failf(pb.Reason_REASON_INVALID, "wait_ms %d: want 1 to %d, or try", *r.WaitMs, maxWait.Milliseconds())
		}
		if r.Try {
			return want, failf(pb.Reason_REASON_INVALID, "try and wait_ms %d exclude each other", *r.WaitMs)
		}
	}
	if want.ahead = time.Duration(r.HeadStartMs) * time.Millisecond; want.ahead > maxAhead {
		return want, failf(pb.Reason_REASON_INVALID, "head_start_ms %d: want 0 to %d", r.HeadStartMs, maxAhead.Milliseconds())
	}
	var err error
	if want.groups, err = groupsOf(r); err != nil {
		return want, err
	}
	return want, checkText("grant_id", r.GrantId, maxGrantID)
}

// groupsOf are those of which a request, to lock or to come down, shares its locks with one, in order of preference; nil for none.
func groupsOf(r interface {
	GetMode() pb.Mode
	GetGroups() []string
},
) ([]string, error) {
	switch mode, groups := r.GetMode(), r.GetGroups(); {
	case mode == pb.Mode_MODE_GROUP && len(groups) > 0:
		if err := slots.CheckGroups(groups); err != nil {
			return nil, failf(pb.Reason_REASON_INVALID, "groups: %w", err)
		}
		return groups, nil
	case mode == pb.Mode_MODE_GROUP:
		return nil, failf(pb.Reason_REASON_INVALID, "mode MODE_GROUP with 0 groups: want 1 to %d", slots.MaxGroups)
	case len(groups) > 0:
		return nil, failf(pb.Reason_REASON_INVALID, "groups: %.20q with mode %v: want mode MODE_GROUP", groups[0], mode)
	case mode == pb.Mode_MODE_SHARED:
		return []string{poundlock.Shared}, nil
	case mode != pb.Mode_MODE_EXCLUSIVE:
		return nil, failf(pb.Reason_REASON_INVALID, "mode %v: want MODE_EXCLUSIVE, MODE_SHARED or MODE_GROUP", mode)
	}
	return nil, nil
}

// join returns the grant that want names, waiting or held, and begins the attempt
// when there is none. The caller waits for it.
func (s *Service) join(ctx context.Context, x *session, want request) (*grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.isClosing():
		return nil, shuttingDown()
	case x.why != "":
		return nil, unknownSession()
	case x.waits >= s.limits.Waits:
		return nil, failf(pb.Reason_REASON_LIMIT, "%d calls of Lock are in progress in this session", x.waits)
	}
	if want.id == "" {
		want.id = randomID()
	}
	if g := x.find(want.id); g != nil {
		return g, g.rejoin(want)
	}
	if len(x.grants) >= s.limits.Grants {
		return nil, failf(pb.Reason_REASON_LIMIT, "the session has %d grants already", len(x.grants))
	}
	if s.locks+len(want.names) > s.limits.Locks {
		return nil, failf(pb.Reason_REASON_LIMIT, "this service has %d locks already", s.locks)
	}
	g := &grant{
		id: want.id, names: want.names, wants: want.groups, session: x,
		state: pb.State_STATE_WAITING, callers: 1,
		decided: make(chan struct{}), left: make(chan struct{}),
	}
	x.grants[g.id] = g
	x.waits++
	s.locks += len(g.names)
	x.tell(g)
	// The attempt outlives the call that began it while others wait for it.
	end := time.Now().Add(want.wait)
	if e, ok := ctx.Deadline(); ok && e.Before(end) {
		end = e
	}
	attempt, cancel := context.WithDeadlineCause(context.Background(), end, tooLate(want.wait))
	g.cancel = cancel
	s.running.Go(func() {
		c, err := s.cluster.acquire(attempt, x.user(), want)
		s.decide(g, c, err)
	})
	return g, nil
}

// rejoin makes a repeated Lock wait for the grant too. Service.mu is held.
func (g *grant) rejoin(want request) error {
	switch {
	case g.state == pb.State_STATE_RELEASED:
		return failf(pb.Reason_REASON_RELEASED, "grant %q has been released: take another grant_id", g.id)
	case !slices.Equal(g.names, want.names):
		return failf(pb.Reason_REASON_OTHER_NAMES, "grant %q is of %q, not of %q", g.id, g.names, want.names)
	case !slices.Equal(g.wants, want.groups):
		return failf(pb.Reason_REASON_OTHER_NAMES, "grant %q is %s, not %s", g.id, shares(g.wants), shares(want.groups))
	case g.state == pb.State_STATE_LOST:
		return lostError(g.proto())
	}
	g.callers++
	g.session.waits++
	return nil
}

// shares says what groups a grant is for.
func shares(groups []string) string {
	if len(groups) == 0 {
		return "exclusive"
	}
	return fmt.Sprintf("for group %q", strings.Join(groups, ","))
}

// decide ends an attempt. Nobody may want what was acquired any more.
func (s *Service) decide(g *grant, c section, err error) {
	s.mu.Lock()
	g.cancel()
	wanted := g.state == pb.State_STATE_WAITING
	switch {
	case !wanted:
	case err != nil:
		g.err, g.reason = clusterError(err), plain(err)
		s.forget(g)
	default:
		g.state, g.section, g.tokens, g.group = pb.State_STATE_HELD, c, c.Tokens(), c.Group()
		g.session.tell(g)
	}
	close(g.decided)
	s.mu.Unlock()
	switch {
	case err != nil:
	case wanted:
		context.AfterFunc(c.Context(), func() { s.lose(g, context.Cause(c.Context())) })
	default:
		c.Unlock() // what nobody wants may be lost
	}
}

// await waits until a grant is held. A call whose client has gone leaves it, and
// the last of them takes the grant along if nobody has heard of it. What its client
// was told of stays, however many repeated calls go.
func (s *Service) await(ctx context.Context, g *grant) error {
	select {
	case <-g.decided:
	case <-ctx.Done():
	case <-s.closing:
	}
	s.mu.Lock()
	g.callers--
	g.session.waits--
	err := g.err
	switch {
	case s.isClosing():
		err = shuttingDown()
	case ctx.Err() != nil:
		err = leaving(ctx)
	}
	var left section
	switch {
	case err == nil:
		g.told = true
	case !g.told && g.callers == 0 && (g.state == pb.State_STATE_WAITING || g.state == pb.State_STATE_HELD):
		left = s.forget(g)
	}
	s.mu.Unlock()
	_ = s.giveBack(left)
	return err
}

// held returns a grant that Lock has waited for, unless it has come to an end
// meanwhile.
func (s *Service) held(g *grant) (*pb.LockResponse, error) {
	d := s.describe(g)
	switch d.State {
	case pb.State_STATE_HELD:
		return &pb.LockResponse{Grant: d}, nil
	case pb.State_STATE_LOST:
		return nil, lostError(d)
	}
	return nil, failf(pb.Reason_REASON_RELEASED, "grant %q was released while it was waited for", g.id)
}

// downgrade lets those of a group in beside a grant that is held.
func (s *Service) downgrade(x *session, id, group string) (*grant, error) {
	s.mu.Lock()
	g := x.find(id)
	if g == nil {
		s.mu.Unlock()
		return nil, unknownGrant(id)
	}
	c := g.section
	if err := g.atHand(); err != nil {
		s.mu.Unlock()
		return nil, err
	}
	s.mu.Unlock()
	err := c.Downgrade(group) // not under mu
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := g.atHand(); err != nil {
		return nil, err
	}
	switch {
	case errors.Is(err, poundlock.ErrLost): // lose follows
		return nil, failf(pb.Reason_REASON_LOST, "grant %q: %s", id, plain(err))
	case err != nil:
		return nil, failf(pb.Reason_REASON_OTHER_NAMES, "grant %q: %s", id, plain(err))
	}
	g.group = group
	x.tell(g)
	return g, nil
}

// atHand says why a grant is not held. Service.mu is held.
func (g *grant) atHand() error {
	switch g.state {
	case pb.State_STATE_HELD:
		return nil
	case pb.State_STATE_LOST:
		return lostError(g.proto())
	case pb.State_STATE_WAITING:
		return failf(pb.Reason_REASON_NOT_ACQUIRED, "grant %q still waits for its locks", g.id)
	}
	return failf(pb.Reason_REASON_RELEASED, "grant %q has been released", g.id)
}

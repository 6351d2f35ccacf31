package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/poundlock/poundlock"
	pb "github.com/poundlock/poundlock/api/poundlockv1"
	"github.com/poundlock/poundlock/transport"
)

// A remote is a session of the API of a peer, or of a server. While it is renewed the peer keeps what the session holds; whoever
// holds something counts on what the peer said last.
type remote struct {
	api     pb.LockServiceClient
	addr    string
	session string
	lease   time.Duration
	stop    context.CancelFunc
	renewer sync.WaitGroup
	news    chan struct{} // there is a grant

	mu    sync.Mutex
	until time.Time // its grants are held until then, if the peer says nothing more
	grant *remoteGrant
}

// dialRemote opens a session at an address, host:port or unix:/path.
func dialRemote(ctx context.Context, addr string, lease time.Duration) (*remote, error) {
	r := &remote{news: make(chan struct{}, 1), api: newLockService(addr), addr: addr, lease: lease}
	soon, enough := context.WithTimeoutCause(ctx, firstAnswer, errors.New("no answer: it may be waiting for the other peers"))
	defer enough()
	opened, err := r.api.OpenSession(soon, &pb.OpenSessionRequest{Label: label(), LeaseMs: uint32(lease.Milliseconds())})
	if err != nil && soon.Err() != nil && ctx.Err() == nil {
		return nil, context.Cause(soon)
	}
	if err != nil {
		return nil, remoteError(err)
	}
	r.session = opened.SessionId
	renewing, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.renewer.Go(func() {
		for left := lease; ; {
			select {
			case <-r.news:
				left = r.renew(renewing)
			case <-time.After(min(lease, max(left, 4*time.Millisecond)) / 4):
				left = r.renew(renewing)
			case <-renewing.Done():
				return
			}
		}
	})
	return r, nil
}

// newLockService is the API at an address.
func newLockService(addr string) pb.LockServiceClient {
	target := &http.Transport{}
	if path, ok := transport.Unix(addr); ok {
		target.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
		addr = "localhost"
	}
	return pb.NewLockServiceClient(&http.Client{Transport: target}, "http://"+addr)
}

// renew asks for the session to go on, and ends the grant that is lost, or may be. It returns how long what is held is so.
func (r *remote) renew(ctx context.Context) time.Duration {
	sent := time.Now()
	ctx, cancel := context.WithTimeout(ctx, r.lease)
	defer cancel()
	answer, err := r.api.RenewSession(ctx, &pb.RenewSessionRequest{SessionId: r.session})
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.grant
	switch {
	case err != nil && connect.CodeOf(err) == connect.CodeNotFound && g != nil:
		g.lose(remoteError(err))
	case err != nil && g != nil && time.Now().After(r.until):
		g.lose(fmt.Errorf("the peer does not answer: %w", remoteError(err)))
	case err != nil:
	case g != nil && slices.Contains(answer.LostGrantIds, g.id):
		g.lose(errors.New("the peer has lost it"))
	default: // nothing is certain where nothing is held, or was as the peer answered
		if end := sent.Add(time.Duration(answer.CertainMs) * time.Millisecond); end.After(r.until) {
			r.until = end
		}
	}
	if g == nil || g.ctx.Err() != nil {
		return r.lease
	}
	return time.Until(r.until)
}

// lock waits for a lock, or several. With try it makes one attempt.
func (r *remote) lock(ctx context.Context, names, groups []string, try bool) (grant, error) {
	want := &pb.LockRequest{SessionId: r.session, Names: names, Try: try, GrantId: rand.Text(), Groups: groups}
	if len(groups) > 0 {
		want.Mode = pb.Mode_MODE_GROUP
	}
	for {
		if !try {
			wait := uint32(maxRemoteWait.Milliseconds())
			want.WaitMs = &wait
		}
		locked, err := r.api.Lock(ctx, want)
		switch {
		case err == nil:
			g := &remoteGrant{r: r, id: want.GrantId, pb: locked.Grant}
			g.ctx, g.cancel = context.WithCancelCause(context.Background())
			r.mu.Lock()
			r.grant = g
			r.mu.Unlock()
			r.renew(ctx)
			r.news <- struct{}{}
			return g, nil
		case connect.CodeOf(err) == connect.CodeDeadlineExceeded && ctx.Err() == nil:
			want.GrantId = rand.Text() // this one is given up
		case ctx.Err() != nil:
			return nil, fmt.Errorf("%w: %w", poundlock.ErrNotAcquired, ctx.Err())
		default:
			return nil, remoteError(err)
		}
	}
}

// observe tells who holds a lock, now and after each change, until ctx ends, as the peer hears from the others. Where
// it does not, it tells that once.
func (r *remote) observe(ctx context.Context, name string) iter.Seq2[poundlock.Leader, error] {
	return func(yield func(poundlock.Leader, error) bool) {
		var last poundlock.Leader
		for known, failed := false, false; ; {
			soon, enough := context.WithTimeout(ctx, r.lease)
			h, err := r.api.Holder(soon, &pb.HolderRequest{Name: name})
			enough()
			switch {
			case ctx.Err() != nil:
				return
			case err != nil && !failed:
				known, failed = false, true
				if !yield(poundlock.Leader{}, remoteError(err)) {
					return
				}
			case err == nil:
				now := poundlock.Leader{ID: h.ClientId, Label: h.Label, Token: h.Token}
				news := !known || now != last
				last, known, failed = now, true, false
				if news && !yield(now, nil) {
					return
				}
			}
			select {
			case <-time.After(min(r.lease/10, time.Second)):
			case <-ctx.Done():
				return
			}
		}
	}
}

// firstAnswer is how long a peer has to answer at first.
const firstAnswer = 2 * time.Second

// maxRemoteWait is how long one call waits: the most that the API allows.
const maxRemoteWait = 10 * time.Minute

// close gives up what the session holds.
func (r *remote) close() {
	r.stop()
	r.renewer.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = closeRemote(ctx, r.api, r.session) // else its lease ends
}

func closeRemote(ctx context.Context, api pb.LockServiceClient, session string) error {
	_, err := api.CloseSession(ctx, &pb.CloseSessionRequest{SessionId: session})
	return err
}

// remoteError is an error of the API as one of package poundlock, whose text it keeps.
func remoteError(err error) error {
	var failed *connect.Error
	if !errors.As(err, &failed) {
		return err
	}
	kind := poundlock.ErrNotAcquired
	if failed.Code() == connect.CodeUnavailable {
		kind = poundlock.ErrNoQuorum
	}
	return &toldError{kind, failed.Message()}
}

type toldError struct {
	kind error
	text string
}

func (e *toldError) Error() string { return e.text }
func (e *toldError) Unwrap() error { return e.kind }

// A remoteGrant is a grant that a peer holds for this process.
type remoteGrant struct {
	r      *remote
	id     string
	pb     *pb.Grant
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func (g *remoteGrant) Names() []string          { return g.pb.Names }
func (g *remoteGrant) Tokens() []uint64         { return g.pb.Tokens }
func (g *remoteGrant) Group() string            { return g.pb.Group }
func (g *remoteGrant) Context() context.Context { return g.ctx }
func (g *remoteGrant) LeaveBy() time.Time       { return time.Time{} }

func (g *remoteGrant) LeaseEnd() time.Time {
	g.r.mu.Lock()
	defer g.r.mu.Unlock()
	if g.ctx.Err() != nil {
		return time.Time{}
	}
	return g.r.until
}

// lose ends the context. remote.mu is held.
func (g *remoteGrant) lose(why error) {
	g.cancel(fmt.Errorf("poundlock: lock %q lost: %w", title(g.pb.Names), &toldError{poundlock.ErrLost, why.Error()}))
}

func (g *remoteGrant) Unlock() error {
	cause := context.Cause(g.ctx)
	ctx, cancel := context.WithTimeout(context.Background(), g.r.lease)
	defer cancel()
	_, err := g.r.api.Release(ctx, &pb.ReleaseRequest{SessionId: g.r.session, GrantId: g.id})
	if cause == nil && err != nil && connect.CodeOf(err) == connect.CodeAborted {
		cause = fmt.Errorf("%w: %w", poundlock.ErrLost, remoteError(err))
	}
	g.cancel(nil)
	return cause
}

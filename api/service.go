package api

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"connectrpc.com/connect"

	pb "github.com/poundlock/poundlock/api/poundlockv1"
	"github.com/poundlock/poundlock/transport"
)

// A Service is the API of one process: its sessions, and what they hold.
type Service struct {
	cluster cluster
	limits  Limits
	addr    string // Config.Addr
	log     *slog.Logger
	closing chan struct{}  // closed when Shutdown begins
	running sync.WaitGroup // attempts, and sections being given back
	asking  chan struct{}  // has a token for each question to the servers, which refuse too many

	mu       sync.Mutex // never held while calling the cluster or a section
	sessions map[string]*session
	locks    int // held, lost or waited for
}

// New returns a Service that holds locks with c.Client. It must be shut down.
func New(c Config) (*Service, error) {
	switch {
	case c.Client == nil:
		return nil, errors.New("api: no client")
	case c.Client.EndsWithProcess():
		return nil, errors.New("api: servers may give the locks of this client away while callers of the service act under them, " +
			"when this process is killed: set Outlived in its poundlock.Config, and not EndWithConnection")
	}
	s := newService(client{c.Client}, c.Limits.withDefaults(), cmp.Or(c.Log, slog.New(slog.DiscardHandler)))
	s.addr = c.Addr
	return s, nil
}

func newService(c cluster, l Limits, log *slog.Logger) *Service {
	return &Service{
		cluster:  c,
		limits:   l,
		log:      log,
		closing:  make(chan struct{}),
		asking:   make(chan struct{}, maxAsking),
		sessions: map[string]*session{},
	}
}

// OpenSession implements poundlockv1.LockServiceHandler, as the methods below do.
func (s *Service) OpenSession(_ context.Context, r *pb.OpenSessionRequest) (*pb.OpenSessionResponse, error) {
	lease := defaultLease
	if r.LeaseMs != 0 {
		lease = time.Duration(r.LeaseMs) * time.Millisecond
	}
	if lease < minLease || lease > maxLease {
		return nil, failf(pb.Reason_REASON_INVALID, "lease_ms %d: want %d to %d",
			r.LeaseMs, minLease.Milliseconds(), maxLease.Milliseconds())
	}
	if err := checkText("label", r.Label, maxLabel); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosing() {
		return nil, shuttingDown()
	}
	if len(s.sessions) >= s.limits.Sessions {
		return nil, failf(pb.Reason_REASON_LIMIT, "there are %d sessions already", len(s.sessions))
	}
	x := newSession(s, r.Label, lease)
	s.log.Debug("session opened", "session", x.shown(), "label", x.label, "lease", lease)
	return &pb.OpenSessionResponse{SessionId: x.id, LeaseMs: milliseconds(lease)}, nil
}

// RenewSession begins the lease anew.
func (s *Service) RenewSession(_ context.Context, r *pb.RenewSessionRequest) (*pb.RenewSessionResponse, error) {
	x, err := s.begin(r.SessionId)
	if err != nil {
		return nil, err
	}
	defer s.end(x)
	held, lost := s.heldAndLost(x)
	return &pb.RenewSessionResponse{
		LeaseMs:      milliseconds(x.lease),
		CertainMs:    milliseconds(s.promise(held...)),
		LostGrantIds: lost,
	}, nil
}

// CloseSession ends the session.
func (s *Service) CloseSession(_ context.Context, r *pb.CloseSessionRequest) (*pb.CloseSessionResponse, error) {
	x, err := s.begin(r.SessionId)
	if err != nil {
		return nil, err
	}
	s.close(x, "closed by its client", always)
	return &pb.CloseSessionResponse{}, nil
}

// Lock waits for a new grant, or for the one that an equal call asked for.
func (s *Service) Lock(ctx context.Context, r *pb.LockRequest) (*pb.LockResponse, error) {
	want, err := s.check(r)
	if err != nil {
		return nil, err
	}
	x, err := s.begin(r.SessionId)
	if err != nil {
		return nil, err
	}
	defer s.end(x)
	g, err := s.join(ctx, x, want)
	if err != nil {
		return nil, err
	}
	if err := s.await(ctx, g); err != nil {
		return nil, err
	}
	return s.held(g)
}

// Downgrade lets others share what a grant has alone.
func (s *Service) Downgrade(_ context.Context, r *pb.DowngradeRequest) (*pb.DowngradeResponse, error) {
	groups, err := groupsOf(r)
	switch {
	case err != nil:
		return nil, err
	case len(groups) == 0:
		return nil, failf(pb.Reason_REASON_INVALID, "mode MODE_EXCLUSIVE: want MODE_SHARED or MODE_GROUP")
	case len(groups) > 1:
		return nil, failf(pb.Reason_REASON_INVALID, "mode MODE_GROUP with %d groups: want one", len(groups))
	}
	x, err := s.begin(r.SessionId)
	if err != nil {
		return nil, err
	}
	defer s.end(x)
	g, err := s.downgrade(x, r.GrantId, groups[0])
	if err != nil {
		return nil, err
	}
	return &pb.DowngradeResponse{Grant: s.describe(g)}, nil
}

// Release ends a grant. The locks are free when it returns, or soon after.
func (s *Service) Release(_ context.Context, r *pb.ReleaseRequest) (*pb.ReleaseResponse, error) {
	x, err := s.begin(r.SessionId)
	if err != nil {
		return nil, err
	}
	defer s.end(x)
	if err := s.release(x, r.GrantId); err != nil {
		return nil, err
	}
	return &pb.ReleaseResponse{}, nil
}

// Status tells of one grant, or of all that are not released.
func (s *Service) Status(_ context.Context, r *pb.StatusRequest) (*pb.StatusResponse, error) {
	x, err := s.begin(r.SessionId)
	if err != nil {
		return nil, err
	}
	defer s.end(x)
	grants, err := s.grantsOf(x, r.GrantId)
	if err != nil {
		return nil, err
	}
	answer := &pb.StatusResponse{Label: x.label, LeaseMs: milliseconds(x.lease)}
	for _, g := range grants {
		answer.Grants = append(answer.Grants, s.describe(g))
	}
	return answer, nil
}

// Holder tells who holds a lock, one or several that share, in this process or elsewhere.
func (s *Service) Holder(ctx context.Context, r *pb.HolderRequest) (*pb.HolderResponse, error) {
	if err := transport.CheckName(r.Name); err != nil {
		return nil, failf(pb.Reason_REASON_INVALID, "name: %w", err)
	}
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return nil, leaving(ctx)
	}
	all, err := s.cluster.holders(ctx, r.Name)
	if err != nil {
		return nil, clusterError(err)
	}
	answer := &pb.HolderResponse{Held: len(all) > 0}
	for _, h := range all {
		answer.Holders = append(answer.Holders, &pb.Holder{ClientId: h.ID, Label: h.Label, Token: h.Token})
	}
	if answer.Held {
		first := all[0]
		answer.ClientId, answer.Label, answer.Token, answer.Group = first.ID, first.Label, first.Token, first.Group
	}
	return answer, nil
}

// Watch sends events until the client goes or the session ends.
func (s *Service) Watch(ctx context.Context, r *pb.WatchRequest, out *connect.ServerStream[pb.WatchResponse]) error {
	x, err := s.begin(r.SessionId)
	if err != nil {
		return err
	}
	defer s.end(x)
	w, err := s.watch(x)
	if err != nil {
		return err
	}
	defer s.unwatch(x, w)
	return s.follow(ctx, x, w, out.Send)
}

func (s *Service) isClosing() bool { return isClosed(s.closing) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// milliseconds rounds down: it says for how long something is certain.
func milliseconds(d time.Duration) uint32 { return uint32(max(0, d.Milliseconds())) }

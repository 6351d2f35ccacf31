package api

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"github.com/poundlock/poundlock"
	pb "github.com/poundlock/poundlock/api/poundlockv1"
)

const lease = 4 * time.Second

// lease-long steps and steps just short of it.
const (
	almost = lease - time.Millisecond
	past   = lease + time.Millisecond
)

// TestLeases are stories about when a session lives and when it has ended, in
// virtual time. TestLeaseMutants breaks what they hold.
func TestLeases(t *testing.T) {
	for _, story := range []struct {
		name string
		tell func(t *testing.T, s *Service, f *fakeLocks, id string)
	}{
		{"a silent client is freed after the lease, not before", func(t *testing.T, s *Service, f *fakeLocks, id string) {
			lock(t, s, id, "a")
			other := open(t, s, maxLease)
			began := time.Now()
			lock(t, s, other, "a")
			if waited := time.Since(began); waited != lease {
				t.Errorf("the next one waited for %v, want the lease of %v", waited, lease)
			}
			_, err := s.RenewSession(t.Context(), &pb.RenewSessionRequest{SessionId: id})
			wantFailure(t, err, connect.CodeNotFound, pb.Reason_REASON_UNKNOWN_SESSION)
		}},
		{"every call renews", func(t *testing.T, s *Service, f *fakeLocks, id string) {
			g := lock(t, s, id, "a")
			for _, call := range []func() error{
				func() error {
					_, err := s.RenewSession(t.Context(), &pb.RenewSessionRequest{SessionId: id})
					return err
				},
				func() error {
					_, err := s.Status(t.Context(), &pb.StatusRequest{SessionId: id})
					return err
				},
				func() error {
					_, err := s.Lock(t.Context(), &pb.LockRequest{SessionId: id, Names: []string{"a"}, GrantId: g.GrantId})
					return err
				},
				func() error {
					_, err := s.Release(t.Context(), &pb.ReleaseRequest{SessionId: id, GrantId: g.GrantId})
					return err
				},
			} {
				time.Sleep(almost)
				if !f.isHeld("a") {
					t.Fatal("freed within the lease")
				}
				if err := call(); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(almost)
			if _, err := s.CloseSession(t.Context(), &pb.CloseSessionRequest{SessionId: id}); err != nil {
				t.Error(err)
			}
		}},
		{"a call in progress keeps it alive", func(t *testing.T, s *Service, f *fakeLocks, id string) {
			lock(t, s, open(t, s, maxLease), "taken")
			lock(t, s, id, "a")
			wait := uint32(3 * lease.Milliseconds())
			_, err := s.Lock(t.Context(), &pb.LockRequest{SessionId: id, Names: []string{"taken"}, WaitMs: &wait})
			wantFailure(t, err, connect.CodeDeadlineExceeded, pb.Reason_REASON_NOT_ACQUIRED)
			time.Sleep(almost)
			if !f.isHeld("a") {
				t.Error("freed within the lease that began when the call ended")
			}
			time.Sleep(2 * time.Millisecond)
			synctest.Wait()
			if f.isHeld("a") {
				t.Error("held after the lease")
			}
		}},
		{"an open stream keeps it alive, and for one lease after it is cut", func(t *testing.T, s *Service, f *fakeLocks, id string) {
			lock(t, s, id, "a")
			cut := watchFake(t, s, id)
			time.Sleep(10 * lease)
			cut()
			time.Sleep(lease / 2)
			if !f.isHeld("a") {
				t.Fatal("freed after half a lease without a stream")
			}
			cut = watchFake(t, s, id)
			time.Sleep(10 * lease)
			cut()
			time.Sleep(almost)
			if !f.isHeld("a") {
				t.Fatal("freed within the lease")
			}
			time.Sleep(2 * time.Millisecond)
			synctest.Wait()
			if f.isHeld("a") {
				t.Error("held after the lease")
			}
		}},
		{"one of two streams is enough", func(t *testing.T, s *Service, f *fakeLocks, id string) {
			lock(t, s, id, "a")
			first, second := watchFake(t, s, id), watchFake(t, s, id)
			first()
			time.Sleep(10 * lease)
			if !f.isHeld("a") {
				t.Error("freed while a stream is open")
			}
			second()
		}},
		{"a promise is no longer than lease and cluster allow", func(t *testing.T, s *Service, f *fakeLocks, id string) {
			for _, x := range []struct{ cluster, want time.Duration }{
				{time.Hour, lease - lease/1000}, {time.Second, time.Second - time.Millisecond}, {-time.Hour, 0},
			} {
				f.lease = x.cluster
				g := lock(t, s, id, "a", "b")
				r, err := s.RenewSession(t.Context(), &pb.RenewSessionRequest{SessionId: id})
				if err != nil {
					t.Fatal(err)
				}
				if want := milliseconds(x.want); g.CertainMs != want || r.CertainMs != want {
					t.Errorf("certain for %d and %d ms, want %d", g.CertainMs, r.CertainMs, want)
				}
				if _, err := s.Release(t.Context(), &pb.ReleaseRequest{SessionId: id, GrantId: g.GrantId}); err != nil {
					t.Fatal(err)
				}
			}
		}},
		{"a lost lock is left when the promise is over", func(t *testing.T, s *Service, f *fakeLocks, id string) {
			f.lease = lease / 2
			g := lock(t, s, id, "a")
			f.lose("a")
			time.Sleep(time.Duration(g.CertainMs)*time.Millisecond - time.Millisecond)
			if !f.isHeld("a") {
				t.Error("the next one may be in before the promise is over")
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if f.isHeld("a") {
				t.Error("kept from others after the promise")
			}
			r, err := s.RenewSession(t.Context(), &pb.RenewSessionRequest{SessionId: id})
			if err != nil || len(r.LostGrantIds) != 1 || r.LostGrantIds[0] != g.GrantId || r.CertainMs != 0 {
				t.Errorf("got %v, %v, want the lost grant and no promise", r, err)
			}
		}},
		{"shutting down keeps promises", func(t *testing.T, s *Service, f *fakeLocks, id string) {
			g := lock(t, s, id, "a")
			began := time.Now()
			go func() {
				time.Sleep(time.Second)
				r, err := s.RenewSession(context.Background(), &pb.RenewSessionRequest{SessionId: id})
				if err != nil || r.CertainMs != 0 {
					t.Errorf("got %v, %v, want no new promise", r, err)
				}
			}()
			if err := s.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			if d := time.Since(began); d < time.Duration(g.CertainMs)*time.Millisecond || d > lease {
				t.Errorf("ended after %v, promised %d ms and a lease of %v", d, g.CertainMs, lease)
			}
		}},
		{"shutting down does not wait for who has released", func(t *testing.T, s *Service, f *fakeLocks, id string) {
			g := lock(t, s, id, "a")
			began := time.Now()
			go func() {
				time.Sleep(time.Second)
				_, err := s.Release(context.Background(), &pb.ReleaseRequest{SessionId: id, GrantId: g.GrantId})
				if err != nil {
					t.Error(err)
				}
			}()
			if err := s.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			if d := time.Since(began); d > 2*time.Second {
				t.Errorf("ended after %v, released after a second", d)
			}
		}},
		{"a repeat whose client has gone takes nothing along", func(t *testing.T, s *Service, f *fakeLocks, id string) {
			g := lock(t, s, id, "a")
			_, err := s.Lock(gone(t), &pb.LockRequest{SessionId: id, Names: []string{"a"}, GrantId: g.GrantId})
			wantFailure(t, err, connect.CodeCanceled, pb.Reason_REASON_NOT_ACQUIRED)
			synctest.Wait()
			if !f.isHeld("a") {
				t.Error("given up, though its client was told that it is held")
			}
		}},
		{"nor does one that waits for what is promised elsewhere", func(t *testing.T, s *Service, f *fakeLocks, id string) {
			x, g := joined(t, s, id, "g", "a")
			r, err := s.RenewSession(t.Context(), &pb.RenewSessionRequest{SessionId: id})
			if err != nil || r.CertainMs == 0 {
				t.Fatalf("got %v, %v, want a promise", r, err)
			}
			if err := s.await(gone(t), g); err == nil {
				t.Error("a call whose client has gone succeeds")
			}
			s.end(x)
			if !f.isHeld("a") {
				t.Error("given up within the promise")
			}
		}},
		{"nor does one that shutting down ends", func(t *testing.T, s *Service, f *fakeLocks, id string) {
			g := lock(t, s, id, "a")
			x, again := joined(t, s, id, g.GrantId, "a")
			told := time.Now()
			done := make(chan error)
			go func() { done <- s.Shutdown(context.Background()) }()
			synctest.Wait()
			wantFailure(t, s.await(t.Context(), again), connect.CodeUnavailable, pb.Reason_REASON_SHUTTING_DOWN)
			s.end(x)
			if !f.isHeld("a") {
				t.Error("given up within the promise")
			}
			if err := <-done; err != nil || time.Since(told) < time.Duration(g.CertainMs)*time.Millisecond {
				t.Errorf("%v after %v, promised %d ms", err, time.Since(told), g.CertainMs)
			}
		}},
		{"what nobody was told of goes with the last call", func(t *testing.T, s *Service, f *fakeLocks, id string) {
			x, g := joined(t, s, id, "g", "a")
			if err := s.await(gone(t), g); err == nil {
				t.Error("a call whose client has gone succeeds")
			}
			s.end(x)
			if f.isHeld("a") {
				t.Error("held, and nobody knows of it")
			}
		}},
		{"shutting down waits for what is being given back", func(t *testing.T, s *Service, f *fakeLocks, id string) {
			f.unlock = time.Second
			lock(t, s, id, "expired")
			closed, released, lost := open(t, s, maxLease), open(t, s, maxLease), open(t, s, maxLease)
			lock(t, s, closed, "closed")
			g := lock(t, s, released, "released")
			time.Sleep(lease / 2) // so that what is lost now is promised for a lease of the cluster at most
			f.lease = lease / 2
			lock(t, s, lost, "lost")
			f.lose("lost")
			time.Sleep(lease / 2)
			go s.CloseSession(context.Background(), &pb.CloseSessionRequest{SessionId: closed})
			go s.Release(context.Background(), &pb.ReleaseRequest{SessionId: released, GrantId: g.GrantId})
			synctest.Wait()
			began := time.Now()
			if err := s.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			for _, name := range []string{"expired", "closed", "released", "lost"} {
				if f.isHeld(name) {
					t.Errorf("%q is held after Shutdown", name)
				}
			}
			if d := time.Since(began); d != f.unlock {
				t.Errorf("ended after %v, want the %v that giving back takes", d, f.unlock)
			}
		}},
		{"shutting down gives up in time", func(t *testing.T, s *Service, f *fakeLocks, id string) {
			lock(t, s, id, "a")
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := s.Shutdown(ctx); err == nil {
				t.Error("a promise was broken, and nobody said so")
			}
		}},
	} {
		t.Run(story.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f := newFake(t, Limits{})
				story.tell(t, s, f, open(t, s, lease))
			})
		})
	}
}

// gone is the context of a call whose client has gone.
func gone(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// joined is a call of Lock whose grant has just been decided, and which has not
// noticed yet.
func joined(t *testing.T, s *Service, id, grant, name string) (*session, *grant) {
	t.Helper()
	x, err := s.begin(id)
	if err != nil {
		t.Fatal(err)
	}
	g, err := s.join(t.Context(), x, request{id: grant, names: []string{name}, wait: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return x, g
}

// watchFake opens a stream whose client reads everything, and returns what cuts it.
func watchFake(t *testing.T, s *Service, id string) (cut func()) {
	t.Helper()
	x, err := s.begin(id)
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.watch(x)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer s.end(x)
		defer s.unwatch(x, w)
		_ = s.follow(ctx, x, w, func(*pb.WatchResponse) error { return nil })
	}()
	return func() { cancel(); <-ended }
}

// TestNoQuorum: what the cluster says, clients hear.
func TestNoQuorum(t *testing.T) {
	s, f := newFake(t, Limits{})
	f.failed = poundlock.ErrNoQuorum
	_, err := s.Lock(t.Context(), &pb.LockRequest{SessionId: open(t, s, 0), Names: []string{"a"}})
	wantFailure(t, err, connect.CodeUnavailable, pb.Reason_REASON_NO_QUORUM)
}

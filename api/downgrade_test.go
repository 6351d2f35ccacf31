package api

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	pb "github.com/poundlock/poundlock/api/poundlockv1"
)

// TestDowngrade: a grant goes on in a group, with what it has otherwise, and whoever watches hears of it.
func TestDowngrade(t *testing.T) {
	s, _ := newFake(t, Limits{})
	id := open(t, s, 10*time.Second)
	want := &pb.LockRequest{SessionId: id, Names: []string{"a", "b"}, GrantId: "g"}
	first, err := s.Lock(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.watch(s.sessions[id])
	if err != nil {
		t.Fatal(err)
	}
	if g, _ := s.next(w); g.Group != "" {
		t.Errorf("at first: %v", g)
	}
	for range 2 { // it may be repeated
		r, err := s.Downgrade(t.Context(), &pb.DowngradeRequest{SessionId: id, GrantId: "g", Mode: pb.Mode_MODE_GROUP, Groups: []string{"red"}})
		if err != nil {
			t.Fatal(err)
		}
		if g := r.Grant; g.Group != "red" || g.State != pb.State_STATE_HELD || g.Tokens[1] != first.Grant.Tokens[1] || g.CertainMs == 0 {
			t.Errorf("it is %v", g)
		}
		if g, _ := s.next(w); g == nil || g.Group != "red" {
			t.Errorf("the stream says %v", g)
		}
	}
	if again, err := s.Lock(t.Context(), want); err != nil || again.Grant.Group != "red" {
		t.Errorf("the Lock repeated: %v, %v", again, err)
	}
	status, err := s.Status(t.Context(), &pb.StatusRequest{SessionId: id})
	if err != nil || status.Grants[0].Group != "red" {
		t.Errorf("status: %v, %v", status, err)
	}
	if _, err := s.Release(t.Context(), &pb.ReleaseRequest{SessionId: id, GrantId: "g"}); err != nil {
		t.Error(err)
	}
}

// TestNoDowngrade: what cannot come down is named, with why.
func TestNoDowngrade(t *testing.T) { synctest.Test(t, noDowngrade) }

func noDowngrade(t *testing.T) {
	s, f := newFake(t, Limits{})
	id := open(t, s, 10*time.Second)
	shared := &pb.DowngradeRequest{Mode: pb.Mode_MODE_SHARED}
	red := &pb.DowngradeRequest{Mode: pb.Mode_MODE_GROUP, Groups: []string{"red"}}
	grant := func(name string, mode pb.Mode) string {
		r, err := s.Lock(t.Context(), &pb.LockRequest{SessionId: id, Names: []string{name}, GrantId: name, Mode: mode})
		if err != nil {
			t.Fatal(err)
		}
		return r.Grant.GrantId
	}
	waits := make(chan error)
	grant("a", pb.Mode_MODE_EXCLUSIVE)
	go func() {
		_, err := s.Lock(t.Context(), &pb.LockRequest{SessionId: id, Names: []string{"a"}, GrantId: "waits"})
		waits <- err
	}()
	synctest.Wait()
	for _, x := range []struct {
		grant  string
		r      *pb.DowngradeRequest
		code   connect.Code
		reason pb.Reason
		text   string
	}{
		{"a", &pb.DowngradeRequest{}, connect.CodeInvalidArgument, pb.Reason_REASON_INVALID, "want MODE_SHARED or MODE_GROUP"},
		{"a", &pb.DowngradeRequest{Mode: pb.Mode_MODE_GROUP}, connect.CodeInvalidArgument, pb.Reason_REASON_INVALID, "with 0 groups"},
		{"a", &pb.DowngradeRequest{Mode: pb.Mode_MODE_GROUP, Groups: []string{"red", "blue"}}, connect.CodeInvalidArgument, pb.Reason_REASON_INVALID, "with 2 groups: want one"},
		{"none", shared, connect.CodeNotFound, pb.Reason_REASON_UNKNOWN_GRANT, `"none"`},
		{"waits", shared, connect.CodeFailedPrecondition, pb.Reason_REASON_NOT_ACQUIRED, `grant "waits" still waits`},
		{grant("read", pb.Mode_MODE_SHARED), red, connect.CodeInvalidArgument, pb.Reason_REASON_OTHER_NAMES, `grant "read": a grant of group "shared" cannot become one of group "red"`},
	} {
		x.r.SessionId, x.r.GrantId = id, x.grant
		_, err := s.Downgrade(t.Context(), x.r)
		wantFailure(t, err, x.code, x.reason)
		if err == nil || !strings.Contains(err.Error(), x.text) {
			t.Errorf("got %v, want something with %s", err, x.text)
		}
	}
	shared.GrantId = grant("lost", pb.Mode_MODE_EXCLUSIVE)
	f.lose("lost")
	for range 2 {
		_, err := s.Downgrade(t.Context(), shared)
		wantFailure(t, err, connect.CodeAborted, pb.Reason_REASON_LOST)
		synctest.Wait() // the loss is known
	}
	shared.GrantId = "a"
	if _, err := s.Release(t.Context(), &pb.ReleaseRequest{SessionId: id, GrantId: "a"}); err != nil {
		t.Error(err)
	}
	_, err := s.Downgrade(t.Context(), shared)
	wantFailure(t, err, connect.CodeFailedPrecondition, pb.Reason_REASON_RELEASED)
	if err := <-waits; err != nil {
		t.Error(err)
	}
	if _, err := s.CloseSession(t.Context(), &pb.CloseSessionRequest{SessionId: id}); err != nil {
		t.Error(err)
	}
	_, err = s.Downgrade(t.Context(), shared)
	wantFailure(t, err, connect.CodeNotFound, pb.Reason_REASON_UNKNOWN_SESSION)
}

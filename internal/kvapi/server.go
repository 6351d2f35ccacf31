package kvapi

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/poundlock/poundlock/sections"
	"github.com/poundlock/poundlock/sections/kv"
)

const (
	// maxCalls is how many requests are under way at a time: further ones are told so.
	maxCalls = 1024
	// maxRequest bounds a request: an operation in JSON.
	maxRequest = 2 * sections.MaxOperation
	// headers is how long a connection may take to say what it wants, and as long again for the rest of it.
	headers = 10 * time.Second
)

// A Server answers for a member, once there is one.
type Server struct {
	ready atomic.Pointer[sections.Member]
	calls chan struct{}

	mu       sync.Mutex
	sections map[string]lasting // by ID
}

// NewServer is one that says that there is no member yet.
func NewServer() *Server {
	return &Server{calls: make(chan struct{}, maxCalls), sections: map[string]lasting{}}
}

// Ready has operations be executed by a member.
func (s *Server) Ready(m *sections.Member) { s.ready.Store(m) }

// Serve answers those that connect, until ctx ends. Sections end then, and operations that are under way have so long for their
// answers.
func (s *Server) Serve(ctx context.Context, l net.Listener, grace time.Duration) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+operatePath, s.answer(s.operate))
	mux.HandleFunc("POST "+enterPath, s.answer(func(user context.Context, m *sections.Member, r Request, tell func(Answer)) {
		s.enter(user, m, r, tell, ctx.Done())
	}))
	h := &http.Server{Handler: mux, ReadHeaderTimeout: headers}
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		late, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		if h.Shutdown(late) != nil {
			h.Close()
		}
		ended <- nil
	}()
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended
}

// answer reads the request of a call, and writes what it is told, a line each.
func (s *Server) answer(serve func(context.Context, *sections.Member, Request, func(Answer))) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		tell := func(a Answer) {
			_ = json.NewEncoder(w).Encode(a) // whoever has gone hears nothing
			_ = http.NewResponseController(w).Flush()
		}
		if q.Header.Get("Origin") != "" {
			http.Error(w, "not for pages of a browser", http.StatusForbidden)
			return
		}
		deadline := http.NewResponseController(w).SetReadDeadline
		_ = deadline(time.Now().Add(headers))
		var r Request
		if err := json.NewDecoder(http.MaxBytesReader(w, q.Body, maxRequest)).Decode(&r); err != nil {
			tell(Answer{Fate: Refused, Error: fmt.Sprintf("request: %v", err)})
			return
		}
		_ = deadline(time.Time{}) // what is read from now on says that the user has gone
		select {
		case s.calls <- struct{}{}:
			defer func() { <-s.calls }()
		default:
			tell(Answer{Fate: Unavailable, Error: fmt.Sprintf("%d commands are under way at this member", maxCalls)})
			return
		}
		m := s.ready.Load()
		if m == nil {
			tell(Answer{Fate: Unavailable, Error: "it waits for the other members"})
			return
		}
		serve(q.Context(), m, r, tell)
	}
}

// within is how long a request may take.
func (r *Request) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.Wait <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, r.Wait, fmt.Errorf("not within %v", r.Wait))
}

func (s *Server) operate(ctx context.Context, m *sections.Member, r Request, tell func(Answer)) {
	ctx, cancel := r.within(ctx)
	defer cancel()
	in, object := s.lasting(r.Section)
	switch {
	case in != nil && r.Object != "" && r.Object != object:
		tell(Answer{Fate: Refused, Error: fmt.Sprintf("object %q: the section is one of %q", r.Object, object)})
		return
	case r.Section != "" && in == nil:
		tell(Answer{Fate: Lost, Error: "the section has ended: the operation was not executed and never will be"})
		return
	case in == nil:
		var err error
		if in, err = enter(ctx, m, r, len(r.Then) > 0); err != nil {
			tell(notEntered(m, err))
			return
		}
		defer in.Exit()
	}
	var a Answer
	var err error
	if r.Get != nil {
		a.Value, a.Done, err = kv.Get(ctx, in, *r.Get)
	} else {
		a.Done, err = kv.Txn(ctx, in, r.If, r.Then)
	}
	if a.Fate = fate(err); err != nil {
		a.Error = err.Error()
	}
	tell(a)
}

// enter enters a section of an object, which is made if it is to be changed.
func enter(ctx context.Context, m *sections.Member, r Request, change bool) (*sections.Section, error) {
	if change {
		if err := m.Open(ctx, r.Object); err != nil {
			return nil, err
		}
	}
	return m.Enter(ctx, r.Object)
}

// fate is what an error of a section says.
func fate(err error) Fate {
	switch {
	case err == nil, errors.Is(err, sections.ErrResultTooLarge):
		return Executed
	case errors.Is(err, sections.ErrOperation):
		return Refused
	case errors.Is(err, sections.ErrEjected), errors.Is(err, sections.ErrExited), errors.Is(err, sections.ErrNotIssued):
		return Lost
	}
	return Unknown
}

// notEntered says why there is no section.
func notEntered(m *sections.Member, err error) Answer {
	a := Answer{Fate: NotEntered, Error: err.Error()}
	switch why := m.Healthy(); {
	case errors.Is(err, sections.ErrNoObject), errors.Is(err, sections.ErrNoSlot):
		a.Fate = Refused
	case errors.Is(err, sections.ErrClosed):
		a.Fate = Unavailable
	case why != nil:
		a.Fate = Unavailable
		a.Error = fmt.Sprintf("%v: %v", err, why)
	}
	return a
}

// enter has a section last until its user goes, it is lost, or the server ends.
func (s *Server) enter(user context.Context, m *sections.Member, r Request, tell func(Answer), ends <-chan struct{}) {
	ctx, cancel := r.within(user)
	defer cancel()
	in, err := enter(ctx, m, r, true)
	if err != nil {
		tell(notEntered(m, err))
		return
	}
	defer in.Exit()
	id := rand.Text()
	s.mu.Lock()
	s.sections[id] = lasting{in, r.Object}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.sections, id)
		s.mu.Unlock()
	}()
	tell(Answer{Fate: Executed, Section: id})
	select {
	case <-in.Ejected():
		tell(Answer{Fate: Lost, Error: in.Err().Error()})
	case <-ends:
		tell(Answer{Fate: Lost, Error: "the member ends"})
	case <-user.Done():
	}
}

// A lasting section is one of an object that a user has entered.
type lasting struct {
	in     *sections.Section
	object string
}

func (s *Server) lasting(id string) (in *sections.Section, object string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sections[id].in, s.sections[id].object
}

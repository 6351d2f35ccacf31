// Package kvapi is how commands of a host reach a member of a system of package sections that runs there, and its keys and values: one
// request is one operation, with an answer that tells its fate. A section that lasts longer is a request that is not over yet; others
// name it.
package kvapi

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/poundlock/poundlock/sections/kv"
	"github.com/poundlock/poundlock/transport"
)

// A Fate is what became of an operation.
type Fate string

const (
	Executed    Fate = "executed"    // once
	Lost        Fate = "lost"        // its section was: it was not executed and never will be
	NotEntered  Fate = "not entered" // in time: it never will be
	Refused     Fate = "refused"     // it is no operation, or there is no such object: it never will be
	Unavailable Fate = "unavailable" // nobody was asked: it never will be
	Unknown     Fate = "unknown"     // whoever knows cannot be asked any more, or not yet
)

// A Request is an operation on an object, or with neither Get nor Then the wish to enter a section of it.
type Request struct {
	Object  string        `json:"object"`            // "" in a section: its own
	Section string        `json:"section,omitempty"` // as Enter has named it; "": one for this operation alone
	Wait    time.Duration `json:"wait,omitempty"`    // 0: as long as it takes
	Get     *string       `json:"get,omitempty"`     // a key
	If      []kv.Pair     `json:"if,omitempty"`      // see kv.Txn
	Then    []kv.Pair     `json:"then,omitempty"`
}

// An Answer tells the fate of an operation, and its result.
type Answer struct {
	Fate    Fate   `json:"fate"`
	Error   string `json:"error,omitempty"`
	Done    bool   `json:"done,omitempty"`    // what it asked for was so
	Value   []byte `json:"value,omitempty"`   // of Get, if Done
	Section string `json:"section,omitempty"` // that was entered
}

// lateAnswer is how much longer than Wait somebody waits for an answer, should the member be stopped.
var lateAnswer = 2 * time.Second

const (
	operatePath = "/v1/operate"
	enterPath   = "/v1/enter"
)

// Operate asks the member at an address, host:port or unix:/path, for an operation.
func Operate(ctx context.Context, addr string, r Request) Answer {
	if r.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Wait+lateAnswer)
		defer cancel()
	}
	answers, failed := call(ctx, addr, operatePath, r)
	if failed != nil {
		return *failed
	}
	defer answers.close()
	return answers.next()
}

// A Section is one that a member has entered, and leaves when it is closed or this process ends.
type Section struct {
	ID      string
	answers *stream
	lost    chan struct{}
	cancel  func()
	why     Answer // once it is lost
}

// Enter waits for a section of an object. The answer is why there is none.
func Enter(ctx context.Context, addr string, r Request) (*Section, Answer) {
	ctx, cancel := context.WithCancel(ctx)
	late := func() bool { return true }
	if r.Wait > 0 {
		late = time.AfterFunc(r.Wait+lateAnswer, cancel).Stop
	}
	answers, failed := call(ctx, addr, enterPath, r)
	var first Answer
	if failed != nil {
		first = *failed
	} else {
		first = answers.next()
	}
	if !late() || first.Fate == Unknown { // nothing was asked for that could have been executed
		first = Answer{Fate: Unavailable, Error: cmp.Or(first.Error, "the member does not answer")}
	}
	if first.Section == "" {
		cancel()
		if answers != nil {
			answers.close()
		}
		return nil, first
	}
	s := &Section{ID: first.Section, answers: answers, lost: make(chan struct{}), cancel: cancel}
	go func() {
		s.why = answers.next()
		close(s.lost)
	}()
	return s, first
}

// Close leaves, and says whether the section was lost before, and why.
func (s *Section) Close() (why string, lost bool) {
	select {
	case <-s.lost:
		lost = true
	default:
	}
	s.cancel()
	<-s.lost
	s.answers.close()
	return s.why.Error, lost
}

// A stream is the answers to a request.
type stream struct {
	body  *bufio.Reader
	close func()
}

// maxAnswer bounds an answer: a value in JSON.
const maxAnswer = 1 << 20

func (s *stream) next() Answer {
	var a Answer
	line, err := s.body.ReadSlice('\n')
	if err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err != nil {
		return Answer{Fate: Unknown, Error: fmt.Sprintf("the member has gone without an answer: %v", err)}
	}
	return a
}

// call sends a request over a connection of its own, so that it is known whether it was sent.
func call(ctx context.Context, addr, path string, r Request) (*stream, *Answer) {
	network, at := "tcp", addr
	if file, ok := transport.Unix(addr); ok {
		network, at, addr = "unix", file, "localhost"
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, at)
	if err != nil {
		return nil, &Answer{Fate: Unavailable, Error: fmt.Sprintf("no member at %s: %v", at, err)}
	}
	t := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		if conn == nil {
			return nil, errors.New("the member has gone")
		}
		c := conn
		conn = nil
		return c, nil
	}}
	body, err := json.Marshal(r)
	if err != nil {
		conn.Close()
		return nil, &Answer{Fate: Refused, Error: err.Error()}
	}
	ctx, cancel := context.WithCancel(ctx)
	end := func() {
		cancel()
		t.CloseIdleConnections()
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+path, bytes.NewReader(body))
	if err != nil {
		end()
		return nil, &Answer{Fate: Unavailable, Error: err.Error()}
	}
	q.Header.Set("Content-Type", "application/json")
	a, err := t.RoundTrip(q)
	if err != nil {
		end()
		return nil, &Answer{Fate: Unknown, Error: fmt.Sprintf("the member has gone without an answer: %v", err)}
	}
	return &stream{bufio.NewReaderSize(a.Body, maxAnswer), func() {
		end()
		a.Body.Close()
	}}, nil
}

package load

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// A Team is worker processes that say reports of type R, as JSON, on their standard output. It is
// for one goroutine, except for its Next where the processes end meanwhile.
type Team[R any] struct {
	Members []*Process

	ended []bool
	said  chan said[R]
}

// A said is what one worker said, or the end of it.
type said[R any] struct {
	from   int
	report R
	err    error
}

// StartTeam starts n processes. name is for errors, and args are those with which this program
// becomes worker i, from 0.
func StartTeam[R any](n int, name string, args func(i int) []string) (*Team[R], error) {
	t := &Team[R]{ended: make([]bool, n), said: make(chan said[R], n)}
	for i := range n {
		p, err := startTalking(fmt.Sprintf("%s %d", name, i+1), args(i))
		if err != nil {
			t.Close()
			return nil, err
		}
		t.Members = append(t.Members, p)
		go t.listen(i, p)
	}
	return t, nil
}

// listen passes on what a worker says. It ends with the process, whose parent must
// go on taking it until then: Close does.
func (t *Team[R]) listen(i int, p *Process) {
	for in := json.NewDecoder(p.out); ; {
		s := said[R]{from: i}
		if s.err = in.Decode(&s.report); s.err != nil {
			<-p.Done()
			s.err = p.Err()
		}
		t.said <- s
		if s.err != nil {
			return
		}
	}
}

// Next is what some worker says next. An error is the end of that worker, or that of ctx.
func (t *Team[R]) Next(ctx context.Context) (from int, report R, err error) {
	select {
	case s := <-t.said:
		t.ended[s.from] = s.err != nil
		return s.from, s.report, s.err
	case <-ctx.Done():
		return 0, report, context.Cause(ctx)
	}
}

// Close ends the processes: by the end of their standard input, and after a while by force.
func (t *Team[R]) Close() {
	running := 0
	for i, p := range t.Members {
		p.In.Close()
		if !t.ended[i] {
			running++
		}
	}
	for killed := time.After(2 * time.Second); running > 0; {
		select {
		case s := <-t.said:
			if s.err != nil {
				running--
			}
		case <-killed:
			for _, p := range t.Members {
				p.cmd.Process.Kill()
			}
		}
	}
	for _, p := range t.Members {
		p.Kill() // it has ended; its pipe is closed
	}
}

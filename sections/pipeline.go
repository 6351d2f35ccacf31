package sections

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/poundlock/poundlock/internal/histogram"
)

// ErrNotIssued says that an operation was not sent to anybody, and why: it was not executed, and never will be.
var ErrNotIssued = errors.New("sections: the operation was not issued and never will be")

// An Operation is one that Start has issued, or will issue when those before it have been executed.
type Operation struct {
	form    byte
	op      []byte // with its form
	began   time.Time
	known   chan struct{} // closed when the rest is set
	results [][]byte
	err     error
}

// Wait returns what became of the operation, as Do does, or the error of ctx if that is not known yet. It may be called again, and also
// after Exit.
func (o *Operation) Wait(ctx context.Context) ([]byte, error) {
	results, err := o.wait(ctx)
	if err != nil {
		return nil, err
	}
	return results[0], nil
}

func (o *Operation) wait(ctx context.Context) ([][]byte, error) {
	select {
	case <-o.known:
		return o.results, o.err
	default:
	}
	select {
	case <-o.known:
		return o.results, o.err
	case <-ctx.Done():
		return nil, fmt.Errorf("sections: the operation is open still: %w", context.Cause(ctx))
	}
}

// decide makes known what became of it.
func (o *Operation) decide(results [][]byte, err error) {
	o.results, o.err, o.op = results, err, nil
	close(o.known)
}

// A pipeline is the operations of a section that have no verdict. The algorithm has one under way at a time, so those that come meanwhile
// travel together as the next one. Each has a result of its own; what they share is only that none of them is executed where the
// section is lost before.
type pipeline struct {
	open    []*Operation // under way
	waiting []*Operation // in their order
	alone   int          // so many of waiting travel one by one

	issued   time.Time     // when those that are open were, or the last ones
	took     time.Duration // from then to their outcome
	expected int           // how many may wait soon: as many as do, and as have had their outcome just now

	size  int           // of all
	freed chan struct{} // closed when there is room, if somebody waits for that
	done  *histogram.Histogram
}

const (
	// maxPipeline bounds what operations without a verdict take together, but for the last one. Beyond it Start waits.
	maxPipeline = 8 << 20
	// eachOperation is what one takes beside its bytes.
	eachOperation = 512
	// maxTogether is how many operations travel together: so long other locks of this member wait while they are executed.
	maxTogether = 1024
)

func (p *pipeline) full() bool { return p.size >= maxPipeline }
func (p *pipeline) idle() bool { return len(p.open)+len(p.waiting) == 0 }

// room is closed when there may be some.
func (p *pipeline) room() <-chan struct{} {
	if p.freed == nil {
		p.freed = make(chan struct{})
	}
	return p.freed
}

func (p *pipeline) push(o *Operation) {
	p.waiting = append(p.waiting, o)
	p.size += len(o.op) + eachOperation
}

// next has the operations that come next under way, and returns them as one. There are some, and none is under way.
func (p *pipeline) next() []byte {
	k, size := 1, len(p.waiting[0].op)
	for p.alone == 0 && k < min(len(p.waiting), maxTogether) {
		if size += len(p.waiting[k].op) + textSize; size > MaxOperation {
			break
		}
		k++
	}
	p.alone = max(p.alone-1, 0)
	p.open, p.waiting = p.waiting[:k:k], p.waiting[k:]
	p.issued = time.Now()
	if k == 1 {
		return p.open[0].op
	}
	ops := make([][]byte, k)
	for i, o := range p.open {
		ops[i] = o.op
	}
	return appendList([]byte{each}, ops)
}

// outcome tells those under way what became of them, and returns the place of the first one.
func (p *pipeline) outcome(result []byte, err error) (place uint64) {
	p.took = time.Since(p.issued)
	p.expected = min(len(p.open)+len(p.waiting), maxTogether)
	if len(p.open) == 1 {
		p.decide(p.open[0], &place, result, err)
		p.open = nil
		return place
	}
	if errors.Is(err, ErrOperation) { // a copy of another version refuses one of them, and so all
		p.back(p.open)
		p.alone = len(p.open)
		p.open = nil
		return 0
	}
	list, bad := decode(each, result)
	if err == nil && (bad != nil || len(list) == 0 || len(list) > len(p.open)) {
		err = errResult
	}
	all := p.open
	p.open = nil
	for k, o := range all {
		switch {
		case err != nil:
			p.decide(o, &place, nil, err)
		case k == len(list): // there was no room for more results
			p.back(all[k:])
			return place
		default:
			p.decide(o, &place, list[k], nil)
		}
	}
	return place
}

// back has operations wait again that were not executed, before all others.
func (p *pipeline) back(all []*Operation) {
	p.waiting = append(all[:len(all):len(all)], p.waiting...)
}

func (p *pipeline) decide(o *Operation, first *uint64, result []byte, err error) {
	var place uint64
	var results [][]byte
	if err == nil {
		p.done.Add(time.Since(o.began))
		place, results, err = readResult(o.form, result)
	}
	if *first == 0 {
		*first = place
	}
	p.forget(o)
	o.decide(results, err)
}

// end tells all why there will be no verdict: those under way, and those that were not issued.
func (p *pipeline) end(open, waiting error) {
	for _, o := range p.open {
		p.forget(o)
		o.decide(nil, open)
	}
	for _, o := range p.waiting {
		p.forget(o)
		o.decide(nil, waiting)
	}
	p.open, p.waiting = nil, nil
}

func (p *pipeline) forget(o *Operation) {
	p.size -= len(o.op) + eachOperation
	if p.freed != nil && !p.full() {
		close(p.freed)
		p.freed = nil
	}
}

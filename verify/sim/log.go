package sim

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
)

// A log is the canonical text of a run: each event as a line of a scenario, and
// what users were told as comments.
type log struct {
	w      *bufio.Writer
	hash   hash.Hash // nil: not asked for
	digest string
}

func newLog(c Config) *log {
	if c.Trace == nil && !c.Digest {
		return nil
	}
	l := &log{}
	w := io.Discard
	if c.Trace != nil {
		w = c.Trace
	}
	if c.Digest {
		l.hash = sha256.New()
		w = io.MultiWriter(w, l.hash)
	}
	l.w = bufio.NewWriterSize(w, 1<<16)
	return l
}

// close writes what is left. It returns the first error of any write.
func (l *log) close() error {
	if l == nil {
		return nil
	}
	err := l.w.Flush()
	if l.hash != nil {
		l.digest = hex.EncodeToString(l.hash.Sum(nil))
	}
	return err
}

func (l *log) line(at int64, text string) {
	if at != 0 {
		l.w.WriteString("at ")
		l.w.WriteString(time.Duration(at).String())
		l.w.WriteByte(' ')
	}
	l.w.WriteString(text)
	l.w.WriteByte('\n')
}

// stepper is what a log needs of a simulator of any message type.
type stepper interface {
	clock() (now int64, names scenario.Names)
}

func (s *simulator[M]) clock() (int64, scenario.Names) { return s.now, s.names }

func (l *log) procs(id uint32) []protocol.ID { return []protocol.ID{protocol.ID(id)} }

func (l *log) step(s stepper, step scenario.Step) {
	now, names := s.clock()
	l.line(now, names.Format(step))
}

func (l *log) deliver(s stepper, from, to uint32, text string) {
	now, names := s.clock()
	l.line(now, "deliver "+names.Of(protocol.ID(from))+" "+names.Of(protocol.ID(to))+" "+names.Text(text))
}

// note writes what is no step.
func (l *log) note(s stepper, text string) {
	now, _ := s.clock()
	l.w.WriteString("# ")
	l.line(now, text)
}

func (l *log) act(s stepper, id uint32, a protocol.Act) {
	_, names := s.clock()
	what := names.Of(protocol.ID(id))
	switch {
	case a.Do == protocol.Crit:
		what += " crit"
		if a.Data != "" {
			what += " " + a.Data
		}
		if a.Arg != 0 {
			what += fmt.Sprintf(" token %d", a.Arg)
		}
	case a.Do == protocol.Ejected:
		what += " ejected"
	case a.Do == protocol.Outcome:
		what += " outcome"
	case a.Data != "":
		what += " rem: " + a.Data
	default:
		what += " rem"
	}
	l.note(s, what)
}

func (s *simulator[M]) logFault(step scenario.Step) {
	if s.log != nil {
		s.log.step(s, step)
	}
}

func (s *simulator[M]) logPair(v scenario.Verb, a, b uint32) {
	if s.log != nil {
		s.log.step(s, scenario.Step{Verb: v, Procs: []protocol.ID{protocol.ID(a), protocol.ID(b)}})
	}
}

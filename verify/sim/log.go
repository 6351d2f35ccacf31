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

// logStep writes a step, if there is a log.
func (s *engine) logStep(step scenario.Step) {
	if s.log != nil {
		s.log.line(s.now, s.Names.Format(step))
	}
}

// logVerb writes a step of a process, or of two: its verb says of how many.
func (s *engine) logVerb(v scenario.Verb, a, b uint32, text string) {
	if s.log != nil {
		procs := []protocol.ID{protocol.ID(a), protocol.ID(b)}
		s.logStep(scenario.Step{Verb: v, Procs: procs[:v.Processes()], Text: text})
	}
}

// note writes what is no step.
func (s *engine) note(text string) {
	if s.log != nil {
		s.log.w.WriteString("# ")
		s.log.line(s.now, text)
	}
}

// logAct writes what the user of a process was told.
func (s *engine) logAct(id uint32, a protocol.Act) {
	if s.log == nil {
		return
	}
	what := s.Names.Of(protocol.ID(id))
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
	s.note(what)
}

package algotest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/poundlock/poundlock/protocol"
)

// FuzzRead fuzzes the decoder of messages: it never panics, and what it accepts
// is the one encoding of a message.
func FuzzRead[M any](f *testing.F, a protocol.Algorithm[M], o ...Options) {
	known, erased := seeds{}, protocol.Erase(a)
	s := seeded(f, a, o, func(st step) {
		for _, e := range st.effects {
			if e.Do == protocol.Send || e.Do == protocol.Broadcast {
				if b := erased.Append(nil, e.Msg); known.add(b) {
					f.Add(b)
				}
			}
		}
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := s.readAny(b); err != nil {
			t.Error(err)
		}
	})
}

// FuzzLoadState fuzzes the decoder of states, of member 0 and of the first
// client: it never panics, and what it accepts is the one encoding of a state.
func FuzzLoadState[M any](f *testing.F, a protocol.Algorithm[M], o ...Options) {
	known := seeds{}
	s := seeded(f, a, o, func(st step) {
		if known.add(st.after) {
			f.Add(role(st.id, st.config), bytes.Clone(st.after))
		}
	})
	f.Fuzz(func(t *testing.T, role uint8, b []byte) {
		if err := s.loadAny(role, b); err != nil {
			t.Error(err)
		}
	})
}

// seeds are the encodings that a fuzz target starts from: at most 64.
type seeds map[string]bool

// add returns whether b is a new one.
func (s seeds) add(b []byte) bool {
	if len(s) == 64 || s[string(b)] {
		return false
	}
	s[string(b)] = true
	return true
}

// seeded is the suite whose smallest size is fuzzed, after a walk through it.
func seeded[M any](f *testing.F, a protocol.Algorithm[M], o []Options, visit func(step)) *suite {
	f.Helper()
	s, err := newSuite(a, o...)
	if err != nil {
		f.Fatal(err)
	}
	s.Sizes = s.Sizes[:1]
	err = s.walk(func(st step) error {
		visit(st)
		return nil
	})
	if err != nil {
		f.Fatal(err)
	}
	return s
}

// role tells the two kinds of processes apart.
func role(id protocol.ID, c protocol.Config) uint8 {
	if id < protocol.ID(c.N) {
		return 0
	}
	return 1
}

func (s *suite) readAny(b []byte) error {
	m, rest, err := s.alg.Read(b)
	if err != nil {
		return nil
	}
	used := b[:len(b)-len(rest)]
	if again := s.alg.Append(nil, m); !bytes.Equal(again, used) {
		return fmt.Errorf("reading accepts %x, which is not its encoding %x", used, again)
	}
	s.alg.Text(m)
	s.alg.Ints(m)
	if k := s.alg.KindOf(m); k < 0 || k >= len(s.alg.Messages) {
		return fmt.Errorf("kind %d of %d", k, len(s.alg.Messages))
	}
	return nil
}

func (s *suite) loadAny(role uint8, b []byte) error {
	c := protocol.Config{N: s.Sizes[0], Options: s.Options.Options}
	var id protocol.ID
	if role%2 == 1 && s.alg.Users == protocol.Clients {
		id = protocol.ID(c.N)
	}
	p := s.alg.New(id, c)
	rest, err := protocol.LoadState(b, p)
	if err != nil {
		return nil
	}
	used := b[:len(b)-len(rest)]
	if again := protocol.AppendState(nil, p); !bytes.Equal(again, used) {
		return fmt.Errorf("loading accepts %x, which is not its encoding %x", used, again)
	}
	return nil
}

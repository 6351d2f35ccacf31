package algotest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/poundlock/poundlock/protocol"
)

// seeds is how many different encodings of a run a fuzz target starts from.
const seeds = 64

// FuzzRead fuzzes the decoder of messages: it never panics, and what it accepts
// is the one encoding of a message.
func FuzzRead[M any](f *testing.F, a protocol.Algorithm[M], o ...Options) {
	s := seeded(f, a, o, func(st step[M]) [][]byte {
		var found [][]byte
		for _, e := range st.effects {
			if e.Do == protocol.Send || e.Do == protocol.Broadcast {
				found = append(found, a.Append(nil, e.Msg))
			}
		}
		return found
	})
	f.Fuzz(func(t *testing.T, _ uint8, b []byte) {
		if err := s.readAny(b); err != nil {
			t.Error(err)
		}
	})
}

// FuzzLoadState fuzzes the decoder of states, of member 0 and of the first
// client: it never panics, and what it accepts is the one encoding of a state.
func FuzzLoadState[M any](f *testing.F, a protocol.Algorithm[M], o ...Options) {
	s := seeded(f, a, o, func(st step[M]) [][]byte { return [][]byte{bytes.Clone(st.after)} })
	f.Fuzz(func(t *testing.T, role uint8, b []byte) {
		if err := s.loadAny(role, b); err != nil {
			t.Error(err)
		}
	})
}

// seeded adds the encodings that a walk finds, with whether a client's process
// has them.
func seeded[M any](f *testing.F, a protocol.Algorithm[M], o []Options, find func(step[M]) [][]byte) *suite[M] {
	f.Helper()
	var options Options
	if len(o) > 0 {
		options = o[0]
	}
	s, err := newSuite(a, options)
	if err != nil {
		f.Fatal(err)
	}
	s.Sizes = s.Sizes[:1]
	known := map[string]bool{}
	err = s.walk(func(st step[M]) error {
		for _, b := range find(st) {
			if len(known) < seeds && !known[string(b)] {
				known[string(b)] = true
				f.Add(role(st.id, st.config), b)
			}
		}
		return nil
	})
	if err != nil {
		f.Fatal(err)
	}
	return s
}

func role(id protocol.ID, c protocol.Config) uint8 {
	if id < protocol.ID(c.N) {
		return 0
	}
	return 1
}

func (s *suite[M]) readAny(b []byte) error {
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

func (s *suite[M]) loadAny(role uint8, b []byte) error {
	c := protocol.Config{N: s.Sizes[0], Options: s.Options.Options}
	var id protocol.ID
	if role%2 == 1 && s.alg.Users == protocol.Clients {
		id = protocol.ID(c.N)
	}
	p := s.alg.New(id, c)
	rest, err := p.LoadState(b)
	if err != nil {
		return nil
	}
	used := b[:len(b)-len(rest)]
	if again := p.AppendState(nil); !bytes.Equal(again, used) {
		return fmt.Errorf("loading accepts %x, which is not its encoding %x", used, again)
	}
	return nil
}

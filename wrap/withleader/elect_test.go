package withleader_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/wrap/withleader"
)

// The messages of two toys.
type (
	note byte // of the follower
	vote byte // of the election
)

// codec completes a toy with messages of one byte.
func codec[M ~byte](name string, i protocol.Info, p func() protocol.Process[M]) protocol.Algorithm[M] {
	i.Name, i.Messages = strings.ToLower(name), []protocol.Message{{Name: name}}
	return protocol.Algorithm[M]{
		Info: i,
		New:  func(protocol.ID, protocol.Config) protocol.Process[M] { return p() },
		Fields: func(m M, c *protocol.Codec) M {
			protocol.Upto(c, &m, math.MaxUint8)
			return m
		},
		KindOf: func(M) int { return 0 },
		Ints:   func(M) int { return 1 },
		Text:   func(m M) string { return name + string('0'+rune(m)) },
	}
}

// A follower sets timer 1 when it starts, sends a note to each leader that it hears of, with
// the epoch, and remembers what else it heard.
type follower struct{ heard []protocol.Kind }

func (f *follower) Step(ev protocol.Event[note], out *protocol.Out[note]) {
	f.heard = append(f.heard, ev.Kind)
	switch ev.Kind {
	case protocol.Start:
		out.SetTimer(1, 10, 0)
	case protocol.Lead:
		out.Send(ev.From, note(ev.Arg))
	}
}
func (f *follower) State(*protocol.Codec) {}

// A candidate sets timer 1 as well. It sends a vote when that fires, and a vote for it makes
// it name two leaders, with something to do in between.
type candidate struct{ fired int }

func (c *candidate) Step(ev protocol.Event[vote], out *protocol.Out[vote]) {
	switch ev.Kind {
	case protocol.Start:
		out.SetTimer(1, 20, 0)
	case protocol.Timeout:
		if ev.Timer == 1 {
			c.fired++
			out.Send(2, 1)
		}
	case protocol.Receive:
		out.Leader(1, 4)
		out.StopTimer(1)
		out.Leader(2, 5)
	}
}
func (c *candidate) State(codec *protocol.Codec) { protocol.Upto(codec, &c.fired, 9) }

var (
	following = codec("NOTE", protocol.Info{Elector: true}, func() protocol.Process[note] { return &follower{} })
	voting    = codec("VOTE", protocol.Info{Users: protocol.Nobody}, func() protocol.Process[vote] { return &candidate{} })
	both      = withleader.With(following, voting)
)

type frame = withleader.Frame[note, vote]

// step gives p an event, and returns what it does.
func step(p protocol.Process[frame], in protocol.Input, m frame) []protocol.Effect[frame] {
	var out protocol.Out[frame]
	p.Step(protocol.Event[frame]{Input: in, Msg: m}, &out)
	return out.Effects
}

// What the election says of the leader comes as event Lead, in order, after what the election
// did in that step, and nobody else sees it.
func TestLead(t *testing.T) {
	p := both.New(0, protocol.Config{N: 3})
	effects := step(p, protocol.Input{Kind: protocol.Receive, From: 1}, frame{Elects: true})
	want := []struct {
		do protocol.Do
		to protocol.ID
		m  frame
	}{
		{protocol.StopTimer, 0, frame{Elects: true}},
		{protocol.Send, 1, frame{Algorithm: 4}},
		{protocol.Send, 2, frame{Algorithm: 5}},
	}
	if len(effects) != len(want) {
		t.Fatalf("it does %+v", effects)
	}
	for k, w := range want {
		if e := effects[k]; e.Do != w.do || e.Msg != w.m || w.do == protocol.Send && e.To != w.to {
			t.Errorf("effect %d is %+v, want %+v", k, e, w)
		}
	}
	f, _ := protocol.As[*follower](p)
	heard := f.heard
	if !slices.Equal(heard, []protocol.Kind{protocol.Lead, protocol.Lead}) {
		t.Errorf("the algorithm hears %v, want of two leaders and not of the vote", heard)
	}
}

// Timers of one number are two, and each fires at whose it is.
func TestTimers(t *testing.T) {
	p := both.New(0, protocol.Config{N: 3})
	set := step(p, protocol.Input{Kind: protocol.Start}, frame{})
	if len(set) != 2 || set[0].Timer == set[1].Timer {
		t.Fatalf("two timers 1 are %+v", set)
	}
	if got := step(p, protocol.Input{Kind: protocol.Timeout, Timer: set[0].Timer}, frame{}); len(got) != 0 {
		t.Errorf("the algorithm's timer makes the election do %+v", got)
	}
	got := step(p, protocol.Input{Kind: protocol.Timeout, Timer: set[1].Timer}, frame{})
	if len(got) != 1 || got[0].Msg != (frame{Elects: true, Election: 1}) {
		t.Errorf("the election's timer does %+v, want a vote by timer 1", got)
	}
	f, _ := protocol.As[*follower](p)
	heard := f.heard
	if !slices.Equal(heard, []protocol.Kind{protocol.Start, protocol.Timeout}) {
		t.Errorf("the algorithm hears %v, want Start and its own Timeout", heard)
	}
}

// Messages of both kinds keep what they are, whatever follows them, and are counted apart.
func TestCodec(t *testing.T) {
	for k, c := range []struct {
		f    frame
		text string
	}{
		{frame{Algorithm: 7}, "NOTE7"},
		{frame{Elects: true, Election: 7}, "VOTE7"},
	} {
		b := both.Append(nil, c.f)
		got, rest, err := both.Read(append(slices.Clone(b), 9))
		if err != nil || got != c.f || !slices.Equal(rest, []byte{9}) {
			t.Errorf("%+v comes back as %+v with rest %v, %v", c.f, got, rest, err)
		}
		for short := range b {
			if _, _, err := both.Read(b[:short]); err == nil {
				t.Errorf("%d of %d bytes are read", short, len(b))
			}
		}
		if both.Text(c.f) != c.text || both.KindOf(c.f) != k || both.Messages[k].Overhead != (k == 1) {
			t.Errorf("%+v is %s, of kind %d", c.f, both.Text(c.f), both.KindOf(c.f))
		}
	}
}

// What does not fit together is refused, by name.
func TestRefusals(t *testing.T) {
	bare := following
	bare.Elector = false
	served := voting
	served.Users = protocol.Members
	leased := following
	leased.Detector = protocol.LeaseDetector
	same := voting
	same.Messages = following.Messages
	for want, with := range map[string]func(){
		"note has no use for a leader":         func() { withleader.With(bare, voting) },
		"vote is no election":                  func() { withleader.With(following, served) },
		"note has leases":                      func() { withleader.With(leased, voting) },
		"both note and vote have a message NO": func() { withleader.With(following, same) },
	} {
		func() {
			defer func() {
				if r, _ := recover().(string); !strings.Contains(r, want) {
					t.Errorf("it panics with %q, want %q", r, want)
				}
			}()
			with()
		}()
	}
}

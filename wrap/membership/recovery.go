package membership

import (
	"fmt"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

// Variant is the variant of an algorithm that is wrapped.
const Variant = "recovery"

const source = "Mittal, Mohan: A Priority-Based Distributed Group Mutual Exclusion Algorithm When Group Access Is Non-Uniform, JPDC 2007"

// wrapped is an algorithm with its wrapper.
type wrapped[M any] struct {
	inner  protocol.Algorithm[M]
	last   bool // the first of its processes to enter alone is the last one, not the first
	fenced bool // its entries have fencing tokens
}

// Wrap makes an algorithm whose users are its members tolerate crashes of members, new
// lives of them, and partitions. It panics where the algorithm is none that it can wrap.
func Wrap[M any](a protocol.Algorithm[M]) protocol.Algorithm[Frame[M]] {
	if err := wrappable(a.Info); err != nil {
		panic(err)
	}
	w := &wrapped[M]{inner: a}
	_, first := w.entersAlone(0, 2)
	_, last := w.entersAlone(1, 2)
	w.last = last && !first
	token, _ := w.entersAlone(0, 1)
	w.fenced = token > 0
	out := protocol.Algorithm[Frame[M]]{
		Info:   w.info(),
		New:    w.new,
		Fields: w.fields,
		KindOf: w.kindOf,
		Ints:   w.ints,
		Text:   w.text,
	}
	out.Bounds = a.Bounds
	out.Invariants = []protocol.Invariant{{Name: "recovery/tags", Err: tags[M]}}
	return out
}

// wrappable says why an algorithm cannot be wrapped.
func wrappable(i protocol.Info) error {
	switch {
	case i.Users != protocol.Members:
		return fmt.Errorf("recovery: the users of %s are not its members", i.Name)
	case i.Registers != nil:
		return fmt.Errorf("recovery: %s has shared memory, and no messages", i.Name)
	case i.Elector || i.Detector != protocol.NoDetector || i.Tolerates != 0:
		return fmt.Errorf("recovery: %s has means against faults of its own", i.Name)
	}
	return nil
}

// The options.
const (
	phasesOption = "phases"
	tellOption   = "minority"
)

var options = []protocol.Option{
	{
		Name:    phasesOption,
		Default: func(protocol.Config) int64 { return 3 },
		Range:   func(protocol.Config) (least, most int64) { return 1, 3 },
		Sound:   func(protocol.Config) (least, most int64) { return 1, 3 },
		Doc:     "how many phases a restart has: 3; 2, without RESUME; 1, without START and LEAVE either (default 3)",
	},
	{
		Name:    tellOption,
		Default: func(protocol.Config) int64 { return 0 },
		Sound:   func(protocol.Config) (least, most int64) { return 0, 1 },
		Values:  []string{"waits", "gives-up"},
		Doc:     "what a user does at a process without a majority: it waits, or is told so and gives up (default waits)",
	},
}

func (w *wrapped[M]) info() protocol.Info {
	i := w.inner.Info
	i.Variant = Variant
	if w.inner.Variant != "" {
		i.Variant = w.inner.Variant + "-" + Variant
	}
	i.Title = "the same, restarted after crashes, joins and partitions"
	if w.inner.Variant != "" {
		i.Title = "the form " + w.inner.Variant + ", restarted after crashes, joins and partitions"
	}
	if !strings.Contains(i.Source, source) {
		i.Source += "; " + source
	}
	i.Detector = protocol.LeaseDetector
	i.Tolerates = protocol.Crash | protocol.Recovery
	i.Incarnations, i.Majority = true, true
	i.Cancels, i.Drains, i.Ordered = false, false, false
	i.Messages = slices.Clip(i.Messages)
	for _, m := range messages[Notify:] {
		if slices.ContainsFunc(i.Messages, func(o protocol.Message) bool { return o.Name == m.Name }) {
			m.Name = "wrap/membership/" + m.Name
		}
		i.Messages = append(i.Messages, m)
	}
	i.Options = append(slices.Clip(i.Options), options...)
	if i.Grouped { // whoever is inside holds up a restart of fewer than three phases, or one for faults that overlap, and with it those who try
		i.Lacks = append(slices.Clip(i.Lacks), "concurrent-entry")
	}
	if w.last {
		i.Claims = slices.Clone(i.Claims)
		for k := range i.Claims { // the token begins elsewhere, where the first one who enters may be
			least := i.Claims[k].Least
			i.Claims[k].Least = func(c protocol.Config) float64 { return 0.9 * least(c) }
		}
	}
	return i
}

// entersAlone reports whether process id of n may enter at once, before any message, and its token.
func (w *wrapped[M]) entersAlone(id protocol.ID, n int) (token uint64, ok bool) {
	var out protocol.Out[M]
	p := w.inner.New(id, protocol.Config{N: n})
	p.Step(protocol.Event[M]{Input: protocol.Input{Kind: protocol.Start}}, &out)
	try := protocol.Input{Kind: protocol.Try}
	if w.inner.Grouped {
		try.Data = "a"
	}
	p.Step(protocol.Event[M]{Input: try}, &out)
	for i := range out.Effects {
		if e := &out.Effects[i]; e.Do == protocol.Crit {
			return e.Act.Arg, true
		}
	}
	return 0, false
}

func (w *wrapped[M]) new(id protocol.ID, c protocol.Config) protocol.Process[Frame[M]] {
	i := w.info()
	return &Process[M]{
		w: w, id: id, n: c.N, options: c.Options,
		phases: i.Option(c, phasesOption), tell: i.Option(c, tellOption) == 1,
		peers: make([]peer, c.N),
	}
}

// config is that of an instance of k processes, which ignores the options of the wrapper.
func (p *Process[M]) config(k int) protocol.Config { return protocol.Config{N: k, Options: p.options} }

// Unwrap returns the algorithm's own process, nil where there is none.
func (p *Process[M]) Unwrap() any { return p.inner }

// tags is the invariant behind exclusion: all that are inside, or may enter by messages of
// their instance, are in the same one, and whoever is inside while old requests are served
// is so together with old requests only.
func tags[M any](v *protocol.View) error {
	var first *Process[M]
	for _, p := range protocol.Procs[*Process[M]](v) {
		inside := p.section == protocol.InCrit
		switch {
		case inside && !p.active:
			return fmt.Errorf("recovery: #%d is inside without an instance", p.id)
		case !p.active || !p.running && !inside || p.old.kept:
			continue
		case p.phases < 3 && !inside:
			continue // it runs, and its coordinator holds it back
		case first == nil:
			first = p
		case first.epoch != p.epoch:
			return fmt.Errorf("recovery: #%d is in instance %s and #%d in %s", first.id, first.epoch.Text(), p.id, p.epoch.Text())
		case first.running != p.running:
			return fmt.Errorf("recovery: of instance %s, #%d and #%d are not in one phase", p.epoch.Text(), first.id, p.id)
		}
	}
	return nil
}

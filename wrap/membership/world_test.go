package membership

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/algo/centralised"
	"github.com/poundlock/poundlock/algo/tokengme"
	"github.com/poundlock/poundlock/protocol"
)

// A world runs processes behind leases as protocol.LeaseDetector says, with events in an
// order drawn at random: each message, each end of a session, each user, each fault. It is
// more patient than a network: whatever is due may wait for ever so long.
type world[M any] struct {
	alg   protocol.Algorithm[Frame[M]]
	c     protocol.Config
	r     *rand.Rand
	procs []protocol.Process[Frame[M]] // nil: down
	lives []uint64
	ends  [][]end // by process, of its session with each other one
	cut   [][]bool
	snap  []bool // by pair, from the smaller id: the session is to break
	mail  []letter[M]
	now   int64 // what all clocks show, and
	tick  int64 // by how much more with each step; 0: there are none

	section []protocol.Section
	group   []string
	told    []bool            // who is inside, and has heard that somebody waits
	token   []uint64          // of who is inside
	past    map[string]uint64 // by group, the largest token of an entry that has ended
	fenced  bool              // tokens are in order: nobody has lost its memory, or there are clocks
	wants   []string          // what users may want
	tags    []tag
	count   map[string]int
	log     []string
	entries int
	ejected int
	refused int
	tries   int
	fault   string // the first violation
}

type end struct {
	state   session
	number  int // of the session
	revoked bool
}

type letter[M any] struct {
	from, to protocol.ID
	session  int
	f        Frame[M]
}

type tag struct {
	epoch   protocol.Epoch
	running bool
}

func newWorld[M any](a protocol.Algorithm[M], c protocol.Config, seed uint64) *world[M] {
	w := &world[M]{alg: Wrap(a), c: c, r: rand.New(rand.NewPCG(seed, 1)), count: map[string]int{}, past: map[string]uint64{}, wants: []string{""}}
	w.fenced = a.Variant != tokengme.Bounded.Variant && a.Name != centralised.Algorithm.Name // which have no tokens
	if a.Grouped {
		w.wants = []string{"a", "b"}
		if a.Several {
			w.wants = []string{"a", "b", "a,b", "!w"}
		}
	}
	n := c.N
	w.procs, w.lives = make([]protocol.Process[Frame[M]], n), make([]uint64, n)
	w.section, w.group, w.tags = make([]protocol.Section, n), make([]string, n), make([]tag, n)
	w.token, w.told = make([]uint64, n), make([]bool, n)
	w.snap = make([]bool, n*n)
	for i := range n {
		w.ends, w.cut = append(w.ends, make([]end, n)), append(w.cut, make([]bool, n))
		for j := range n {
			w.ends[i][j] = end{state: up, number: 1}
		}
	}
	for i := range n {
		w.up(protocol.ID(i))
	}
	return w
}

func (w *world[M]) pair(i, j protocol.ID) *bool {
	return &w.snap[int(min(i, j))*w.c.N+int(max(i, j))]
}

func (w *world[M]) up(i protocol.ID) {
	w.lives[i]++
	w.procs[i] = w.alg.New(i, w.c)
	w.section[i], w.tags[i] = protocol.InRem, tag{}
	w.step(i, protocol.Input{Kind: protocol.Start, Arg: w.lives[i]}, Frame[M]{})
}

func (w *world[M]) crash(i protocol.ID) {
	w.say("crash %d", i)
	w.ended(i)
	w.fenced = w.fenced && w.tick > 0
	w.procs[i] = nil
	w.section[i] = protocol.InRem
	for j := range w.ends[i] {
		w.ends[i][j] = end{number: w.ends[i][j].number}
	}
	w.mail = deleteIf(w.mail, func(l letter[M]) bool { return l.to == i })
}

// ended records that an entry has ended, if there is one.
func (w *world[M]) ended(i protocol.ID) {
	if w.section[i] == protocol.InCrit {
		w.past[w.group[i]] = max(w.past[w.group[i]], w.token[i])
	}
}

// enters judges the token of an entry.
func (w *world[M]) enters(i protocol.ID, group string, token uint64) {
	w.say("  %d enters %q with token %d", i, group, token)
	for g, past := range w.past {
		if w.fenced && token <= past && !protocol.Group(g).Shares(protocol.Group(group)) {
			w.bad("fencing: %d enters %q with token %d after one with %d in %q", i, group, token, past, g)
		}
	}
	w.token[i] = token
}

func deleteIf[T any](s []T, f func(T) bool) []T {
	var kept []T
	for _, v := range s {
		if !f(v) {
			kept = append(kept, v)
		}
	}
	return kept
}

func (w *world[M]) say(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *world[M]) bad(format string, args ...any) {
	if w.fault == "" {
		w.fault = fmt.Sprintf(format, args...)
	}
}

func (w *world[M]) step(i protocol.ID, in protocol.Input, f Frame[M]) {
	if w.fault != "" {
		return
	}
	defer func() {
		if r := recover(); r != nil {
			w.bad("panic: %v", r)
		}
	}()
	p := w.procs[i]
	b := protocol.AppendState(nil, p)
	q := w.alg.New(i, w.c)
	if rest, err := protocol.LoadState(b, q); err != nil || len(rest) > 0 || !bytes.Equal(protocol.AppendState(nil, q), b) {
		w.bad("a state that is not read as written: %v", err)
	}
	if w.r.IntN(2) == 0 {
		w.procs[i], p = q, q
	}
	wasInside := w.section[i] == protocol.InCrit
	w.now += w.tick
	in.Now = w.now
	var out protocol.Out[Frame[M]]
	p.Step(protocol.Event[Frame[M]]{Input: in, Msg: f}, &out)
	for _, e := range out.Effects {
		switch e.Do {
		case protocol.Send:
			if e.To == i {
				w.bad("%d sends to itself", i)
			}
			w.post(i, e.To, e.Msg)
		case protocol.Revoke:
			w.say("  %d revokes %d", i, e.To)
			if w.ends[i][e.To].state != up {
				w.bad("%d revokes a session that it has not", i)
			}
			w.ends[i][e.To].revoked = true
			*w.pair(i, e.To) = true
		case protocol.Crit:
			w.enters(i, e.Data, e.Act.Arg)
			w.entries++
			if w.section[i] != protocol.InTry {
				w.bad("%d enters from section %d", i, w.section[i])
			}
			for j, s := range w.section {
				if s == protocol.InCrit && !protocol.Group(w.group[j]).Shares(protocol.Group(e.Data)) {
					w.bad("exclusion: %d is inside with %q, and %d enters with %q", j, w.group[j], i, e.Data)
				}
			}
			if !protocol.Groups(w.group[i]).Has(protocol.Group(e.Data)) {
				w.bad("%d enters %q and wants %q", i, e.Data, w.group[i])
			}
			w.section[i], w.group[i], w.told[i] = protocol.InCrit, e.Data, false
		case protocol.Rem:
			w.say("  %d is out %s", i, e.Reason().Error())
			if w.section[i] != protocol.InExit && (w.section[i] != protocol.InTry || e.Reason() == 0) {
				w.bad("%d leaves from section %d", i, w.section[i])
			}
			if e.Reason() != 0 {
				w.refused++
			}
			w.section[i] = protocol.InRem
		case protocol.Ejected:
			w.say("  %d is ejected", i)
			if w.section[i] != protocol.InCrit {
				w.bad("%d is ejected from section %d", i, w.section[i])
			}
			w.ejected++
			w.ended(i)
			w.section[i] = protocol.InLost
		case protocol.Wanted:
			if w.told[i] = true; !w.alg.Tells || w.section[i] != protocol.InCrit {
				w.bad("%d tells in section %d that somebody waits", i, w.section[i])
			}
		default:
			w.bad("effect %d", e.Do)
		}
	}
	w.tagged(i, wasInside)
	v := &protocol.View{Config: w.c, Procs: protocol.States(w.procs)}
	for _, inv := range w.alg.Invariants {
		if err := inv.Err(v); err != nil {
			w.bad("%s: %v", inv.Name, err)
		}
	}
}

// tagged judges the tag of a process: it never decreases while the process is in instances,
// and is the same all the time that it is inside.
func (w *world[M]) tagged(i protocol.ID, wasInside bool) {
	p := w.procs[i].(*Process[M])
	t := tag{p.epoch, p.running}
	was := w.tags[i]
	w.tags[i] = t
	switch {
	case t.epoch.Before(was.epoch), p.active && t.epoch == was.epoch && was.running && !t.running:
		w.bad("tags: that of %d decreases from %v to %v", i, was, t)
	case wasInside && w.section[i] == protocol.InCrit && t != was && !(p.byOld && was.epoch.Before(t.epoch) && !t.running):
		w.bad("tags: that of %d changes from %v to %v inside", i, was, t)
	}
}

func (w *world[M]) post(from, to protocol.ID, f Frame[M]) {
	b := w.alg.Append(nil, f)
	g, rest, err := w.alg.Read(b)
	if err != nil || len(rest) > 0 || !bytes.Equal(w.alg.Append(nil, g), b) {
		w.bad("%s is not read as written: %v", w.alg.Text(f), err)
	}
	w.count[w.alg.Messages[w.alg.KindOf(f)].Name]++
	e := w.ends[from][to]
	w.say("  %d sends %s to %d", from, w.alg.Text(f), to)
	if e.state == up {
		w.mail = append(w.mail, letter[M]{from, to, e.number, g})
	}
}

// news are the steps of the detector that are due.
func (w *world[M]) news() (due []func()) {
	n := protocol.ID(w.c.N)
	for i := range n {
		if w.procs[i] == nil {
			continue
		}
		for j := range n {
			if i == j {
				continue
			}
			e, o, up2 := &w.ends[i][j], &w.ends[j][i], w.procs[j] != nil
			suspect := func(arg uint64) func() {
				return func() {
					e.state, e.revoked = []session{lapsed, ended}[arg], false
					w.say("%d has lost %d (%d)", i, j, arg)
					w.step(i, protocol.Input{Kind: protocol.Suspect, From: j, Arg: arg}, Frame[M]{})
				}
			}
			switch {
			case e.state == up && (!up2 || *w.pair(i, j) || o.state == unknown || o.number > e.number || o.state != up && o.number == e.number):
				due = append(due, suspect(protocol.Lapsed))
			case e.state == lapsed && (!up2 || o.state != up), e.state == unknown && (!up2 || o.state != up):
				due = append(due, suspect(protocol.Ended))
			case e.state == ended && up2 && !w.cut[i][j] && (o.state == ended || o.state == up && o.number > e.number):
				due = append(due, func() {
					e.state, e.number = up, max(o.number, e.number)
					if o.state != up {
						e.number++
						*w.pair(i, j) = false
					}
					w.say("%d has %d again", i, j)
					w.step(i, protocol.Input{Kind: protocol.Restore, From: j, Arg: w.lives[j]}, Frame[M]{})
				})
			}
		}
	}
	return due
}

// letters are the messages that may arrive. Those to a process that is not in the session
// yet wait, and those of a session that is over are lost.
func (w *world[M]) letters(fifo bool) (due []func()) {
	w.mail = deleteIf(w.mail, func(l letter[M]) bool {
		e := w.ends[l.to][l.from]
		return e.number > l.session || e.number == l.session && e.state != up
	})
	type channel struct{ from, to protocol.ID }
	seen := map[channel]bool{}
	for k, l := range w.mail {
		if w.ends[l.to][l.from].number < l.session || fifo && seen[channel{l.from, l.to}] {
			continue
		}
		seen[channel{l.from, l.to}] = true
		due = append(due, func() {
			w.mail = append(w.mail[:k:k], w.mail[k+1:]...)
			w.say("%d gets %s from %d", l.to, w.alg.Text(l.f), l.from)
			w.step(l.to, protocol.Input{Kind: protocol.Receive, From: l.from}, l.f)
		})
	}
	return due
}

func (w *world[M]) try(i protocol.ID) {
	w.tries++
	w.group[i] = w.wants[w.r.IntN(len(w.wants))]
	w.section[i] = protocol.InTry
	w.say("%d tries for %q", i, w.group[i])
	w.step(i, protocol.Input{Kind: protocol.Try, Data: w.group[i]}, Frame[M]{})
}

func (w *world[M]) users(tries bool) (due []func()) {
	for i := range protocol.ID(w.c.N) {
		if w.procs[i] == nil {
			continue
		}
		switch s := w.section[i]; {
		case s == protocol.InRem && tries:
			due = append(due, func() { w.try(i) })
		case s == protocol.InCrit || s == protocol.InLost:
			due = append(due, func() {
				w.ended(i)
				w.section[i] = protocol.InExit
				w.say("%d leaves", i)
				w.step(i, protocol.Input{Kind: protocol.Exit}, Frame[M]{})
			})
		}
	}
	return due
}

func (w *world[M]) faults() (due []func()) {
	var live, down []protocol.ID
	for i := range protocol.ID(w.c.N) {
		if w.procs[i] == nil {
			down = append(down, i)
		} else {
			live = append(live, i)
		}
	}
	draw := func(s []protocol.ID) protocol.ID { return s[w.r.IntN(len(s))] }
	if len(live) > 0 {
		due = append(due, func() { w.crash(draw(live)) })
	}
	if len(down) > 0 {
		due = append(due, func() {
			i := draw(down)
			w.say("%d is back", i)
			w.up(i)
		})
	}
	i, j := protocol.ID(w.r.IntN(w.c.N)), protocol.ID(w.r.IntN(w.c.N))
	if i == j {
		return due
	}
	return append(due,
		func() { w.snaps(i, j) },
		func() { w.say("cut %d %d", i, j); w.cut[i][j], w.cut[j][i] = true, true; w.snaps(i, j) },
		func() { w.say("heal"); w.heal() },
		func() { w.divide(w.r.Uint64()) },
	)
}

// snaps breaks the session of a pair that has one.
func (w *world[M]) snaps(i, j protocol.ID) {
	if w.ends[i][j].state == up && w.ends[j][i].state == up && w.ends[i][j].number == w.ends[j][i].number {
		w.say("break %d %d", i, j)
		*w.pair(i, j) = true
	}
}

func (w *world[M]) heal() {
	for i := range w.cut {
		clear(w.cut[i])
	}
}

func (w *world[M]) divide(side uint64) {
	w.say("partition %b", side&(1<<w.c.N-1))
	for i := range protocol.ID(w.c.N) {
		for j := range protocol.ID(w.c.N) {
			if w.cut[i][j] = side>>i&1 != side>>j&1; w.cut[i][j] {
				w.snaps(i, j)
			}
		}
	}
}

// run takes that many steps, of which about one in rarely is a fault (0: none).
func (w *world[M]) run(steps, rarely int, tries bool) {
	fifo := w.alg.FIFO
	for range steps {
		if w.fault != "" {
			return
		}
		if rarely > 0 && w.r.IntN(rarely) == 0 {
			f := w.faults()
			f[w.r.IntN(len(f))]()
			continue
		}
		kinds := [][]func(){w.news(), w.letters(fifo), w.letters(fifo), w.users(tries)}
		due := kinds[w.r.IntN(len(kinds))]
		if len(due) == 0 {
			if !tries && len(w.news())+len(w.letters(fifo))+len(w.users(false)) == 0 {
				return
			}
			continue
		}
		due[w.r.IntN(len(due))]()
	}
	if !tries {
		w.bad("stuck: no end after %d steps", steps)
	}
}

// calm ends all faults, lets everybody come back, and judges whether everybody gets in, and
// does so once more.
func (w *world[M]) calm() {
	w.heal()
	for i := range protocol.ID(w.c.N) {
		if w.procs[i] == nil {
			w.up(i)
		}
	}
	for range 2 {
		w.rests()
		w.run(20000, 0, false)
		for i, s := range w.section {
			if s != protocol.InRem {
				w.bad("stuck: %d is in section %d", i, s)
			}
		}
		if w.fault != "" {
			return
		}
		for i := range protocol.ID(w.c.N) {
			w.try(i)
		}
	}
	w.run(20000, 0, false)
	for i, s := range w.section {
		if s != protocol.InRem {
			w.bad("stuck: %d is in section %d", i, s)
		}
	}
}

// rests lets everything happen but what users do. Then whoever is inside has been told of those who wait and do not share with it,
// unless somebody is to leave its instance first; and where all fit into one group nobody waits, if restarts have three phases, nobody is to leave its instance, and no group
// that did not fit was before this one in a restart.
func (w *world[M]) rests() {
	for due := w.waits(); len(due) > 0 && w.fault == ""; due = w.waits() {
		due[w.r.IntN(len(due))]()
	}
	stray := slices.ContainsFunc(w.procs, func(p protocol.Process[Frame[M]]) bool { return p.(*Process[M]).stray })
	for i, s := range w.section {
		for j, other := range w.section {
			if !stray && s == protocol.InTry && other == protocol.InCrit && w.alg.Tells && !w.told[j] && !w.fits(i, j) {
				w.bad("wait: %d wants %q, and %d was not told in %q", i, w.group[i], j, w.group[j])
			}
		}
	}
	for _, g := range []protocol.Group{"a", "b"} {
		fit, waits := w.alg.Grouped && w.c.Options[phasesOption] == 3, 0
		for i, s := range w.section {
			p := w.procs[i].(*Process[M])
			fit = fit && !p.stray && (p.turns.await.empty() || p.turns.group != "")
			switch s {
			case protocol.InCrit:
				fit = fit && w.group[i] == string(g)
			case protocol.InTry:
				fit = fit && protocol.Groups(w.group[i]).Has(g)
				waits++
			}
		}
		if fit && waits > 0 {
			w.bad("concurrent entry: %d wait, and all want %q", waits, g)
		}
	}
}

// waits is what happens whatever users do.
func (w *world[M]) waits() []func() { return append(w.news(), w.letters(w.alg.FIFO)...) }

// fits reports whether i wants to be where j is, and may be.
func (w *world[M]) fits(i, j int) bool {
	g := protocol.Group(w.group[j])
	return g.Shares(g) && protocol.Groups(w.group[i]).Has(g)
}

// tell is the end of the log.
func (w *world[M]) tell(lines int) string {
	l := w.log
	if len(l) > lines {
		l = l[len(l)-lines:]
	}
	var states []string
	for i, p := range w.procs {
		if p != nil {
			q := p.(*Process[M])
			states = append(states, fmt.Sprintf("%d: %s; section %d, reach %v, counted %v, linked %v, lead %+v",
				i, p.(*Process[M]).Show(), q.section, q.reach(), q.counted, q.linked, q.lead))
		}
	}
	return strings.Join(l, "\n") + "\n" + strings.Join(states, "\n")
}

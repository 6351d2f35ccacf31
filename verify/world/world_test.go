package world_test

import (
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/world"
)

var update = flag.Bool("update", false, "write what happens in the stories")

// A story is a system and the steps of testdata/NAME.txt, each with what the environment makes of it: the
// events that processes get, or that the step is impossible.
type story struct {
	name       string
	n, clients int
	fifo       bool
	down       []protocol.ID
	registers  protocol.Semantics
	info       protocol.Info
	grouped    bool
	tells      bool // a message tells the user that somebody waits, and who shares stays until then
}

// What puppets do when timers fire, which are always set.
const (
	says         = iota + 1 // a message to all members
	saysToOne               // one to process 0
	repeats                 // an idempotent message to all members
	revokes                 // its lease at member 0
	reads                   // register 0, and if it is not process 0 also register 1
	writes                  // 5 to 7 to register 0 or 1
	awaits                  // 7 in register 1
	proposes                // its id in the next instance
	skips                   // takes part from instance 2 on
	leads                   // names itself in epoch 1
	leadsAgain              // names member 0 in epoch 1
	captures                // what its copy is
	installs                // a copy with 3 operations
	stops                   // stops its first timer
	ejects                  // its user
	toItself                // sends a message to itself
	toNobody                // sends a message to a process that is not there
	panics                  //
	meansNothing            // an effect that there is none of
	acts                    // how many there are, with 0, which lets its user in
)

var stories = []story{
	{name: "clients", n: 2, clients: 2, info: protocol.Info{
		Users: protocol.Clients, Detector: protocol.LeaseDetector, Incarnations: true, Cancels: true, Drains: true,
		Tolerates: protocol.Amnesia | protocol.Crash,
	}},
	{name: "pause-client", n: 2, clients: 2, info: protocol.Info{
		Users: protocol.Clients, Detector: protocol.LeaseDetector, Incarnations: true, Tolerates: protocol.Amnesia | protocol.Crash,
	}},
	{name: "members", n: 3, info: protocol.Info{
		Users: protocol.Members, Detector: protocol.LeaseDetector, Tolerates: protocol.Crash | protocol.Recovery,
	}},
	{name: "suspicions", n: 3, info: protocol.Info{
		Users: protocol.Members, Detector: protocol.UnreliableDetector, Incarnations: true, Synchronous: true,
		Tolerates: protocol.Crash | protocol.Recovery,
	}},
	{name: "watched", n: 1, clients: 1, info: protocol.Info{Users: protocol.Clients, Detector: protocol.PerfectDetector, Tolerates: protocol.Crash}},
	{name: "perfect", n: 2, info: protocol.Info{Users: protocol.Members, Detector: protocol.PerfectDetector, Tolerates: protocol.Crash}},
	{name: "channels", n: 2, info: protocol.Info{Users: protocol.Members, Tolerates: protocol.Loss | protocol.Duplication}},
	{name: "fifo", n: 2, fifo: true, info: protocol.Info{Users: protocol.Members}},
	{name: "down", n: 2, clients: 1, down: []protocol.ID{1}, info: protocol.Info{Users: protocol.Clients, Tolerates: protocol.Amnesia}},
	{name: "atomic", n: 2, registers: protocol.Atomic, info: protocol.Info{Users: protocol.Members, Tolerates: protocol.Crash}},
	{name: "safe", n: 3, registers: protocol.Safe, info: protocol.Info{Users: protocol.Members, Tolerates: protocol.Crash}},
	{name: "election", n: 2, info: protocol.Info{Users: protocol.Nobody, Detector: protocol.UnreliableDetector, Tolerates: protocol.Crash | protocol.Recovery}},
	{name: "object", n: 3, info: protocol.Info{
		Users: protocol.Members, Detector: protocol.UnreliableDetector, Weak: true, Consensus: true, Tolerates: protocol.Crash | protocol.Recovery,
	}},
	{name: "groups", n: 2, grouped: true, info: protocol.Info{Users: protocol.Members, Cancels: true}},
	{name: "told", n: 2, grouped: true, tells: true, info: protocol.Info{Users: protocol.Members}},
}

// A puppet does what its timers say, and writes down what it gets.
type puppet struct {
	id     protocol.ID
	system *system
}

type system struct {
	story
	heard []string
	names scenario.Names
	wants []protocol.Groups
}

// Step implements protocol.Process.
func (p *puppet) Step(ev protocol.Event[any], out *protocol.Out[any]) {
	about := ""
	switch ev.Kind {
	case protocol.Start:
		about = fmt.Sprint("start ", ev.Arg)
		for k := range uint32(acts) {
			out.SetTimer(k, 1, 0)
		}
	case protocol.Receive:
		about = fmt.Sprintf("receive %v of %s", ev.Msg, p.system.names.Of(ev.From))
		if p.system.tells {
			out.Wanted()
		}
	case protocol.Timeout:
		out.SetTimer(ev.Timer, 1, 0)
		p.act(ev.Timer, out)
	case protocol.Suspect:
		about = "suspect " + p.system.names.Of(ev.From) + map[uint64]string{protocol.Lapsed: ", lapsed", protocol.Ended: ", ended"}[ev.Arg]
	case protocol.Restore:
		about = fmt.Sprintf("restore %s, life %d", p.system.names.Of(ev.From), ev.Arg)
	case protocol.Try:
		if about = "try " + ev.Data; p.system.grouped && !strings.Contains(ev.Data, ",") {
			out.CritIn(protocol.Group(strings.TrimPrefix(ev.Data, "!")), 0)
		}
	case protocol.Exit:
		about = "exit"
		out.Rem()
	case protocol.Cancel:
		about = "cancel"
		out.Rem()
	case protocol.Drain:
		about = "drain"
	case protocol.Issue:
		about = "issue " + ev.Data
		out.Invoke(ev.Data, 1)
		out.Outcome()
	case protocol.Captured:
		about = "captured " + ev.Data
	case protocol.Decide:
		about = fmt.Sprintf("decide %d %v", ev.Arg, ev.Msg)
	case protocol.Value:
		about = fmt.Sprintf("value %d %d", ev.From, ev.Arg)
	default:
		about = fmt.Sprint("event ", ev.Kind)
	}
	if about != "" {
		p.system.heard = append(p.system.heard, p.system.names.Of(p.id)+" "+about)
	}
}

func (p *puppet) act(timer uint32, out *protocol.Out[any]) {
	me := uint64(p.id)
	switch timer {
	case 0:
		out.CritIn(protocol.Group(strings.Repeat("x", int(p.id/2))), 0) // which only process 2 gets wrong
	case says:
		out.Broadcast(10 + me)
	case saysToOne:
		out.Send(0, 20+me)
	case repeats:
		out.Broadcast(30 + me)
	case revokes:
		out.Revoke(9 * (p.id / 2))
	case reads:
		out.Read(0)
		if p.id > 0 {
			out.Read(1)
		}
	case writes:
		out.Write(int(me%2), 5+me%3)
	case awaits:
		out.Await(1, 7)
	case proposes:
		out.Propose(0, me)
	case skips:
		out.Resume(2)
	case leads:
		out.Leader(p.id, 1)
	case leadsAgain:
		out.Leader(0, 1)
	case captures:
		out.Capture()
	case installs:
		out.Install("3")
	case stops:
		out.StopTimer(0)
	case ejects:
		out.Ejected()
	case toItself:
		out.Send(p.id, me)
	case toNobody:
		out.Send(9, me)
	case panics:
		panic("a puppet panics")
	case meansNothing:
		out.Effects = append(out.Effects, protocol.Effect[any]{Act: protocol.Act{Do: math.MaxUint8}})
	}
}

// State implements protocol.Process.
func (p *puppet) State(*protocol.Codec) {}

func (s *system) algorithm() protocol.Algorithm[any] {
	i := s.info
	i.Name, i.Grouped, i.Messages = "puppets", s.grouped, []protocol.Message{{Name: "A"}}
	if s.registers != "" {
		i.Registers = func(protocol.Config) []protocol.Register {
			return []protocol.Register{{Name: "r", Owner: protocol.Shared, Most: 7}, {Name: "q", Owner: protocol.Shared, Initial: 5, Most: 7}}
		}
	}
	a := protocol.Algorithm[any]{
		Info: i,
		New:  func(id protocol.ID, _ protocol.Config) protocol.Process[any] { return &puppet{id, s} },
		Fields: func(m any, c *protocol.Codec) any {
			v, _ := m.(uint64)
			c.Uint(&v)
			return v
		},
		KindOf: func(m any) int { return int(m.(uint64) / 10) },
		Ints:   func(any) int { return 1 },
		Text:   func(m any) string { return fmt.Sprint(m) },
	}
	a.Idempotent = func(m any) bool { return m.(uint64)/10 == 3 }
	return a
}

// tell takes the steps of a text, each up to an arrow, and returns them with what happens. The steps "reset" begins
// anew, "notices A B", "model" and "state" ask.
func (s *system) tell(text string) (string, error) {
	a := s.algorithm()
	system := world.System{
		Config: protocol.Config{N: s.n}, Clients: s.clients, FIFO: s.fifo, Down: s.down, Registers: s.registers,
	}
	s.names = system.Names(a.Info)
	st := world.NewState(a, system)
	st.UntilTold = s.tells
	var out strings.Builder
	if s.wants = []protocol.Groups{""}; s.grouped {
		s.wants = []protocol.Groups{"a", "!w", "a,b"}
	}
	id, told := int32(0), false
	for line := range strings.Lines(text) {
		step, _, _ := strings.Cut(strings.TrimSpace(line), " ->")
		words := strings.Fields(step)
		switch {
		case step == "" || step[0] == '#':
			out.WriteString(step + "\n")
			continue
		case step == "start":
			told = true
		case step == "reset":
			s.heard = nil
			st.Reset()
			told = true
		case words[0] == "notices":
			p, q := must(st.Names.ID(words[1])), must(st.Names.ID(words[2]))
			s.heard = append(s.heard, fmt.Sprintf("%06b", st.Notices(int(p), int(q))))
			told = true
		case step == "model":
			for _, v := range []scenario.Verb{
				scenario.Amnesia, scenario.Crash, scenario.Recover, scenario.Suspect, scenario.Pause, scenario.Cancel, scenario.Drain,
				scenario.Lose, scenario.Duplicate, scenario.Try,
			} {
				if world.Has(st.Info, v) {
					s.heard = append(s.heard, string(v))
				}
			}
			told = true
		case words[0] == "walk":
			s.heard = append(s.heard, s.walk(st))
			told = true
		case step == "state":
			s.heard = append(s.heard, state(st))
			told = true
		}
		if !told {
			steps, err := st.Names.Parse(strings.NewReader(step))
			if err != nil {
				return "", err
			}
			c := action(st, steps[0])
			c.ID = id
			if id++; !st.Do(&c) {
				s.heard = append(s.heard, "impossible")
			}
		}
		told = false
		if st.Found != nil {
			s.heard = append(s.heard, "FOUND "+st.Found.Property+": "+st.Found.Text)
			st.Found = nil
		}
		fmt.Fprintf(&out, "%s -> %s\n", step, strings.Join(s.heard, "; "))
		s.heard = s.heard[:0]
	}
	return out.String(), nil
}

func must(id protocol.ID, err error) protocol.ID {
	if err != nil {
		panic(err)
	}
	return id
}

// action is a step as one that may be taken: a message by its kind, which is its tens.
func action(st *world.State, s scenario.Step) world.Action {
	c := world.Action{Verb: s.Verb, Timer: s.Timer}
	if len(s.Procs) > 0 {
		c.A = int32(s.Procs[0])
	}
	if len(s.Procs) > 1 {
		c.B = int32(s.Procs[1])
	}
	switch s.Verb {
	case scenario.Deliver, scenario.Lose, scenario.Duplicate:
		k := slices.IndexFunc(st.Flight, func(m world.Message) bool { return m.From == c.A && m.To == c.B && fmt.Sprint(m.Msg) == s.Text })
		if c.Kind = -1; k >= 0 {
			c.Kind, c.Sent, c.Part = st.Flight[k].Kind, st.Flight[k].Sent, st.Flight[k].Part
		}
	case scenario.Read:
		fmt.Sscanf(s.Text, "r %d", &c.Found)
	case scenario.Try:
		c.Wants = protocol.Groups(s.Text)
	}
	return c
}

// walk takes many steps in no order, possible or not, and returns a hash of what they do: where a story is about
// one rule at a time, these are about how they meet.
func (s *system) walk(st *world.State) string {
	const many, few = 10_000, 100 // steps, and those from one beginning
	r, sum := rand.New(rand.NewPCG(1, 2)), fnv.New64a()
	n := st.Total
	verbs, timers := s.choices(st.Rules)
	for k := range int32(many) {
		if k%few == 0 {
			st.Reset()
		}
		c := world.Action{
			ID: 1000 + k, Verb: verbs[r.IntN(len(verbs))], A: int32(r.IntN(n)), B: int32(r.IntN(n)), Timer: timers[r.IntN(len(timers))],
			Found: r.Uint64N(9), Wants: s.wants[r.IntN(len(s.wants))], Kind: r.Int32N(2), Sent: 1000 + k - r.Int32N(4), Part: r.Int32N(2), Keep: r.IntN(9) == 0,
		}
		if f := st.Flight; len(f) > 0 && c.Verb.Processes() == 2 && r.IntN(2) == 0 {
			m := f[r.IntN(len(f))]
			c.A, c.B, c.Kind = m.From, m.To, m.Kind
			if r.IntN(2) == 0 {
				c.Sent, c.Part = m.Sent, m.Part
			}
		}
		if (c.Verb == scenario.Crash || c.Verb == scenario.Amnesia) && r.IntN(4) > 0 {
			c.Verb = scenario.Deliver
		}
		possible := st.Do(&c)
		fmt.Fprintln(sum, possible, c, s.heard, st.Found)
		if possible {
			fmt.Fprintln(sum, state(st))
		}
		s.heard, st.Found = s.heard[:0], nil
	}
	return fmt.Sprintf("%x", sum.Sum64())
}

// choices are the verbs and the acts of a walk, those more often that are more often possible.
func (s *system) choices(r *world.Rules) (verbs []scenario.Verb, timers []uint32) {
	for _, of := range []struct {
		may   bool
		times int
		verb  scenario.Verb
	}{
		{true, 1, scenario.Try},
		{true, 1, scenario.Exit},
		{true, 5, scenario.Timeout},
		{r.Memory == nil, 5, scenario.Deliver},
		{r.Memory != nil, 5, scenario.Read},
		{r.Detector != protocol.NoDetector, 3, scenario.Suspect},
		{r.Detector != protocol.NoDetector, 3, scenario.Restore},
		{r.Detector == protocol.LeaseDetector, 3, scenario.Lapse},
		{world.Has(r.Info, scenario.Cancel), 1, scenario.Cancel},
		{world.Has(r.Info, scenario.Amnesia), 1, scenario.Amnesia},
		{world.Has(r.Info, scenario.Drain), 1, scenario.Drain},
		{world.Has(r.Info, scenario.Recover), 2, scenario.Recover},
		{r.Pauses, 1, scenario.Pause},
		{r.Pauses, 1, scenario.Resume},
		{world.Has(r.Info, scenario.Lose), 1, scenario.Lose},
		{world.Has(r.Info, scenario.Duplicate), 1, scenario.Duplicate},
		{r.Weak, 1, scenario.Issue},
		{r.Consensus, 3, scenario.Decide},
		{r.Consensus, 3, scenario.Hear},
		{world.Has(r.Info, scenario.Crash), 1, scenario.Crash},
	} {
		for k := 0; of.may && k < of.times; k++ {
			verbs = append(verbs, of.verb)
		}
	}
	switch timers = []uint32{0, says, saysToOne, repeats, stops, ejects, leads}; {
	case r.Memory != nil:
		timers = []uint32{0, reads, writes, awaits, awaits}
	case r.Mutual:
		timers = append(timers, revokes, revokes)
	case r.Elects():
		timers = append(timers, leads, leadsAgain)
	case r.Consensus:
		timers = append(timers, proposes, proposes, skips, captures, installs)
	}
	return verbs, timers
}

// state is what the environment holds.
func state(st *world.State) string {
	var parts []string
	for i, e := range st.Ends {
		part := st.Names.Of(protocol.ID(i)) + " " + section(e)
		if e != nil {
			if seen := st.View().Users[i]; seen != e.Section {
				part += fmt.Sprint(", counts as ", seen)
			}
			for _, of := range []struct {
				name string
				set  uint64
			}{
				{"life", e.Life},
				{"lost", e.Lost},
				{"doubts", e.Doubts},
				{"lapsed", e.Lapsed},
				{"ended", e.Ended},
				{"revoked", e.Revoked},
				{"missed", e.Missed},
				{"executed", uint64(e.Copied)},
				{"tasks", uint64(e.Tasks)},
				{"open", uint64(len(e.Open))},
				{"stopped", uint64(acts - len(e.Timers))},
			} {
				if of.set != 0 {
					part += fmt.Sprintf(", %s %b", of.name, of.set)
				}
			}
			if e.Leading.Named {
				part += fmt.Sprintf(", says %d leads %d", e.Leading.Leader, e.Leading.Epoch)
			}
			if part += fmt.Sprint(", known ", e.Known); e.Wants+protocol.Groups(e.Group) != "" {
				part += fmt.Sprintf(", wants %q, has %q", e.Wants, e.Group)
			}
		}
		parts = append(parts, part)
	}
	for k, m := range st.Flight {
		way := fmt.Sprintf("%v from %s to %s x%d", m.Msg, st.Names.Of(protocol.ID(m.From)), st.Names.Of(protocol.ID(m.To)), m.Copies)
		if st.Ends[m.To] != nil && !st.Arrives(k) {
			way += ", waits"
		}
		parts = append(parts, way)
	}
	for _, c := range st.Cells {
		parts = append(parts, fmt.Sprintf("%d with %d writers", c.Value, c.Writers))
	}
	if st.Votes != nil {
		parts = append(parts, fmt.Sprintf("consensus %x", st.Votes.Append(nil)))
	}
	told := make([]bool, st.Config.N)
	for i := range told {
		told[i] = st.Ends[i] != nil && st.Told(st.Ends, i)
	}
	return strings.Join(append(parts, fmt.Sprintf("entries %d, pending %d, forgot %b, rests %v, accurate %v, told %v, exclusion %q",
		st.Entries, st.Pending(), st.Forgot, st.Rests(), st.Accurate(st.Ends), told, st.Exclusion())), "\n    ")
}

func section(e *world.End) string {
	if e == nil {
		return "away"
	}
	return [...]string{
		protocol.InRem: "remainder", protocol.InTry: "trying", protocol.InCrit: "inside", protocol.InLost: "ejected",
		protocol.InExit: "leaving", protocol.InIssue: "issuing",
	}[e.Section]
}

// told returns how a story goes, and how it should go.
func (s story) told(dir string) (got, want string, err error) {
	text, err := os.ReadFile(filepath.Join(dir, s.name+".txt"))
	if err != nil {
		return "", "", err
	}
	got, err = (&system{story: s}).tell(steps(string(text)))
	return got, string(text), err
}

// steps are the lines of a story without what a state looked like.
func steps(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "    ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestStories(t *testing.T) {
	for _, s := range stories {
		got, want, err := s.told("testdata")
		switch {
		case err != nil:
			t.Errorf("%s: %v", s.name, err)
		case *update:
			if err := os.WriteFile(filepath.Join("testdata", s.name+".txt"), []byte(got), 0o644); err != nil {
				t.Error(err)
			}
		case got != want:
			t.Errorf("%s goes\n%swant\n%s", s.name, got, want)
		}
	}
}

// A mutant of the rules is caught where a story goes another way.
func TestMutants(t *testing.T) {
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	mutant.Test(t, mutant.Config{
		Checks: []mutant.Check{func() (string, error) {
			for _, s := range stories {
				got, want, err := s.told(dir)
				if errors.Is(err, os.ErrNotExist) || err != nil {
					return "", err
				}
				if got != want {
					return s.name + " goes another way", nil
				}
			}
			return "", nil
		}},
		Inside: inside, Survivors: survivors,
	})
}

// inside are the rules that all drivers share, and how a State takes a step.
var inside = []string{
	"Side.Notices", "Side.Ahead", "Rules.suspicion", "Rules.Lease", "Rules.Suspect", "Rules.Restore", "End.revoke",
	"Rules.Severed", "Rules.Withheld", "Rules.Cuts", "Rules.Buried", "Rules.Miss", "Rules.Resume", "Rules.Reborn",
	"Cell.Next", "Cell.Write", "Consensus.Hears", "Consensus.Propose", "Rules.Meaning", "Rules.Effect", "Rules.enter",
	"State.react", "State.fail",
}

var survivors = map[string]string{
	"Consensus.Hears: k == 0 -> false":    "nothing is decided in the instance before the first",
	"Consensus.Propose: !found -> true":   "a State gives each proposal a number of its own",
	"Consensus.Propose: decided -> false": "a State asks first",

	"Side.Notices: s.Ended dropped":                                      "who had Lapsed alone gets Ended first",
	"Side.Notices: s.Gone -> false":                                      "Rules.Notices asks before",
	"Rules.Cuts: lapses dropped #2":                                      "after both had Lapsed nothing is on its way",
	"Rules.Cuts: r.Leases && lapses -> false":                            "servers do not crash",
	"Rules.Cuts: r.Mutual dropped":                                       "without leases nothing lapses",
	"Rules.Severed: !r.Leases -> false":                                  "the same",
	"Rules.Severed: r.Mutual -> true":                                    "the same",
	"Rules.Severed: client >= r.Config.N dropped":                        "clients alone have leases",
	"Rules.Severed: member < r.Config.N dropped":                         "and at servers alone",
	"Rules.Severed: ends[client] != nil dropped":                         "a State loses what is sent to somebody who is not there",
	"Rules.Withheld: !ends.absent(to) dropped":                           "a State delivers nothing to somebody who is not there",
	"Rules.Withheld: r.Mutual dropped":                                   "what is on its way to a client whose lease lapses is lost",
	"Rules.suspicion: r.Detector == protocol.UnreliableDetector dropped": "no other detector tells of lives",

	"State.fail: s.Stale(k) dropped":                "no message of a puppet goes stale: see package hunt",
	"State.react: f != (history.Fault{}) -> false":  "a State lets users do what they may",
	"State.react: f.Do != protocol.Capture dropped": "the judge looks at no Capture",
}

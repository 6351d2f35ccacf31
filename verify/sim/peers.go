package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
)

// DefaultDetect is how long it takes a member to suspect another one.
const DefaultDetect = 10 * time.Millisecond

// Silent is a Config.Detect with which the detector says what Config.Faults say, and
// nothing else.
const Silent time.Duration = -1

// mostLeaders bounds Result.Leaders.
const mostLeaders = 1000

// A Leadership is one effect Leader: what a process said at some time.
type Leadership struct {
	AtNS    int64  `json:"at_ns"`
	Process string `json:"process"`
	Leader  string `json:"leader"`
	Epoch   uint64 `json:"epoch"`
}

// election is what a run knows of who leads. Its memory grows with the number of epochs.
type election struct {
	says  history.Leaders // by member
	terms history.Terms
	list  []Leadership // the first ones
	count int
}

// checkPeers refuses what Users and the detector exclude, where there are no clients.
func (c *Config) checkPeers(i protocol.Info) error {
	peers := i.Users != protocol.Clients
	detects := peers && i.Detector != protocol.NoDetector
	if i.Users == protocol.Nobody {
		every := c.CrashEvery > 0 || c.RecoverEvery > 0 || c.PauseEvery > 0 || c.PartitionEvery > 0
		if every && c.FaultsUntil == 0 && c.Until == 0 {
			return fmt.Errorf("random faults without end: want faults-until or until, for an election has no other end")
		}
	}
	switch {
	case c.RecoverEvery > 0 && (i.Tolerates&protocol.Recovery == 0 || !peers):
		return fmt.Errorf("recover-every: its model has no member that comes back")
	case c.RecoverEvery > 0 && c.CrashEvery == 0 && !slices.ContainsFunc(c.Faults, is(scenario.Crash)):
		return fmt.Errorf("recover-every: nobody crashes who could come back")
	case c.Detect != 0 && !detects:
		return fmt.Errorf("detect: its members suspect no members")
	case c.Detect == Silent && leased(i):
		return fmt.Errorf("detect: its members have leases, and notice each crash; want more than 0")
	case c.Detect < 0 && c.Detect != Silent || c.Detect > longest:
		return fmt.Errorf("detect %v: want 0 to %v", c.Detect, longest)
	case c.Detect == 0:
		c.Detect = DefaultDetect
	}
	return nil
}

// is returns whether a step has a verb.
func is(v scenario.Verb) func(scenario.Step) bool {
	return func(s scenario.Step) bool { return s.Verb == v }
}

// checkPeerFault refuses a recovery or a suspicion that the model excludes.
func (c *Config) checkPeerFault(i protocol.Info, f scenario.Step) error {
	switch {
	case i.Users == protocol.Clients:
		return errors.New(faultVerbs(i))
	case f.Verb == scenario.Recover && i.Tolerates&protocol.Recovery == 0:
		return fmt.Errorf("its model has no member that comes back")
	case f.Verb == scenario.Recover:
		return nil
	case i.Detector == protocol.NoDetector:
		return fmt.Errorf("its members suspect no members")
	case leased(i):
		return fmt.Errorf("its members have leases, and are told of those; want crash, lapse, partition, cut or pause")
	case i.Detector == protocol.UnreliableDetector || f.Verb == scenario.Restore:
		return nil
	}
	dead := func(s scenario.Step) bool {
		return s.Verb == scenario.Crash && s.At <= f.At && s.Procs[0] == f.Procs[1]
	}
	if !slices.ContainsFunc(c.Faults, dead) {
		return fmt.Errorf("its detector suspects nobody that has not crashed")
	}
	return nil
}

// faultVerbs says which faults there are.
func faultVerbs(i protocol.Info) string {
	if i.Users == protocol.Clients {
		return "faults are amnesia, drain, crash, pause, partition and cut"
	}
	if leased(i) {
		return "faults are drain, crash, recover, lapse, pause, partition and cut"
	}
	return "faults are amnesia, drain, crash, recover, suspect, restore, pause, partition and cut"
}

// elects reports whether the algorithm is an election.
func (s *simulator[M]) elects() bool { return s.alg.Users == protocol.Nobody }

// peers reports whether there are no clients: members crash, and suspect each other.
func (s *simulator[M]) peers() bool { return s.alg.Users != protocol.Clients }

// lead records that process id names a leader.
func (s *simulator[M]) lead(id uint32, a protocol.Act) {
	if s.log != nil {
		s.note(fmt.Sprintf("%s says that %s leads epoch %d", s.names.Of(protocol.ID(id)), s.names.Of(a.To), a.Arg))
	}
	if !s.elects() {
		return // it is for those who watch
	}
	s.idle = 0
	e, t := &s.election, history.Term{Epoch: a.Arg, Leader: a.To}
	if e.count++; e.count <= mostLeaders {
		e.list = append(e.list, Leadership{s.now, s.names.Of(protocol.ID(id)), s.names.Of(a.To), a.Arg})
	}
	for _, err := range []error{e.says[id].Name(t), e.terms.Add(t, s.names.Of)} {
		if err != nil {
			s.foundError(history.Epochs, err)
		}
	}
}

func (s *simulator[M]) foundError(property string, err error) {
	text := err.Error()
	s.found(property, text[min(len(text), len(property)+len(": ")):])
}

// agree judges an election that has come to rest: all live processes name one leader, or
// where it rests because of partitions, all of one side.
func (s *simulator[M]) agree(together func(a, b uint32) bool) {
	seen := make([]bool, s.cfg.N)
	for _, first := range s.faults.up {
		if seen[first] {
			continue
		}
		side := slices.Clone(s.election.says)
		for id := range side {
			side[id].Up = s.procs[id].process != nil && together(first, uint32(id))
			seen[id] = seen[id] || side[id].Up
		}
		if err := side.Agreement(s.names.Of); err != nil {
			s.foundError(history.Agreement, err)
		}
	}
}

// together reports whether no partition stands between two processes now.
func (s *simulator[M]) together(a, b uint32) bool {
	return !slices.ContainsFunc(s.faults.partitions, func(p partition) bool {
		return p.until > s.now && p.side[a] != p.side[b]
	})
}

// rests reports whether an election can go on only when a partition ends: whatever is in
// the queue, the first item of which is it, waits for that.
func (s *simulator[M]) rests(it item) bool {
	heals := int64(-1)
	for _, p := range s.faults.partitions {
		if p.until > s.now && (heals < 0 || p.until < heals) {
			heals = p.until
		}
	}
	return heals >= 0 && it.at >= heals
}

// rest ends a run in which nothing more will happen.
func (s *simulator[M]) rest() {
	if s.elects() {
		s.agree(func(_, _ uint32) bool { return true })
		return
	}
	s.stuck("nothing more will happen")
}

// end ends a run at the time Config.Until, before the item it.
func (s *simulator[M]) end(it item, at int64) {
	s.now = at
	if s.elects() && s.alg.Detector == protocol.UnreliableDetector && s.rests(it) {
		s.agree(s.together)
	}
}

// notice lets each of some members suspect another one when its detector has noticed.
func (s *simulator[M]) notice(observers []uint32, subject uint32) {
	if s.alg.Detector == protocol.NoDetector || s.cfg.Detect == Silent {
		return
	}
	for _, j := range observers {
		s.push(s.now+int64(s.cfg.Detect), suspect, j, subject)
	}
}

// recover lets a crashed member come back empty.
func (s *simulator[M]) recover(id uint32) {
	f := &s.faults
	s.logVerb(scenario.Recover, id, 0, "")
	s.recovered++
	f.crashed = slices.DeleteFunc(f.crashed, func(j uint32) bool { return j == id })
	i, _ := slices.BinarySearch(f.up, id)
	f.up = slices.Insert(f.up, i, id)
	for _, q := range f.suspected { // its detector begins anew
		s.procs[q].suspectedBy[id] = false
	}
	if s.elects() {
		s.election.says[id].Named = false
	}
	if s.alg.Consensus {
		s.weak.next[id] = noInstance
	}
	s.begin(id)
	if k := int(s.procs[id].user); k >= 0 && s.users[k].left > 0 {
		s.users[k].state = thinking
		s.active++
		s.schedule(k, userTry, s.cfg.Think.draw(&s.users[k].think))
	}
	if s.mutual {
		s.reborn(id)
		return
	}
	for _, q := range f.crashed {
		s.notice([]uint32{id}, q)
	}
	for j := range s.cfg.N {
		if by := s.procs[id].suspectedBy; by != nil && by[j] {
			s.push(s.now+s.detectorDelay(), restore, uint32(j), id)
		} else if s.alg.Incarnations && j != int(id) {
			s.push(s.now+s.detectorDelay(), news, uint32(j), id)
		}
	}
}

package sim

import (
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

// lead records that process id names a leader.
func (s *engine) lead(id uint32, a protocol.Act) {
	if s.log != nil {
		s.note(fmt.Sprintf("%s says that %s leads epoch %d", s.Names.Of(protocol.ID(id)), s.Names.Of(a.To), a.Arg))
	}
	if !s.Elects() {
		return // it is for those who watch
	}
	s.idle = 0
	t, all := history.Term{Epoch: a.Arg, Leader: a.To}, &s.totals
	if all.LeadersNamed++; all.LeadersNamed <= mostLeaders {
		all.Leaders = append(all.Leaders, Leadership{s.now, s.Names.Of(protocol.ID(id)), s.Names.Of(a.To), a.Arg})
	}
	for _, err := range []error{s.says[id].Name(t), s.terms.Add(t, s.Names.Of)} {
		if err != nil {
			s.judged(history.Fault{Property: history.Epochs, Text: err.Error()})
		}
	}
}

// agree judges an election that has come to rest: all live processes name one leader, or
// where it rests because of partitions, all of one side.
func (s *engine) agree(together func(a, b uint32) bool) {
	seen := make([]bool, s.cfg.N)
	for _, first := range s.faults.up {
		if seen[first] {
			continue
		}
		side := slices.Clone(s.says)
		for id := range side {
			side[id].Up = s.procs[id].up && together(first, uint32(id))
			seen[id] = seen[id] || side[id].Up
		}
		if err := side.Agreement(s.Names.Of); err != nil {
			s.judged(history.Fault{Property: history.Agreement, Text: err.Error()})
		}
	}
}

// together reports whether no partition stands between two processes now.
func (s *engine) together(a, b uint32) bool {
	return !slices.ContainsFunc(s.faults.partitions, func(p partition) bool {
		return p.until > s.now && p.side[a] != p.side[b]
	})
}

// rest ends a run in which nothing more will happen.
func (s *engine) rest() {
	if s.Elects() {
		s.agree(func(_, _ uint32) bool { return true })
		return
	}
	s.stuck("nothing more will happen")
}

// end ends a run at the time Config.Until, before the item it. An election rests until a partition ends if all
// that is in the queue waits for that.
func (s *engine) end(it item, at int64) {
	s.now = at
	rests := slices.ContainsFunc(s.faults.partitions, func(p partition) bool { return at < p.until && p.until <= it.at })
	if s.Elects() && s.Detector == protocol.UnreliableDetector && rests {
		s.agree(s.together)
	}
}

// notice lets a member suspect another one when its detector has noticed.
func (s *engine) notice(observer, subject uint32) {
	if s.Detector != protocol.NoDetector && s.cfg.Detect != Silent {
		s.push(s.now+int64(s.cfg.Detect), suspect, observer, subject)
	}
}

// recover lets a crashed member come back empty.
func (s *engine) recover(id uint32) {
	f := &s.faults
	s.logVerb(scenario.Recover, id, 0, "")
	s.totals.Recoveries++
	f.crashed = slices.DeleteFunc(f.crashed, func(j uint32) bool { return j == id })
	i, _ := slices.BinarySearch(f.up, id)
	f.up = slices.Insert(f.up, i, id)
	for _, q := range f.suspected { // its detector begins anew
		s.procs[q].suspectedBy[id] = false
	}
	if s.Elects() {
		s.says[id].Named = false
	}
	if s.Consensus {
		s.weak.votes.Leave(int(id))
	}
	s.begin(id)
	if k := int(s.procs[id].user); k >= 0 && s.load.Left(k) > 0 {
		s.active++
		s.schedule(k, userTry, int64(s.load.Thinks(k)))
	}
	if s.Mutual { // the ends of its sessions before come first
		for q := range uint32(s.cfg.N) {
			if q != id {
				s.proceed(id, q)
			}
		}
		return
	}
	for _, q := range f.crashed {
		s.notice(id, q)
	}
	for j := range s.cfg.N {
		if by := s.procs[id].suspectedBy; by != nil && by[j] {
			s.push(s.now+s.detectorDelay(), restore, uint32(j), id)
		} else if s.Incarnations && j != int(id) {
			s.push(s.now+s.detectorDelay(), news, uint32(j), id)
		}
	}
}

package sim

import (
	"slices"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/workload"
)

// faults is what a run knows about its faults and its failure detector.
type faults struct {
	random     workload.Stream
	detector   workload.Stream
	up         []uint32 // members that are not down
	partitions []partition
	suspected  []uint32      // clients, or members without clients, that some member suspects
	crashed    []uint32      // members, where there are no clients
	ends       map[pair]*end // of sessions of members; looked up, never ranged over
	cuts       []cut
	apart      map[pair]*separation // looked up, never ranged over
}

// reset is the faults of a run that has not begun, in the memory of f.
func (f *faults) reset() faults {
	if f.apart == nil {
		f.apart, f.ends = map[pair]*separation{}, map[pair]*end{}
	}
	clear(f.apart)
	clear(f.ends)
	return faults{
		cuts: f.cuts[:0], ends: f.ends, up: f.up[:0], partitions: f.partitions[:0], suspected: f.suspected[:0], crashed: f.crashed[:0], apart: f.apart,
	}
}

// A partition cuts the processes in side off from all others.
type partition struct {
	side  map[uint32]bool
	until int64
}

// A cut lets nothing through from one process to another.
type cut struct {
	from, to uint32
	until    int64
}

// A pair is a client and a member, or two members.
type pair struct{ client, member uint32 }

// A separation is a time in which a pause or a partition, or several without a
// gap, keep a client and a member apart. When it lasts longer than a lease the
// session between the two ends. What either sent before the next one, which begins
// with Restore, is lost.
type separation struct {
	since, until int64
	lapses       bool   // longer than a lease: the lapse is scheduled
	lapsed       bool   // the client was told, and not yet restored
	began        uint64 // sequence number at the beginning of the newest session, 0: the first one
}

func (s *engine) startFaults() {
	for i, f := range s.cfg.Faults {
		s.push(int64(f.At), fault, 0, uint32(i))
	}
	s.every(s.cfg.AmnesiaEvery, amnesias)
	s.every(s.cfg.CrashEvery, crashes)
	s.every(s.cfg.RecoverEvery, recoveries)
	s.every(s.cfg.PauseEvery, pauses)
	s.every(s.cfg.PartitionEvery, partitions)
}

func (s *engine) every(d time.Duration, kind uint64) {
	if end := int64(s.cfg.FaultsUntil); d > 0 && (end == 0 || s.now+int64(d) <= end) {
		s.push(s.now+int64(d), kind, 0, 0)
	}
}

// fault handles the items of the queue that are no process's or user's own.
func (s *engine) fault(it item) {
	f := &s.faults
	switch it.key & (1<<kindBits - 1) {
	case fault:
		s.scheduled(s.cfg.Faults[it.slot])
	case amnesias:
		if s.cfg.Spaced > 0 && s.unsettled() >= s.cfg.Spaced {
			s.every(max(time.Microsecond, s.cfg.Delay.Mean()), amnesias) // look again soon
			return
		}
		s.every(s.cfg.AmnesiaEvery, amnesias)
		s.forget(f.up[f.random.IntN(len(f.up))])
	case crashes:
		s.every(s.cfg.CrashEvery, crashes)
		switch {
		case !s.Peers:
			// Of all users, so that those who are left at the end of a run do not
			// crash the more often.
			if k := f.random.IntN(len(s.users)); !s.done(k) && s.isUp(s.users[k].proc) {
				s.crash(s.users[k].proc)
			}
		case len(f.up) > 1 && s.Info.Enough(len(f.up)-1, s.cfg.N):
			if id := f.up[f.random.IntN(len(f.up))]; s.spare(id) {
				s.crash(id)
			}
		}
	case recoveries:
		s.every(s.cfg.RecoverEvery, recoveries)
		if len(f.crashed) > 0 {
			s.recover(f.crashed[f.random.IntN(len(f.crashed))])
		}
	case pauses:
		s.every(s.cfg.PauseEvery, pauses)
		all := append(s.live(), f.up...)
		id := all[f.random.IntN(len(all))]
		s.pause(id, 1+f.random.Int64N(int64(s.cfg.PauseEvery)))
	case partitions:
		s.every(s.cfg.PartitionEvery, partitions)
		var side []protocol.ID
		for _, id := range append(append([]uint32(nil), f.up...), s.live()...) {
			if f.random.IntN(2) == 0 {
				side = append(side, protocol.ID(id))
			}
		}
		s.partition(side, 1+f.random.Int64N(int64(s.cfg.PartitionEvery)))
	case lapse:
		if s.Mutual {
			s.lapses(it.to, it.slot)
		} else {
			s.lapse(it.to, it.slot)
		}
	case suspect:
		if s.Mutual {
			s.ends(it)
		} else {
			s.suspect(it, false)
		}
	case wake: // see awake
	case restore, news:
		if s.Mutual {
			s.resumes(it)
		} else {
			s.restore(it)
		}
	}
}

func (s *engine) scheduled(f scenario.Step) {
	id := uint32(f.Procs[0])
	switch f.Verb {
	case scenario.Amnesia:
		s.forget(id)
	case scenario.Drain:
		s.logVerb(scenario.Drain, id, 0, "")
		s.input(id, protocol.Input{Kind: protocol.Drain})
	case scenario.Crash:
		if s.isUp(id) {
			s.crash(id)
		}
	case scenario.Recover:
		if !s.isUp(id) {
			s.recover(id)
		}
	case scenario.Suspect:
		s.suspect(item{at: s.now, to: id, slot: uint32(f.Procs[1])}, true)
	case scenario.Restore:
		s.restore(item{at: s.now, key: s.seq<<kindBits | restore, to: id, slot: uint32(f.Procs[1])})
	case scenario.Lapse:
		if p, q := id, uint32(f.Procs[1]); s.isUp(p) && s.isUp(q) && !s.endOf(p, q).Lapsed {
			s.lapseNow(p, q)
		}
	case scenario.Cut:
		s.cut(id, uint32(f.Procs[1]), int64(f.For))
	case scenario.Pause:
		if s.isUp(id) {
			s.pause(id, int64(f.For))
		}
	case scenario.Partition:
		s.partition(f.Procs, int64(f.For))
	}
}

// live lists the clients that are up, which in a peer algorithm is nobody.
func (s *engine) live() []uint32 {
	var ids []uint32
	for u := range s.users {
		if p := s.users[u].proc; !s.done(u) && s.isUp(p) && int(p) >= s.cfg.N {
			ids = append(ids, p)
		}
	}
	return ids
}

// forget lets a member lose its memory and start afresh at once.
func (s *engine) forget(id uint32) {
	s.logVerb(scenario.Amnesia, id, 0, "")
	s.totals.Amnesias++
	s.begin(id)
	for _, c := range s.faults.suspected {
		if by := s.procs[c].suspectedBy; by != nil && by[id] {
			s.suspects(id, c)
		}
	}
	if s.Detector == protocol.LeaseDetector {
		for _, c := range s.live() {
			s.push(s.now+s.detectorDelay(), news, c, id)
		}
	}
}

// crash stops a process: a member until it recovers, if it ever does, and a client for ever. A
// new client takes over its entries.
func (s *engine) crash(id uint32) {
	s.logVerb(scenario.Crash, id, 0, "")
	s.totals.Crashes++
	p, f := &s.procs[id], &s.faults
	k := int(p.user)
	s.drop(id)
	*p = process{
		user: p.user, incarnation: p.incarnation, last: p.last, suspectedBy: p.suspectedBy, random: p.random, died: s.seq,
	}
	if s.Peers {
		f.up = slices.DeleteFunc(f.up, func(j uint32) bool { return j == id })
		f.crashed = append(f.crashed, id)
	}
	if s.weak.judge != nil {
		s.weak.judge.Crash(protocol.ID(id))
	}
	done := k < 0 || s.done(k)
	if k >= 0 {
		s.monitor.Crash(k, s.now)
	}
	switch {
	case s.Detector == protocol.NoDetector:
	case s.Mutual:
		s.bury(id)
	case s.Peers:
		for _, j := range f.up {
			s.notice(j, id)
		}
	default:
		after := int64(0)
		if s.Detector == protocol.LeaseDetector {
			after = int64(s.cfg.Lease) // a member learns of a crash by the end of the lease
		}
		for _, j := range f.up {
			s.push(s.now+after+s.detectorDelay(), suspect, j, id)
		}
	}
	if done {
		return
	}
	u := &s.users[k]
	u.pending, u.issuing = 0, false
	if s.Peers || s.load.Left(k) == 0 {
		s.active--
		return
	}
	s.schedule(k, birth, int64(s.load.Thinks(k)))
}

func (s *engine) pause(id uint32, d int64) {
	s.logStep(scenario.Step{Verb: scenario.Pause, Procs: []protocol.ID{protocol.ID(id)}, For: time.Duration(d)})
	p := &s.procs[id]
	p.pausedUntil = max(p.pausedUntil, s.now+d)
	if s.Pauses {
		s.push(p.pausedUntil, wake, id, 0)
		if !slices.Contains(s.asleep, id) {
			s.asleep = append(s.asleep, id)
		}
	}
	if int(id) < s.cfg.N {
		s.part(map[uint32]bool{id: true}, p.pausedUntil, true)
		return
	}
	for _, j := range s.faults.up {
		s.separate(id, j, p.pausedUntil)
	}
}

func (s *engine) partition(side []protocol.ID, d int64) {
	if len(side) == 0 {
		return
	}
	s.logStep(scenario.Step{Verb: scenario.Partition, Procs: side, For: time.Duration(d)})
	p := partition{side: map[uint32]bool{}, until: s.now + d}
	for _, id := range side {
		p.side[uint32(id)] = true
	}
	f := &s.faults
	f.partitions = slices.DeleteFunc(f.partitions, func(q partition) bool { return q.until <= s.now })
	f.partitions = append(f.partitions, p)
	s.part(p.side, p.until, false)
}

// part lets the processes of a side and all others notice that they do not hear each other; those
// of a side that pauses notice nothing.
func (s *engine) part(side map[uint32]bool, until int64, pauses bool) {
	up := s.faults.up
	switch {
	case !s.Pauses:
	case s.Peers:
		for _, q := range up {
			for _, j := range up {
				switch {
				case side[q] == side[j]:
				case !s.Mutual && (side[q] || !pauses):
					s.notice(j, q)
				case s.Mutual && side[q]:
					s.separate(q, j, until)
				}
			}
		}
	default:
		for _, c := range s.live() {
			for _, j := range up {
				if side[c] != side[j] {
					s.separate(c, j, until)
				}
			}
		}
	}
}

// cut lets nothing through from one process to another until the time d has passed.
func (s *engine) cut(from, to uint32, d int64) {
	s.logStep(scenario.Step{Verb: scenario.Cut, Procs: []protocol.ID{protocol.ID(from), protocol.ID(to)}, For: time.Duration(d)})
	f := &s.faults
	f.cuts = slices.DeleteFunc(f.cuts, func(c cut) bool { return c.until <= s.now })
	f.cuts = append(f.cuts, cut{from, to, s.now + d})
	switch client := uint32(s.cfg.N) <= max(from, to); {
	case s.Mutual && !s.isUp(to), client && uint32(s.cfg.N) <= min(from, to):
	case s.Mutual || client:
		s.separate(from, to, s.now+d)
	case s.Pauses && s.Peers && s.isUp(from) && s.isUp(to):
		s.notice(to, from)
	}
}

// heldUntil is when a message between two processes that is due now arrives, as
// far as pauses and partitions go; not after now when nothing holds it up.
func (s *engine) heldUntil(from, to uint32) int64 {
	until := s.procs[to].pausedUntil
	for i := range s.faults.partitions {
		if p := &s.faults.partitions[i]; p.until > until && p.side[from] != p.side[to] {
			until = p.until
		}
	}
	for _, c := range s.faults.cuts {
		if c.until > until && c.from == from && c.to == to {
			until = c.until
		}
	}
	return until
}

// meet is when two processes can next talk; now or before when they can.
func (s *engine) meet(a, b uint32) int64 { return max(s.heldUntil(a, b), s.heldUntil(b, a)) }

// between is the key of two processes: the client and the member, or the lesser of two members
// and the other one.
func (s *engine) between(a, b uint32) pair {
	if s.Mutual {
		return pair{min(a, b), max(a, b)}
	}
	return pair{max(a, b), min(a, b)}
}

// detectorDelay is how long news of a process takes to reach another one.
// delay draws how long a message takes.
func (s *engine) delay(r *workload.Stream) int64 { return int64(s.cfg.Delay.Draw(r)) }

func (s *engine) detectorDelay() int64 { return s.delay(&s.faults.detector) }

// separate records that two processes do not hear of each other until then.
func (s *engine) separate(p, q uint32, until int64) {
	if s.Detector != protocol.LeaseDetector {
		return
	}
	k := s.between(p, q)
	a := s.faults.apart[k]
	if a == nil {
		a = &separation{since: s.now}
		s.faults.apart[k] = a
	}
	if a.until < s.now && !a.lapses {
		a.since = s.now
	}
	a.until = max(a.until, until)
	if end := a.since + int64(s.cfg.Lease); !a.lapses && a.until > end {
		a.lapses = true
		if s.Mutual {
			s.push(end+s.detectorDelay(), lapse, k.client, k.member)
			s.push(end+s.detectorDelay(), lapse, k.member, k.client)
			return
		}
		s.push(end, lapse, k.client, k.member)
	}
}

// lapse tells a client that its lease at a member may have lapsed, and after
// that lets the member suspect the client.
func (s *engine) lapse(client, member uint32) {
	if !s.isUp(client) {
		return
	}
	a := s.faults.apart[s.between(client, member)]
	a.lapsed = true
	s.tellLapsed(client, member)
	s.push(s.now+s.detectorDelay(), suspect, member, client)
}

// unheard is until when a process hears nothing of another one that is up; not after now if
// it does.
func (s *engine) unheard(observer, subject uint32) int64 {
	return max(s.heldUntil(subject, observer), s.procs[subject].pausedUntil)
}

// suspect begins the suspicion of a client at a member, or that of a member that crashed or that its
// observer does not hear of; if told is true, of any.
func (s *engine) suspect(it item, told bool) {
	observer, subject := it.to, it.slot
	p, q := &s.procs[observer], &s.procs[subject]
	peers := s.Peers
	switch {
	case !p.up:
		return
	case p.pausedUntil > s.now && !told:
		s.again(it, p.pausedUntil)
		return
	case !peers || !q.up:
	case !told && s.unheard(observer, subject) <= s.now: // it is back
		return
	case s.Detector != protocol.UnreliableDetector:
		return
	}
	if q.suspectedBy == nil {
		q.suspectedBy = make([]bool, s.cfg.N)
		s.faults.suspected = append(s.faults.suspected, subject)
	}
	if peers && q.suspectedBy[observer] {
		return
	}
	q.suspectedBy[observer] = true
	s.suspects(observer, subject)
	if !peers {
		if a := s.faults.apart[s.between(observer, subject)]; a != nil && a.lapsed {
			s.push(max(s.now, a.until)+s.detectorDelay(), restore, subject, observer)
		}
		return
	}
	switch until := s.unheard(observer, subject); {
	case !q.up:
	case until > s.now:
		s.push(until+s.detectorDelay(), restore, observer, subject)
	case s.cfg.Detect != Silent:
		s.push(s.now+int64(s.cfg.Detect), restore, observer, subject)
	}
}

// suspects tells a member what its detector says now: suspicion is a level.
func (s *engine) suspects(member, client uint32) {
	s.logVerb(scenario.Suspect, member, client, "")
	s.input(member, protocol.NewSuspect(protocol.ID(client)))
}

// restore begins a new lease of a client at a member, ends the suspicion of a member that is up, or
// tells of a new life of one. That of a lease that has lapsed waits for the new lease.
func (s *engine) restore(it item) {
	observer, subject := it.to, it.slot
	by, k := s.procs[subject].suspectedBy, observer
	if !s.Peers { // who is suspected hears of its end
		by, k = s.procs[observer].suspectedBy, subject
	}
	suspected := by != nil && by[k]
	a := s.faults.apart[s.between(observer, subject)]
	again := it.key&(1<<kindBits-1) == restore
	if !s.isUp(observer) || !s.isUp(subject) || again && !suspected || !again && a != nil && a.lapsed {
		return
	}
	until := s.unheard(observer, subject)
	if s.Detector == protocol.LeaseDetector {
		until = s.meet(observer, subject)
	}
	if until > s.now {
		s.again(it, until)
		return
	}
	if suspected {
		by[k] = false
	}
	if again && a != nil {
		*a = separation{began: s.seq}
	}
	s.restored(observer, subject)
}

// lost reports whether a message that is due now was sent in a session that has
// ended, or between two of them.
func (s *engine) lost(from uint32, it item) bool {
	a := s.faults.apart[s.between(from, it.to)]
	return a != nil && (a.lapsed || it.key>>kindBits <= a.began)
}

// restored tells a process of a lease, or of a member that is there.
func (s *engine) restored(client, member uint32) {
	s.logVerb(scenario.Restore, client, member, "")
	s.input(client, protocol.NewRestore(protocol.ID(member), s.procs[member].incarnation))
}

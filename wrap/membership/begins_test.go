package membership

import (
	"fmt"
	"slices"
	"testing"

	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/algo/tokengme"
	"github.com/poundlock/poundlock/protocol"
)

// of is process i of a story.
func (s *story[M]) of(i protocol.ID) *Process[M] { return s.procs[i].(*Process[M]) }

// sent is how many messages of a kind are under way from a process.
func (s *story[M]) sent(from protocol.ID, kind uint8) (k int) {
	for _, l := range s.mail {
		if l.from == from && l.f.Kind == kind {
			k++
		}
	}
	return k
}

// tells hands i a frame from j.
func (s *story[M]) tells(j, i protocol.ID, f Frame[M]) {
	s.step(i, protocol.Input{Kind: protocol.Receive, From: j}, f)
}

// claim says that something is not as it should be.
func claim(format string, args ...any) string {
	return "claim by story, " + fmt.Sprintf(format, args...)
}

// apart: all of them lose all sessions.
func (s *story[M]) apart() {
	for i := range protocol.ID(s.c.N) {
		for j := range protocol.ID(s.c.N) {
			if i != j {
				s.lapse(i, j)
			}
		}
	}
	for i := range protocol.ID(s.c.N) {
		for j := range protocol.ID(s.c.N) {
			if i != j {
				s.end(i, j)
			}
		}
	}
	s.mail = nil
}

// comes: a new life of i begins, and has sessions with these.
func (s *story[M]) comes(i protocol.ID, with ...protocol.ID) {
	s.begin(i, 2)
	for j := range protocol.ID(s.c.N) {
		if j != i {
			s.end(i, j)
		}
	}
	for _, j := range with {
		s.meet(i, j)
	}
}

// breaks: the session of i and j breaks.
func (s *story[M]) breaks(i, j protocol.ID) {
	s.lapse(i, j)
	s.lapse(j, i)
	s.end(i, j)
	s.end(j, i)
}

// Of two that join from outside both have done so before the others are asked.
func askedEarly() string {
	s := tell(suzukikasami.Algorithm, 5, 1)
	s.crashes(3)
	s.rest()
	s.crashes(4)
	s.get(1, 0, Notify)
	s.get(2, 0, Notify)
	s.comes(3, 0, 1, 2)
	s.comes(4, 0, 1, 2, 3)
	s.get(3, 0, Join)
	s.get(4, 0, Join)
	s.get(0, 1, Restart)
	s.get(0, 2, Restart)
	s.get(1, 0, Done)
	s.get(2, 0, Done)
	s.newest(0, 3, Restart)
	s.get(4, 3, Join)
	s.get(3, 0, Done)
	if s.sent(3, Done) > 0 || !s.of(3).active {
		return claim("the first one does not join")
	}
	for _, early := range []protocol.ID{1, 2} {
		if s.get(0, early, Restart); s.sent(early, Done) > 0 {
			return claim("#%d is asked before both have joined", early)
		}
	}
	s.newest(0, 4, Restart)
	s.get(3, 4, Join)
	if s.get(4, 0, Done); s.sent(0, Restart) == 0 {
		return claim("the others are not asked after those who joined")
	}
	if s.rest(); !s.of(0).linked.has(4) {
		return claim("who joined is not in")
	}
	return s.fault
}

// Only the coordinator begins, and it does not say JOIN.
func oneBegins() string {
	s := tell(suzukikasami.Algorithm, 5, 1)
	s.apart()
	for i := range protocol.ID(5) {
		for j := range i {
			s.meet(j, i)
		}
	}
	if k := s.sent(0, Join); k > 0 {
		return claim("the coordinator says JOIN to %d", k)
	}
	for i := range protocol.ID(5) {
		for j := range protocol.ID(5) {
			s.get(i, j, Join)
		}
	}
	for i := range protocol.ID(4) {
		if k := s.sent(i+1, Restart); k > 0 {
			return claim("#%d begins, too", i+1)
		}
	}
	if s.rest(); s.of(0).linked != upTo(5) {
		return claim("not all are in")
	}
	return ""
}

// A coordinator that is in no instance takes in who comes before the others have answered; one
// that is in an instance waits for them.
func latecomer() string {
	s := tell(suzukikasami.Algorithm, 5, 1)
	s.apart()
	s.meet(0, 1)
	s.meet(0, 2)
	s.meet(1, 2)
	s.get(1, 0, Join)
	s.get(2, 0, Join)
	first := s.of(0).lead.epoch
	s.meet(0, 4)
	if s.breaks(0, 4); s.of(0).lead.epoch != first {
		return claim("those who join are asked again though nothing has changed")
	}
	s.meet(0, 3)
	s.meet(1, 3)
	s.meet(2, 3)
	if s.get(3, 0, Join); s.of(0).lead.members != upTo(4) || s.of(0).lead.epoch == first {
		return claim("who comes late is not taken in: %v", s.of(0).lead.members)
	}
	s.rest()
	s.crashes(2)
	s.get(1, 0, Notify)
	s.get(3, 0, Notify)
	begun := s.of(0).lead.epoch
	s.comes(4, 0, 1, 3)
	if s.get(4, 0, Join); s.of(0).lead.epoch != begun {
		return claim("a restart is given up for who would like to join")
	}
	s.rest()
	if s.of(0).linked != upTo(5).without(2) {
		return claim("who would like to join is not taken in later: %v", s.of(0).linked)
	}
	return ""
}

// Who passes by without joining costs nothing.
func passerBy() string {
	s := tell(suzukikasami.Algorithm, 5, 1)
	s.crashes(4)
	s.rest()
	s.comes(4, 0, 1, 2, 3)
	s.crashes(4)
	if len(s.mail) > 0 {
		return claim("somebody tells: %v", s.alg.Text(s.mail[0].f))
	}
	s.crashes(0)
	s.rest()
	s.comes(0, 1, 2, 3)
	for i := range protocol.ID(3) {
		s.get(i+1, 0, Notify)
	}
	begun := s.of(0).lead.epoch
	s.meet(0, 4)
	s.breaks(0, 4)
	if s.of(0).lead.epoch != begun || begun == (protocol.Epoch{}) {
		return claim("the instance is given up: %v, was %v", s.of(0).lead.epoch, begun)
	}
	return ""
}

// A coordinator whose RESTART a member refuses, which joined something newer, forgets it; a process that is
// no member refuses nothing. It begins anew when the member has said where it is.
func refused() string {
	s := tell(suzukikasami.Algorithm, 3, 1)
	s.crashes(2)
	s.get(1, 0, Notify)
	begun, newer := s.of(0).lead.epoch, protocol.Epoch{Round: 5, Leader: 1}
	s.restore(0, 2)
	s.tells(2, 0, Frame[suzukikasami.Message]{Kind: Notify, Epoch: newer, Note: &Note{}})
	if s.of(0).lead.epoch != begun {
		return claim("who is no member refuses a RESTART")
	}
	s.lapse(0, 2)
	s.end(0, 2)
	s.tells(1, 0, Frame[suzukikasami.Message]{Kind: Notify, Epoch: newer, Note: &Note{}})
	if s.of(0).lead.epoch == begun {
		return claim("a RESTART that is refused is waited for")
	}
	n := &Note{Number: 9, Set: upTo(3), Since: []uint64{1, 0, 0}}
	s.tells(1, 0, Frame[suzukikasami.Message]{Kind: Notify, Epoch: newer, Note: n})
	if got := s.of(0).lead.epoch; got.Round != 6 {
		return claim("after an instance of round 5 that of %v begins", got)
	}
	return ""
}

// A process that is asked for an instance older than its own says so.
func refuses() string {
	s := tell(suzukikasami.Algorithm, 3, 1)
	old := &Note{Set: upTo(3)}
	s.tells(0, 1, Frame[suzukikasami.Message]{Kind: Restart, Note: old})
	if s.sent(1, Notify) != 1 || s.mail[0].f.Note.Number > 0 {
		return claim("an old RESTART is not refused")
	}
	return ""
}

// A member that has joined something else since its DONE is none any more.
func wentOn() string {
	s := tell(suzukikasami.Algorithm, 3, 1)
	s.crashes(2)
	s.rest()
	newer := protocol.Epoch{Round: 5, Leader: 1}
	n := &Note{Number: 9, Set: upTo(2), Since: []uint64{1, 0, 0}}
	s.tells(1, 0, Frame[suzukikasami.Message]{Kind: Notify, Epoch: newer, Note: n})
	if s.sent(0, Restart) == 0 {
		return claim("who went on to another instance is not asked back")
	}
	return ""
}

// A process that is asked to leave its instance does when its user is outside, and no other instance.
func leaves() string {
	ask := func(s *story[suzukikasami.Message], round uint64) {
		s.tells(0, 1, Frame[suzukikasami.Message]{Kind: Notify, Epoch: protocol.Epoch{Round: round}, Note: &Note{Old: true}})
	}
	s := tell(suzukikasami.Algorithm, 3, 1)
	if ask(s, 7); !s.of(1).active {
		return claim("it leaves another instance than it was asked to")
	}
	s.try(1, "")
	s.get(1, 0, Inner)
	s.get(0, 1, Inner)
	ask(s, 1)
	ask(s, 7)
	if s.users[1] != protocol.InCrit {
		return claim("who is to leave is ejected")
	}
	if s.exit(1); s.of(1).active || s.sent(1, Join) != 2 {
		return claim("it does not leave")
	}
	number := s.of(1).number
	if ask(s, 1); s.of(1).number != number {
		return claim("who has left leaves again")
	}
	return ""
}

// A process that joins another instance instead does not leave that.
func leavesNot() string {
	s := tell(suzukikasami.Algorithm, 3, 1)
	s.try(1, "")
	s.get(1, 0, Inner)
	s.get(0, 1, Inner)
	s.tells(0, 1, Frame[suzukikasami.Message]{Kind: Notify, Epoch: protocol.Epoch{Round: 1}, Note: &Note{Old: true}})
	s.crashes(2)
	s.get(1, 0, Notify)
	s.get(0, 1, Restart)
	if s.exit(1); !s.of(1).active || s.of(1).epoch.Round != 2 {
		return claim("who was to leave an instance leaves the next")
	}
	return ""
}

// A coordinator that left its instance begins another one.
func leaderLeaves() string {
	s := tell(suzukikasami.Algorithm, 3, 1)
	s.tells(1, 0, Frame[suzukikasami.Message]{Kind: Notify, Epoch: protocol.Epoch{Round: 1}, Note: &Note{Old: true}})
	if s.sent(0, Restart) != 2 {
		return claim("a coordinator that left does not begin")
	}
	return ""
}

// strangers is a coordinator of five in no instance that was told of instances with these members.
func strangers(members ...set) (*Process[suzukikasami.Message], set) {
	p := Wrap(suzukikasami.Algorithm).New(0, protocol.Config{N: 5}).(*Process[suzukikasami.Message])
	inside := set{}
	for i, m := range members {
		p.peers[i+1].said = &status{number: 1, members: m, since: make([]uint64, 5)}
		inside = inside.with(protocol.ID(i + 1))
	}
	return p, inside
}

// sendsAway: who lacks most of the others is asked to leave, once.
func sendsAway() string {
	most := only(2).with(3).with(4)
	p, inside := strangers(only(1), most, most.without(2), most)
	var out protocol.Out[Frame[suzukikasami.Message]]
	for range 2 {
		if !p.sendAway(inside, &out) {
			return claim("strangers do not show")
		}
	}
	if len(out.Effects) != 1 || out.Effects[0].To != 1 {
		return claim("asked to leave are %v", out.Effects)
	}
	return ""
}

// Of members whose sessions broke for good, one goes on without those who lack most of the
// others, and revokes each session once.
func cliques() string {
	s := tell(suzukikasami.Algorithm, 5, 1)
	s.breaks(1, 2)
	s.breaks(1, 3)
	s.deliver(func(l letter[suzukikasami.Message]) bool { return l.to == 0 })
	if got := s.of(0).lead.members; got != upTo(5).without(1) {
		return claim("without the sessions of 1 with 2 and 3, %v are asked", got)
	}
	for i := range protocol.ID(3) {
		s.get(0, i+2, Restart)
	}
	s.breaks(3, 4)
	s.deliver(func(l letter[suzukikasami.Message]) bool { return l.to == 0 })
	slices.SortFunc(s.revokes, func(a, b [2]protocol.ID) int { return int(a[0]*5 + a[1] - b[0]*5 - b[1]) })
	if len(s.revokes) != len(slices.Compact(slices.Clone(s.revokes))) || len(s.revokes) == 0 {
		return claim("revoked are %v", s.revokes)
	}
	s = tell(suzukikasami.Algorithm, 5, 1)
	s.breaks(3, 4)
	s.rest()
	if got := s.of(0).members; got.has(3) && got.has(4) || !s.of(0).linked.has(1) {
		return claim("3 and 4 have no session, and %v are members", got)
	}
	return ""
}

// A RESTART that another one overtook does not replace it.
func overtaken() string {
	s := tell(suzukikasami.Algorithm, 5, 1)
	for i := range s.procs {
		s.of(protocol.ID(i)).phases = 2
	}
	s.try(1, "") // it joins nothing while it is inside
	s.get(1, 0, Inner)
	s.get(0, 1, Inner)
	for _, victim := range []protocol.ID{4, 3} {
		s.crashes(victim)
		for i := range protocol.ID(2) {
			s.get(i+1, 0, Notify)
			s.get(3, 0, Notify)
		}
	}
	if s.sent(0, Restart) < 4 {
		return claim("#0 does not begin twice")
	}
	s.newest(0, 1, Restart)
	s.get(0, 1, Restart)
	if s.exit(1); s.of(1).epoch != s.of(0).lead.epoch {
		return claim("an older RESTART replaces a newer one")
	}
	return ""
}

// A coordinator that comes from outside begins where an instance has lost somebody.
func lostOne() string {
	s := tell(suzukikasami.Algorithm, 5, 1)
	s.crashes(0)
	s.rest()
	s.crashes(4)
	s.comes(0, 1, 2, 3)
	if s.rest(); s.of(0).linked != upTo(4) {
		return claim("an instance that has lost #4 is left alone: %v", s.of(0).linked)
	}
	return ""
}

// A process that has a lesser process in reach than the sender of a RESTART does not answer it.
func heeds() string {
	s := tell(suzukikasami.Algorithm, 4, 1)
	s.crashes(0)
	s.get(2, 1, Notify)
	s.get(3, 1, Notify)
	s.comes(0, 2)
	if s.get(1, 2, Restart); s.of(2).epoch.Round != 1 {
		return claim("#2 follows #1 though #0 is there")
	}
	return ""
}

// phased: with one phase old requests are not served, with less than three nobody is told to
// resume; and with more than one they are.
func phased() string {
	for phases := range int64(3) {
		s := tell(suzukikasami.Algorithm, 3, 1)
		for i := range s.procs {
			s.of(protocol.ID(i)).phases = phases + 1
		}
		s.try(1, "")
		s.crashes(2)
		var sent [kinds]int
		groups := 0
		s.deliver(func(l letter[suzukikasami.Message]) bool {
			if sent[l.f.Kind]++; l.f.Kind == Done {
				groups++
			}
			return true
		})
		if (sent[Start] > 0) != (phases > 0) || (sent[Resume] > 0) != (phases > 1) && s.users[1] != protocol.InCrit {
			return claim("with %d phases %v are sent", phases+1, sent)
		}
	}
	return ""
}

// optioned: the algorithm has its options in each instance.
func optioned() string {
	want := map[string]int64{"selection": 1, "admission": 1}
	p := Wrap(tokengme.Algorithm).New(0, protocol.Config{N: 3, Options: want}).(*Process[tokengme.Message])
	if got := p.config(2).Options; fmt.Sprint(got) != fmt.Sprint(want) {
		return claim("the algorithm has the options %v, want %v", got, want)
	}
	return ""
}

// A process that is asked together with one that joins from outside needs to have had its JOIN, in the session
// that they have.
func joinOfBefore() string {
	s := tell(suzukikasami.Algorithm, 3, 1)
	s.crashes(2)
	s.rest()
	s.comes(2, 0, 1)
	s.get(2, 0, Join)
	s.get(0, 2, Restart)
	s.breaks(1, 2)
	s.meet(1, 2)
	n := &Note{Number: 9, Set: upTo(3), Since: []uint64{1, 1, 0}}
	s.tells(2, 1, Frame[suzukikasami.Message]{Kind: Notify, Epoch: s.of(2).epoch, Note: n})
	s.get(2, 0, Done)
	if s.sent(0, Restart) != 1 {
		return claim("#1 is not asked")
	}
	if s.get(0, 1, Restart); s.of(1).epoch == s.of(2).epoch {
		return claim("#1 joins with #2, and their session broke since that joined")
	}
	return ""
}

// Frames that wait while a coordinator does are those of its members: that somebody else comes and
// goes takes none away.
func keptThrough() string {
	s := tell(suzukikasami.Algorithm, 4, 1)
	for i := range s.procs {
		s.of(protocol.ID(i)).phases = 1
	}
	s.crashes(3)
	s.get(1, 0, Notify)
	s.get(2, 0, Notify)
	s.get(0, 1, Restart)
	s.get(1, 0, Done)
	s.try(1, "")
	s.get(1, 0, Inner)
	if len(s.of(0).later) != 1 {
		return claim("#0 does not keep the request of #1 while it waits for #2")
	}
	s.comes(3, 0)
	s.breaks(0, 3)
	if s.rest(); s.users[1] != protocol.InCrit {
		return claim("a request is lost when somebody else goes")
	}
	return s.fault
}

// A process that was asked to join, and has not because a member is gone, is asked again where there is no
// majority without it.
func askedAgain() string {
	s := tell(suzukikasami.Algorithm, 4, 1)
	s.breaks(1, 2)
	s.breaks(1, 3)
	s.breaks(2, 3)
	for i := range protocol.ID(3) {
		s.get(i+1, 0, Join)
	}
	if !s.of(0).active || s.of(1).active || s.of(2).active {
		return claim("not only the coordinator has a majority")
	}
	s.crashes(3)
	s.meet(1, 2)
	if s.rest(); s.of(0).members != upTo(3) {
		return claim("who did not answer is not asked again: #0 is in an instance of %v", s.of(0).members)
	}
	return s.fault
}

// A process that was asked to join with one that is gone is asked again when those who went on without it have joined,
// also where its coordinator does so last.
func askedLater() string {
	for _, last := range []bool{false, true} {
		s := tell(suzukikasami.Algorithm, 5, 1)
		s.crashes(4)
		s.rest()
		s.comes(4, 0, 1, 2, 3)
		s.get(4, 0, Join)
		if s.sent(0, Restart) != 1 {
			return claim("#4 is not asked")
		}
		s.mail = slices.DeleteFunc(s.mail, func(l letter[suzukikasami.Message]) bool { return l.to == 3 || l.from == 3 })
		for _, j := range []protocol.ID{0, 1, 2, 4} {
			if s.lapse(j, 3); j > 0 || !last {
				s.end(j, 3)
			}
		}
		if s.rest(); last {
			s.end(0, 3)
			s.rest()
		}
		if s.of(0).linked != upTo(5).without(3) {
			return claim("who could not answer is not asked again: #0 goes on with %v", s.of(0).linked)
		}
	}
	return ""
}

// A coordinator that joins the instance of another one ends its own: whoever joins that late does not have it resumed.
func leadsNoMore() string {
	s := tell(suzukikasami.Algorithm, 3, 1)
	s.crashes(0)
	s.get(2, 1, Notify)
	s.get(1, 2, Restart)
	s.comes(0, 1, 2)
	s.get(1, 0, Notify)
	s.get(2, 0, Notify)
	s.get(0, 1, Restart)
	if s.sent(1, Done) != 1 || s.sent(2, Done) != 1 {
		return claim("#1 does not join the instance of #0, or #2 not that of #1")
	}
	if s.get(2, 1, Done); s.sent(1, Resume) > 0 {
		return claim("#1 resumes an instance of #0")
	}
	if s.rest(); s.of(0).linked != upTo(3) {
		return claim("#0 goes on with %v", s.of(0).linked)
	}
	return s.fault
}

// #1 and #3 have each joined, late, an instance of the same coordinator that does not have the other
// one. So neither says that their session breaks once more, which the newest instance is in vain for.
func strangersJoin() string {
	s := tell(suzukikasami.Algorithm, 7, 1)
	hears := func(from ...protocol.ID) (begun protocol.Epoch) {
		for _, j := range from {
			s.get(j, 0, Notify)
		}
		return s.of(0).lead.epoch
	}
	asks := func(j protocol.ID, e protocol.Epoch) {
		s.deliver(func(l letter[suzukikasami.Message]) bool {
			return l.from == 0 && l.to == j && l.f.Kind == Restart && l.f.Epoch == e
		})
		s.get(j, 0, Done)
	}
	for i := range s.procs {
		s.of(protocol.ID(i)).phases = 2
	}
	s.try(0, "") // it is inside, and joins nothing
	s.renew(0, 1)
	s.renew(0, 3)
	hears(1, 3)
	s.breaks(1, 2)
	s.breaks(1, 3)
	without1 := hears(1, 2, 3)
	if got := s.of(0).lead.members; got != upTo(7).without(1) {
		return claim("without the sessions of #1 with #2 and #3, %v are asked", got)
	}
	s.meet(1, 2)
	s.renew(5, 6)
	without3 := hears(1, 2, 5, 6)
	if got := s.of(0).lead.members; got != upTo(7).without(3) {
		return claim("without the session of #1 and #3, %v are asked", got)
	}
	s.meet(1, 3)
	s.renew(5, 6)
	if hears(1, 3, 5, 6); s.of(0).lead.members != upTo(7) {
		return claim("of all, %v are asked", s.of(0).lead.members)
	}
	asks(3, without1)
	asks(1, without3)
	if s.of(1).epoch != without3 || s.of(3).epoch != without1 {
		return claim("#1 is in %v and #3 in %v", s.of(1).epoch, s.of(3).epoch)
	}
	s.renew(1, 3)
	s.exit(0)
	for j := range upTo(7).without(0).all {
		s.newest(0, j, Restart)
	}
	s.try(1, "")
	s.try(3, "")
	for range 2 {
		s.rest()
		s.exit(1)
		s.exit(3)
	}
	if s.users[1] != protocol.InRem || s.users[3] != protocol.InRem || s.of(0).linked != upTo(7) {
		return claim("members that do not know each other are waited for by %v", s.of(0).linked)
	}
	return s.fault
}

var begins = []func() string{
	askedEarly, oneBegins, latecomer, passerBy, refused, refuses, wentOn, leaves, leavesNot, leaderLeaves, sendsAway, cliques, overtaken,
	lostOne, heeds, phased, optioned, joinOfBefore, keptThrough, askedAgain, askedLater, leadsNoMore, strangersJoin,
}

func TestBegins(t *testing.T) {
	for i, tell := range begins {
		if fault := tell(); fault != "" {
			t.Errorf("%d: %s", i, fault)
		}
	}
}

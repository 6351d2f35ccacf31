package sigma

import (
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// The timers of a process.
const (
	checkTimer  uint32 = iota + 1 // server: line 48
	forgetTimer                   // server: forget the recorded token
	retryTimer                    // client: look at the answers again, or begin again: see Client.onRetry
	tokenTimer                    // client: its clock reaches the token that it wants to record
	clockTimer                    // client: its clock passes its last timestamp
)

// Multiples of the message delay T.
const (
	maxBackOff  = 8        // between two rounds of YIELD and INQUIRY
	safetyDelay = 400      // before a client that has a support stops trusting that somebody will enter
	maxSafety   = 64 * 400 // the same at most, as it doubles with each time
)

// longestWait is until a client looks again whether its clock is past its last timestamp, ns.
const longestWait = int64(10e9)

// onceRounds is how many times a TryOnce polls or begins again before it gives up.
const onceRounds = 1

// A response is what a server said last: whom it supports.
type response struct {
	request
	serial   uint64 // of a support of ours, else 0
	token    uint64 // with a support: the largest token that others had recorded
	group    uint64 // of the owners
	promised bool   // serial and token are of the support that we will have when the request ends
	early    bool   // it was promised, the request has ended, and the server has not said so yet
}

// A view is what a client knows about one server.
type view struct {
	inc uint64 // the incarnation that we trust, 0 while we have no lease there
	// given is the last support of this epoch that we gave back; it never decreases
	// within an epoch, which makes late YIELDs and RESPONSEs harmless.
	given    uint64
	response      // zero: no answer; a support stays known inside
	draining bool // this life of it said that it supports nobody; for an epoch
	refused  bool // it finds our timestamp too far from its clock
	asked    bool // it was sent SETTOKEN
	recorded bool // it recorded our token
}

// supports reports whether we count the server.
func (s *view) supports() bool { return s.serial != 0 && !s.promised }

func (s *view) answered() bool { return s.request != request{} }

// awaited reports whether the server has yet to answer. One without a lease is not
// expected to, and one that drains has.
func (s *view) awaited() bool { return !s.answered() && s.gives() }

// gives reports whether the server may support somebody new.
func (s *view) gives() bool { return s.inc != 0 && !s.draining }

// Client is a client with all extensions. The methods that begin with the
// numbers of lines follow Figure 1, as LiteralClient does.
type Client struct {
	id     protocol.ID
	m      int
	delay  int64
	eps    int64
	ahead  uint64 // the least head start of all its tries
	thrift uint64 // servers that all its tries ask later, a bit each

	section protocol.Section
	fence   uint8
	refresh uint8           // 0: not
	promise uint8           // not 0: promises are made
	once    bool            // a TryOnce
	resting bool            // what the answers call for waits for retryTimer
	relaxed bool            // it came down to its group: see protocol.Downgrade
	groups  protocol.Groups // of which it wants one, or the one that it is in; "": to be alone
	head    uint64          // its head start, ns
	time    uint64          // the timestamp of the current request; 0 in the remainder, and in the pause between two epochs of a try
	last    uint64          // no timestamp was larger, except one that was refused, and no token of a grant; 0 once the clock is past it
	clock   uint64          // of a server that refused our own in this try; 0: none

	servers []view
	later   uint64 // those that this epoch has not asked yet, a bit each
	rounds  uint64 // of a TryOnce: splits resolved, and epochs begun again
	token   uint64 // the token being recorded, 0: none; inside, where promises are made, that of the grant

	direct *gossip // nil without the option of that name

	backOff  int64 // ns; scales retryTimer only, so not part of the state
	patience int64 // the same
}

func newClient(id protocol.ID, c protocol.Config) *Client {
	return &Client{
		id:      id,
		m:       int(info.Option(c, "quorum")),
		delay:   info.Option(c, "delay"),
		fence:   uint8(info.Option(c, "fence")),
		eps:     info.Option(c, "eps"),
		refresh: uint8(info.Option(c, "refresh")),
		ahead:   uint64(info.Option(c, "head")) * uint64((id-protocol.ID(c.N))%2),
		thrift:  thrift(id, c),
		promise: uint8(info.Option(c, "promise")),
		direct:  newGossip(c),
		servers: make([]view, c.N),
	}
}

// Step implements protocol.Process.
func (c *Client) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	switch ev.Kind {
	case protocol.Start:
	case protocol.Try:
		c.try(ev, out)
	case protocol.Downgrade:
		c.downgrade(protocol.Group(ev.Data), out)
	case protocol.Exit, protocol.Cancel:
		c.leave(c.short(), ev.Now, out)
	case protocol.Suspect:
		c.onSuspect(int(ev.From), ev.Now, out)
	case protocol.Restore:
		c.onIncarnation(int(ev.From), ev.Arg, ev.Now, out)
	case protocol.Timeout:
		c.onTimeout(ev, out)
	case protocol.Receive:
		c.onMessage(ev, out)
	default:
		panic("sigma: unexpected event at a client")
	}
}

func (c *Client) onMessage(ev protocol.Event[Message], out *protocol.Out[Message]) {
	j, m := int(ev.From), ev.Msg
	switch m.Kind {
	case Response:
		if m.Stage == Wanted && m.Time == c.time {
			out.Wanted()
		}
		c.onResponse(j, m, ev.Now, out)
	case Check: // lines 24-25
		if c.time != m.Time {
			out.Send(ev.From, Message{Kind: Release, Time: m.Time})
		}
	case Recorded:
		if c.section == protocol.InTry && c.time == m.Time && c.token == m.Token {
			c.servers[j].recorded = true
			c.enterIfRecorded(out)
		}
	case Refused:
		if c.time == m.Time && c.section == protocol.InTry {
			c.onRefused(j, m.Token, ev.Now, out)
		}
	case Recall:
		c.onRecall(j, m, ev.Now, out)
	case Promise:
		c.onPromise(j, m, ev.Now, out)
	case Transfer:
		c.onTransfer(j, m)
	case Release:
		c.onRelease(request{ev.From, m.Time}, m, ev.Now, out)
	case Draining:
		c.onDraining(j, m.Inc, ev.Now, out)
	default:
		panic("sigma: a client received " + messages[m.Kind].Name)
	}
}

func (c *Client) onTimeout(ev protocol.Event[Message], out *protocol.Out[Message]) {
	switch ev.Timer {
	case retryTimer:
		c.onRetry(ev.Now, out)
	case tokenTimer:
		c.record(out)
	case clockTimer:
		c.forget(ev.Now, out)
	default:
		panic("sigma: unexpected timer at a client")
	}
}

// try is lines 1-5.
func (c *Client) try(ev protocol.Event[Message], out *protocol.Out[Message]) {
	once, head := protocol.HeadStart(ev.Arg)
	c.section, c.once, c.head = protocol.InTry, once, max(head, c.ahead)
	c.groups = shortlist(protocol.Groups(ev.Data))
	c.backOff, c.patience = c.delay, safetyDelay*c.delay
	c.request(protocol.Later(ev.Arg)|c.thrift, ev.Now, out)
}

// request begins an epoch, by our own clock or by the one of a server that refused it. Some servers may be asked later.
func (c *Client) request(later uint64, now int64, out *protocol.Out[Message]) {
	if c.clock != 0 {
		now = int64(c.clock)
	}
	c.time = fresh(c.last, now)
	c.last = c.time
	c.askFirst(later, out)
}

// onResponse is lines 7-18.
func (c *Client) onResponse(j int, m Message, now int64, out *protocol.Out[Message]) {
	if now == 0 {
		// Lamport's rule. With a clock, merging would only let one fast clock
		// drag everybody's along.
		c.last = max(c.last, m.Time)
	}
	s := &c.servers[j]
	if s.inc == 0 || m.Inc < s.inc {
		return // from before we lost our lease, or from a life that is over
	}
	c.onIncarnation(j, m.Inc, now, out)
	if c.time == 0 || c.section == protocol.InLost || s.draining {
		return
	}
	r := response{request: request{m.Owner, m.Time}, serial: m.Serial, token: m.Token, group: m.Group}
	if c.relaxed && !s.supports() { // perhaps to a REQUEST that says that it is alone
		out.Send(protocol.ID(j), c.lower())
	}
	if r.request == c.me() && !c.takes(m.Group) { // to a request from before it chose one of several
		s.given = max(s.given, m.Serial)
		out.Send(protocol.ID(j), c.lower())
		return
	}
	if c.section == protocol.InCrit && r.request != c.me() {
		return
	}
	if s.early && r.request == s.request && r.serial == s.serial {
		s.response = r
		c.supported(s, now, out)
		return
	}
	if s.supports() { // line 8
		return
	}
	if m.Owner == c.id && m.Time != c.time { // line 8
		return
	}
	if r.request == c.me() && m.Serial <= s.given {
		return // a support that we gave back already
	}
	if r.request == s.request {
		return // nothing new, and less than a PROMISE
	}
	before := s.response
	s.response = r // line 9
	if c.section != protocol.InTry {
		s.token, s.group = 0, 0
		return
	}
	if before.serial == m.Serial { // of a promise
		c.follow(before.request, m)
	}
	c.supported(s, now, out)
}

// supported goes on after an answer, which may be a support.
func (c *Client) supported(s *view, now int64, out *protocol.Out[Message]) {
	if s.supports() && !c.resting && c.later == 0 {
		if s.given == 0 {
			c.patience = safetyDelay * c.delay
		}
		out.SetTimer(retryTimer, c.patience, 0)
	}
	c.evaluate(now, out)
}

// evaluate is lines 10-18, with one change: the paper polls the servers again as
// soon as m of them have answered, so that waiting clients flood them for as long
// as somebody is inside. Only a client that has a support to give back polls here,
// and only when the answers prove that nobody has a quorum and still do after a
// pause, for the answers of a hand-over do not arrive all at once. Otherwise it
// rests until a server tells it that it supports it now, which gives nothing away.
func (c *Client) evaluate(now int64, out *protocol.Out[Message]) {
	k := c.supporters()
	if k >= c.m { // line 11
		c.win(false, now, out)
		return
	}
	if c.later != 0 && c.lacks() {
		c.askRest(out)
	}
	split := func() bool { return k > 0 && c.split() } // asked last: it looks at all servers, several times
	switch {
	case c.once && !c.hopes() && !split():
		c.leave(c.short(), now, out)
	case !c.resting && split():
		c.resting = true
		out.SetTimer(retryTimer, c.backOff, c.backOff)
	}
}

// onRetry does what had to wait. Without a reason of its own it is the safety of a
// client that has a support, and no longer trusts that somebody will enter: what it knows
// of the other servers may be old, and one that has a lease for us may never answer. So
// it polls, more and more rarely. A client that nobody supports need not: while nobody is
// inside, each server supports somebody who does.
func (c *Client) onRetry(now int64, out *protocol.Out[Message]) {
	if c.askRest(out) {
		return
	}
	rested := c.resting
	c.resting = false
	switch {
	case c.time == 0:
		c.request(0, now, out)
	case c.supporters() == 0:
	case c.supporters() >= c.m:
		c.win(true, now, out)
	case c.answers() < c.m || rested && !c.split():
		if !rested {
			c.reask(out)
		}
		out.SetTimer(retryTimer, c.patience, 0)
	case c.groups.Len() > 1:
		// Before it gives anything back: two groups at different servers would be given back, and taken again, for ever.
		c.narrow(true, out)
		out.SetTimer(retryTimer, c.patience, 0)
		c.evaluate(now, out)
	case c.rounds == onceRounds:
		c.leave(c.short(), now, out)
	default:
		c.countRound()
		if rested {
			c.backOff = min(2*c.backOff, maxBackOff*c.delay)
		} else {
			c.reask(out)
		}
		c.resolve(out)
	}
}

// reask ends a rest, and doubles the next one. Servers that refused us are asked again: nobody
// tells us that a clock has been set right.
func (c *Client) reask(out *protocol.Out[Message]) {
	c.patience = min(2*c.patience, maxSafety*c.delay)
	for j := range c.servers {
		if s := &c.servers[j]; s.refused && s.inc != 0 {
			s.refused = false
			c.rerequest(j, Again, out)
		}
	}
}

// countRound counts what a TryOnce does a few times only.
func (c *Client) countRound() {
	if c.once {
		c.rounds++
	}
}

// split reports whether the answers prove that nobody has a quorum. One that shares has to have its own: where only
// its group can have one, somebody who does not share came first at other servers, and closed the session to it.
func (c *Client) split() bool {
	switch {
	case c.answers() < c.m:
		return false // line 10
	case c.wants() != (choice{}):
		return !c.hopes()
	}
	var room [8]request // for as many sides without an allocation: even of many servers most name the same few
	known := room[:0]
	for j := range c.servers {
		p := c.servers[j].side()
		switch {
		case slices.Contains(known, p):
		case c.possible(p):
			return false
		default:
			known = append(known, p)
		}
	}
	return true
}

// possible reports whether a quorum may support a side: the servers that say so and
// those that have yet to answer.
func (c *Client) possible(p request) bool {
	return c.count(func(s *view) bool {
		return s.side() == p || s.awaited() && !(s.refused && p == c.me())
	}) >= c.m
}

// resolve is lines 14-18 without line 16: to a server that names a later request
// Figure 1 sends the REQUEST again, for it may have forgotten us. We ask it again when we
// hear of its new life, in onIncarnation, and not before: a second REQUEST to the same life
// may be overtaken by our own RELEASE, and then leaves a support for nobody behind.
func (c *Client) resolve(out *protocol.Out[Message]) {
	for j := range c.servers {
		switch s := &c.servers[j]; {
		case !s.answered():
		case s.request == c.me():
			c.yield(j, s.serial, out)
		default:
			out.Send(protocol.ID(j), Message{Kind: Inquiry, Time: c.time})
		}
		c.servers[j].response = response{}
	}
}

// rerequest asks server j again. It says which support we gave back last, so
// that the server numbers the next one above it.
func (c *Client) rerequest(j int, s Stage, out *protocol.Out[Message]) {
	out.Send(protocol.ID(j), c.ask(Message{Serial: c.servers[j].given, Stage: s}))
}

// ask is a REQUEST that says beside what m does.
func (c *Client) ask(m Message) Message {
	groups := c.wants()
	m.Kind, m.Time, m.After = Request, c.time, c.head
	m.Group, m.Token, m.Inc = groups[0], groups[1], groups[2]
	return m
}

// yield gives back a support of server j.
func (c *Client) yield(j int, serial uint64, out *protocol.Out[Message]) {
	out.Send(protocol.ID(j), Message{Kind: Yield, Time: c.time, Serial: serial, After: c.head})
	c.servers[j].given = serial
}

// onRefused: server j does not record our token, or finds our timestamp too far
// from its clock. When too few others are left we ask by its clock: if no more than
// n-m servers have a wrong one, sooner or later by one that is right.
func (c *Client) onRefused(j int, clock uint64, now int64, out *protocol.Out[Message]) {
	if c.servers[j].asked {
		// Perhaps its clock is behind, and so is our own: a timestamp above the token leaves
		// that server out.
		c.last = max(c.last, c.token)
		c.again(now, out)
		return
	}
	c.servers[j].refused = true
	c.askRest(out)
	if c.count(func(s *view) bool { return s.refused }) > len(c.servers)-c.m {
		c.clock, c.last = clock, 0 // nobody was let in with what they refuse
		c.again(now, out)
	}
}

// again gives up the current epoch and begins another one after a pause.
func (c *Client) again(now int64, out *protocol.Out[Message]) {
	if c.rounds == onceRounds {
		c.leave(c.short(), now, out)
		return
	}
	c.countRound()
	c.release(out)
	c.section = protocol.InTry
	out.SetTimer(retryTimer, c.backOff, c.backOff)
	c.backOff = min(2*c.backOff, safetyDelay*c.delay)
}

// short is why a client has not got in, as far as servers are the cause.
func (c *Client) short() protocol.Reason {
	if c.section == protocol.InTry && c.count((*view).gives) < c.m {
		return protocol.TooFew
	}
	return 0
}

// leave is lines 19-23, and giving up while trying.
func (c *Client) leave(why protocol.Reason, now int64, out *protocol.Out[Message]) {
	c.release(out)
	c.section, c.once, c.rounds, c.clock = protocol.InRem, false, 0, 0
	c.relaxed = false
	c.groups, c.head = "", 0
	out.StopTimer(retryTimer)
	out.StopTimer(tokenTimer)
	out.GiveUp(why)
	c.forget(now, out)
}

// release ends the epoch.
func (c *Client) release(out *protocol.Out[Message]) {
	if c.time != 0 {
		m := c.farewell()
		c.toAsked(m, out)
		c.hand(m, out)
	}
	c.time, c.token, c.resting, c.later = 0, 0, false, 0
	c.direct.left()
	for j := range c.servers {
		c.servers[j] = view{inc: c.servers[j].inc}
	}
}

// forget drops the last timestamp once the clock is past it: then the next one
// is larger anyway, and the state equals the initial one. It looks again at times,
// because a clock that is behind may be set right.
func (c *Client) forget(now int64, out *protocol.Out[Message]) {
	switch {
	case now == 0:
	case uint64(now) > c.last:
		c.last = 0
	default:
		out.SetTimer(clockTimer, min(int64(c.last)-now+1, longestWait), 0)
	}
}

func (c *Client) enter(token uint64, out *protocol.Out[Message]) {
	c.section, c.once, c.rounds = protocol.InCrit, false, 0
	c.token, c.resting = 0, false
	c.direct.entered()
	if c.promise != 0 {
		c.token = token
	}
	for j := range c.servers {
		s := &c.servers[j]
		s.refused, s.asked, s.recorded, s.early, s.token, s.group = false, false, false, false, 0, 0
		if !s.supports() {
			s.response = response{}
		}
	}
	if c.later == 0 {
		out.StopTimer(retryTimer)
	}
	out.StopTimer(tokenTimer)
	out.CritIn(protocol.Group(c.groups), token)
}

func (c *Client) me() request { return request{c.id, c.time} }

// count is how many servers are so.
func (c *Client) count(so func(*view) bool) (k int) {
	for j := range c.servers {
		if so(&c.servers[j]) {
			k++
		}
	}
	return k
}

// supporters is how many servers support us in one group.
func (c *Client) supporters() int {
	_, k := c.favourite()
	return k
}

func (c *Client) answers() int { return c.count((*view).answered) }

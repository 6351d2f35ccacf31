package history

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// The reference judges a history by the definitions, all pairs at a time.
type reference struct {
	b        Bounds
	sections []part
	tries    []attempt
	counts   map[string]uint64
	last     int64
}

// A part is a section between two leases, or up to a downgrade or from there, or a whole one.
type part struct {
	user     string
	group    string
	token    uint64
	from, to int64 // to is 0 while it lasts
	until    int64 // 0: no lease
	renewed  bool  // it is not the first part
	over     bool  // its lease was over when the user heard that it is inside
}

// An attempt waits from at to end, which is 0 if it does so for ever.
type attempt struct {
	user, group string
	at, end     int64
	crit        bool
}

func refer(events []Event, b Bounds) (map[string]uint64, uint64) {
	r := &reference{b: b, counts: map[string]uint64{}}
	state := map[string]string{}
	group := map[string]string{}
	inside, trying := map[string]int{}, map[string]int{} // indices
	next := map[string]map[string]string{                // where an event leads to
		"":        {Try: Try},
		Try:       {Crit: Crit, Rem: "", Crash: ""},
		Crit:      {Exit: Exit, Ejected: Ejected, Renew: Crit, Downgrade: Crit, Crash: ""},
		Ejected:   {Exit: Exit, Crash: ""},
		Exit:      {Rem: "", Crash: ""},
		"nowhere": nil,
	}
	for _, e := range events {
		r.last = e.At
		to, ok := next[state[e.User]][e.Do]
		if e.Do == Crash && state[e.User] == "" {
			continue
		}
		if !ok {
			r.counts[WellFormed]++
			continue
		}
		was := state[e.User]
		state[e.User] = to
		switch {
		case e.Do == Try:
			group[e.User] = e.Group
			trying[e.User] = len(r.tries)
			r.tries = append(r.tries, attempt{user: e.User, group: e.Group, at: e.At})
		case was == Try:
			a := &r.tries[trying[e.User]]
			a.end, a.crit = e.At, to == Crit
			if a.crit {
				inside[e.User] = len(r.sections)
				r.sections = append(r.sections, part{
					user: e.User, group: group[e.User], token: uint64(e.Token), from: e.At, until: e.Until,
					over: e.Until != 0 && e.Until <= e.At,
				})
			}
		case e.Do == Renew:
			s := &r.sections[inside[e.User]]
			if s.until == 0 || e.At <= s.until {
				s.until = e.Until
				break
			}
			s.to = s.until
			again := *s
			again.from, again.to, again.until, again.renewed, again.over = e.At, 0, e.Until, true, false
			again.group = group[e.User]
			inside[e.User] = len(r.sections)
			r.sections = append(r.sections, again)
		case e.Do == Downgrade:
			group[e.User] = e.Group
			s := &r.sections[inside[e.User]]
			if s.until != 0 && s.until < e.At {
				break
			}
			s.to = e.At
			rest := *s
			rest.from, rest.to, rest.renewed, rest.group = e.At, 0, true, e.Group
			inside[e.User] = len(r.sections)
			r.sections = append(r.sections, rest)
		case was == Crit:
			s := &r.sections[inside[e.User]]
			s.to = e.At
			if s.until != 0 {
				s.to = min(s.to, s.until)
			}
		}
	}
	for i := range r.sections { // leases that ended before the history did
		if s := &r.sections[i]; s.to == 0 && s.until != 0 && s.until < r.last {
			s.to = s.until
		}
	}
	r.sections = slices.DeleteFunc(r.sections, func(s part) bool { return s.over })
	uncertain := r.exclusion()
	r.tokens()
	r.waits()
	return r.counts, uncertain
}

func (r *reference) conflict(a, b string) bool { return a == "" || a != b }

func (r *reference) exclusion() (uncertain uint64) {
	end := func(s part) int64 {
		switch {
		case s.to != 0:
			return s.to
		case r.b.Slack == 0:
			return maxTime
		}
		return r.last
	}
	for i, s := range r.sections {
		for _, o := range r.sections[:i] {
			if s.user == o.user || !r.conflict(s.group, o.group) {
				continue
			}
			d := r.b.Slack
			first, second := end(s)-o.from, end(o)-s.from
			switch {
			case first > d && second > d:
				r.counts[Exclusion]++
			case first > -d && second > -d:
				uncertain++
			}
			if s.token != 0 && s.token == o.token && (o.to == 0 || o.to+d >= s.from) {
				r.counts[Reuse]++
			}
		}
	}
	return uncertain
}

func (r *reference) tokens() {
	for i, s := range r.sections {
		if s.token == 0 || s.renewed {
			continue
		}
		largest := uint64(0)
		for _, o := range r.sections[:i] {
			if o.to != 0 && r.conflict(s.group, o.group) && (o.user == s.user || o.to+r.b.Slack < s.from) {
				largest = max(largest, o.token)
			}
		}
		if s.token < largest {
			r.counts[Inversion]++
		} else if s.token == largest {
			r.counts[Reuse]++
		}
	}
}

func (r *reference) waits() {
	starved := map[int]bool{}
	var entries []attempt
	for _, a := range r.tries {
		if a.crit {
			entries = append(entries, a)
		}
	}
	slices.SortFunc(entries, func(a, b attempt) int { return int(a.end - b.end) })
	for k, v := range entries {
		overtaken := false
		for i, u := range r.tries {
			if u.user == v.user || u.at > v.end || u.end != 0 && u.end < v.end {
				continue
			}
			bypassed := uint64(0)
			for _, w := range entries[:k+1] {
				if w.end > u.at {
					bypassed++
				}
			}
			long := r.b.Wait > 0 && v.end-u.at > r.b.Wait+r.b.Slack
			if (long || r.b.Bypass > 0 && bypassed > r.b.Bypass) && !starved[i] {
				starved[i] = true
				r.counts[Starvation]++
			}
			if r.b.Order > 0 && v.at-u.at > r.b.Order+r.b.Slack && r.conflict(v.group, u.group) {
				overtaken = true
			}
		}
		if overtaken {
			r.counts[Order]++
		}
	}
}

// randomHistory is what some users do at a lock that hardly locks. Events have times of
// their own, and so have the ends of leases.
func randomHistory(rng *rand.Rand, length int) (events []Event) {
	const users = 5
	state := make([]string, users)
	var at int64
	token := uint64(1)
	inside := 0
	for range length {
		at += 2 * (1 + rng.Int64N(8))
		u := rng.IntN(users)
		e := Event{At: at, User: string(rune('a' + u))}
		what := rng.IntN(100)
		switch {
		case what < 3:
			e.Do = []string{Try, Crit, Exit, Rem, Ejected, Renew}[rng.IntN(6)]
		case what < 5:
			e.Do = Crash
		case state[u] == "":
			e.Do = Try
		case state[u] == Try && what < 12:
			e.Do = Rem
		case state[u] == Try && (inside == 0 || rng.IntN(8) == 0):
			e.Do = Crit
		case state[u] == Try:
			continue
		case state[u] == Crit && what < 30:
			e.Do = Renew
		case state[u] == Crit && what < 35:
			e.Do = Ejected
		case state[u] == Crit && what < 45:
			e.Do = Downgrade
		case state[u] == Crit || state[u] == Ejected:
			e.Do = Exit
		default:
			e.Do = Rem
		}
		switch e.Do {
		case Try:
			e.Group = []string{"", "", "g", "g", "h"}[rng.IntN(5)]
		case Downgrade:
			e.Group = []string{"g", "h"}[rng.IntN(2)]
		case Crit:
			token = uint64(max(1, int64(token)+rng.Int64N(8)-1))
			e.Token = Token(token)
			if rng.IntN(2) == 0 {
				e.Until = max(1, at-9+2*rng.Int64N(40))
			}
		case Renew:
			e.Until = at + 1 + 2*rng.Int64N(40)
		}
		events = append(events, e)
		// What becomes of the user: the reference for what is well-formed is elsewhere.
		was := state[u]
		switch {
		case e.Do == Crash:
			state[u] = ""
		case e.Do == Try && was == "", e.Do == Crit && was == Try, e.Do == Ejected && was == Crit,
			e.Do == Exit && (was == Crit || was == Ejected):
			state[u] = e.Do
		case e.Do == Rem && (was == Try || was == Exit):
			state[u] = ""
		}
		if was != Crit && state[u] == Crit {
			inside++
		} else if was == Crit && state[u] != Crit {
			inside--
		}
	}
	return events
}

// judged is what a Judge says of the events, each changed on its way.
func judged(events []Event, b Bounds, change func(e *Event) bool) (map[string]uint64, uint64) {
	j := NewJudge(b)
	for _, e := range events {
		if change == nil || change(&e) {
			j.Event(0, e)
		}
	}
	r := j.Report()
	counts := map[string]uint64{}
	for _, v := range r.Verdicts {
		if v.Count > 0 {
			counts[v.Property] = v.Count
		}
	}
	return counts, r.Uncertain
}

func randomBounds(rng *rand.Rand) Bounds {
	b := Bounds{Wait: rng.Int64N(120), Bypass: rng.Uint64N(6), Order: rng.Int64N(60)}
	if rng.IntN(3) > 0 {
		b.Slack = rng.Int64N(40)
	}
	return b
}

// The monitor, which sees each event once and forgets, and the reference, which knows
// all of them, count the same.
func TestReference(t *testing.T) {
	found := map[string]uint64{}
	var doubts uint64
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 0))
		events, b := randomHistory(rng, 10+rng.IntN(120)), randomBounds(rng)
		got, uncertain := judged(events, b, nil)
		want, unsure := refer(events, b)
		if !maps.Equal(got, want) || uncertain != unsure {
			t.Fatalf("seed %d, %+v: %v and %d uncertain, want %v and %d\n%s",
				seed, b, got, uncertain, want, unsure, describe(events))
		}
		for p, k := range want {
			found[p] += k
		}
		doubts += unsure
	}
	t.Logf("found %v, and %d uncertain overlaps", found, doubts)
	if len(found) != 6 || doubts == 0 {
		t.Error("some property was never violated: the test cannot fail")
	}
}

// A judge that is wrong in one point differs from the reference.
func TestReferenceNoticesBrokenJudges(t *testing.T) {
	for name, broken := range map[string]struct {
		bounds func(b *Bounds)
		event  func(e *Event) bool
	}{
		"a clock is trusted too much":   {bounds: func(b *Bounds) { b.Slack = 0 }},
		"a clock is trusted too little": {bounds: func(b *Bounds) { b.Slack++ }},
		"a wait is one too long":        {bounds: func(b *Bounds) { b.Wait += 2 }},
		"one more may overtake":         {bounds: func(b *Bounds) { b.Bypass++ }},
		"order is lax":                  {bounds: func(b *Bounds) { b.Order += 2 }},
		"leases are forgotten":          {event: func(e *Event) bool { e.Until = 0; return e.Do != Renew }},
		"groups are forgotten":          {event: func(e *Event) bool { e.Group = ""; return true }},
		"crashes are forgotten":         {event: func(e *Event) bool { return e.Do != Crash }},
		"downgrades are forgotten":      {event: func(e *Event) bool { return e.Do != Downgrade }},
		"losses are forgotten":          {event: func(e *Event) bool { return e.Do != Ejected }},
		"tokens lose a bit":             {event: func(e *Event) bool { e.Token &^= 1; return true }},
	} {
		differs := 0
		for seed := range uint64(100) {
			rng := rand.New(rand.NewPCG(seed, 0))
			events, b := randomHistory(rng, 130), randomBounds(rng)
			want, unsure := refer(events, b)
			if broken.bounds != nil {
				broken.bounds(&b)
			}
			got, uncertain := judged(events, b, broken.event)
			if !maps.Equal(got, want) || uncertain != unsure {
				differs++
			}
		}
		if differs == 0 {
			t.Errorf("%s: nobody notices", name)
		}
		t.Logf("%s: noticed in %d of 100 histories", name, differs)
	}
}

func describe(events []Event) (text string) {
	for _, e := range events {
		text += fmt.Sprintf("%d %s %s token %d until %d group %q\n", e.At, e.User, e.Do, e.Token, e.Until, e.Group)
	}
	return text
}

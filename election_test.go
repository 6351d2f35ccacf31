package poundlock

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/internal/control"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// asked is when the candidates of these tests have asked for support: b later than a.
func asked(candidate byte) uint64 { return 1e18 + uint64(candidate) }

// support makes the servers answer as Sigma's do that have had one request: of whom,
// one letter each, and upper case if that one has chosen a later token than the time
// of its request, as it does when the servers know of a later one. - had none, and !
// does not answer. The label of a candidate is its letter.
func (f *fakeNode) support(text string) {
	answers := make([]*control.Page, len(text))
	for i := range text {
		letter := strings.ToLower(text[i : i+1])
		if letter == "!" {
			continue
		}
		answers[i] = &control.Page{}
		h := supportedBy(protocol.ID(i), letter[0], text[i] != letter[0])
		if h == nil {
			continue
		}
		answers[i].Locks = []control.Lock{{Holder: &control.Request{
			ID: idText(h.User), Label: letter, Request: node.RequestID(h.User, uint64(h.Since)), Token: h.Token,
		}}}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = func(server protocol.ID) *control.Page { return answers[server] }
}

// holders are whom the servers support that answer.
func (f *fakeNode) holders() (all [][]control.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range protocol.ID(4) {
		if p := f.answer(id); p != nil && len(p.Locks) > 0 {
			all = append(all, p.Locks[0].Holders())
		}
	}
	return all
}

// supportedBy is what a server of Sigma says of a candidate that has asked it, nil of
// none.
func supportedBy(id protocol.ID, candidate byte, later bool) *protocol.Request {
	if candidate == '-' {
		return nil
	}
	const now = int64(1e18 + 1e6)
	p := sigma.Algorithm.New(id, slots.System(4, 50*time.Millisecond))
	var out protocol.Out[sigma.Message]
	step := func(e protocol.Event[sigma.Message]) {
		e.Now = now
		p.Step(e, &out)
	}
	step(protocol.Event[sigma.Message]{Input: protocol.Input{Kind: protocol.Start, Arg: uint64(now - int64(time.Hour))}})
	from := protocol.Input{Kind: protocol.Receive, From: protocol.ID(candidate)}
	step(protocol.Event[sigma.Message]{Input: from, Msg: sigma.Message{Kind: sigma.Request, Time: asked(candidate)}})
	if later {
		step(protocol.Event[sigma.Message]{Input: from, Msg: sigma.Message{
			Kind: sigma.SetToken, Time: asked(candidate), Serial: 1, Token: asked(candidate) + 1000,
		}})
	}
	known, _ := protocol.As[protocol.Inspector](p)
	return &known.Inspect().Holders[0]
}

// led is the leader that a letter stands for: - is nobody.
func led(letter byte) Leader {
	switch {
	case letter == '-':
		return Leader{}
	case letter < 'a':
		l := led(letter + 'a' - 'A')
		l.Token += 1000
		return l
	}
	return Leader{ID: idText(protocol.ID(letter)), Label: string(letter), Token: asked(letter)}
}

func TestLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		e := c.Election("e")
		for _, x := range []struct {
			last, servers, want string
			looks               int
		}{
			{"-", "aaaa", "a", 1},
			{"-", "aaa-", "a", 1},
			{"-", "aaab", "a", 1},
			{"-", "aaa!", "a", 1},
			{"-", "----", "-", 1},
			{"-", "---!", "-", 1},
			{"-", "abc-", "-", 1}, // one support is not enough to stay inside
			{"-", "Abbb", "b", 1},
			{"-", "aab-", "a", 2}, // still so when it is asked again
			{"-", "aabc", "a", 2}, // that a server has its token does not say that it got in
			{"-", "AA--", "A", 2},
			{"-", "aabb", "-", 2}, // one of them, but which?
			{"-", "AAbb", "-", 2},
			{"a", "aab-", "a", 1}, // it led, and nobody else can have got in
			{"a", "aabb", "a", 1},
			{"a", "AAbb", "A", 1},
			{"a", "a---", "-", 1},
			{"b", "aab-", "a", 2},
			{"b", "aaa-", "a", 1},
		} {
			f.support(x.servers)
			looks := 0
			f.mu.Lock()
			answer := f.answer
			f.answer = func(server protocol.ID) *control.Page {
				if server == 0 { // which answers in all of them
					looks++
				}
				return answer(server)
			}
			f.mu.Unlock()
			last := candidate{Holder: Holder{Leader: led(x.last[0])}}
			if x.last != "-" {
				last.request = node.RequestID(protocol.ID(x.last[0]), asked(x.last[0]))
			}
			l, err := e.ask(t.Context(), last)
			if err != nil {
				t.Fatal(err)
			}
			if want := led(x.want[0]); l.Leader != want || looks != x.looks {
				t.Errorf("last %q, servers %s: %+v after %d looks, want %+v after %d", x.last, x.servers, l.Leader, looks, want, x.looks)
			}
		}

		// It led, but that was in another request.
		f.support("aabc")
		l, sure := c.shards[0].inside(f.holders(), []candidate{{Holder{Leader: led('a')}, node.RequestID('a', 1)}})
		if len(l) != 1 || l[0].Leader != led('a') || sure {
			t.Errorf("leader %+v, sure %v, for what it has led before", l, sure)
		}

		// One that is about to yield does not lead.
		for _, servers := range []string{"aab-", "aabc", "AAbc"} {
			f.support(servers)
			time.AfterFunc(5*time.Millisecond, func() { f.support("abbb") })
			if l, err := e.Leader(t.Context()); err != nil || l != led('b') {
				t.Errorf("%s, then b: leader %+v, %v", servers, l, err)
			}
		}
		f.support("aabb") // and of two, one may
		time.AfterFunc(5*time.Millisecond, func() { f.support("AAab") })
		if l, err := e.Leader(t.Context()); err != nil || l != led('A') {
			t.Errorf("leader %+v, %v", l, err)
		}

		f.support("aa!!")
		begin := time.Now()
		_, err := e.Leader(t.Context())
		wantIs(t, err, ErrNoQuorum)
		if d := time.Since(begin); d != 10*time.Second || !strings.Contains(err.Error(), "s3: no route") {
			t.Errorf("%v after %v", err, d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = e.Leader(ctx)
		wantIs(t, err, ErrNoQuorum, context.DeadlineExceeded)

		// Servers that come back within the time.
		time.AfterFunc(5*time.Second, func() { f.support("aaa!") })
		if l, err := e.Leader(t.Context()); err != nil || l != led('a') {
			t.Errorf("leader %+v, %v", l, err)
		}
		for _, name := range []string{"", "a\nb"} {
			if _, err := c.Election(name).Leader(t.Context()); err == nil {
				t.Errorf("name %q is accepted", name)
			}
		}
		time.AfterFunc(time.Second, func() { c.Close() })
		f.support("!!!!")
		_, err = e.Leader(t.Context())
		wantIs(t, err, ErrClosed)
	})
}

// shared makes the servers answer that they support those of a group, one word of letters each: - is nobody. Upper
// case is another group.
func (f *fakeNode) shared(text string) {
	words := strings.Fields(text)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = func(server protocol.ID) *control.Page {
		var l control.Lock
		for k, letter := range []byte(strings.Trim(words[server], "-")) {
			group, id := "readers", protocol.ID(letter)
			if letter < 'a' {
				group = "tea"
			}
			r := control.Request{ID: idText(id), Request: node.RequestID(id, asked(letter)), Group: group, HeldMS: int64(1 + server)}
			if k == 0 {
				l.Holder = &r
			} else {
				l.Sharers = append(l.Sharers, r)
			}
		}
		return &control.Page{Status: control.Status{Locks: []control.Lock{l}}}
	}
}

// TestHolders: all who share a lock, of whom a quorum of servers supports each, or enough to keep others out again and again.
func TestHolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		for _, x := range []struct{ servers, then, want string }{
			{"abc abc abc abc", "", "abc"},
			{"- - - -", "", ""},
			{"cab ab ab b", "", "ab"},                   // c has too few for any meaning
			{"abc abc ab ab", "abc abc ab ab", "abc"},   // c lost some, and still has them at the second look
			{"abc abc ab ab", "ab ab ab ab", "ab"},      // c was about to leave
			{"abc abc ab ab", "abd abd abc abc", "abc"}, // d comes in meanwhile, and c has been seen before
			{"abc abc ab ab", "abd abd abe abe", "ab"},  // those who come and go are left out
			{"ab ab - -", "ab ab - -", "ab"},            // servers have restarted
			{"ab ab AB AB", "ab ab AB AB", ""},          // who of them?
			{"ab ab AB AB", "ab ab ab AB", "ab"},        // one of the groups has given way
			{"ab b b b", "", "b"},
			{"a a b b", "a a b b", "ab"},
		} {
			f.shared(x.servers)
			if x.then != "" {
				time.AfterFunc(5*time.Millisecond, func() { f.shared(x.then) })
			}
			all, err := c.Holders(t.Context(), "book")
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, h := range all {
				id, err := strconv.ParseUint(h.ID, 16, 64)
				if err != nil || h.Held == 0 || h.Group != "readers" {
					t.Errorf("%+v, %v", h, err)
				}
				got += string(rune(id))
			}
			if got != x.want {
				t.Errorf("servers %s, then %q: %q, want %q", x.servers, x.then, got, x.want)
			}
			h, err := c.Holder(t.Context(), "book")
			if err != nil || len(all) > 0 && h != all[0] || len(all) == 0 && h != (Holder{}) {
				t.Errorf("servers %s, then %q: one is %+v, %v", x.servers, x.then, h, err)
			}
			time.Sleep(time.Second)
		}
		f.support("aaaa")
		if all, err := c.Holders(t.Context(), "book"); err != nil || len(all) != 1 || all[0].Leader != led('a') || all[0].Group != "" {
			t.Errorf("alone: %+v, %v", all, err)
		}
		f.support("!!!!")
		_, err := c.Holders(t.Context(), "book")
		wantIs(t, err, ErrNoQuorum)
	})
}

// TestObserve: what is seen while the loop is busy is the last change only, an
// error comes once, and the end with the context, or with the client.
func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		at := func(after time.Duration, servers string) {
			time.AfterFunc(after, func() { f.support(servers) })
		}
		f.support("----")
		at(10*time.Second, "aaaa")
		at(20*time.Second, "AAAA") // the same term: only the token is larger
		at(25*time.Second, "dddd")
		at(30*time.Second, "bbbb") // while the loop is busy
		at(35*time.Second, "----")
		at(39*time.Second, "cccc")
		at(60*time.Second, "!!!!")
		at(90*time.Second, "cccc")
		var seen []string
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		begin := time.Now()
		for l, err := range c.Election("e").Observe(ctx) {
			text := l.Label
			if l.Token > asked('z') {
				text += "+later"
			}
			if err != nil {
				wantIs(t, err, ErrNoQuorum)
				text = "unknown"
			}
			seen = append(seen, text)
			if text == "d" {
				time.Sleep(14500 * time.Millisecond)
			}
			if time.Since(begin) > 90*time.Second {
				time.AfterFunc(10*time.Second, cancel)
			}
		}
		if got := strings.Join(seen, " "); got != " a d c unknown c" {
			t.Errorf("saw %q", got)
		}

		for _, err := range c.Election("").Observe(t.Context()) {
			if err == nil || errors.Is(err, ErrNoQuorum) {
				t.Errorf("a name that is none: %v", err)
			}
		}
		f.support("!!!!") // an error has come when the client is closed
		time.AfterFunc(time.Minute, func() { c.Close() })
		var last error
		for _, err := range c.Election("e").Observe(t.Context()) {
			last = err
		}
		wantIs(t, last, ErrClosed)
		for range c.Election("e").Observe(t.Context()) {
			break
		}
	})
}

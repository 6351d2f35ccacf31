package tokengme

import (
	"fmt"
	"math"
	"slices"

	"github.com/poundlock/poundlock/lab"
)

// A claim is a sentence of the paper about its measurements.
type claim struct {
	section string
	text    string
	judge
}

// The figures of TokenGME against RA2, of them those with the base delay, and those of
// selection.
var (
	six   = []string{"fig6a", "fig6b", "fig6c", "fig6d", "fig6e", "fig6f"}
	still = []string{"fig6a", "fig6c", "fig6d", "fig6e", "fig6f"}
	seven = []string{"fig7a", "fig7b"}
)

// stated are the claims with numbers or directions, in the order of the paper. What the text
// says twice is there once.
var stated = []claim{
	{"abstract, 4.1", "waiting falls by as much as 50 %", best(waiting, -50, six...)},
	{"4.1", "m = 2: RA2 waits around 10 % less", swapped(by("fig6a", waiting, 2, -10))},
	{"4.1", "m = 2: RA2 has around 5 % more throughput", swapped(by("fig6a", throughput, 2, 5))},
	{"4.1", "n < 10: RA2 has smaller messages; ratio 2.22 at n = 5", value("fig6f", size, 5, 2, 2.44)},
	{"4.1", "the ratio of sizes is 0.01 at n = 500", value("fig6f", size, 500, 0.005, 0.015)},
	{"4.1", "the ratio of sizes is around 0.05 in all other cases", between(size, 0.035, 0.065, six[:5]...)},
	{"4.1", "smaller messages in all other cases", everywhere(size, false, small, six...)},
	{"4.1", "less waiting in all other cases", everywhere(waiting, false, small, six...)},
	{"4.1", "more throughput in all other cases", everywhere(throughput, true, small, six...)},
	{"4.1", "the ratio of waiting falls as the inter-request delay grows", trend("fig6b", waiting, false)},
	{"4.1", "it falls as the critical section gets shorter", trend("fig6c", waiting, true)},
	{"4.1", "it falls as the channel delay grows", trend("fig6d", waiting, false)},
	{"4.1", "it falls as access gets more uniform", trend("fig6e", waiting, true)},
	{"4.1", "it falls as processes get more", trend("fig6f", waiting, false)},
	{"4.1", "the ratio of throughput grows as the critical section gets shorter", trend("fig6c", throughput, false)},
	{"4.1", "it grows as the channel delay grows", trend("fig6d", throughput, true)},
	{"4.1", "it grows as access gets more uniform", trend("fig6e", throughput, false)},
	{"4.1", "it grows as processes get more", trend("fig6f", throughput, true)},
	{"4.1", "it tends to 1 as the inter-request delay grows", value("fig6b", throughput, 4000, 0.98, 1.02)},
	{
		"4.1", "slightly fewer messages in almost all cases but over the inter-request delay",
		between(messages, 0.9, 1, still...),
	},
	{"4.1", "messages fall by as much as 45 % as the inter-request delay grows", best(messages, -45, "fig6b")},
	{"4.2", "priority waits less than FIFO", everywhere(waiting, false, nil, seven...)},
	{"4.2", "priority has more throughput than FIFO", everywhere(throughput, true, nil, seven...)},
	{"4.2", "its ratio of waiting falls as processes get more", trend("fig7a", waiting, false)},
	{"4.2", "that of throughput grows as processes get more", trend("fig7a", throughput, true)},
	{"4.2", "its ratio of waiting falls as access gets less uniform", trend("fig7b", waiting, false)},
	{"4.2", "that of throughput grows as access gets less uniform", trend("fig7b", throughput, true)},
	{"4.2", "waiting falls by as much as 24 % as processes get more", best(waiting, -24, "fig7a")},
	{"4.2", "and throughput grows by as much as 22 %", best(throughput, 22, "fig7a")},
	{"4.2", "waiting falls by as much as 18 % as access gets less uniform", best(waiting, -18, "fig7b")},
	{"4.2", "and throughput grows by as much as 14 %", best(throughput, 14, "fig7b")},
	{
		"6", "waiting falls by as much as 35 % and throughput grows by as much as 39 % at the same time",
		together(-35, 39, six...),
	},
}

// judged are the claims whose figures were tried.
func (s study) judged() []claim {
	tried := func(name string) bool {
		return slices.ContainsFunc(s.figures, func(f figure) bool { return f.name == name })
	}
	return slices.DeleteFunc(slices.Clone(stated), func(c claim) bool {
		return slices.ContainsFunc(c.figures, func(name string) bool { return !tried(name) })
	})
}

func (s study) claims() lab.Table {
	t := lab.Table{
		Name:    "claims",
		Title:   "What the paper says, and what was found",
		Columns: lab.Columns("section", "claim", "ours", "verdict", "depends=depends most on"),
	}
	for _, c := range s.judged() {
		f := c.find(s.own())
		t.Add(c.section, c.text, f.ours, f.verdict, s.depends(c))
	}
	return t
}

// A shift is what a choice makes of the ratio at a place.
type shift struct {
	choice choice
	at     place
	lab.Estimate
}

func (s shift) String() string { return fmt.Sprintf("%s, at %s", percent(s.Estimate), s.at) }

// farthest is the largest of those shifts that are no chance: that differ from 1 by more than an
// interval which holds for as many as were looked at, together. False where there is none.
func farthest(list []shift, looks int) (found shift, sure bool) {
	size := func(e lab.Estimate) float64 { return math.Abs(math.Log(e.Mean)) }
	for _, s := range list {
		if s.N > 1 && !s.Among(looks).Covers(1) && (!sure || size(s.Estimate) > size(found.Estimate)) {
			found, sure = s, true
		}
	}
	return found, sure
}

// shifts are those that a choice makes at some places.
func (s study) shifts(c choice, places []place) (list []shift) {
	for _, p := range places {
		if e, known := s.change(p, c); known {
			list = append(list, shift{c, p, e})
		}
	}
	return list
}

// A claim is rejudged with a choice and without, at the same points and with the same
// seeds.
type rejudged struct {
	choice        choice
	without, with finding
}

// rejudge judges a claim with each choice, and says how many points are looked at in all.
func (s study) rejudge(c claim) (list []rejudged, looks int) {
	for _, choice := range s.find(c.figures[0]).choices() {
		r := rejudged{
			choice:  choice,
			without: c.find(evidence{study: s, choice: ours, beside: choice}),
			with:    c.find(evidence{study: s, choice: choice, beside: ours}),
		}
		if len(s.shifts(choice, r.without.rests)) == 0 {
			continue // it was not tried there, or is about something else
		}
		list, looks = append(list, r), looks+r.without.among
	}
	return list, looks
}

// depends says which of the choices that were tried changes most what a claim rests on.
func (s study) depends(c claim) string {
	tried, looks := s.rejudge(c)
	if tried == nil {
		return ""
	}
	var list []shift
	for _, r := range tried {
		list = append(list, s.shifts(r.choice, r.without.rests)...)
	}
	found, sure := farthest(list, looks)
	if !sure {
		return "none of those tried"
	}
	return fmt.Sprintf("%s: %s", found.choice.name, found)
}

// choices is the table of claims of which another choice makes something else. Its verdicts
// do not count.
func (s study) choices() lab.Table {
	t := lab.Table{
		Name:  "choices",
		Title: "Where another choice changes the verdict, at the same points and with the same seeds",
		Columns: lab.Columns(
			"section", "claim", "choice", "without=without it", "verdict_without=verdict", "found=with it",
			"otherwise=verdict", "change=changes the ratio by",
		),
	}
	for _, c := range s.judged() {
		tried, looks := s.rejudge(c)
		for _, r := range tried {
			if r.with.verdict == r.without.verdict {
				continue
			}
			// Where the choice moves nothing of what decides, chance makes the difference.
			if change, sure := farthest(s.shifts(r.choice, union(r.without.decides, r.with.decides)), looks); sure {
				t.Add(c.section, c.text, r.choice.name, r.without.ours, string(r.without.verdict),
					r.with.ours, string(r.with.verdict), change.String())
			}
		}
	}
	return t
}

func union(a, b []place) []place {
	list := slices.Clone(a)
	for _, p := range b {
		if !slices.ContainsFunc(list, p.equal) {
			list = append(list, p)
		}
	}
	return list
}

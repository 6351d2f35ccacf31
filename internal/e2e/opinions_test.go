package e2e

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/poundlock/poundlock/verify/history"
)

// randomHistory is what users do at a lock that mostly locks, and whose tokens mostly
// grow. Times differ. Some of the users may share it, in two groups.
func randomHistory(rng *rand.Rand, length int, groups bool) (events []history.Event) {
	const users = 5
	var do, in [users]string
	group := ""
	var at int64
	var token uint64
	inside := 0
	for range length {
		u := rng.IntN(users)
		at += 2 * (1 + rng.Int64N(5))
		e := history.Event{At: at, User: string(rune('a' + u)), Lock: "x"}
		switch {
		case do[u] == "" || do[u] == history.Rem || do[u] == history.Crash:
			e.Do = history.Try
			if groups {
				in[u] = []string{"", "g", "g", "h"}[rng.IntN(4)]
				e.Group = in[u]
			}
		case do[u] == history.Try && rng.IntN(10) == 0:
			e.Do = history.Rem
		case do[u] == history.Try && (inside == 0 || in[u] != "" && in[u] == group || rng.IntN(60) == 0):
			e.Do = history.Crit
			inside++
			if token += 1 + rng.Uint64N(3); rng.IntN(60) == 0 {
				token -= min(token-1, 4)
			}
			e.Token = history.Token(token)
			if shares := in[u] != "" && in[u] == group; shares && rng.IntN(3) == 0 {
				e.Token = history.Token(token - min(token-1, 3)) // smaller, of this group or of one before
			}
			group = in[u]
			if rng.IntN(3) == 0 {
				e.Until = at + 1 + 2*rng.Int64N(60)
			}
		case do[u] == history.Try:
			continue
		case do[u] == history.Crit:
			e.Do = []string{history.Exit, history.Exit, history.Ejected, history.Crash}[rng.IntN(4)]
			inside--
		case do[u] == history.Ejected:
			e.Do = history.Exit
		default:
			e.Do = history.Rem
		}
		do[u] = e.Do
		events = append(events, e)
	}
	for u := range users {
		at += 2
		events = append(events, history.Event{At: at, Do: history.Crash, User: string(rune('a' + u)), Lock: "x"})
	}
	return events
}

func accepts(t *testing.T, events []history.Event) (judge, second bool) {
	t.Helper()
	j := history.NewJudge(history.Bounds{})
	for _, e := range events {
		j.Event(0, e)
	}
	var h lockHistory
	h.Add(events)
	result := porcupine.CheckOperationsTimeout(lockModel, h.Locks["x"], time.Minute)
	if result == porcupine.Unknown {
		t.Fatal("not decided")
	}
	second = result == porcupine.Ok
	if half := first(h.Locks["x"], len(h.Locks["x"])/2+1); second && !porcupine.CheckOperations(lockModel, half) {
		t.Fatal("a history is accepted, and its beginning is not")
	}
	return j.Report().Accepted, second
}

// Two users are inside at once, or tokens do not grow, exactly if there is no order in
// which one after the other could have had the lock.
func TestOpinions(t *testing.T) {
	verdicts := map[bool]int{}
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 0))
		events := randomHistory(rng, 10+rng.IntN(100), seed%2 == 1)
		judge, second := accepts(t, events)
		if judge != second {
			t.Fatalf("seed %d: the judge says %v, porcupine %v\n%+v", seed, judge, second, events)
		}
		verdicts[judge]++
	}
	t.Logf("both accept %d histories and reject %d", verdicts[true], verdicts[false])
	if verdicts[true] < 100 || verdicts[false] < 100 {
		t.Error("one of the verdicts is rare: the test says little")
	}
}

// With what a broken judge would not see, the opinions differ.
func TestOpinionsDiffer(t *testing.T) {
	for name, change := range map[string]func(e *history.Event){
		"leases":   func(e *history.Event) { e.Until = 0 },
		"tokens":   func(e *history.Event) { e.Token = 0 },
		"overlaps": func(e *history.Event) { e.Group = map[bool]string{true: "g"}[e.Do == history.Crit] },
	} {
		differ := 0
		for seed := range uint64(300) {
			rng := rand.New(rand.NewPCG(seed, 0))
			events := randomHistory(rng, 100, false)
			_, second := accepts(t, events)
			for i := range events {
				change(&events[i])
			}
			if judge, _ := accepts(t, events); judge != second {
				differ++
			}
		}
		if differ == 0 {
			t.Errorf("nobody notices that the judge does not see %s", name)
		}
	}
}

// A process that was killed, one whose lease ended, and users of one name in two files.
func TestOperations(t *testing.T) {
	var h lockHistory
	h.Add([]history.Event{
		{At: 1, Do: history.Try, User: "a"},
		{At: 2, Do: history.Crit, User: "a", Token: 1, Until: 10},
		{At: 4, Do: history.Renew, User: "a", Until: 15},
		{At: 20, Do: history.Exit, User: "a"},
		{At: 30, Do: history.Rem, User: "a"},
		{At: 31, Do: history.Try, User: "a"},
		{At: 32, Do: history.Rem, User: "a"},
	})
	h.Add([]history.Event{{At: 3, Do: history.Try, User: "a"}, {At: 16, Do: history.Crit, User: "a", Token: 2}})
	want := []porcupine.Operation{
		{ClientId: 0, Input: acquisition{0, "", 1}, Call: 1, Return: 2},
		{ClientId: 1, Input: release{0}, Call: 15, Return: 30},
		{ClientId: 2, Input: acquisition{1, "", 2}, Call: 3, Return: 16},
		{ClientId: 3, Input: release{1}, Call: 16, Return: 16},
	}
	got := h.Locks[""]
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
}

func TestCounter(t *testing.T) {
	op := func(from, to int64, read int) porcupine.Operation {
		return porcupine.Operation{Call: from, Return: to, Output: incremented{read, read + 1}}
	}
	if !porcupine.CheckOperations(counterModel, []porcupine.Operation{op(1, 5, 0), op(2, 8, 1), op(9, 10, 2)}) {
		t.Error("increments one after the other are rejected")
	}
	if porcupine.CheckOperations(counterModel, []porcupine.Operation{op(1, 5, 0), op(2, 8, 0)}) {
		t.Error("a lost increment is accepted")
	}
}

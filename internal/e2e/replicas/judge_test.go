package replicas

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// A fate is what a user was told of one operation.
type fate struct {
	entry
	verdict      string // done, refused, or "" if nobody knows
	value        uint64
	call, answer int64
}

// fates are those of all operations, by name. A name that is called twice, or has two verdicts,
// is a mistake of the harness or of the API.
func fates(records []record) (map[string]*fate, []string) {
	all, faults := map[string]*fate{}, []string(nil)
	for _, r := range records {
		f := all[r.Op]
		switch r.What {
		case called:
			if f != nil {
				faults = append(faults, fmt.Sprintf("%s is called twice", r.Op))
			}
			all[r.Op] = &fate{entry: r.Entries[0], call: r.At, answer: math.MaxInt64}
		case done, refused:
			if f == nil || f.verdict != "" {
				faults = append(faults, fmt.Sprintf("%s has a verdict too many: %s", r.Op, r.What))
				continue
			}
			f.verdict, f.value, f.answer = r.What, r.Value, r.At
		}
	}
	return all, faults
}

// judged is all that is wrong with a run.
func judged(records []record, final []entry) []string {
	all, faults := fates(records)
	for _, list := range [][]string{untold(records), judge(all, final), opinion(all, final)} {
		faults = append(faults, list[:min(len(list), 10)]...)
	}
	return faults
}

// untold says whose operations were refused, as they are to who is ejected, before it was told that
// it is; and who had an operation executed after that. The records of one life are in its order.
func untold(records []record) (faults []string) {
	lost := map[string]bool{}
	for _, r := range records {
		switch r.What {
		case ejected:
			lost[r.Op] = true
		case done, refused:
			section, _ := split(r.Op)
			if told := lost[section]; told != (r.What == refused) {
				faults = append(faults, fmt.Sprintf("%s is %s, and its user was told of an ejection: %v", r.Op, r.What, told))
			}
		}
	}
	return faults
}

// judge says what is wrong with what users were told, by the ledger in the end.
func judge(all map[string]*fate, final []entry) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	counts, places := map[string]uint64{}, map[string]uint64{}
	for _, e := range final {
		counts[e.Key]++
		f := all[e.Op]
		switch {
		case f == nil || f.Key != e.Key:
			fault("%s is executed, and nobody has called it", e.Op)
		case places[e.Op] > 0:
			fault("%s is executed twice", e.Op)
		case f.verdict == refused:
			fault("%s is executed, and its user was told that it never will be", e.Op)
		case f.verdict == done && f.value != counts[e.Key]:
			fault("%s counted %d, and its user was told %d", e.Op, counts[e.Key], f.value)
		}
		places[e.Op] = counts[e.Key]
	}
	for name, f := range all {
		if f.verdict == done && places[name] == 0 {
			fault("%s is not executed, and its user was told that it is", name)
		}
	}
	return slices.Concat(faults, contiguous(final), precedence(all, final), torn(final))
}

// precedence says which operations come after others that were called when they had their outcome
// already. The object is one, whatever keys it has, and so is its order.
func precedence(all map[string]*fate, final []entry) (faults []string) {
	var last *fate // called last of those before
	for _, e := range final {
		f := all[e.Op]
		if f == nil {
			continue
		}
		if last != nil && f.answer < last.call {
			faults = append(faults, fmt.Sprintf("%s comes after %s, which was called later", e.Op, last.Op))
		}
		if last == nil || f.call > last.call {
			last = f
		}
	}
	return faults
}

// contiguous says which sections are divided by others, or have their operations in another order.
func contiguous(final []entry) (faults []string) {
	over := map[string]bool{}
	for k, e := range final {
		section, number := split(e.Op)
		if over[section] {
			faults = append(faults, fmt.Sprintf("%s comes after operations of another section", e.Op))
		}
		if k == 0 {
			continue
		}
		if before, last := split(final[k-1].Op); before != section {
			over[before] = true
		} else if last >= number {
			faults = append(faults, fmt.Sprintf("%s comes after %s", e.Op, final[k-1].Op))
		}
	}
	return faults
}

// torn says which operations that belong together were not executed together.
func torn(final []entry) (faults []string) {
	for k, e := range final {
		if name, is := strings.CutSuffix(e.Op, firstOfTwo); is && (k+1 == len(final) || final[k+1].Op != name+secondOfTwo) {
			faults = append(faults, fmt.Sprintf("%s is executed without what belongs to it", e.Op))
		}
		if name, is := strings.CutSuffix(e.Op, secondOfTwo); is && (k == 0 || final[k-1].Op != name+firstOfTwo) {
			faults = append(faults, fmt.Sprintf("%s is executed without what belongs to it", e.Op))
		}
	}
	return faults
}

// split is the section of an operation, and its number there.
func split(op string) (section, number string) {
	at := strings.LastIndexByte(op, '.')
	return op[:at], op[at+1:]
}

// counting is a counter that porcupine knows: an operation adds one, and says what it is then. A
// value of 0 is not known.
var counting = porcupine.Model{
	Init: func() any { return uint64(0) },
	Step: func(state, _, output any) (bool, any) {
		value := state.(uint64) + 1
		said := output.(uint64)
		return said == 0 || said == value, value
	},
}

// opinion is what porcupine rejects: the keys whose operations do not linearize. Operations of
// which nobody knows more count where the ledger has them, so that there are few to choose from.
func opinion(all map[string]*fate, final []entry) (faults []string) {
	executed := map[string]bool{}
	for _, e := range final {
		executed[e.Op] = true
	}
	histories := map[string][]porcupine.Operation{}
	for name, f := range all {
		if f.verdict == done || f.verdict == "" && executed[name] {
			h := histories[f.Key]
			histories[f.Key] = append(h, porcupine.Operation{
				ClientId: len(h), Input: name, Call: f.call, Output: f.value, Return: f.answer,
			})
		}
	}
	for key, h := range histories {
		slices.SortFunc(h, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
		for k := range h {
			h[k].ClientId = k
		}
		if result := porcupine.CheckOperationsTimeout(counting, h, time.Minute); result != porcupine.Ok {
			faults = append(faults, fmt.Sprintf("porcupine says of the %d operations on %s: %v", len(h), key, result))
		}
	}
	return faults
}

package replicas

import (
	"slices"
	"strings"
	"testing"
)

// What each judge says of four operations of two sections, each on a key of its own, and of a section
// that was lost, with one thing wrong.
func TestJudges(t *testing.T) {
	type run struct {
		records []record
		final   []entry
	}
	operation := func(name, key string, value uint64, at int64) []record {
		return []record{
			{What: called, At: at, Op: name, Entries: []entry{{key, name}}},
			{What: done, At: at + 5, Op: name, Value: value},
		}
	}
	lost := func(section string) []record {
		name := section + ".0001"
		return []record{
			{What: called, At: 50, Op: name, Entries: []entry{{"k", name}}},
			{What: ejected, At: 59, Op: section},
			{What: refused, At: 60, Op: name},
		}
	}
	right := func() run {
		var r run
		for k, name := range []string{"s1.a.0001", "s1.a.0002", "s2.b.0001", "s2.b.0002"} {
			key := string("km"[k/2])
			r.records = append(r.records, operation(name, key, uint64(k%2+1), int64(10*k))...)
			r.final = append(r.final, entry{key, name})
		}
		r.records = append(r.records, lost("s1.c")...)
		return r
	}
	for _, c := range []struct {
		want  string // "": nothing is wrong
		wrong func(r *run)
	}{
		{"", func(*run) {}},
		{"is called twice", func(r *run) { r.records = append(r.records, r.records[0]) }},
		{"has a verdict too many", func(r *run) { r.records = append(r.records, r.records[1]) }},
		{"nobody has called it", func(r *run) { r.final = append(r.final, entry{"k", "s3.d.0001"}) }},
		{"is executed twice", func(r *run) { r.final = append(r.final, r.final[3]) }},
		{"was told that it never will be", func(r *run) { r.final = append(r.final, entry{"k", "s1.c.0001"}) }},
		{"its user was told 9", func(r *run) { r.records[3].Value = 9 }},
		{"its user was told that it is", func(r *run) { r.final = r.final[:3] }},
		{"s1.a.0002a is executed without", func(r *run) {
			r.records[2].Op, r.records[2].Entries[0].Op, r.records[3].Op, r.final[1].Op = "s1.a.0002a", "s1.a.0002a", "s1.a.0002a", "s1.a.0002a"
		}},
		{"s1.a.0002 comes after operations of another section", func(r *run) {
			r.final[1], r.final[2] = r.final[2], r.final[1]
		}},
		{"s1.a.0001 comes after s1.a.0002", func(r *run) { r.final[0], r.final[1] = r.final[1], r.final[0] }},
		{"s1.a.0001 comes after s2.b.0002, which was called later", func(r *run) {
			r.final = append(r.final[2:4:4], r.final[:2]...)
		}},
		{"porcupine says", func(r *run) { // 4 has its outcome before 3 is called
			r.records[4].At, r.records[5].At = r.records[6].At+10, r.records[7].At+10
		}},
		{"s1.d.0001 is refused, and its user was told of an ejection: false", func(r *run) {
			r.records = append(r.records, lost("s1.d")...)
			r.records = slices.Delete(r.records, len(r.records)-2, len(r.records)-1)
		}},
		{"s1.c.0001 is refused, and its user was told of an ejection: false", func(r *run) { // it was, but too late
			k := len(r.records) - 1
			r.records[k-1], r.records[k] = r.records[k], r.records[k-1]
		}},
		{"s1.a.0001 is done, and its user was told of an ejection: true", func(r *run) {
			r.records = slices.Insert(r.records, 0, record{What: ejected, Op: "s1.a"})
		}},
	} {
		r := right()
		c.wrong(&r)
		got := strings.Join(judged(r.records, r.final), "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

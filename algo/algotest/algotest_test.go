package algotest

import (
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

var toyOptions = Options{Allocations: 0.01}

// The suite accepts what is right.
func TestSound(t *testing.T) { Run(t, toy(""), toyOptions) }

// The suite finds each defect, in the part that is made for it.
func TestDefects(t *testing.T) {
	for _, test := range []struct {
		defect defect
		part   string
		want   string
	}{
		{lossyCodec, "Codec", "read back as"},
		{endlessMessage, "Codec", "the first 0 bytes"},
		{sameText, "Codec", "stands for two messages"},
		{unknownKind, "Codec", "kind -1 of 3"},
		{sharedMemory, "Codec", "a message sent before changed"},
		{missingField, "State", "behaves differently"},
		{forgottenField, "State", "behaves differently"},
		{unstableEncoding, "State", "in state"},
		{remains, "State", "the state became"},
		{endlessState, "State", "accepts the first"},
		{busyShow, "State", "Show changed it"},
		{manyLines, "State", "want one line"},
		{absoluteClock, "Shift", "it does something else"},
		{unmappedMessage, "Shift", "it does something else"},
		{chance, "Determinism", "something other than state and event"},
		{garbage, "Allocations", "allocations a step"},
		{takesAnything, "Events", "without a panic"},
		{refusesCancel, "Events", "toy: unexpected event"},
		{wrongClaim, "Claims", "messages an entry"},
		{noExclusion, "Claims", "exclusion"},
		{noExclusion, "Exhaustive", "exclusion is violated"},
		{noExclusion, "Order", "order is violated"},
		{ownTokens, "Fencing", "fencing is violated"},
		{noTitle, "Info", "lacks Title"},
		{halfAClaim, "Info", "both or neither"},
		{anyOrder, "Exhaustive", "is not confluent"},
		{equalIDs, "Exhaustive", "not interchangeable"},
	} {
		t.Run(test.part+": "+string(test.defect), func(t *testing.T) {
			s, err := newSuite(toy(test.defect), toyOptions)
			if err != nil {
				t.Fatal(err)
			}
			all := parts()
			i := slices.IndexFunc(all, func(p part) bool { return p.name == test.part })
			if err := all[i].run(s); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

// Every part is shown to find something.
func TestEveryPartHasADefect(t *testing.T) {
	covered := "Info Codec State Shift Determinism Allocations Events Claims Exhaustive Lacking Order Fencing"
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	if got := strings.Join(names, " "); got != covered {
		t.Errorf("the parts are %s, and TestDefects with TestLacking covers %s", got, covered)
	}
}

// An undecided model is no success, and a mutant check sees what is wrong.
func TestExamine(t *testing.T) {
	for _, test := range []struct {
		defect defect
		change func(o *Options)
		fault  string
		err    string
	}{
		{"", func(*Options) {}, "", ""},
		{noExclusion, func(*Options) {}, "claims by conformance, n=2", ""},
		{wrongClaim, func(o *Options) { o.Skip = map[string]string{"Claims": "it is not about messages"} }, "", ""},
		{"", func(o *Options) { o.Skip = map[string]string{"Claim": "misspelt"} }, "", `no part of the suite: "Claim"`},
		{"", func(o *Options) { o.Skip = map[string]string{"Claims": " "} }, "", "no reason"},
		{"", func(o *Options) {
			o.Exhaustive = []check.Config{{
				Config: protocol.Config{N: 4}, Entries: []int{4}, MaxMemory: 2 << 20,
			}}
		}, "is undecided", ""},
	} {
		o := toyOptions
		test.change(&o)
		fault, err := Examine(toy(test.defect), o)()
		if !strings.Contains(fault, test.fault) || (fault == "") != (test.fault == "") {
			t.Errorf("%q: fault %q, want %q", test.defect, fault, test.fault)
		}
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%q: error %v, want %q", test.defect, err, test.err)
		}
	}
}

// The fuzz targets run on what is right; TestFuzzDefects shows what they find.
func FuzzToyRead(f *testing.F)  { FuzzRead(f, toy(""), toyOptions) }
func FuzzToyState(f *testing.F) { FuzzLoadState(f, toy(""), toyOptions) }

func TestFuzzDefects(t *testing.T) {
	of := func(d defect) *suite {
		s, err := newSuite(toy(d), toyOptions)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for name, err := range map[string]error{
		"a message of another encoding": of(lossyCodec).readAny([]byte{request, 77}),
		"a message without a kind":      of(unknownKind).readAny([]byte{release, 1}),
		"a state of another encoding":   of(missingField).loadAny(0, []byte{7, 0, 0}),
	} {
		if err == nil {
			t.Errorf("%s is not found", name)
		}
	}
	for _, err := range []error{of("").readAny([]byte{request, 77}), of("").loadAny(0, []byte{7, 0, 0})} {
		if err != nil {
			t.Error(err)
		}
	}
}

func TestSystem(t *testing.T) {
	s := NewSystem(toy(""), protocol.Config{N: 3}, 0)
	s.Try(1)
	s.Try(2)
	s.Deliver(2, 0, 0)
	s.Deliver(0, 2, 0)
	s.Settle()
	if got := s.Inside(); !slices.Equal(got, []protocol.ID{2}) || s.Sent != 3 {
		t.Fatalf("inside: %v after %d messages", got, s.Sent)
	}
	s.Exit(2)
	s.Settle()
	if got := s.Inside(); !slices.Equal(got, []protocol.ID{1}) {
		t.Fatalf("inside: %v", got)
	}
	for name, wrong := range map[string]func(){
		"a message that is not there": func() { s.Deliver(1, 0, 0) },
		"an exit from outside":        func() { s.Exit(2) },
	} {
		if !panics(wrong) {
			t.Errorf("%s: no panic", name)
		}
	}
}

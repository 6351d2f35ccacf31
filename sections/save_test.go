package sections_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/poundlock/poundlock/internal/counters"
	"github.com/poundlock/poundlock/internal/faultdisk"
	"github.com/poundlock/poundlock/sections"
)

// saved is an object of more than one part, with a token of it.
func saved(t *testing.T, c *cluster) (file []byte, token uint64) {
	t.Helper()
	s := enter(t, c.members[0])
	for k := range 3 {
		do(t, s, fmt.Sprint(strings.Repeat("x", sections.MaxOperation/2), k))
	}
	s.Exit()
	s = enter(t, c.members[0])
	defer s.Exit()
	token, err := s.ID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := s.Save(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), token
}

// What was saved is there again after all members have begun anew, at all of them, and tokens go on.
func TestSave(t *testing.T) {
	c := start(t, 3, second)
	file, token := saved(t, c)
	c.equal(3)
	state := string(c.stores[2].Snapshot())
	for _, m := range c.members {
		m.Close()
	}
	c = start(t, 3, second)
	s := enter(t, c.members[1])
	do(t, s, "k")
	if err := s.Load(t.Context(), bytes.NewReader(file)); err != nil {
		t.Fatal(err)
	}
	s.Exit()
	c.equal(3)
	if got := string(c.stores[0].Snapshot()); got != state {
		t.Errorf("%d bytes were saved, and %d are loaded", len(state), len(got))
	}
	s = enter(t, c.members[2])
	if got, err := s.ID(t.Context()); got <= token || err != nil {
		t.Errorf("%d follows %d: %v", got, token, err)
	}
	s.Exit()
}

// What was not saved so, or is damaged, changes nothing, and is refused before anything is sent.
func TestLoadBad(t *testing.T) {
	c := startWith(t, 3, second, func(_ int, c *sections.Config) { c.MaxState = 1 << 20 })
	file, _ := saved(t, c)
	c.equal(3)
	damaged := bytes.Clone(file)
	damaged[len(damaged)/2]++
	signed := func(state string) []byte {
		b := []byte("poundlock sections 1\n" + state)
		sum := sha256.Sum256(b)
		return append(b, sum[:]...)
	}
	s := enter(t, c.members[0])
	for want, in := range map[string]io.Reader{
		"it was not saved by this package": strings.NewReader("something else"),
		"it is damaged":                    bytes.NewReader(damaged),
		"checksum differs":                 bytes.NewReader(file[:len(file)-1]),
		"raise MaxState":                   bytes.NewReader(append([]byte("poundlock sections 1\n"), make([]byte, 2<<20)...)),
		"broken":                           iotest.ErrReader(errors.New("broken")),
		"malformed snapshot: 3 bytes":      bytes.NewReader(signed("\x01bad")),
		"malformed encoding":               bytes.NewReader(signed("")),
	} {
		err := s.Load(t.Context(), in)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `load "o": `) {
			t.Errorf("%s: %v", want, err)
		}
	}
	do(t, s, "k")
	if err := s.Save(t.Context(), failing{}); err == nil || !strings.Contains(err.Error(), `save "o": full`) {
		t.Errorf("%v", err)
	}
	s.Exit()
	c.equal(4)
	if err := s.Save(t.Context(), io.Discard); !errors.Is(err, sections.ErrExited) {
		t.Errorf("%v", err)
	}
}

// A failing file takes nothing.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }

// Parts that are missing are noticed, those of a section that was lost are forgotten, and a member that comes between two
// parts has the first one, too. A panic of Restore harms nobody.
func TestLoadParts(t *testing.T) {
	c := startWith(t, 3, second, func(_ int, c *sections.Config) {
		c.Objects[name] = explosive{c.Objects[name].(*counters.Store)}
	})
	var other counters.Store
	for range 5 {
		other.Apply(counters.Add("k"))
	}
	state := append([]byte{9}, other.Snapshot()...)
	first, last := sections.Part(true, false, state[:3]), sections.Part(false, true, state[3:])
	s := enter(t, c.members[0])
	execute := func(op []byte, want string) {
		t.Helper()
		results, err := s.Execute(t.Context(), op)
		if err != nil || len(results) != 1 || string(results[0]) != want {
			t.Errorf("%q, %v, want %q", results, err, want)
		}
	}
	const without = "a part without the first one"
	execute(last, without)
	execute(first, "")
	do(t, s, "k")
	execute(last, without)
	execute(sections.Part(true, false, nil), "")
	execute(last, without)
	execute(sections.Part(true, true, append([]byte{1}, boom...)), "Restore panicked: boom")
	for _, op := range [][]byte{{9}, {}, sections.Part(true, true, nil)[:1], {sections.Part(true, true, nil)[0], 9}} {
		if _, err := s.Execute(t.Context(), op); !errors.Is(err, sections.ErrOperation) {
			t.Errorf("%q: %v", op, err)
		}
	}
	c.equal(1)
	execute(first, "")
	c.members[2].Close()
	c.again(2)
	execute(last, "")
	c.equal(5)
	s.Exit()
}

// An explosive copy cannot bear a snapshot.
type explosive struct{ *counters.Store }

func (e explosive) Restore(b []byte) (func(), error) {
	if string(b) == boom {
		panic(boom)
	}
	return e.Store.Restore(b)
}

// The parts of two states would mix: while one is loaded another one is refused, and later it is not.
func TestLoadTwice(t *testing.T) {
	disk := &hooked{Disk: faultdisk.New(0)}
	c := startWith(t, 1, second, func(_ int, c *sections.Config) { c.On(disk) })
	file, _ := saved(t, c)
	s := enter(t, c.members[0])
	defer s.Exit()
	refused := 0
	load := func() {
		if !s.UnderWay() {
			return
		}
		err := s.Load(soon(t), bytes.NewReader(file))
		if want := `load "o": another Load of this section has not ended`; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		refused++
	}
	disk.sync.Store(&load)
	if err := s.Load(t.Context(), bytes.NewReader(file)); err != nil {
		t.Error(err)
	}
	disk.sync.Store(nil)
	if refused < 2 {
		t.Errorf("it was refused %d times: want once with each part", refused)
	}
	if err := s.Load(t.Context(), bytes.NewReader(file)); err != nil {
		t.Error(err)
	}
}

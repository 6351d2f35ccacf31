package sections_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/poundlock/poundlock/internal/counters"
	"github.com/poundlock/poundlock/internal/faultdisk"
	"github.com/poundlock/poundlock/sections"
)

// withMore starts three members that make objects later, except of one name, in so many slots.
func withMore(t *testing.T, slots int) *cluster {
	t.Helper()
	return startWith(t, 3, second, func(_ int, c *sections.Config) {
		c.Slots = slots
		c.More = func(name string) sections.Object {
			if name == "none" {
				return nil
			}
			return &counters.Store{}
		}
	})
}

// count is what a member shows of a counter, once it has all that was before.
func count(t *testing.T, m *sections.Member, object string) (applied uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := m.Barrier(ctx, object); err != nil {
		t.Fatal(err)
	}
	if err := m.View(object, func(o sections.Object) { applied = o.(*counters.Store).Applied() }); err != nil {
		t.Fatal(err)
	}
	return applied
}

// An object that one member has made is one of all, also of those that come back later, and when most have come back more can be
// made. Sections of two objects do not wait for each other.
func TestLater(t *testing.T) {
	c := withMore(t, 0)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range 2 {
		if err := c.members[0].Open(ctx, "x"); err != nil {
			t.Fatal(err)
		}
	}
	s := enterObject(t, c.members[1], "x") // which has not heard of it, maybe
	do(t, s, "k")
	if err := c.members[2].Open(ctx, "y"); err != nil {
		t.Fatal(err)
	}
	other := enterObject(t, c.members[2], "y")
	do(t, other, "k")
	other.Exit()
	s.Exit()
	for _, i := range []int{1, 2} {
		c.members[i].Close()
		c.again(i)
		if got := count(t, c.members[i], "x"); got != 1 {
			t.Errorf("member %d has %d operations", i, got)
		}
	}
	if err := c.members[1].Open(ctx, "z"); err != nil {
		t.Fatal(err)
	}
	var users sync.WaitGroup
	for i, m := range c.members {
		users.Go(func() {
			for _, object := range []string{"x", "y", "z", fmt.Sprint("of ", i)} {
				if err := m.Open(ctx, object); err != nil {
					t.Error(err)
				}
				s := enterObject(t, m, object)
				do(t, s, "k")
				s.Exit()
			}
		})
	}
	users.Wait()
	for _, m := range c.members {
		for object, want := range map[string]uint64{"x": 4, "y": 4, "z": 3, "of 0": 1, "of 1": 1, "of 2": 1} {
			if got := count(t, m, object); got != want {
				t.Errorf("%s has %d operations", object, got)
			}
		}
	}
	var names []string
	for _, o := range c.members[0].Stats().Objects {
		names = append(names, o.Name)
	}
	if want := []string{name, "of 0", "of 1", "of 2", "x", "y", "z"}; !slices.Equal(names, want) {
		t.Errorf("the objects are %q", names)
	}
}

// What cannot be made is refused, with what to do.
func TestNotLater(t *testing.T) {
	c := withMore(t, 2)
	m := c.members[0]
	for _, object := range []string{"a", "b", name} {
		if err := m.Open(t.Context(), object); err != nil {
			t.Errorf("%s: %v", object, err)
		}
	}
	for object, want := range map[string]string{
		"c":    `open "c": there is no slot for another object: 2 are made already, and Slots is 2: raise it`,
		"none": `open "none": there is no such object: Config.More makes none of this name`,
		"+1":   `object "+1": names with + are those of this package`,
		"":     `needs a name`,
	} {
		if err := m.Open(t.Context(), object); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", object, err)
		}
	}
	for _, object := range []string{"c", "+1", "+", "none"} {
		if _, err := c.members[1].Enter(t.Context(), object); !errors.Is(err, sections.ErrNoObject) || !strings.Contains(err.Error(), `["a" "b" "o"]`) {
			t.Errorf("enter %q: %v", object, err)
		}
	}
	if err := start(t, 1, second).members[0].Open(t.Context(), "x"); !errors.Is(err, sections.ErrNoObject) ||
		!strings.Contains(err.Error(), `no Config.More`) {
		t.Errorf("without More: %v", err)
	}
	if err := m.View("b", func(o sections.Object) {
		if o.(*counters.Store).Applied() != 0 {
			t.Error("an object that nobody has used has operations")
		}
	}); err != nil {
		t.Error(err)
	}
}

// A member whose More makes no object that others have made closes, and says why.
func TestOtherMore(t *testing.T) {
	c := startWith(t, 3, second, func(i int, c *sections.Config) {
		c.More = func(string) sections.Object {
			if i == 2 {
				return nil
			}
			return &counters.Store{}
		}
	})
	if err := c.members[0].Open(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	s := enterObject(t, c.members[0], "x")
	do(t, s, "k")
	s.Exit()
	eventually(t, "the other one closes", func() error {
		if err := c.members[2].Healthy(); err == nil || !strings.Contains(err.Error(), `Config.More makes no object "x" here`) {
			return fmt.Errorf("it is healthy: %v", err)
		}
		return nil
	})
}

// An object that is made later is saved and loaded as others are.
func TestSaveLater(t *testing.T) {
	c := withMore(t, 1)
	if err := c.members[0].Open(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	s := enterObject(t, c.members[0], "x")
	do(t, s, "k")
	var saved strings.Builder
	if err := s.Save(t.Context(), &saved); err != nil {
		t.Fatal(err)
	}
	do(t, s, "k")
	if err := s.Load(t.Context(), strings.NewReader(saved.String())); err != nil {
		t.Fatal(err)
	}
	if got := do(t, s, "k"); got != 2 {
		t.Errorf("%d", got)
	}
	if err := s.Load(t.Context(), strings.NewReader("bad")); err == nil || !strings.Contains(err.Error(), `load "x"`) {
		t.Errorf("%v", err)
	}
	s.Exit()
}

// Open of an object that is made just now waits for the disk: after a loss of power it might be no object.
func TestOpenDurable(t *testing.T) {
	disk := &hooked{Disk: faultdisk.New(0)}
	m := startWith(t, 1, second, func(_ int, c *sections.Config) {
		c.On(disk)
		c.More = func(string) sections.Object { return &counters.Store{} }
	}).members[0]
	off := func() {
		if m.Knows("x") {
			disk.Cut()
		}
	}
	disk.sync.Store(&off)
	for k := range 2 {
		if err := m.Open(t.Context(), "x"); !errors.Is(err, sections.ErrClosed) {
			t.Errorf("open %d: %v", k, err)
		}
	}
	if !m.Knows("x") {
		t.Error("it was not made")
	}
}

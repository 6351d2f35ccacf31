package sections_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/counters"
	"github.com/poundlock/poundlock/internal/faultdisk"
	"github.com/poundlock/poundlock/internal/journal"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/sections"
)

// durables are members with a disk each.
type durables struct {
	*cluster
	disks []*faultdisk.Disk
}

func startDurable(t testing.TB, n int, engine node.Host) *durables {
	t.Helper()
	d := &durables{disks: make([]*faultdisk.Disk, n)}
	for i := range d.disks {
		d.disks[i] = faultdisk.New(0)
	}
	d.cluster = startWith(t, n, engine, func(i int, c *sections.Config) { c.On(d.disks[i]) })
	return d
}

// crash turns the power of members off, and on again: their disks are what is left then.
func (d *durables) crash(loss faultdisk.Loss, ids ...int) {
	d.t.Helper()
	for _, i := range ids {
		d.disks[i].Cut()
	}
	for _, i := range ids {
		d.members[i].Close()
		d.disks[i] = d.disks[i].After(loss, 0)
	}
}

// back opens members that have crashed.
func (d *durables) back(ids ...int) {
	d.t.Helper()
	var all sync.WaitGroup
	errs := make([]error, len(ids))
	for k, i := range ids {
		config := d.config(i, false)
		config.Listener = d.listen(i)
		all.Go(func() { errs[k] = d.open(i, config) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		d.t.Fatal(err)
	}
}

// add has a member add one to a counter, and returns what it is then.
func (d *durables) add(i int, key string) uint64 {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	for {
		var value uint64
		err := d.members[i].With(ctx, name, func(ctx context.Context, s *sections.Section) error {
			result, err := s.Do(ctx, counters.Add(key))
			value = counters.Value(result)
			return err
		})
		if err == nil {
			return value
		}
		if !errors.Is(err, sections.ErrEjected) || ctx.Err() != nil {
			d.t.Fatal(err)
		}
	}
}

// All members lose power at once, again and again: what had a result is there, and users are served.
func TestDurableAll(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			d := startDurable(t, 3, e.engine)
			want := uint64(0)
			for round, loss := range faultdisk.Losses {
				for i := range d.members {
					for range 3 {
						if want++; d.add(i, "a") != want {
							t.Fatalf("round %d: another count than %d", round, want)
						}
					}
				}
				d.members[round%3].Suspect(d.peers[(round+1)%3].Name)
				d.crash(loss, 0, 1, 2)
				d.back(0, 1, 2)
			}
			d.add(0, "a")
			d.equal(want + 1)
			for i, m := range d.members {
				for _, s := range m.Node().Sessions() {
					if s.Number != 1 {
						t.Errorf("s%d: session %d with %d: it does not go on", i+1, s.Number, s.Peer)
					}
				}
			}
		})
	}
}

// A member that comes back is in the same life: its users are gone, wherever they were, and others get in.
func TestDurableUsers(t *testing.T) {
	for _, c := range []struct {
		name  string
		leave func(d *durables, s *sections.Section)
	}{
		{"waits", func(d *durables, s *sections.Section) {
			go d.members[1].Enter(d.t.Context(), name)
			eventually(d.t, "it waits", func() error { return busy(d.members[1]) })
		}},
		{"inside", func(d *durables, s *sections.Section) {
			s.Exit()
			if _, err := d.members[1].Enter(d.t.Context(), name); err != nil {
				d.t.Fatal(err)
			}
		}},
		{"has an operation open", func(d *durables, s *sections.Section) {
			s.Exit()
			s, err := d.members[1].Enter(d.t.Context(), name)
			if err != nil {
				d.t.Fatal(err)
			}
			now, cancel := context.WithCancel(d.t.Context())
			cancel()
			d.disks[0].Cut() // so that there is no majority
			d.disks[2].Cut()
			s.Do(now, counters.Add("a"))
			d.members[1].View(name, func(sections.Object) {}) // it is issued
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := startDurable(t, 3, second)
			s, err := d.members[0].Enter(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			lives := d.members[1].Node().Incarnation()
			c.leave(d, s)
			d.crash(faultdisk.All, 0, 1, 2)
			d.back(0, 1, 2)
			for i := range d.members {
				d.add(i, "b")
			}
			if now := d.members[1].Node().Incarnation(); now != lives {
				t.Errorf("life %d became %d", lives, now)
			}
		})
	}
}

func busy(m *sections.Member) error {
	if !m.Stats().Objects[0].Busy {
		return errors.New("nobody is")
	}
	return nil
}

// A member whose others went on without it for long comes back to sessions that are new, and gets what it lacks.
func TestDurableAway(t *testing.T) {
	d := startDurable(t, 3, second)
	d.add(0, "a")
	d.crash(faultdisk.All, 2)
	for _, m := range d.members[:2] {
		if err := m.Suspect("s3"); err != nil {
			t.Fatal(err)
		}
	}
	const more = 200
	for k := range more {
		d.add(k%2, strings.Repeat("x", 100<<10))
	}
	d.back(2)
	d.add(2, "a")
	d.equal(more + 2)
}

// A durable member among others that are not: it comes back with nothing forgotten, and they as new lives.
func TestDurableAmongOthers(t *testing.T) {
	d := &durables{disks: []*faultdisk.Disk{faultdisk.New(0)}}
	d.cluster = startWith(t, 3, second, func(i int, c *sections.Config) {
		if i == 0 {
			c.On(d.disks[0])
		}
	})
	for k := range uint64(6) {
		d.add(int(k)%3, "a")
		if k%2 == 0 {
			d.crash(faultdisk.All, 0)
			d.back(0)
		} else {
			d.members[1].Close()
			d.again(1)
		}
	}
	d.equal(6)
}

// A disk that is full, or that cannot sync, ends its member: users are told, and nothing that it could not write was acknowledged.
func TestDurableDisk(t *testing.T) {
	broken := errors.New("the disk is broken")
	for _, c := range []struct {
		name        string
		write, sync error
	}{{"full", broken, nil}, {"sync", nil, broken}} {
		t.Run(c.name, func(t *testing.T) {
			d := startDurable(t, 3, second)
			d.add(1, "a")
			s, err := d.members[0].Enter(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			d.disks[0].Fail(c.write, c.sync)
			_, err = s.Do(t.Context(), counters.Add("a"))
			if !errors.Is(err, sections.ErrClosed) || !strings.Contains(err.Error(), "journal: "+broken.Error()) {
				t.Errorf("Do: %v", err)
			}
			eventually(t, "it says so", func() error {
				if err := d.members[0].Healthy(); err == nil || !strings.Contains(err.Error(), broken.Error()) {
					return fmt.Errorf("it says %v", err)
				}
				return nil
			})
			if err := d.members[0].View(name, func(sections.Object) {}); !errors.Is(err, sections.ErrClosed) {
				t.Errorf("View: %v", err)
			}
			for _, m := range d.members[1:] {
				m.Suspect("s1")
			}
			if now := d.add(1, "a"); now != 2 {
				t.Errorf("%d are counted: one was not acknowledged", now)
			}
			d.crash(faultdisk.All, 0)
			d.back(0)
			d.add(0, "a")
			d.equal(3)
		})
	}
}

// An other object has other results.
type other struct{ *counters.Store }

func (o other) Apply(op []byte) []byte { return append(o.Store.Apply(op), 0) }

// What a member does not go on from, and what it says then.
func TestDurableRefused(t *testing.T) {
	d := startDurable(t, 3, second)
	for k := range 5 {
		d.add(k%3, "a")
	}
	for i := range d.members {
		d.disks[i].Cut()
		d.members[i].Close()
	}
	for _, c := range []struct {
		name   string
		change func(c *sections.Config, disk *faultdisk.Disk)
		is     error
		says   string
	}{
		{"bootstrap", func(c *sections.Config, _ *faultdisk.Disk) { c.Bootstrap = true }, sections.ErrMetBefore, "start without Bootstrap"},
		{"member", func(c *sections.Config, _ *faultdisk.Disk) { c.Name = "s2" }, sections.ErrJournal, "the member: s2 here, s1 there"},
		{"members", func(c *sections.Config, _ *faultdisk.Disk) {
			c.Members = append(slices.Clone(c.Members), sections.Peer{Name: "s4", Addr: "127.0.0.1:1"})
		}, sections.ErrJournal, "the members: [s1 s2 s3 s4] here"},
		{"objects", func(c *sections.Config, _ *faultdisk.Disk) { c.Objects["p"] = &counters.Store{} }, sections.ErrJournal, "the objects: [o p] here, [o] there"},
		{"engine", func(c *sections.Config, _ *faultdisk.Disk) { c.Engine = sections.WME1 }, sections.ErrJournal, "the algorithm"},
		{"title", func(_ *sections.Config, disk *faultdisk.Disk) { disk.Damage("journal", 3) }, sections.ErrDamaged, "journal, at byte 0"},
		{"checkpoint", func(_ *sections.Config, disk *faultdisk.Disk) { disk.Damage("journal", 60) }, sections.ErrDamaged, "journal, at byte 28"},
		{"middle", func(_ *sections.Config, disk *faultdisk.Disk) { disk.Damage("journal", disk.Size("journal")/2) }, sections.ErrDamaged, "start this member without Bootstrap"},
		{"another program", func(c *sections.Config, _ *faultdisk.Disk) {
			c.Objects[name] = other{&counters.Store{}}
		}, sections.ErrJournal, "it is another version, of the object perhaps"},
		{"newer", func(c *sections.Config, _ *faultdisk.Disk) {
			disk := faultdisk.New(0)
			j, err := journal.Open(disk, 0)
			if err == nil {
				err = j.Replace(func(yield func([]byte, error) bool) { yield([]byte("\x01{\"Format\": 99}"), nil) })
			}
			if err != nil {
				t.Fatal(err)
			}
			c.On(disk)
		}, sections.ErrJournal, "it has format 99, of a newer version, and this one knows 1: go on with that version"},
		{"options", func(c *sections.Config, _ *faultdisk.Disk) {
			c.Change(func(n *node.Config) { n.System.Options = map[string]int64{"carry": 1} })
		}, sections.ErrJournal, "the algorithm"},
	} {
		t.Run(c.name, func(t *testing.T) {
			disk := d.disks[0].After(faultdisk.All, 0)
			config := d.config(0, false)
			config.On(disk)
			config.Listener = d.listen(0)
			c.change(&config, disk)
			before := disk.Size("journal")
			_, err := sections.Open(t.Context(), config)
			if !errors.Is(err, c.is) || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("%v: want %q", err, c.says)
			}
			if disk.Size("journal") != before {
				t.Error("it was changed")
			}
		})
	}
}

// A copy of an older journal has forgotten what was said: who has heard it refuses it.
func TestDurableOld(t *testing.T) {
	d := startDurable(t, 3, second)
	d.add(0, "a")
	d.disks[0].Cut()
	d.members[0].Close()
	old := d.disks[0]
	d.disks[0] = old.After(faultdisk.All, 0)
	d.back(0)
	d.add(0, "a")
	d.crash(faultdisk.All, 0)
	d.disks[0] = old.After(faultdisk.All, 0)
	config := d.config(0, false)
	config.Listener = d.listen(0)
	m, err := sections.Start(config)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	eventually(t, "it closes", func() error {
		if err := m.Healthy(); err == nil || !strings.Contains(err.Error(), "old copy") {
			return fmt.Errorf("it says %v", err)
		}
		return nil
	})
}

// A directory is one member's, and its journal is there after Close.
func TestDurableDir(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir()}
	c := startWith(t, 2, second, func(i int, c *sections.Config) { c.Dir = dirs[i] })
	d := &durables{cluster: c}
	d.add(0, "a")
	config := d.config(0, false)
	if _, err := sections.Open(t.Context(), config); !errors.Is(err, sections.ErrInUse) || !strings.Contains(err.Error(), dirs[0]) {
		t.Errorf("%v", err)
	}
	for _, m := range d.members {
		m.Close()
	}
	d.back(0, 1)
	if now := d.add(1, "a"); now != 2 {
		t.Errorf("%d are counted, want 2", now)
	}
}

// With SyncEvery operations do not wait for the disk, and what was synced is there.
func TestDurableSyncEvery(t *testing.T) {
	disks := []*faultdisk.Disk{faultdisk.New(0)}
	c := startWith(t, 1, second, func(i int, c *sections.Config) {
		c.On(disks[i])
		c.SyncEvery = time.Millisecond
	})
	d := &durables{cluster: c, disks: disks}
	d.add(0, "a")
	eventually(t, "it is synced", func() error {
		if disks[0].Unsynced("journal") > 0 {
			return errors.New("it is not")
		}
		return nil
	})
	d.crash(faultdisk.All, 0)
	d.back(0)
	if now := d.add(0, "a"); now != 2 {
		t.Errorf("%d are counted, want 2", now)
	}
}

// A hooked disk has something happen before each sync of a file, once it is set.
type hooked struct {
	*faultdisk.Disk
	sync atomic.Pointer[func()]
}

func (h *hooked) Create(name string) (journal.File, error) {
	f, err := h.Disk.Create(name)
	return hookedFile{f, h}, err
}

type hookedFile struct {
	journal.File
	h *hooked
}

func (f hookedFile) Sync() error {
	if hook := f.h.sync.Load(); hook != nil {
		(*hook)()
	}
	return f.File.Sync()
}

// A faulty object panics once it is told to.
type faulty struct {
	*counters.Store
	applies, panics chan struct{}
}

func (f faulty) Apply([]byte) []byte {
	close(f.applies)
	<-f.panics
	panic(boom)
}

// When an object panics nothing is written any more: so the users of others are told that the member closes, and not what it does then.
func TestDurablePanic(t *testing.T) {
	disk := faultdisk.New(0)
	x := faulty{&counters.Store{}, make(chan struct{}), make(chan struct{})}
	objects := map[string]sections.Object{"x": x}
	c := startWith(t, 1, second, func(_ int, c *sections.Config) {
		c.On(disk)
		c.Objects["x"] = objects["x"]
	})
	d := &durables{cluster: c, disks: []*faultdisk.Disk{disk}}
	s, other := enterObject(t, c.members[0], "x"), enter(t, c.members[0])
	fails, err := s.Start(t.Context(), counters.Add("a"))
	if err != nil {
		t.Fatal(err)
	}
	<-x.applies
	follows, err := other.Start(t.Context(), counters.Add("a"))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is issued", func() error {
		if !other.UnderWay() {
			return errors.New("it is not")
		}
		return nil
	})
	close(x.panics)
	for why, o := range map[string]*sections.Operation{"closed: its object panicked": fails, `closed: object "x": its object panicked`: follows} {
		if _, err := o.Wait(t.Context()); !errors.Is(err, sections.ErrClosed) || !strings.Contains(err.Error(), why) {
			t.Errorf("%v, want %q", err, why)
		}
	}
	c.members[0].Close()
	objects["x"] = &counters.Store{}
	disk = disk.After(faultdisk.None, 0)
	d.disks[0] = disk
	d.back(0)
	if now := d.add(0, "a"); now != 1 {
		t.Errorf("%d are counted, want 1", now)
	}
}

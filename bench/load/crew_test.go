package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/poundlock/poundlock/internal/proctest"
)

// atLast is how long a test waits for what must come at last, on any machine.
const atLast = time.Minute

// The roles in which this test binary is started again.
const (
	workRole  = "work"  // a worker whose locks are files
	tiredRole = "tired" // one that ends instead of opening its clients
	waitRole  = "wait"  // Tether
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case workRole:
			if Work(context.Background(), openFiles) != nil {
				os.Exit(1)
			}
			os.Exit(0)
		case tiredRole:
			fmt.Fprintln(os.Stderr, "too tired")
			os.Exit(7)
		case waitRole:
			Tether()
			select {}
		}
	}
	os.Exit(proctest.Main{Tests: m}.Run())
}

// files is a lock service: flock(2) on files of a directory.
type files struct {
	dir   string
	bytes *atomic.Int64 // a pretence: perLock for each
}

const perLock = 7

func openFiles(context.Context) (Client, error) {
	f := files{os.Args[2], new(atomic.Int64)}
	_, err := os.Stat(f.dir)
	return f, err
}

func (f files) Lock(ctx context.Context, name string) (Held, error) {
	return f.lock(ctx, name, unix.LOCK_EX, "")
}

func (f files) RLock(ctx context.Context, name string) (Held, error) {
	return f.lock(ctx, name, unix.LOCK_SH, "shared")
}

func (f files) lock(ctx context.Context, name string, how int, group string) (Held, error) {
	f.bytes.Add(perLock)
	file, err := os.Create(filepath.Join(f.dir, name))
	if err != nil {
		return Held{}, err
	}
	for {
		err := unix.Flock(int(file.Fd()), how|unix.LOCK_NB)
		if err == nil {
			time.Sleep(500 * time.Microsecond) // so that others come and wait
			break
		}
		if ctx.Err() != nil || !errors.Is(err, unix.EWOULDBLOCK) {
			file.Close()
			return Held{}, errors.Join(ctx.Err(), err)
		}
		time.Sleep(50 * time.Microsecond)
	}
	unlock := func() error {
		err := file.Close()
		time.Sleep(300 * time.Microsecond) // for the others, who only poll
		return err
	}
	return Held{Group: group, Unlock: unlock}, nil
}

func (f files) Traffic() int64 { return f.bytes.Load() }
func (files) Close() error     { return nil }

func startFiles(t *testing.T, processes int) *Crew {
	t.Helper()
	return startFilesIn(t, t.TempDir(), processes)
}

func startFilesIn(t *testing.T, dir string, processes int) *Crew {
	t.Helper()
	there := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, there) })
	c, err := StartCrew(t.Context(), "files", processes, nil, workRole, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestCrew(t *testing.T) {
	c := startFiles(t, 3)
	// Processes that share a processor need not meet at a lock in one window.
	handovers := 0
	for end := time.Now().Add(atLast); handovers == 0; {
		var seen int64
		w, err := c.Run(t.Context(), Load{
			Users: Rivals(3, 2), Length: 100 * time.Millisecond, Grants: 20,
			Show: func(grants int64, _ time.Duration) { seen = grants },
		})
		if err != nil {
			t.Fatal(err)
		}
		handovers = len(w.Handovers())
		t.Logf("%d grants, %d hand-overs in %v, cpu %v", w.Grants(), handovers, w.Length, w.CPU)
		if r := w.Judge(); !r.Accepted || r.Measures.Entries != uint64(w.Grants()) {
			t.Errorf("the history of a lock: %+v", r)
		}
		if w.Grants() < 20 || seen < 20 || w.Length < 100*time.Millisecond {
			t.Errorf("%d grants, %d shown, in %v", w.Grants(), seen, w.Length)
		}
		if w.Traffic < perLock || w.Traffic > 2*perLock { // some were asked for and given up in the end
			t.Errorf("%v bytes each", w.Traffic)
		}
		if j := w.Jain(); j <= 1.0/7 || j > 1 {
			t.Errorf("Jain's index %v of 6 users", j)
		}
		if time.Now().After(end) {
			t.Fatalf("no hand-over in %v", atLast)
		}
	}
	// The same processes take another load, and some of them none.
	w, err := c.Run(t.Context(), Load{Users: []User{{Process: 1, Name: "b"}}, Grants: 5})
	if err != nil || len(w.Records) != 1 || len(w.Records[0]) < 5 {
		t.Errorf("the second load: %v, %v", w, err)
	}
	// Some of many locks are shared, and each is held for so long.
	reader := User{Name: "c", Shared: 75, Hold: time.Microsecond}
	w, err = c.Run(t.Context(), Load{Users: []User{reader}, Grants: 200})
	if err != nil {
		t.Fatal(err)
	}
	if k := w.Part(true).Grants(); 2*k <= w.Grants() || k == w.Grants() {
		t.Errorf("%d of %d are shared, want three of four", k, w.Grants())
	}
	if r := w.Records[0][0]; r.Left-r.Entered < int64(reader.Hold) {
		t.Errorf("%+v left too early", r)
	}
}

// Who shares needs a service that can.
func TestNoSharer(t *testing.T) {
	u := &userLoop{User: User{Name: "a", Shared: 100}, client: struct{ Client }{files{dir: t.TempDir()}}, draw: rand.New(rand.NewPCG(1, 1))}
	if held, err := u.lock(t.Context()); err == nil || !strings.Contains(err.Error(), "no locks that can be shared") {
		t.Errorf("%+v, %v", held, err)
	}
}

func TestCrewErrors(t *testing.T) {
	if _, err := StartCrew(t.Context(), "files", 2, nil, workRole, "/nonesuch"); err == nil ||
		!strings.Contains(err.Error(), "nonesuch") {
		t.Errorf("a client that cannot be opened: %v", err)
	}
	if _, err := StartCrew(t.Context(), "tired", 2, nil, tiredRole); err == nil ||
		!strings.Contains(err.Error(), "too tired") {
		t.Errorf("a process that ends: %v", err)
	}
	c := startFiles(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := c.Run(ctx, Load{Users: Rivals(1, 2), Length: time.Hour}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a load that is not over in time: %v", err)
	}
	c.workers[0].Kill()
	if _, err := c.Run(t.Context(), Load{Users: Rivals(1, 2)}); err == nil {
		t.Error("a process that was killed works on")
	}
}

// A process opens a client when a load first has a user of it. One that cannot be opened then is an error.
func TestLaterClients(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "files")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	c := startFilesIn(t, dir, 2)
	users := Own(5, 2)
	if last := (User{Process: 0, Client: 2, Name: "bench-5"}); users[4] != last {
		t.Errorf("the fifth of two processes is %+v, want %+v", users[4], last)
	}
	if w, err := c.Run(t.Context(), Load{Users: users, Grants: 5}); err != nil || len(w.Records) != 5 {
		t.Errorf("three clients of one process and two of the other: %v, %v", w, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(t.Context(), Load{Users: []User{{Process: 1, Client: 2, Name: "a"}}}); err == nil ||
		!strings.Contains(err.Error(), dir) {
		t.Errorf("a third client that cannot be opened: %v", err)
	}
}

// A tethered process ends with the one that started it.
func TestTether(t *testing.T) {
	p, err := Start("tethered", waitRole)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	select {
	case <-p.Done():
		t.Fatalf("it has ended: %v", p.Err())
	case <-time.After(50 * time.Millisecond):
	}
	p.In.Close()
	select {
	case <-p.Done():
	case <-time.After(atLast):
		t.Error("it runs on")
	}
}

func TestTail(t *testing.T) {
	var l tail
	for i := range 10000 {
		fmt.Fprintf(&l, "%d\n", i)
	}
	if s := l.String(); len(s) > maxTail || !strings.HasSuffix(s, "9998\n9999") {
		t.Errorf("%d bytes that end in %q", len(s), s[len(s)-10:])
	}
}

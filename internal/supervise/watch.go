//go:build unix

package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/poundlock/poundlock/internal/clock"
)

// now is the clock of all that the three processes tell each other.
var now = clock.Shared

// An Action is what happens to a command whose lock is lost.
type Action string

// The actions.
const (
	Term Action = "term" // SIGTERM to its group, SIGKILL after the grace
	Kill Action = "kill" // SIGKILL to its group
	Warn Action = "warn" // a message; nobody watches the supervisor then
)

// margin is how long before the end of a lease the group must have ended: time for
// a busy machine to wake the watchdog and for the kernel to end the processes.
func margin(lease time.Duration) time.Duration { return lease / 10 }

// notice is the part of the grace that a lease leaves room for when nothing is
// heard of a new one: longer, and a short silence of the network would end the
// command.
func notice(lease, grace time.Duration) time.Duration { return min(grace, lease/4) }

// Watch is the watchdog. Its arguments are the name of the lock, the Action and
// the grace. It reads from in what a Watchdog sends, tells it on out what it does,
// and the user on log. It returns when it was told goodbye or has ended the group.
//
// farewell gives up, soon, what a supervisor had that was killed. It is called with what SetFarewell was, and only
// when the supervisor and all of the group have ended for certain.
func Watch(args []string, in io.Reader, out, log io.Writer, farewell func(will []byte) error) error {
	if len(args) != 3 {
		return errors.New("supervise: a watchdog is started by poundlock lock, not by hand")
	}
	grace, err := time.ParseDuration(args[2])
	if err != nil {
		return fmt.Errorf("supervise: watchdog: %w", err)
	}
	w := &watch{name: args[0], action: Action(args[1]), grace: grace, out: out, log: log, farewell: farewell}
	if w.action != Term && w.action != Kill {
		return fmt.Errorf("supervise: watchdog: bad action %q", args[1])
	}
	// Whoever ends everything around it (a service manager, a broken pipe) must
	// not end the one that ends the rest: it goes by itself when its pipe ends.
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGPIPE,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM)
	os.Chdir("/") // keeps no file system busy
	rename(WatchdogName)
	return w.run(in)
}

// news is what a Watchdog sends, as JSON: all that it knows, each time.
type news struct {
	Group int           // the process group
	Tree  cgroup        // of the same command
	Mark  string        // see Command
	Lease time.Duration // its length
	End   time.Duration // of the lease, by now
	Bye   bool          // there is nothing left to watch

	// Of a message with nothing else: see SetFarewell.
	Farewell   json.RawMessage `json:",omitempty"`
	Supervisor int             `json:",omitempty"` // its process id
}

type watch struct {
	name   string
	action Action
	grace  time.Duration
	out    io.Writer
	log    io.Writer

	farewell   func(will []byte) error
	will       []byte // nil: nothing to say
	supervisor int

	group group         // its id is 0 until known
	lease time.Duration // its length
	end   time.Duration // of the lease, by now
}

func (w *watch) run(in io.Reader) error {
	heard := make(chan news)
	done := make(chan struct{})
	defer close(done)
	go func() {
		defer close(heard)
		for decode := json.NewDecoder(in); ; {
			var n news
			if decode.Decode(&n) != nil {
				return
			}
			select {
			case heard <- n:
			case <-done:
				return
			}
		}
	}()
	for {
		var due <-chan time.Time
		if w.group.id != 0 {
			// Short sleeps: the timer does not advance while the machine is
			// suspended, and the lease does.
			due = time.After(min(w.left(), max(w.lease/20, time.Millisecond)))
		}
		select {
		case n, open := <-heard:
			switch {
			case n.Bye:
				return nil
			case !open:
				// Before the group was known no command can have begun: its gate is closed, and ends with its pipe.
				if w.group.id == 0 || w.finish("poundlock was killed") {
					w.sayGoodbye()
				}
				return nil
			case n.Farewell != nil:
				w.will, w.supervisor = n.Farewell, n.Supervisor
				continue
			case n.Group <= 1:
				return fmt.Errorf("supervise: watchdog: bad process group %d", n.Group)
			case w.group.id == 0:
				fmt.Fprintln(w.out, "armed")
			}
			w.group, w.lease, w.end = group{n.Group, n.Tree, n.Mark}, n.Lease, n.End
		case <-due:
			if w.left() <= 0 {
				w.finish("its lease is about to end")
				return nil
			}
		}
	}
}

// left is the time until the group must be told to end.
func (w *watch) left() time.Duration {
	at := w.end - margin(w.lease)
	if w.action == Term {
		at -= notice(w.lease, w.grace)
	}
	return at - now()
}

// finish ends the group, at the latest when the lease leaves no more time. A watchdog that
// comes so late that half of the notice is gone, because it was stopped or the machine was,
// asks nobody first. It reports whether all of the command has ended for certain, as far as that can be followed.
func (w *watch) finish(why string) (over bool) {
	fmt.Fprintln(w.out, "ending")
	say := func(what string) { fmt.Fprintf(w.log, "poundlock: watchdog: lock %q: %s: %s\n", w.name, why, what) }
	runsOn := func() { say(w.group.remains() + "; it runs on when somebody else has the lock") }
	beyond := w.group.beyond()
	if beyond {
		runsOn()
	} else {
		say(fmt.Sprintf("ending its command, process group %d", w.group.id))
	}
	var grace time.Duration
	if w.action == Term {
		grace = min(w.grace, w.end-margin(w.lease)-now())
	}
	if grace < notice(w.lease, w.grace)/2 {
		grace = 0
	}
	switch ended := w.group.end(grace); {
	case ended:
		over = !beyond && w.group.over()
		w.group.tree.remove()
	case !beyond:
		runsOn()
	}
	return over
}

// sayGoodbye gives up the lock of a supervisor that has ended, of whose command nothing is left: nobody can act under
// the lock any more, as after its release. A supervisor whose pipe has ended may live, and be about to use its sessions again:
// only its child sees for certain that it has ended, because then it is somebody else's.
func (w *watch) sayGoodbye() {
	if w.will == nil {
		return
	}
	for until := now() + time.Second; os.Getppid() == w.supervisor; time.Sleep(time.Millisecond) {
		if now() >= until {
			return
		}
	}
	if err := w.farewell(w.will); err != nil {
		fmt.Fprintf(w.log, "poundlock: watchdog: lock %q: not everybody has heard that it is free, and its lease ends it there: %v\n", w.name, err)
	}
}

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/verify/history/recorder"
)

// clientArgs say what a client process does.
type clientArgs struct {
	Mode    string // "count", "ask", "crowd", "measure", "harm" or "work"
	Servers string
	Host    string // the network namespace; "" for that of the test
	Label   string
	Lease   time.Duration
	Name    string        // of the lock
	File    string        // count: holds the counter
	Hold    time.Duration // count: between reading and writing
	NoLock  bool          // count: the broken variant
	Count   int           // harm: how much
	// ClockOffset is the file by which the wall clock is off, "" for none.
	ClockOffset string
	// Peers makes it one of these, by its Label up to the first space, in place of a client of Servers.
	Peers peersArgs
	work  // work
}

// counted is the last line of a client in mode count.
type counted struct {
	Increments int
	Longest    time.Duration // epoch: wait and hold
	Lost       int           // grants that were lost
	Errors     []string      // other errors
}

func runClient(role string) int {
	var a clientArgs
	if err := json.Unmarshal([]byte(role), &a); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := client(a); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func client(a clientArgs) error {
	if a.NoRefresh {
		withoutRefresh()
	}
	if a.Mode == "harm" {
		return harm(a)
	}
	if a.Peers.Members != nil {
		m, err := a.Peers.join(a)
		if err != nil {
			return err
		}
		defer m.Close()
		return newWorker(a).run(m.Client())
	}
	table, err := slots.Parse(a.Servers)
	if err != nil {
		return err
	}
	c := poundlock.Config{Label: a.Label, Lease: a.Lease, ClockBound: a.ClockBound}
	for _, p := range table {
		c.Servers = append(c.Servers, poundlock.Server(p))
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	cl, err := poundlock.Dial(ctx, c)
	cancel()
	if err != nil {
		return err
	}
	defer cl.Close()
	if a.Mode == "work" {
		return newWorker(a).run(cl)
	}
	fmt.Println("ready")
	switch a.Mode {
	case "ask":
		return ask(cl.Mutex(a.Name))
	case "measure":
		return measure(context.Background(), cl)
	case "crowd":
		return crowd(context.Background(), cl, a.Label)
	}
	return count(cl.Mutex(a.Name), a)
}

// ask obeys the lines of stdin: lock, try, lease, unlock.
func ask(m *poundlock.Mutex) error {
	var g *poundlock.Grant
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		var err error
		switch in.Text() {
		case "lock":
			g, err = m.Lock(ctx)
		case "try":
			g, err = m.TryLock(ctx)
		case "unlock":
			err = g.Unlock()
		}
		cancel()
		switch {
		case in.Text() == "lease":
			fmt.Println(g.LeaseEnd().UnixNano())
		case errors.Is(err, poundlock.ErrNotAcquired):
			fmt.Println("not acquired")
		case err != nil:
			fmt.Println("error:", err)
		case in.Text() == "unlock":
			fmt.Println("unlocked")
		default:
			fmt.Println("held", g.Token())
		}
	}
	fmt.Println("bye")
	return in.Err()
}

// roundsFile grows by a byte with each wait and hold of a client that has ended.
func roundsFile(a clientArgs) string { return a.File + "." + a.Label }

// historyFile is the event file of a client.
func historyFile(a clientArgs) string { return a.File + "." + a.Label + ".jsonl" }

// count increments the counter in a.File until stdin ends.
func count(m *poundlock.Mutex, a clientArgs) error {
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		}
	}()
	rounds, err := os.OpenFile(roundsFile(a), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer rounds.Close()
	events, err := recorder.Create(historyFile(a), recorder.Config{By: a.Label})
	if err != nil {
		return err
	}
	var r counted
	for {
		select {
		case <-stop:
			return errors.Join(events.Close(), json.NewEncoder(os.Stdout).Encode(r))
		default:
		}
		begin := time.Now()
		visit := events.Try(a.Label, a.Name)
		inside := func(ctx context.Context, token uint64, lease func() time.Time) error {
			visit.Entered(ctx, token, lease)
			defer visit.Left()
			return errors.Join(increment(a), context.Cause(ctx))
		}
		var err error
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		if a.NoLock {
			err = inside(ctx, 0, nil)
		} else {
			err = m.Do(ctx, func(ctx context.Context, g *poundlock.Grant) error {
				return inside(ctx, g.Token(), g.LeaseEnd)
			})
		}
		cancel()
		visit.Back()
		r.Longest = max(r.Longest, time.Since(begin))
		if _, err := rounds.Write([]byte{'.'}); err != nil {
			return err
		}
		switch {
		case errors.Is(err, poundlock.ErrLost):
			r.Lost++
		case err != nil:
			r.Errors = append(r.Errors, err.Error())
		default:
			r.Increments++
		}
		if len(r.Errors) > 10 {
			time.Sleep(100 * time.Millisecond) // it goes on failing
		}
	}
}

// increment reads the counter, waits, and writes it: two that do so at once lose
// an increment.
func increment(a clientArgs) error {
	k, err := readCounter(a.File)
	if err != nil {
		return err
	}
	time.Sleep(a.Hold)
	// A rename, so that nobody ever reads half a file.
	temp := fmt.Sprintf("%s.%d", a.File, os.Getpid())
	if err := os.WriteFile(temp, fmt.Appendf(nil, "%d\n", k+1), 0o600); err != nil {
		return err
	}
	return os.Rename(temp, a.File)
}

func readCounter(file string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/bench/load"
	"github.com/poundlock/poundlock/internal/freeaddr"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/server"
)

// members is how many servers there are, or how many in each shard.
const members = 4

// A cluster is four processes of servers, each with one of every shard, the processes of the clients, and a client of this process.
type cluster struct {
	plan    plan
	table   []node.Peer
	servers *load.Team[report]
	clients *load.Team[report]
	probe   *poundlock.Client
}

// spareFiles are what a process has open beside its connections.
const spareFiles = 100

// divide says how many clients each process has, at least two processes, within the limit on open files. Each client has sessions with the
// servers of so many shards at most.
func divide(clients, shards, limit int) ([]int, error) {
	room, most := (limit-spareFiles)/members/shards, clients*shards+spareFiles
	if limit < most || room < 1 {
		return nil, fmt.Errorf("%d clients: a server may have %d files open: raise the limit (ulimit -n %d), or want fewer", clients, limit, most)
	}
	k := min(clients, max(2, (clients+room-1)/room))
	counts := make([]int, k)
	for i := range clients {
		counts[i%k]++
	}
	return counts, nil
}

// openFiles is how many files a process may have open: package os has raised that to the hard limit.
func openFiles() (int, error) {
	var l syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l)
	return int(min(l.Cur, 1<<30)), err
}

// start starts everything, and opens the clients.
func start(ctx context.Context, p plan) (_ *cluster, err error) {
	limit, err := openFiles()
	if err != nil {
		return nil, err
	}
	shards := max(1, p.shards)
	counts, err := divide(p.clients, min(shards, p.few+1), limit) // one more, which Dial has chosen
	if err != nil {
		return nil, err
	}
	addrs, err := freeaddr.Find(members * shards)
	if err != nil {
		return nil, err
	}
	c := &cluster{plan: p}
	var text []string
	names := make([][]string, members) // of the servers of each process
	for i, a := range addrs {
		name := fmt.Sprintf("s%d", i%members+1)
		if p.shards > 0 {
			name = fmt.Sprintf("g%d/%s", i/members+1, name)
		}
		c.table = append(c.table, node.Peer{Name: name, Addr: a})
		text = append(text, name+"="+a)
		names[i%members] = append(names[i%members], name)
	}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	servers := strings.Join(text, ",")
	c.servers, err = load.StartTeam[report](members, "server", func(i int) []string {
		return []string{serverRole, "--names", strings.Join(names[i], ","), "--servers", servers, "--sessions", fmt.Sprint(p.clients + spareFiles)}
	})
	if err != nil {
		return nil, err
	}
	c.clients, err = load.StartTeam[report](len(counts), "clients", func(i int) []string {
		return []string{clientsRole, "--name", fmt.Sprint(i + 1), "--servers", servers, "--lease", p.lease.String()}
	})
	if err != nil {
		return nil, err
	}
	if c.probe, err = poundlock.Dial(ctx, poundlock.Config{Servers: c.table, Lease: p.lease}); err != nil {
		return nil, err
	}
	_, err = c.tell(ctx, c.clients, func(i int) order { return order{Open: counts[i]} })
	return c, err
}

func (c *cluster) close() {
	if c.probe != nil {
		c.probe.Close()
	}
	for _, t := range []*load.Team[report]{c.clients, c.servers} {
		if t != nil {
			t.Close()
		}
	}
}

// tell gives each process of a team an order, and waits for all reports.
func (c *cluster) tell(ctx context.Context, t *load.Team[report], what func(i int) order) ([]report, error) {
	for i, p := range t.Members {
		if err := json.NewEncoder(p.In).Encode(what(i)); err != nil {
			return nil, errors.Join(p.Err(), err)
		}
	}
	all := make([]report, len(t.Members))
	for range t.Members {
		from, r, err := t.Next(ctx)
		if err != nil {
			return nil, err
		}
		if r.Err != "" {
			return nil, fmt.Errorf("%s: %s", t.Members[from].Name, r.Err)
		}
		all[from] = r
	}
	return all, nil
}

// all gives each process the same order. The reports of the servers come first.
func (c *cluster) all(ctx context.Context, o order) (servers, clients []report, err error) {
	same := func(int) order { return o }
	if servers, err = c.tell(ctx, c.servers, same); err == nil {
		clients, err = c.tell(ctx, c.clients, same)
	}
	return servers, clients, err
}

// profile begins or ends profiles of all processes, where they are wanted.
func (c *cluster) profile(ctx context.Context, begins bool) error {
	if c.plan.profile == "" {
		return nil
	}
	for who, t := range map[string]*load.Team[report]{"server": c.servers, "clients": c.clients} {
		_, err := c.tell(ctx, t, func(i int) order {
			if !begins {
				return order{Profile: "."}
			}
			return order{Profile: filepath.Join(c.plan.profile, fmt.Sprintf("%s%d.pprof", who, i+1))}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// crowdLabel is the label of the clients that are counted: those of this process are not.
const crowdLabel = "crowd"

// count is how many of the clients each server has a session with.
func (c *cluster) count(ctx context.Context) (each []int, err error) {
	o, err := server.Observe(server.AskConfig{Servers: c.table, Timeout: 30 * time.Second, Label: "count"})
	if err != nil {
		return nil, err
	}
	defer o.Close()
	for _, a := range o.Sessions(ctx) {
		if a.Err != nil {
			return nil, fmt.Errorf("%s: %w", a.Server.Name, a.Err)
		}
		k := 0
		for _, s := range a.Status.Sessions {
			if s.Label == crowdLabel {
				k++
			}
		}
		each = append(each, k)
	}
	return each, nil
}

// A look is one acquire beside.
type look struct {
	at   time.Time // of its beginning
	took time.Duration
	err  error
}

// exclusive acquires one of many names, alone.
func (c *cluster) exclusive(ctx context.Context, k int) (*poundlock.Grant, error) {
	return c.probe.Mutex(fmt.Sprintf("beside/%d", k%10_000)).Lock(ctx)
}

// beside acquires at the pace of the plan until stop is called, which returns what came of it.
func (c *cluster) beside(acquire func(ctx context.Context, k int) (*poundlock.Grant, error)) (stop func() []look) {
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex
	var looks []look
	var all sync.WaitGroup
	all.Go(func() {
		tick := time.NewTicker(time.Second / time.Duration(c.plan.pace))
		defer tick.Stop()
		for k := 0; ; k++ {
			all.Go(func() {
				l := look{at: time.Now()}
				g, err := acquire(ctx, k)
				l.took, l.err = time.Since(l.at), err
				if err == nil {
					l.err = g.Unlock()
				}
				if ctx.Err() == nil || l.err == nil {
					mu.Lock()
					looks = append(looks, l)
					mu.Unlock()
				}
			})
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() []look {
		cancel()
		all.Wait()
		slices.SortFunc(looks, func(a, b look) int { return a.at.Compare(b.at) })
		return looks
	}
}

// processorTime is that of all these.
func processorTimes(all []report) (sum time.Duration) {
	for _, r := range all {
		sum += r.CPU
	}
	return sum
}

func sum(all []report, of func(report) int) (k int) {
	for _, r := range all {
		k += of(r)
	}
	return k
}

package peers_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/faultnet"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/peers"
)

const termLease = time.Second

// A campaign are members that all want to lead, for ever, in virtual time, and what became of that.
type campaign struct {
	t       *testing.T
	mesh    faultnet.Mesh
	config  peers.Config
	boot    func() time.Duration
	slow    string // whose clock stands nearly still; "": nobody's
	members map[string]*peers.Member

	mu     sync.Mutex
	leader string // "": nobody
	term   *poundlock.Leadership
	token  uint64 // the largest one
	wrong  []string
	terms  int
	done   sync.WaitGroup
}

func newCampaign(t *testing.T, algorithm string) *campaign {
	c := &campaign{t: t, members: map[string]*peers.Member{}, config: peers.Config{Algorithm: algorithm, Lease: termLease}}
	began := time.Now()
	c.boot = func() time.Duration { return time.Since(began) }
	for k := range 5 {
		name := fmt.Sprint("p", k+1)
		c.config.Members = append(c.config.Members, peers.Peer{Name: name, Addr: name})
	}
	return c
}

// join starts members that want to lead until ctx ends.
func (c *campaign) join(ctx context.Context, bootstrap bool, names ...string) {
	c.t.Helper()
	var joined sync.WaitGroup
	for _, name := range names {
		config := c.config
		config.Name, config.Bootstrap = name, bootstrap
		var err error
		if config.Listener, err = c.mesh.Listen(name); err != nil {
			c.t.Fatal(err)
		}
		config.Change(func(n *node.Config) {
			n.Dial = func(ctx context.Context, p peers.Peer) (net.Conn, error) { return c.mesh.Dial(ctx, name, p.Addr) }
			n.Boot = c.boot
			if name == c.slow {
				n.Boot = func() time.Duration { return c.boot() / 100 }
			}
		})
		joined.Go(func() {
			m, err := peers.Join(ctx, config)
			if err != nil {
				c.t.Error(err)
				return
			}
			c.mu.Lock()
			c.members[name] = m
			c.mu.Unlock()
			c.done.Go(func() { c.run(ctx, name, m) })
		})
	}
	joined.Wait()
}

// run leads as often as it can.
func (c *campaign) run(ctx context.Context, name string, m *peers.Member) {
	for ctx.Err() == nil {
		term, err := m.Leader(ctx, "job")
		if errors.Is(err, poundlock.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		c.begin(name, term)
		select {
		case <-term.Context().Done():
		case <-time.After(3 * termLease):
		}
		c.mu.Lock()
		if c.term == term {
			c.leader, c.term = "", nil
		}
		c.mu.Unlock()
		_ = term.Resign()
	}
}

// begin notes a new leader, before whom the last one must have been told that it is over.
func (c *campaign) begin(name string, term *poundlock.Leadership) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if term.Context().Err() != nil {
		return
	}
	if c.term != nil && c.term.Context().Err() == nil {
		c.wrong = append(c.wrong, fmt.Sprintf("%s leads beside %s", name, c.leader))
	}
	if term.Token() <= c.token {
		c.wrong = append(c.wrong, fmt.Sprintf("token %d of %s after %d", term.Token(), name, c.token))
	}
	c.leader, c.term, c.token = name, term, max(c.token, term.Token())
	c.terms++
}

// leads waits until one of these leads.
func (c *campaign) leads(within time.Duration, names ...string) string {
	c.t.Helper()
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		c.mu.Lock()
		name := c.leader
		c.mu.Unlock()
		if slices.Contains(names, name) {
			return name
		}
	}
	c.t.Errorf("none of %v leads after %v", names, within)
	return names[0]
}

// divide cuts some members from the others.
func (c *campaign) divide(minority ...string) (majority []string) {
	for _, p := range c.config.Members {
		if !slices.Contains(minority, p.Name) {
			majority = append(majority, p.Name)
		}
		for _, q := range c.config.Members {
			cable, cut := c.mesh.Between(p.Name, q.Name), slices.Contains(minority, p.Name) != slices.Contains(minority, q.Name)
			if cut != cable.IsCut() {
				cable.Cut(cut)
			}
		}
	}
	return majority
}

func (c *campaign) others(name string) (others []string) {
	for _, p := range c.config.Members {
		if p.Name != name {
			others = append(others, p.Name)
		}
	}
	return others
}

// TestLeader: while members are cut in two, die and come back, at most one leads, and the last one has been told
// before the next one leads; those who are a majority have a leader within two leases.
func TestLeader(t *testing.T) {
	for _, algorithm := range []string{"tokengme/recovery", "ra2/recovery", "suzuki-kasami/recovery"} {
		t.Run(algorithm, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCampaign(t, algorithm)
				ctx, end := context.WithCancel(t.Context())
				c.join(ctx, true, node.Names(c.config.Members)...)
				all := node.Names(c.config.Members)
				for range 3 {
					leader := c.leads(2*termLease, all...)
					majority := c.divide(leader, c.others(leader)[0])
					seen := c.leads(2*termLease, majority...)
					if err := c.members[leader].Healthy(); !errors.Is(err, peers.ErrPeerDown) {
						t.Errorf("the minority: %v", err)
					}
					for l, err := range c.members[seen].Observe(ctx, "job") {
						if err != nil || !slices.Contains(majority, l.Label) {
							t.Errorf("%+v leads, %v", l, err)
						}
						break
					}
					c.divide()
					c.leads(4*termLease, all...)

					leader = c.leads(2*termLease, all...)
					others := c.divide(leader) // as good as dead
					c.leads(2*termLease, others...)
					c.members[leader].Close()
					c.divide()
					c.join(ctx, false, leader)
					c.leads(2*termLease, all...)
				}
				end()
				for _, m := range c.members {
					m.Close()
				}
				c.done.Wait()
				for _, what := range c.wrong {
					t.Error(what)
				}
				if c.terms < 7 {
					t.Errorf("%d terms", c.terms)
				}
			})
		})
	}
}

// TestLeaderWithSlowClock: the judge of TestLeader sees a leader whose clock breaks the promise that leases rest on.
func TestLeaderWithSlowClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCampaign(t, "")
		c.slow = "p1"
		ctx, end := context.WithCancel(t.Context())
		c.join(ctx, true, node.Names(c.config.Members)...)
		c.leads(100*termLease, "p1")
		c.leads(10*termLease, c.divide("p1")...)
		c.divide()
		end()
		for _, m := range c.members {
			m.Close()
		}
		c.done.Wait()
		if len(c.wrong) == 0 {
			t.Error("nobody saw two leaders")
		}
	})
}

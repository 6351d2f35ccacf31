package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/bench/load"
	"github.com/poundlock/poundlock/internal/freeaddr"
)

// zooKeeperJar is that of Debian's package, which names what else it needs.
const zooKeeperJar = "/usr/share/java/zookeeper.jar"

// startZooKeeper starts three servers, and clients.
func startZooKeeper(ctx context.Context, name, dir string) (crew *load.Crew, stop func(), err error) {
	var stops stops
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, stops.all, fmt.Errorf("%w: no program java", errAbsent)
	}
	if _, err := os.Stat(zooKeeperJar); err != nil {
		return nil, stops.all, fmt.Errorf("%w: no %s", errAbsent, zooKeeperJar)
	}
	data, err := os.MkdirTemp(dir, "poundlock-bench-zookeeper")
	if err != nil {
		return nil, stops.all, err
	}
	stops.add(func() { os.RemoveAll(data) })
	addrs, err := freeaddr.Find(3 * members)
	if err != nil {
		return nil, stops.all, err
	}
	endpoints, peers, elections := addrs[:members], addrs[members:2*members], addrs[2*members:]
	var cluster strings.Builder
	for i := range members {
		_, port, err := net.SplitHostPort(elections[i])
		if err != nil {
			return nil, stops.all, err
		}
		fmt.Fprintf(&cluster, "server.%d=%s:%s\n", i+1, peers[i], port)
	}
	var servers []*load.Process
	for i, e := range endpoints {
		d := filepath.Join(data, strconv.Itoa(i+1))
		if err := configureZooKeeper(d, i+1, e, cluster.String()); err != nil {
			return nil, stops.all, err
		}
		p, end, err := startGuest(fmt.Sprintf("%s %d", name, i+1), d, java,
			"-cp", zooKeeperJar, "-Dzookeeper.jmx.log4j.disable=true", "org.apache.zookeeper.server.quorum.QuorumPeerMain", "zoo.cfg")
		stops.add(end)
		if err != nil {
			return nil, stops.all, err
		}
		servers = append(servers, p)
	}
	if err := awaitZooKeeper(ctx, endpoints, servers); err != nil {
		return nil, stops.all, err
	}
	if crew, err = load.StartCrew(ctx, name, processes, servers, append([]string{zooKeeperClient}, endpoints...)...); err != nil {
		return nil, stops.all, err
	}
	stops.add(crew.Close)
	return crew, stops.all, nil
}

// configureZooKeeper writes the files of one server. The times are those of the example that comes with it.
func configureZooKeeper(dir string, id int, endpoint, cluster string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(endpoint)
	if err != nil {
		return err
	}
	config := fmt.Sprintf("tickTime=2000\ninitLimit=10\nsyncLimit=5\nadmin.enableServer=false\ndataDir=%s\n"+
		"clientPortAddress=%s\nclientPort=%s\n%s", dir, host, port, cluster)
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "myid"), []byte(strconv.Itoa(id)), 0o600),
		os.WriteFile(filepath.Join(dir, "zoo.cfg"), []byte(config), 0o600))
}

// awaitZooKeeper waits until every server serves.
func awaitZooKeeper(ctx context.Context, endpoints []string, servers []*load.Process) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // three Java machines start on few processors
	defer cancel()
	for _, e := range endpoints {
		c, err := dialZooKeeper(ctx, []string{e}, &meter{})
		if err != nil {
			return cmp.Or(load.Ended(servers), fmt.Errorf("%s does not answer: %w", e, err))
		}
		c.Close()
	}
	return nil
}

func dialZooKeeper(ctx context.Context, endpoints []string, m *meter) (*zk.Conn, error) {
	dial := func(_, addr string, patience time.Duration) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return m.dial(ctx, addr)
	}
	c, events, err := zk.Connect(endpoints, 10*time.Second, zk.WithDialer(dial), zk.WithLogger(silent{}))
	if err != nil {
		return nil, err
	}
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return c, nil
			}
		case <-ctx.Done():
			c.Close()
			return nil, ctx.Err()
		}
	}
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// A zooKeeperUser has one connection and session. Its locks are the recipe "Shared Locks" of
// ZooKeeper's documentation, which Curator's InterProcessReadWriteLock follows, too.
type zooKeeperUser struct {
	*meter
	c *zk.Conn
}

func openZooKeeper(ctx context.Context, endpoints []string) (load.Client, error) {
	m := &meter{}
	c, err := dialZooKeeper(ctx, endpoints, m)
	if err != nil {
		return nil, err
	}
	return &zooKeeperUser{m, c}, nil
}

const (
	readNode  = "read-"
	writeNode = "write-"
)

func (z *zooKeeperUser) Lock(ctx context.Context, name string) (load.Held, error) {
	return z.lock(ctx, name, "", writeNode)
}

// RLock implements load.Sharer.
func (z *zooKeeperUser) RLock(ctx context.Context, name string) (load.Held, error) {
	return z.lock(ctx, name, poundlock.Shared, readNode)
}

func (z *zooKeeperUser) lock(ctx context.Context, name, group, kind string) (load.Held, error) {
	dir, acl := "/"+name, zk.WorldACL(zk.PermAll)
	enqueue := func() (string, error) { return z.c.Create(dir+"/"+kind, nil, zk.FlagEphemeralSequential, acl) }
	own, err := enqueue()
	if errors.Is(err, zk.ErrNoNode) {
		if _, err = z.c.Create(dir, nil, 0, acl); err == nil || errors.Is(err, zk.ErrNodeExists) {
			own, err = enqueue()
		}
	}
	if err != nil {
		return load.Held{}, err
	}
	unlock := func() error { return z.c.Delete(own, -1) }
	for {
		all, _, err := z.c.Children(dir)
		if err != nil {
			return load.Held{}, errors.Join(err, unlock())
		}
		before := lastBefore(all, filepath.Base(own))
		if before == "" {
			return load.Held{Group: group, Unlock: unlock}, nil
		}
		there, _, gone, err := z.c.ExistsW(dir + "/" + before)
		if err != nil {
			return load.Held{}, errors.Join(err, unlock())
		}
		if !there {
			continue
		}
		select {
		case <-gone:
		case <-ctx.Done():
			return load.Held{}, errors.Join(ctx.Err(), unlock())
		}
	}
}

// lastBefore is the last node of those that own waits for: of earlier writers, and for a
// writer of earlier readers, too.
func lastBefore(all []string, own string) string {
	number := func(node string) string { return node[strings.LastIndexByte(node, '-')+1:] }
	all = slices.DeleteFunc(all, func(node string) bool {
		return number(node) >= number(own) || strings.HasPrefix(own, readNode) && strings.HasPrefix(node, readNode)
	})
	if len(all) == 0 {
		return ""
	}
	return slices.MaxFunc(all, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
}

func (z *zooKeeperUser) Close() error {
	z.c.Close()
	return nil
}

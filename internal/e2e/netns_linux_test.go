package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/poundlock/poundlock/internal/faultnet"
	"github.com/poundlock/poundlock/internal/lane"
)

// namespaces are a network of hosts, each a network namespace, and of a switch between them. Packets are dropped
// where they arrive.
type namespaces struct {
	t      *testing.T
	prefix string            // of the names, so that two tests do not meet
	addr   map[string]string // by host
}

// networks is how many this process has made; several may be left until their test ends.
var networks atomic.Int64

const switchHost = "sw" // also where the status is asked from

// newNamespaces skips the test where there can be no such network.
func newNamespaces(t *testing.T, hosts ...string) *namespaces {
	t.Helper()
	if os.Geteuid() != 0 {
		skip(t, "only root can make them")
	}
	for _, tool := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(tool); err != nil {
			skip(t, "they need ip and nft, of the packages iproute2 and nftables: "+err.Error())
		}
	}
	x := &namespaces{t: t, prefix: fmt.Sprintf("pl%d-%d-", os.Getpid(), networks.Add(1)), addr: map[string]string{switchHost: "10.77.0.9"}}
	t.Cleanup(func() {
		for host := range x.addr {
			exec.Command("ip", "netns", "del", x.host(host)).Run() // some may not have been made
		}
	})
	err := run("ip", "netns", "add", x.host(switchHost))
	for _, args := range []string{
		"link add br0 type bridge",
		"link set br0 up",
		"addr add " + x.addr[switchHost] + "/24 dev br0",
	} {
		if err == nil {
			err = x.ip(switchHost, args)
		}
	}
	for k, host := range hosts {
		x.addr[host] = fmt.Sprintf("10.77.0.%d", 11+k)
		if err == nil {
			err = x.add(host)
		}
	}
	if err != nil {
		skip(t, err.Error())
	}
	return x
}

func skip(t *testing.T, why string) {
	t.Helper()
	t.Skipf("SKIPPED: no networks of namespaces are cut here, only those of proxies: %s", why)
}

func (x *namespaces) host(name string) string { return x.prefix + name }

// add makes a host with a cable to the switch, and a filter that lets all pass.
func (x *namespaces) add(host string) error {
	if err := run("ip", "netns", "add", x.host(host)); err != nil {
		return err
	}
	if err := run("ip", "link", "add", "eth0", "netns", x.host(host), "type", "veth",
		"peer", "name", host, "netns", x.host(switchHost)); err != nil {
		return err
	}
	for _, args := range []string{"addr add " + x.addr[host] + "/24 dev eth0", "link set eth0 up", "link set lo up"} {
		if err := x.ip(host, args); err != nil {
			return err
		}
	}
	if err := x.ip(switchHost, "link set "+host+" master br0 up"); err != nil {
		return err
	}
	return x.nft(host, "add table ip cut; add chain ip cut input { type filter hook input priority 0; policy accept; }")
}

func (x *namespaces) ip(host, args string) error {
	return run("ip", append([]string{"-n", x.host(host)}, strings.Fields(args)...)...)
}

func (x *namespaces) nft(host, rules string) error {
	return run("ip", "netns", "exec", x.host(host), "nft", rules)
}

func run(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

func (x *namespaces) start(t *testing.T) *cluster {
	t.Helper()
	insecure := func(int) []string { return []string{"--insecure"} }
	c := &cluster{t: t, flags: insecure, from: x.host(switchHost)}
	for _, host := range names("s1 s2 s3 s4") {
		c.table = append(c.table, host+"="+x.addr[host]+":7000")
		c.hosts = append(c.hosts, x.host(host))
	}
	c.startAll()
	return c
}

func (x *namespaces) client(name string, a clientArgs) clientArgs {
	var table []string
	for _, host := range names("s1 s2 s3 s4") {
		table = append(table, host+"="+x.addr[host]+":7000")
	}
	a.Servers, a.Host = strings.Join(table, ","), x.host(name)
	return a
}

func (x *namespaces) cut(s split) {
	x.t.Helper()
	drop := func(at, from string) {
		if err := x.nft(at, "add rule ip cut input ip saddr "+x.addr[from]+" drop"); err != nil {
			x.t.Fatal(err)
		}
	}
	for _, c := range s.clients {
		for _, s0 := range s.servers {
			if s.direction&faultnet.Up != 0 {
				drop(s0, c)
			}
			if s.direction&faultnet.Down != 0 {
				drop(c, s0)
			}
		}
	}
}

func (x *namespaces) heal() {
	x.t.Helper()
	for host := range x.addr {
		if host == switchHost {
			continue
		}
		if err := x.nft(host, "flush chain ip cut input"); err != nil {
			x.t.Fatal(err)
		}
	}
}

// TestCutsOfNamespaces is TestCuts with packets that are lost, instead of bytes that
// are held: the kernel repeats them, later and later.
func TestCutsOfNamespaces(t *testing.T) {
	if !lane.Long.Runs() {
		skip(t, "TEST_LANE=long does it")
	}
	testCuts(t, func(t *testing.T) network { return newNamespaces(t, names("s1 s2 s3 s4 c1 c2 c3 c4")...) })
}

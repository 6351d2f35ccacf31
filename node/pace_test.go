package node_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// A slow system has a member that handles one message in a millisecond, of all its loops, and a client.
func slowSystem(t *testing.T, lease time.Duration) (client *node.Node) {
	t.Helper()
	one := make(chan struct{}, 1)
	host := node.HostOf(keeper(func(e keeperEvent) {
		if e.At == 0 && e.Kind == protocol.Receive {
			one <- struct{}{}
			time.Sleep(time.Millisecond)
			<-one
		}
	}))
	var network cable
	l, err := network.Listen("s1")
	must(t, err)
	c := node.Config{
		Hosts: mutexes(host), Peers: []node.Peer{{Name: "s1", Addr: "s1"}}, Lease: lease, Dial: network.dial, Boot: virtual(),
	}
	member := c
	member.Listener = l
	start(t, member)
	c.Secret = node.NewSecret()
	client = start(t, c)
	must(t, client.WaitAlive(t.Context(), 1))
	return client
}

// ask tries so often in a second, for a while, and gives each up that is not granted within patience. It returns how many were.
func ask(t *testing.T, client *node.Node, rate int, length, patience time.Duration) (granted int) {
	t.Helper()
	var all sync.WaitGroup
	var in atomic.Int64
	for k := range int(length.Seconds() * float64(rate)) {
		all.Go(func() {
			u, name := newProbe(), fmt.Sprint("asked", k)
			if err := client.Try(node.Mutex, name, u, false); err != nil {
				t.Error(err)
				return
			}
			select {
			case <-u.crit:
				in.Add(1)
				client.Exit(name)
			case <-time.After(patience):
				client.Cancel(name)
				select {
				case <-u.crit: // before the node heard of that
					client.Exit(name)
				case <-u.rem:
					return
				}
			}
			<-u.rem
		})
		time.Sleep(time.Second / time.Duration(rate))
	}
	granted = int(in.Load())
	all.Wait()
	return granted
}

// A member that is asked for four times what it can do grants nearly all that it can, in time, and the client that asks
// keeps what it holds.
func TestAskingTooMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := slowSystem(t, 2*time.Second)
		held := newProbe()
		for k := range 10 {
			must(t, client.Try(node.Mutex, fmt.Sprint("held", k), held, false))
			<-held.crit
		}
		sessions := fmt.Sprint(sessionNumbers(client))
		time.AfterFunc(4*time.Second, func() {
			if b := client.Backlog(); b.Users == 0 || b.Wait < 200*time.Millisecond || b.Wait > 10*time.Second || b.Stands == 0 {
				t.Errorf("amid the load: %+v", b)
			}
		})
		const can, length = 500, 6 * time.Second // two messages each
		granted := ask(t, client, 4*can, length, time.Second)
		rate := float64(granted) / length.Seconds()
		t.Logf("%.0f granted in a second of %d", rate, can)
		if rate < 0.8*can {
			t.Errorf("%.0f granted in a second, want at least 0.8 of the %d that the member can", rate, can)
		}
		if now := fmt.Sprint(sessionNumbers(client)); now != sessions || len(held.ejected) > 0 {
			t.Errorf("sessions %s became %s, and %d locks were lost", sessions, now, len(held.ejected))
		}
		u := newProbe()
		began := time.Now()
		must(t, client.Try(node.Mutex, "after", u, false))
		<-u.crit
		if took := time.Since(began); took > 600*time.Millisecond {
			t.Errorf("right after the load an acquire takes %v", took)
		}
	})
}

// A Try that waits for servers is taken back at once, leaves nothing behind, and may be made again; Close lets those go that wait.
func TestTakingBackWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := slowSystem(t, time.Minute)
		users := make([]*probe, 4000)
		try := func(k int) {
			users[k] = newProbe()
			must(t, client.Try(node.Mutex, fmt.Sprint("a", k), users[k], false))
		}
		for k := range users {
			try(k)
		}
		synctest.Wait()
		last := len(users) - 1
		if client.Backlog().Users == 0 {
			t.Fatal("nobody waits for a member that can do 500 in a second")
		}
		began := time.Now()
		for k := 1000; k < len(users); k++ {
			client.Cancel(fmt.Sprint("a", k))
			if why := <-users[k].rem; why != "" {
				t.Fatal(why)
			}
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("to take them back took %v", took)
		}
		try(last)
		if waiting := client.Backlog().Users; waiting > 1000 {
			t.Errorf("%d wait of at most 1001", waiting)
		}
		for k := range 500 {
			<-users[k].crit // although others came later
		}
		must(t, client.Close())
		for k := 500; k < 1000; k++ {
			select {
			case <-users[k].crit:
			case why := <-users[k].rem:
				if why != node.ErrClosed.Error() {
					t.Fatal(why)
				}
			}
		}
	})
}

// A client that loses its quorum amid a load keeps the sessions that it still has.
func TestQuorumLostAmidLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lease = 2 * time.Second
		ones := [2]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)}
		host := node.HostOf(keeper(func(e keeperEvent) {
			if e.At < 2 && e.Kind == protocol.Receive {
				ones[e.At] <- struct{}{}
				time.Sleep(time.Millisecond)
				<-ones[e.At]
			}
		}))
		var network cable
		c := node.Config{
			Hosts: mutexes(host), Peers: []node.Peer{{Name: "s1", Addr: "s1"}, {Name: "s2", Addr: "s2"}}, Lease: lease, Dial: network.dial, Boot: virtual(),
		}
		var members [2]*node.Node
		for k := range members {
			l, err := network.Listen(c.Peers[k].Name)
			must(t, err)
			m := c
			m.ID, m.Listener = protocol.ID(k), l
			members[k] = start(t, m)
		}
		c.Secret = node.NewSecret()
		client := start(t, c)
		must(t, client.WaitAlive(t.Context(), 2))
		before := fmt.Sprint(sessionNumbers(client))
		for k := range 20000 {
			must(t, client.Try(node.Mutex, fmt.Sprint("f", k), newInsider(), false))
		}
		time.Sleep(5 * time.Second)
		go members[1].Close()
		time.Sleep(6 * lease)
		if got := fmt.Sprint(sessionNumbers(client)); got != "[1]" {
			t.Errorf("sessions %s became %s", before, got)
		}
	})
}

// An againUser does something when it has left.
type againUser struct {
	*probe
	again func()
}

func (u *againUser) Rem(why error) { u.again(); u.probe.Rem(why) }

// A user that leaves, tries again, and is taken back while it waits leaves no instance behind.
func TestTakenBackLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := slowSystem(t, time.Minute)
		const k = 100
		first, second := make([]*againUser, k), make([]*probe, k)
		for i := range k {
			name := fmt.Sprint("x", i)
			second[i] = newProbe()
			first[i] = &againUser{newProbe(), func() { must(t, client.Try(node.Mutex, name, second[i], false)) }}
			must(t, client.Try(node.Mutex, name, first[i], false))
			<-first[i].crit
		}
		flood := make([]*probe, 3000)
		for i := range flood {
			flood[i] = newProbe()
			must(t, client.Try(node.Mutex, fmt.Sprint("f", i), flood[i], false))
		}
		synctest.Wait()
		for i := range k {
			client.Exit(fmt.Sprint("x", i))
			<-first[i].rem
		}
		synctest.Wait()
		for i := range flood {
			client.Cancel(fmt.Sprint("f", i))
			select {
			case <-flood[i].rem:
			case <-flood[i].crit:
				client.Exit(fmt.Sprint("f", i))
				<-flood[i].rem
			}
		}
		for i := range k {
			client.Cancel(fmt.Sprint("x", i))
			select {
			case <-second[i].rem:
			case <-second[i].crit:
				client.Exit(fmt.Sprint("x", i))
				<-second[i].rem
			}
		}
		time.Sleep(5 * time.Second)
		if left := client.Instances(); left > 0 {
			t.Errorf("%d instances are left behind of users that have all left", left)
		}
	})
}

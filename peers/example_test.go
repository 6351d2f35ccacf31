package peers_test

import (
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/poundlock/poundlock/peers"
)

// Three replicas of a service, here in one process, lock among themselves.
func Example() {
	ctx := context.Background()
	names := []string{"r1", "r2", "r3"}
	var members []peers.Peer
	listeners := map[string]net.Listener{}
	for _, name := range names {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			fmt.Println(err)
			return
		}
		listeners[name] = l
		members = append(members, peers.Peer{Name: name, Addr: l.Addr().String()})
	}
	counter := 0 // of whoever is inside
	var replicas, done sync.WaitGroup
	done.Add(len(names))
	for _, name := range names {
		replicas.Go(func() {
			m, err := peers.Join(ctx, peers.Config{Name: name, Members: members, Listener: listeners[name], Bootstrap: true})
			if err != nil {
				fmt.Println(err)
				return
			}
			for range 10 {
				g, err := m.Mutex("counter").Lock(ctx)
				if err != nil {
					fmt.Println(err)
					return
				}
				counter++
				if err := g.Unlock(); err != nil {
					fmt.Println(err)
				}
			}
			done.Done()
			done.Wait() // a majority has to be there until all have had the lock
			m.Close()
		})
	}
	replicas.Wait()
	fmt.Println(counter)
	// Output: 30
}

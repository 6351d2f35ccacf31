// Command replicas is a service of three replicas without any server beside it: one of them leads while the others
// stand by, and all of them take turns at a job that one at a time may do. The first time they are started with
// -first, each in a terminal or on a machine of its own:
//
//	go run ./examples/replicas -first r1 r1=127.0.0.1:7601 r2=127.0.0.1:7602 r3=127.0.0.1:7603
//	go run ./examples/replicas -first r2 r1=127.0.0.1:7601 r2=127.0.0.1:7602 r3=127.0.0.1:7603
//	go run ./examples/replicas -first r3 r1=127.0.0.1:7601 r2=127.0.0.1:7602 r3=127.0.0.1:7603
//
// Kill the one that leads: in a few seconds another one does, with a larger token. One that was killed comes back
// without -first:
//
//	go run ./examples/replicas r1 r1=127.0.0.1:7601 r2=127.0.0.1:7602 r3=127.0.0.1:7603
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/poundlock/poundlock/peers"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var config peers.Config
	flag.BoolVar(&config.Bootstrap, "first", false, "the replicas begin")
	flag.Parse()
	config.Name = flag.Arg(0)
	for _, arg := range flag.Args()[min(1, flag.NArg()):] {
		name, addr, _ := strings.Cut(arg, "=")
		config.Members = append(config.Members, peers.Peer{Name: name, Addr: addr})
	}
	if err := run(ctx, config); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

// run is a replica until ctx ends.
func run(ctx context.Context, config peers.Config) error {
	m, err := peers.Join(ctx, config) // waits for the others
	if err != nil {
		return err
	}
	defer m.Close()
	var both sync.WaitGroup
	both.Go(func() { again(ctx, func() error { return lead(ctx, m, config.Name) }) })
	both.Go(func() { again(ctx, func() error { return clean(ctx, m, config.Name) }) })
	both.Wait()
	return nil
}

// again does it until ctx ends.
func again(ctx context.Context, do func() error) {
	for ctx.Err() == nil {
		if err := do(); err != nil && ctx.Err() == nil {
			log.Print(err)
		}
	}
}

// lead leads until that is over.
func lead(ctx context.Context, m *peers.Member, name string) error {
	term, err := m.Leader(ctx, "scheduler") // waits until nobody else leads
	if err != nil {
		return err
	}
	defer term.Resign()
	fmt.Printf("%s leads, with token %d\n", name, term.Token())
	select {
	case <-term.Context().Done(): // before another one leads
		return context.Cause(term.Context())
	case <-ctx.Done():
		return nil
	}
}

// clean does the job once.
func clean(ctx context.Context, m *peers.Member, name string) error {
	grant, err := m.Mutex("cleaning").Lock(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%s cleans up, with token %d\n", name, grant.Token())
	time.Sleep(100 * time.Millisecond)
	return grant.Unlock()
}

package poundlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/server"
)

// cluster starts four servers in this process. A real cluster is four processes,
// each of which runs poundlock serve.
func cluster() (c poundlock.Config, stop func()) {
	dir, err := os.MkdirTemp("", "pl")
	if err != nil {
		log.Fatal(err)
	}
	l, err := server.StartLocal(server.LocalConfig{Dir: dir})
	if err != nil {
		log.Fatal(err)
	}
	c.Servers = l.Servers()
	return c, func() {
		l.Close()
		os.RemoveAll(dir)
	}
}

func Example() {
	config, stop := cluster()
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	client, err := poundlock.Dial(ctx, config)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	err = client.Mutex("deploy").Do(ctx, func(ctx context.Context, g *poundlock.Grant) error {
		fmt.Println("inside, with a token:", g.Token() > 0)
		return ctx.Err()
	})
	fmt.Println("outside:", err)
	// Output:
	// inside, with a token: true
	// outside: <nil>
}

func ExampleMutex_TryLock() {
	config, stop := cluster()
	defer stop()
	client, err := poundlock.Dial(context.Background(), config)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	grant, err := client.Mutex("deploy").TryLock(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Mutex("deploy").TryLock(context.Background())
	fmt.Println(err)
	fmt.Println(grant.Unlock())
	// Output:
	// poundlock: lock "deploy" not acquired: this client holds or wants it already
	// <nil>
}

func ExampleClient_Locks() {
	config, stop := cluster()
	defer stop()
	client, err := poundlock.Dial(context.Background(), config)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	// Whoever names the same two accounts in the other order waits, and no more.
	err = client.Locks("savings", "current").Do(context.Background(), func(ctx context.Context, g *poundlock.Grant) error {
		for i, name := range g.Names() {
			fmt.Println(name, g.Tokens()[i] > 0)
		}
		return ctx.Err()
	})
	fmt.Println(err)
	// Output:
	// current true
	// savings true
	// <nil>
}

func ExampleClient_Semaphore() {
	config, stop := cluster()
	defer stop()
	client, err := poundlock.Dial(context.Background(), config)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	builds := client.Semaphore("build", 2)
	for range 2 {
		grant, err := builds.Acquire(context.Background())
		if err != nil {
			log.Fatal(err)
		}
		defer grant.Unlock()
	}
	_, err = builds.TryAcquire(context.Background())
	fmt.Println(errors.Is(err, poundlock.ErrNotAcquired))
	// Output:
	// true
}

func ExampleClient_Election() {
	config, stop := cluster()
	defer stop()
	config.Label = "scheduler on host 7"
	client, err := poundlock.Dial(context.Background(), config)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	election := client.Election("scheduler")
	leadership, err := election.Campaign(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	// Work until leadership.Context() ends, with leadership.Token(). Meanwhile
	// anybody may ask:
	leader, err := election.Leader(context.Background())
	fmt.Println(leader.Label, err)
	fmt.Println(leadership.Resign())
	// Output:
	// scheduler on host 7 <nil>
	// <nil>
}

func ExampleMutex_Locker() {
	config, stop := cluster()
	defer stop()
	client, err := poundlock.Dial(context.Background(), config)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	// For code that wants a sync.Locker: its Unlock panics if the lock was lost.
	var l sync.Locker = client.Mutex("cache").Locker(context.Background())
	l.Lock()
	defer l.Unlock()
	fmt.Println("inside")
	// Output:
	// inside
}

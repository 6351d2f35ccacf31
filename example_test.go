package poundlock_test

import (
	"context"
	"fmt"
	"log"
	"os"
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
	for _, s := range l.Servers() {
		c.Servers = append(c.Servers, poundlock.Server(s))
	}
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
	err = client.Mutex("deploy").Do(ctx, func(ctx context.Context, g poundlock.Grant) error {
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
	// poundlock: not acquired: lock "deploy": this client holds or wants it already
	// <nil>
}

// Command worker runs in as many copies as you like, on any machines. One of them works; when it
// ends, crashes or is cut off, another one goes on.
//
//	poundlock serve --config poundlock.yaml --name s1 &   # and so on: four servers
//	go run ./examples/worker s1=127.0.0.1:7001 s2=127.0.0.1:7002 s3=127.0.0.1:7003 s4=127.0.0.1:7004
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/poundlock/poundlock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var config poundlock.Config
	for _, arg := range os.Args[1:] {
		name, addr, _ := strings.Cut(arg, "=")
		config.Servers = append(config.Servers, poundlock.Server{Name: name, Addr: addr})
	}
	if err := run(ctx, config, work); err != nil {
		log.Fatal(err)
	}
}

// run waits for its turn and works, again and again, until ctx ends.
func run(ctx context.Context, config poundlock.Config, work func(context.Context, uint64) error) error {
	client, err := poundlock.Dial(ctx, config)
	if err != nil {
		return err
	}
	defer client.Close()
	for ctx.Err() == nil {
		// The context inside ends when the lock is lost: work stops then.
		err := client.Mutex("worker").Do(ctx, func(ctx context.Context, g *poundlock.Grant) error {
			return work(ctx, g.Token())
		})
		if err != nil && ctx.Err() == nil {
			log.Print(err)
		}
	}
	return nil
}

// work passes its token on with everything that it writes: package fence is the other end.
func work(ctx context.Context, token uint64) error {
	for n := 1; ; n++ {
		fmt.Printf("token %d writes %d\n", token, n)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

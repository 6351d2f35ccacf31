// Command lecture runs an algorithm of a lecture on three machines, or in three terminals: each process enters the
// critical section as often as it is told, and shows at the end, at ^C, how many messages it has sent. With n
// processes the one of Ricart and Agrawala needs 2(n-1) messages for an entry: here all send 4 for each entry of any.
//
//	go run ./examples/lecture p1 p1=127.0.0.1:7701 p2=127.0.0.1:7702 p3=127.0.0.1:7703
//	go run ./examples/lecture p2 p1=127.0.0.1:7701 p2=127.0.0.1:7702 p3=127.0.0.1:7703
//	go run ./examples/lecture p3 p1=127.0.0.1:7701 p2=127.0.0.1:7702 p3=127.0.0.1:7703
//
// Others are those of docs/peers.md, such as -algorithm lamport with 3(n-1) messages. They need every process: to try
// again, end all.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/poundlock/poundlock/peers"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	config := peers.Config{Bootstrap: true}
	flag.StringVar(&config.Algorithm, "algorithm", "ricart-agrawala", "which")
	entries := flag.Int("entries", 5, "how many")
	flag.Parse()
	config.Name = flag.Arg(0)
	for _, arg := range flag.Args()[min(1, flag.NArg()):] {
		name, addr, _ := strings.Cut(arg, "=")
		config.Members = append(config.Members, peers.Peer{Name: name, Addr: addr})
	}
	if err := run(ctx, config, *entries); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

// run is a process until ctx ends.
func run(ctx context.Context, config peers.Config, entries int) error {
	m, err := peers.Join(ctx, config) // waits for the others
	if err != nil {
		return err
	}
	defer m.Close()
	for k := range entries {
		grant, err := m.Mutex("critical section").Lock(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("%s is inside, for the %d. time\n", config.Name, k+1)
		time.Sleep(10 * time.Millisecond)
		if err := grant.Unlock(); err != nil {
			return err
		}
	}
	fmt.Println(config.Name, "is done, and answers the others")
	<-ctx.Done()
	for _, message := range m.Stats().Node.Messages {
		fmt.Println(config.Name, "sent", message.Sent, message.Name)
	}
	return nil
}

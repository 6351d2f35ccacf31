package poundlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock"
)

func ExampleClient_RWMutex() {
	config, stop := cluster()
	defer stop()
	ctx := context.Background()
	client, err := poundlock.Dial(ctx, config)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	version := 7
	errChanged := errors.New("somebody else wrote meanwhile")

	book := client.RWMutex("book")
	seen := 0
	err = book.RDo(ctx, func(ctx context.Context, g *poundlock.Grant) error {
		seen = version // beside other readers
		return ctx.Err()
	})
	if err == nil {
		err = book.Do(ctx, func(ctx context.Context, g *poundlock.Grant) error {
			if version != seen { // a writer was here between the two locks
				return errChanged
			}
			version++ // alone
			return ctx.Err()
		})
	}
	fmt.Println(version, err)
	// Output:
	// 8 <nil>
}

func ExampleMutex_Keep() {
	config, stop := cluster()
	defer stop()
	ctx := context.Background()
	client, err := poundlock.Dial(ctx, config)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	total, last := 0, uint64(0)
	add := func(_ context.Context, token uint64) error {
		if token <= last {
			return fmt.Errorf("token %d after %d", token, last)
		}
		total, last = total+1, token
		return nil
	}

	err = func() error {
		counter := client.Mutex("counter").Keep(time.Second)
		for range 3 {
			err := counter.Do(ctx, func(ctx context.Context, g *poundlock.Grant) error {
				return add(ctx, g.Token()) // a larger token each time
			})
			if err != nil {
				return err
			}
		}
		return nil
	}()
	fmt.Println(total, err)
	// Output:
	// 3 <nil>
}

func ExampleGrant_Downgrade() {
	config, stop := cluster()
	defer stop()
	ctx := context.Background()
	client, err := poundlock.Dial(ctx, config)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	version := 7
	book := client.RWMutex("book")
	publish := func(_ context.Context, version int) error {
		reader, err := book.TryRLock(ctx) // comes in beside it
		if err != nil {
			return err
		}
		_, err = book.TryLock(ctx)
		fmt.Println(version, reader.Group(), errors.Is(err, poundlock.ErrNotAcquired))
		return reader.Unlock()
	}

	err = book.Do(ctx, func(ctx context.Context, g *poundlock.Grant) error {
		version++ // alone
		if err := g.Downgrade(poundlock.Shared); err != nil {
			return err
		}
		return publish(ctx, version) // beside other readers: no writer was in between
	})
	fmt.Println(err)
	// Output:
	// 8 shared true
	// <nil>
}

func ExampleClient_Groups() {
	config, stop := cluster()
	defer stop()
	ctx := context.Background()
	client, err := poundlock.Dial(ctx, config)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	room := client.Groups("room")
	grant, err := room.Lock(ctx, "red") // beside all others of red
	if err != nil {
		log.Fatal(err)
	}
	_, err = room.TryLock(ctx, "blue")
	fmt.Println(grant.Group(), errors.Is(err, poundlock.ErrNotAcquired))

	visit, err := room.Lock(ctx, "blue", "red", "green") // any one of them will do
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(visit.Group())
	fmt.Println(visit.Unlock(), grant.Unlock())
	// Output:
	// red true
	// red
	// <nil> <nil>
}

// The other programs of docs/which-lock.md. They need work to do.
var _ = []func(context.Context, *poundlock.Client, func(context.Context, uint64) error) error{
	func(ctx context.Context, client *poundlock.Client, deploy func(context.Context, uint64) error) error {
		return client.Mutex("deploy").Do(ctx, func(ctx context.Context, g *poundlock.Grant) error {
			return deploy(ctx, g.Token()) // ctx ends when the lock is lost
		})
	},
	func(ctx context.Context, client *poundlock.Client, work func(context.Context, uint64) error) error {
		read := func(ctx context.Context, g *poundlock.Grant) error { return work(ctx, g.Token()) }
		write := read
		book := client.RWMutex("book")
		err := book.RDo(ctx, read) // beside other readers
		if err == nil {
			err = book.Do(ctx, write) // alone
		}
		return err
	},
	func(ctx context.Context, client *poundlock.Client, build func(context.Context, uint64) error) error {
		grant, err := client.Semaphore("build", 3).Acquire(ctx)
		if err != nil {
			return err
		}
		defer grant.Unlock()
		return build(grant.Context(), grant.Token())
	},
	func(ctx context.Context, client *poundlock.Client, schedule func(context.Context, uint64) error) error {
		term, err := client.Election("scheduler").Campaign(ctx)
		if err != nil {
			return err
		}
		defer term.Resign()
		return schedule(term.Context(), term.Token()) // until that context ends
	},
	func(ctx context.Context, client *poundlock.Client, transfer func(context.Context, uint64) error) error {
		return client.Locks("savings", "current").Do(ctx, func(ctx context.Context, g *poundlock.Grant) error {
			return transfer(ctx, g.Token())
		})
	},
}

// What a reader copies from docs/which-lock.md compiles.
func TestWhichLock(t *testing.T) {
	page, err := os.ReadFile("docs/which-lock.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("which_lock_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```go\n")[1:]
	if len(blocks) < 7 {
		t.Errorf("docs/which-lock.md has %d programs in Go", len(blocks))
	}
	for _, block := range blocks {
		code, _, _ := strings.Cut(block, "```\n")
		found := false
		for _, tabs := range []string{"\t", "\t\t"} {
			var indented strings.Builder
			for line := range strings.Lines(code) {
				indented.WriteString(tabs + line)
			}
			found = found || strings.Contains(string(source), "\n"+indented.String())
		}
		if !found {
			t.Errorf("which_lock_test.go does not contain this code of docs/which-lock.md:\n%s", code)
		}
	}
}

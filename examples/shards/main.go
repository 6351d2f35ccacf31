// Command shards is a service of three processes that divide twelve shards among those that are up, without servers: who has which is
// an object that they replicate, and each changes it in a section.
//
//	go run ./examples/shards -bootstrap a a=127.0.0.1:7101 b=127.0.0.1:7102 c=127.0.0.1:7103 &   # and so b and c
//
// An interrupt has one give its shards away and end. It comes back with the same line, without -bootstrap.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/poundlock/poundlock/sections"
	"github.com/poundlock/poundlock/sections/kv"
)

func main() {
	var c sections.Config
	flag.BoolVar(&c.Bootstrap, "bootstrap", false, "the first time, at all three")
	flag.Parse()
	c.Name = flag.Arg(0)
	for _, arg := range flag.Args()[min(1, flag.NArg()):] {
		name, addr, _ := strings.Cut(arg, "=")
		c.Members = append(c.Members, sections.Peer{Name: name, Addr: addr})
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, c, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

const (
	object = "shards"
	shards = 12
)

// run takes part in the service until ctx ends, and prints which shards it has.
func run(ctx context.Context, c sections.Config, out io.Writer) error {
	c.Objects = map[string]sections.Object{object: &kv.Store{}}
	m, err := sections.Open(ctx, c)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := divide(ctx, m, kv.Pair{Key: "up/" + c.Name, Value: []byte{}}); err != nil {
		return err
	}
	for last := ""; ctx.Err() == nil; {
		has := ""
		_ = m.View(object, func(o sections.Object) { has = ownedBy(o.(*kv.Store), c.Name) })
		if has != last {
			fmt.Fprintf(out, "%s has%s\n", c.Name, has)
			last = has
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	soon, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return divide(soon, m, kv.Pair{Key: "up/" + c.Name}) // it has no value any more
}

// divide notes that a process is up, or not any more, and divides the shards among those that are. Nobody else changes anything
// meanwhile.
func divide(ctx context.Context, m *sections.Member, change kv.Pair) error {
	for {
		err := m.With(ctx, object, func(ctx context.Context, s *sections.Section) error {
			// The token is for whatever a shard writes to elsewhere: package fence is the other end. With it the copy here is
			// as new as any.
			token, err := s.ID(ctx)
			if err != nil {
				return err
			}
			var then []kv.Pair
			_ = m.View(object, func(o sections.Object) { then = plan(o.(*kv.Store), change, token) })
			_, err = kv.Txn(ctx, s, nil, then) // executed once, all of it; or ErrEjected: never
			return err
		})
		if !errors.Is(err, sections.ErrEjected) {
			return err
		}
	}
}

// plan is a change, and what becomes of the shards then.
func plan(now *kv.Store, change kv.Pair, token uint64) []kv.Pair {
	up := slices.DeleteFunc(now.Keys(), func(key string) bool { return !strings.HasPrefix(key, "up/") || key == change.Key })
	if change.Value != nil {
		up = append(up, change.Key)
	}
	slices.Sort(up)
	then := []kv.Pair{change}
	for k := range shards {
		p := kv.Pair{Key: fmt.Sprintf("shard/%02d", k)}
		if len(up) > 0 {
			owner := strings.TrimPrefix(up[k%len(up)], "up/")
			p.Value = fmt.Appendf(nil, "%s %d", owner, token)
		}
		if before, _, _ := strings.Cut(string(now.Get(p.Key)), " "); p.Value == nil || before != strings.Fields(string(p.Value))[0] {
			then = append(then, p)
		}
	}
	return then
}

// ownedBy lists the shards of a process.
func ownedBy(now *kv.Store, name string) (list string) {
	for k := range shards {
		if owner, _, _ := strings.Cut(string(now.Get(fmt.Sprintf("shard/%02d", k))), " "); owner == name {
			list += fmt.Sprint(" ", k)
		}
	}
	return list
}

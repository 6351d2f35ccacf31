package sections_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/poundlock/poundlock/sections"
	"github.com/poundlock/poundlock/sections/kv"
)

// Three processes share a configuration: here three members of one program.
func Example() {
	dir, err := os.MkdirTemp("", "sections")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	var members []sections.Peer
	for _, name := range []string{"a", "b", "c"} {
		members = append(members, sections.Peer{Name: name, Addr: "unix:" + filepath.Join(dir, name)})
	}
	ctx := context.Background()
	var m [3]*sections.Member
	var all sync.WaitGroup
	for i, p := range members {
		all.Go(func() { // each process does this
			var err error
			m[i], err = sections.Open(ctx, sections.Config{
				Name: p.Name, Members: members,
				Objects:   map[string]sections.Object{"config": &kv.Store{}},
				Bootstrap: true, // this time only
			})
			if err != nil {
				panic(err)
			}
		})
	}
	all.Wait()

	err = m[0].With(ctx, "config", func(ctx context.Context, s *sections.Section) error {
		return kv.Put(ctx, s, "leader", []byte("a"))
	})
	switch {
	case errors.Is(err, sections.ErrEjected):
		fmt.Println("it was not executed, or before the section was lost: look again")
	default:
		fmt.Println("put:", err)
	}

	if err := m[2].Barrier(ctx, "config"); err != nil { // without it the copy there may be older
		panic(err)
	}
	_ = m[2].View("config", func(o sections.Object) { fmt.Printf("c sees leader=%s\n", o.(*kv.Store).Get("leader")) })
	for _, m := range m {
		m.Close()
	}
	// Output:
	// put: <nil>
	// c sees leader=a
}

package kv_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/poundlock/poundlock/sections"
	"github.com/poundlock/poundlock/sections/kv"
)

// A shard has an owner, and two keys that change together. Here one member is the whole system.
func Example() {
	dir, err := os.MkdirTemp("", "kv")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	m, err := sections.Open(ctx, sections.Config{
		Name: "a", Members: []sections.Peer{{Name: "a", Addr: "unix:" + filepath.Join(dir, "a")}}, Bootstrap: true,
		Objects: map[string]sections.Object{"shards": &kv.Store{}},
	})
	if err != nil {
		panic(err)
	}
	defer m.Close()
	err = m.With(ctx, "shards", func(ctx context.Context, s *sections.Section) error {
		won, err := kv.CompareAndSwap(ctx, s, "7/owner", nil, []byte("a"))
		fmt.Println("a owns shard 7:", won, err)
		done, err := kv.Txn(ctx, s,
			[]kv.Pair{{Key: "7/owner", Value: []byte("a")}},
			[]kv.Pair{{Key: "7/owner", Value: []byte("b")}, {Key: "7/from", Value: []byte("a")}})
		fmt.Println("b owns shard 7:", done, err)
		return err
	})
	if err != nil {
		panic(err)
	}
	_ = m.View("shards", func(o sections.Object) {
		for _, key := range o.(*kv.Store).Keys() {
			fmt.Printf("%s=%s\n", key, o.(*kv.Store).Get(key))
		}
	})
	// Output:
	// a owns shard 7: true <nil>
	// b owns shard 7: true <nil>
	// 7/from=a
	// 7/owner=b
}

package server_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/poundlock/poundlock/server"
)

// A test of a program that locks can have a cluster of its own, and stop one of its servers.
func ExampleStartLocal() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	l, err := server.StartLocal(server.LocalConfig{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	if err := l.Stop(0); err != nil {
		fmt.Println(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	o, err := server.Observe(server.AskConfig{Servers: server.LocalServers(dir, 0)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer o.Close()
	for _, a := range o.Sessions(ctx) {
		fmt.Println(a.Server.Name, a.Err == nil)
	}
	// Output:
	// s1 false
	// s2 true
	// s3 true
	// s4 true
}

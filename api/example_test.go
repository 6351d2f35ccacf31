package api_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/api"
	pb "github.com/poundlock/poundlock/api/poundlockv1"
	"github.com/poundlock/poundlock/server"
)

// A service in a program of one's own, and a client of it.
func Example() {
	if err := example(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: [a b] STATE_HELD, 2 tokens
}

func example(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "pl")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	local, err := server.StartLocal(server.LocalConfig{Dir: dir})
	if err != nil {
		return err
	}
	defer local.Close()
	client, err := poundlock.Connect(poundlock.Config{Servers: local.Servers(), Outlived: true})
	if err != nil {
		return err
	}
	defer client.Close()

	service, err := api.New(api.Config{Client: client})
	if err != nil {
		return err
	}
	web := httptest.NewServer(service.Handler())
	defer web.Close()

	locks := pb.NewLockServiceClient(web.Client(), web.URL)
	session, err := locks.OpenSession(ctx, &pb.OpenSessionRequest{Label: "example"})
	if err != nil {
		return err
	}
	r, err := locks.Lock(ctx, &pb.LockRequest{SessionId: session.SessionId, Names: []string{"b", "a"}})
	if err != nil {
		return err
	}
	fmt.Printf("%v %v, %d tokens\n", r.Grant.Names, r.Grant.State, len(r.Grant.Tokens))
	if _, err := locks.CloseSession(ctx, &pb.CloseSessionRequest{SessionId: session.SessionId}); err != nil {
		return err
	}
	return service.Shutdown(ctx)
}

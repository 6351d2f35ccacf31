package api_test

import (
	"testing"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/api"
	pb "github.com/poundlock/poundlock/api/poundlockv1"
)

// TestHolders: all who share a lock are told, with the group, and the fields of one holder are those of the first.
func TestHolders(t *testing.T) {
	t.Parallel()
	_, config := startCluster(t)
	var grants []*poundlock.Grant
	for _, label := range []string{"first", "second"} {
		own := config
		own.Label = label
		c, err := poundlock.Dial(t.Context(), own)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		g, err := c.RWMutex("book").RLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		grants = append(grants, g)
	}
	d := startDaemon(t, config, api.Limits{})
	for _, p := range protocols {
		r, err := p.client(t, d).Holder(t.Context(), &pb.HolderRequest{Name: "book"})
		if err != nil || !r.Held || r.Group != "shared" || len(r.Holders) != 2 {
			t.Fatalf("%v, %v", r, err)
		}
		for k, label := range []string{"first", "second"} {
			if h := r.Holders[k]; h.Label != label || h.ClientId == "" || h.Token == 0 || h.Token > grants[k].Token() {
				t.Errorf("holder %v, whose token is %d", h, grants[k].Token())
			}
		}
		if h := r.Holders[0]; r.Label != h.Label || r.ClientId != h.ClientId || r.Token != h.Token {
			t.Errorf("one of them: %v", r)
		}
	}
	if err := grants[0].Unlock(); err != nil {
		t.Error(err)
	}
	eventually(t, "one is left", func() bool {
		r, err := protocols[0].client(t, d).Holder(t.Context(), &pb.HolderRequest{Name: "book"})
		return err == nil && len(r.Holders) == 1 && r.Label == "second" && r.Group == "shared"
	})
}

package status

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/server"
)

// Each shard has a quorum of its own, and the holders of its locks are judged by it.
func TestMergeShards(t *testing.T) {
	var answers []server.Answer
	for _, name := range []string{"a/s1", "a/s2", "a/s3", "a/s4"} {
		x := answer(name, "x:1s")
		x.Status.Epoch = 5
		answers = append(answers, x)
	}
	for _, name := range []string{"b/s1", "b/s2", "b/s3", "b/s4"} {
		x := server.Answer{Server: node.Peer{Name: name, Addr: "h:4"}, Err: errors.New("no route")}
		if name < "b/s3" {
			x = answer(name, "y:1s")
			x.Status.Locks[0].Name = "of b%s"
		}
		answers = append(answers, x)
	}
	s, _ := merge(answers...)
	if s.Quorum != 6 || s.Reachable != 6 || len(s.Servers) != 8 || s.Servers[0].Epoch != 5 {
		t.Errorf("%+v", s)
	}
	shards, err := json.Marshal(s.Shards)
	if want := `[{"name":"a","servers":4,"quorum":3,"reachable":4},{"name":"b","servers":4,"quorum":3,"reachable":2}]`; err != nil ||
		string(shards) != want {
		t.Errorf("shards %s, %v; want %s", shards, err, want)
	}
	if err := s.Unreachable(); err == nil || err.Error() != "shard b: 2 of 4 servers reachable, a quorum is 3" {
		t.Errorf("unreachable: %v", err)
	}
	var out bytes.Buffer
	if err := s.Text(&out, strings.TrimSpace); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nSHARD  LOCK", "\na      \"a\\x1b[2J\"  mutex  label x  4 of 4   2", "\nb      of b%s      mutex  label y  2 of 4   0"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}

	// Without shards there is no such column, and nothing else has changed.
	answers = []server.Answer{answer("s1", "x:1s"), answer("s2", ""), answer("s3", ""), answer("s4", "")}
	s, _ = merge(answers...)
	out.Reset()
	if err := s.Text(&out, strings.TrimSpace); err != nil {
		t.Fatal(err)
	}
	if s.Shards != nil || strings.Contains(out.String(), "SHARD") || s.Unreachable() != nil {
		t.Errorf("%+v\n%s", s, out.String())
	}
}

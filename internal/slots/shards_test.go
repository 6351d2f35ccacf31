package slots

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/node"
)

func shards(names ...string) Shards {
	var all Shards
	for _, n := range names {
		all = append(all, Shard{Name: n})
	}
	return all
}

// What docs/architecture.md says, so that another implementation finds the same
// shards: no score and no choice may ever change.
func TestShardVectors(t *testing.T) {
	for _, x := range []struct {
		shard, lock string
		want        uint64
	}{
		{"a", "build", 0x67f486a96af3d60f},
		{"b", "build", 0x76f3b3256eb7e773},
		{"a", "deploy/prod", 0x6b6c29d3fa4eefc1},
		{"b", "deploy/prod", 0x963ec1415f775bd2},
		{"", "", 0xb9034ad37056f5fb},
		{"eu-west", "Schlüssel", 0xe52f4b05d5eea0de},
	} {
		if got := score(x.shard, x.lock); got != x.want {
			t.Errorf("{%q, %q, %#016x},", x.shard, x.lock, got)
		}
	}
	for lock, want := range map[string]string{"build": "b", "deploy/prod": "b", "a": "c", "Schlüssel": "c"} {
		all := shards("a", "b", "c")
		if got := all[all.Of(lock)].Name; got != want {
			t.Errorf("lock %q belongs to %q, want %q", lock, got, want)
		}
	}
}

// Names spread evenly, whatever they and the shards are called.
func TestShardsBalance(t *testing.T) {
	const locks = 30_000
	for _, form := range []string{"lock-%d", "%08d", "tenant/%d/deploy", "%d"} {
		for _, all := range []Shards{
			shards("a", "b"), shards("a", "b", "c"), shards("g1", "g10", "g100", "g2"), shards("eu-west", "eu-east", "us"),
		} {
			count := make([]int, len(all))
			for i := range locks {
				count[all.Of(fmt.Sprintf(form, i))]++
			}
			for i, k := range count {
				// Six standard deviations of a fair choice are below 0.04 of its mean here.
				if mean := locks / len(all); k < mean*95/100 || k > mean*105/100 {
					t.Errorf("%s over %s: shard %s has %d, the mean is %d", form, all, all[i].Name, k, mean)
				}
			}
		}
	}
}

// A shard that comes takes its share, and no lock moves between two others.
func TestShardsMoveLittle(t *testing.T) {
	const locks = 30_000
	before, after := shards("a", "b", "c"), shards("a", "b", "bb", "c")
	moved := 0
	for i := range locks {
		lock := fmt.Sprint("lock-", i)
		from, to := before[before.Of(lock)].Name, after[after.Of(lock)].Name
		if from == to {
			continue
		}
		moved++
		if to != "bb" {
			t.Fatalf("lock %q moves from %s to %s", lock, from, to)
		}
	}
	if moved < locks/4*95/100 || moved > locks/4*105/100 {
		t.Errorf("%d of %d locks move, want a quarter", moved, locks)
	}
}

func TestShardedTables(t *testing.T) {
	var text []string
	for i, name := range []string{"b/s1", "a/s1", "a-b/s1"} {
		for k := range 4 {
			text = append(text, fmt.Sprintf("%s%d=h:%d", name, k, 10*i+k+1))
		}
	}
	table, err := Parse(strings.Join(text, ","))
	if err != nil {
		t.Fatal(err)
	}
	if table, err = Check(table, false); err != nil {
		t.Fatal(err)
	}
	all := Split(table)
	if len(all) != 3 || all.String() != "a,a-b,b" {
		t.Fatalf("shards %s", all)
	}
	for _, g := range all {
		if len(g.Servers) != 4 || g.Servers[0].Name != g.Name+"/s10" {
			t.Errorf("shard %s has %v", g.Name, g.Servers)
		}
	}
	var long []string
	for i := range 5 {
		long = append(long, fmt.Sprintf("%s%d/s=h:%d", strings.Repeat("x", 200), i, i+1))
	}
	four := "=h:1,s2=h:2,s3=h:3,s4=h:4"
	for text, want := range map[string]string{
		"s1" + four + ",a/s1=h:5,a/s2=h:6,a/s3=h:7,a/s4=h:8": "server s1 is in no shard, and a/s1 is in shard a",
		"s1" + four + ",z/s1=h:5":                            "server s1 is in no shard, and z/s1 is in shard z",
		"/s1" + four:                                         `server name "/s1": want NAME, or SHARD/NAME`,
		"a/" + four:                                          `server name "a/": want NAME, or SHARD/NAME`,
		"a/b/c" + four:                                       `server name "a/b/c": want NAME, or SHARD/NAME`,
		strings.Join(long, ","):                              "have 1009 bytes together",
		"a/s1=h:1,a/s2=h:2,a/s3=h:3,a/s4=h:4,b/s1=h:5":       "1 servers in shard b: fewer than four",
		"a/s1=h:1,a/s2=h:2,a/s3=h:3,a/s4=h:4,b/s1=h:1":       "a/s1 and b/s1 have the same address",
	} {
		table, err := Parse(text)
		if err == nil {
			_, err = Check(table, false)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: error %v, want one with %q", text, err, want)
		}
	}
	if _, err := Check([]node.Peer{{Name: "a/s", Addr: "h:1"}}, false); !errors.Is(err, ErrTooFew) {
		t.Error(err)
	}
}

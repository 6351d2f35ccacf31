package slots

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/node"
)

func TestIDsFollowNames(t *testing.T) {
	var want []node.Peer
	for i, text := range []string{
		"a=h:1,b=h:2,c=unix:/tmp/c,d=[::1]:4",
		"d=[::1]:4, c=unix:/tmp/c,b=h:2,a=h:1",
	} {
		table, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		table, err = Check(table, false)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			want = table
		} else if !slices.Equal(table, want) {
			t.Errorf("%q: %v, want %v", text, table, want)
		}
	}
	if want[2] != (node.Peer{Name: "c", Addr: "unix:/tmp/c"}) {
		t.Errorf("third slot is %v", want[2])
	}
}

func TestBadTables(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "not of the form",
		"a=h:1,b":                   `server "b" is not of the form`,
		"=h:1,b=h:2,c=h:3,d=h:4":    `server name ""`,
		"a b=h:1,b=h:2,c=h:3,d=h:4": `server name "a b"`,
		"a=h:1,a=h:2,c=h:3,d=h:4":   `"a" appears twice`,
		"a=h:1,b=h:1,c=h:3,d=h:4":   "a and b have the same address h:1",
		"a=h,b=h:2,c=h:3,d=h:4":     `server a: address "h"`,
		"a=:1,b=h:2,c=h:3,d=h:4":    `server a: address ":1"`,
		"a=h:x,b=h:2,c=h:3,d=h:4":   `port "x": want a number`,
		"a=h:65536,b=h:2":           `port "65536": want a number`,
		"a=unix:,b=h:2,c=h:3,d=h:4": `unix socket path ""`,
		"a=h:1,b=h:2,c=h:3":         "3 servers: fewer than four",
		"a=unix:" + strings.Repeat("x", 104) + ",b=h:2": "want 1 to 103 bytes",
	} {
		table, err := Parse(text)
		if err == nil {
			_, err = Check(table, false)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
	three := []node.Peer{{Name: "a", Addr: "h:1"}, {Name: "b", Addr: "h:2"}, {Name: "c", Addr: "h:3"}}
	if _, err := Check(three, false); !errors.Is(err, ErrTooFew) {
		t.Errorf("three servers: %v", err)
	}
	if _, err := Check(three, true); err != nil {
		t.Errorf("three servers that keep their memory: %v", err)
	}
	if _, err := Check(nil, true); err == nil {
		t.Error("an empty table is accepted")
	}
}

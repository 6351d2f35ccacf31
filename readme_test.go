package poundlock_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/poundlock/poundlock"
)

// ExampleDial is the program of the README. It has no output: nobody serves at
// these addresses.
func ExampleDial() {
	publish := func(ctx context.Context, token uint64) error { return nil }
	_ = func(ctx context.Context) error {
		config := poundlock.Config{Servers: []poundlock.Server{
			{Name: "s1", Addr: "127.0.0.1:7001"},
			{Name: "s2", Addr: "127.0.0.1:7002"},
			{Name: "s3", Addr: "127.0.0.1:7003"},
			{Name: "s4", Addr: "127.0.0.1:7004"},
		}}
		client, err := poundlock.Dial(ctx, config)
		if err != nil {
			return err
		}
		defer client.Close()
		return client.Mutex("deploy").Do(ctx, func(ctx context.Context, g *poundlock.Grant) error {
			// This ctx ends when the lock is lost. The token lets the other end refuse
			// what arrives too late.
			return publish(ctx, g.Token())
		})
	}
}

// What a reader copies from the README compiles.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("readme_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```go\n")
	code, _, found := strings.Cut(rest, "```\n")
	if !found {
		t.Fatal("README.md has no Go code")
	}
	var indented strings.Builder
	for line := range strings.Lines(code) {
		indented.WriteString("\t\t" + line)
	}
	if !strings.Contains(string(source), indented.String()) {
		t.Errorf("readme_test.go does not contain the Go code of README.md:\n%s", code)
	}
}

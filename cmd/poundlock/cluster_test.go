package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/poundlock/poundlock/internal/cli"
)

const fourServers = "s1=127.0.0.1:1,s2=127.0.0.1:2,s3=127.0.0.1:3,s4=127.0.0.1:4"

// configure gives f the flags, in a program with one more command that has a
// flag of its own.
func configure(t *testing.T, f *clusterFlags, args ...string) (*cobra.Command, error) {
	t.Helper()
	cmd := &cobra.Command{Use: "test", RunE: func(*cobra.Command, []string) error { return nil }}
	f.register(cmd.Flags())
	other := &cobra.Command{Use: "other"}
	new(clusterFlags).register(other.Flags())
	other.Flags().String("name", "", "")
	root := &cobra.Command{Use: "root"}
	root.AddCommand(cmd, other)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	_, err := f.config(cmd)
	return cmd, err
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "poundlock.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPrecedence: a flag beats the environment, which beats the file.
func TestPrecedence(t *testing.T) {
	file := writeFile(t, `
# one file serves all commands: name is no flag of this one
name: s1
servers:
  - s4=127.0.0.1:4
  - s3=127.0.0.1:3
  - s2=127.0.0.1:2
  - s1=127.0.0.1:1
clock-bound: 10ms
epoch: 7
no-amnesia: true
`)
	t.Setenv("POUNDLOCK_CONFIG", file)
	t.Setenv("POUNDLOCK_CLOCK_BOUND", "20ms")
	t.Setenv("POUNDLOCK_EPOCH", "8")
	var f clusterFlags
	cmd, err := configure(t, &f, "--epoch", "9")
	if err != nil {
		t.Fatal(err)
	}
	if f.epoch != 9 || f.clockBound != 20*time.Millisecond || !f.noAmnesia {
		t.Errorf("epoch %d, clock bound %v, no amnesia %v; want 9 of the flag, 20ms of the environment, true of the file",
			f.epoch, f.clockBound, f.noAmnesia)
	}
	c, err := f.config(cmd)
	if err != nil || len(c.Servers) != 4 || c.Servers[0].Name != "s1" || c.Servers[3].Addr != "127.0.0.1:4" {
		t.Errorf("error %v, servers %v", err, c.Servers)
	}
	if c.Epoch != 9 || c.ClockBound != 20*time.Millisecond || !c.NoAmnesia || c.TLS != nil {
		t.Errorf("config %+v", c)
	}
}

func TestBadSettings(t *testing.T) {
	for name, x := range map[string]struct {
		env, file string
		args      []string
		want      string
	}{
		"nothing":          {want: "no servers given"},
		"misspelt in env":  {env: "POUNDLOCK_SERVRS=x", want: "POUNDLOCK_SERVRS: no flag has this name"},
		"misspelt in file": {file: "servrs: x", want: "servrs: no flag has this name"},
		"bad value in env": {env: "POUNDLOCK_EPOCH=x", want: `POUNDLOCK_EPOCH: --epoch "x": want a whole number of at least 0`},
		"bad value":        {file: "epoch: x", want: `epoch: --epoch "x": want a whole number of at least 0`},
		"nested":           {file: "servers: {s1: {a: b}}", want: "servers: want a value or a list"},
		"no mapping":       {file: "- a", want: "cannot unmarshal"},
		"no file":          {args: []string{"--config", "/does/not/exist"}, want: "/does/not/exist"},
		"bad table":        {args: []string{"--servers", "s1"}, want: `server "s1" is not of the form`},
		"three":            {args: []string{"--servers", "a=h:1,b=h:2,c=h:3"}, want: "use 4, 7 or 10"},
		"key without cert": {args: []string{"--servers", fourServers, "--tls-key", "k"}, want: "belong together"},
		"no certificate":   {args: []string{"--servers", fourServers, "--tls-cert", "/does", "--tls-key", "/not"}, want: "--tls-cert"},
		"no authority":     {args: []string{"--servers", fourServers, "--tls-ca", "/does/not"}, want: "--tls-ca: certs: open /does/not"},
		"empty authority":  {args: []string{"--servers", fourServers, "--tls-ca", "/dev/null"}, want: "no PEM certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			if k, v, ok := strings.Cut(x.env, "="); ok {
				t.Setenv(k, v)
			}
			if x.file != "" {
				x.args = append(x.args, "--config", writeFile(t, x.file))
			}
			_, err := configure(t, new(clusterFlags), x.args...)
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Fatalf("error %v, want one with %q", err, x.want)
			}
			var s *cli.Status
			if !errors.As(err, &s) || s.Code != cli.ExitUsage {
				t.Errorf("error %#v is not about usage", err)
			}
		})
	}
}

// TestInsideALock: lock tells its child the name of the lock, which is not the
// name of a server that the child may start.
func TestInsideALock(t *testing.T) {
	t.Setenv("POUNDLOCK_NAME", "deploy")
	t.Setenv("POUNDLOCK_TOKEN", "17")
	t.Setenv("POUNDLOCK_HOLDER", "me")
	t.Setenv("POUNDLOCK_GROUP", "blue")
	if _, err := configure(t, new(clusterFlags), "--servers", fourServers); err != nil {
		t.Error(err)
	}
	if env := environment(); env["name"] != "" || env["token"] != "" || env["holder"] != "" || env["group"] != "" {
		t.Errorf("settings %v", env)
	}
}

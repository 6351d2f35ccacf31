package main

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/sim"
)

// docs/cli.md names every flag and every JSON field of each command.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, s := range strings.Split(string(text), "\n## ") {
		title, body, _ := strings.Cut(s, "\n")
		sections[title] = body
	}
	const cluster, driving = "Naming a cluster", "Driving an algorithm"
	for _, test := range []struct {
		command *cobra.Command
		shared  string // other sections with flags and fields, with commas between them
		json    any
	}{
		{rootCommand(), "", nil},
		{algorithmsCommand(), "", nil},
		{caCommand(), "", nil},
		{benchCommand(), cluster, benchResult{}},
		{checkCommand(), driving, check.Verdict{}},
		{electCommand(), cluster, leaderLine{}},
		{demoCommand(), "", demoResult{}},
		{judgeCommand(), "", history.Report{}},
		{huntCommand(), driving, huntResult{}},
		{lockCommand(), cluster, nil},
		{locksCommand(), cluster, nil},
		{releaseCommand(), cluster, nil},
		{replayCommand(), driving + ",poundlock check", replay{}},
		{serveCommand(), cluster, nil},
		{simCommand(), driving, sim.Result{}},
		{statusCommand(), cluster, clusterStatus{}},
	} {
		c := test.command
		title := "poundlock " + c.Name()
		if c.Name() == "poundlock" {
			title = "# The command line"
		}
		body, found := sections[title]
		if !found {
			t.Errorf("no section %q", title)
			continue
		}
		for _, other := range strings.Split(test.shared, ",") {
			body += sections[other]
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !regexp.MustCompile("`--" + f.Name + "\\b[^-]").MatchString(body) {
				t.Errorf("poundlock %s: --%s is not described", c.Name(), f.Name)
			}
			if name, _ := pflag.UnquoteUsage(f); name == "" && f.Value.Type() != "bool" {
				t.Errorf("poundlock %s: --help shows --%s without the name of its value", c.Name(), f.Name)
			}
			if f.Shorthand != "" && !strings.Contains(body, "`-"+f.Shorthand+"`") {
				t.Errorf("poundlock %s: -%s is not described", c.Name(), f.Shorthand)
			}
		})
		for _, name := range fields(reflect.TypeOf(test.json)) {
			if !strings.Contains(body, "`"+name+"`") {
				t.Errorf("poundlock %s: the JSON field %q is not described", c.Name(), name)
			}
		}
	}
}

// fields are the names of a type's fields in JSON, and of those within them.
func fields(t reflect.Type) (names []string) {
	if t == nil {
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return fields(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name != "" && name != "-" {
				names = append(append(names, name), fields(f.Type)...)
			}
		}
	}
	return names
}

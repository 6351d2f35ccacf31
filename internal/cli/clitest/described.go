package clitest

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A Description is a command that docs/cli.md has a section of.
type Description struct {
	Command *cobra.Command
	Shared  string // other sections with flags and fields, with commas between them
	JSON    any    // what --json prints; nil: nothing
}

// Described: docs/cli.md names every flag and every JSON field of each command of a program.
func Described(t *testing.T, program string, commands ...Description) {
	t.Helper()
	text, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, s := range strings.Split(string(text), "\n## ") {
		title, body, _ := strings.Cut(s, "\n")
		sections[title] = body
	}
	for _, d := range commands {
		c := d.Command
		title := program + " " + c.Name()
		if c.Name() == program {
			title = "# The command line"
		}
		body, found := sections[title]
		if !found {
			t.Errorf("no section %q", title)
			continue
		}
		for _, other := range strings.Split(d.Shared, ",") {
			body += sections[other]
		}
		check := func(f *pflag.Flag) {
			if !regexp.MustCompile("`--" + f.Name + "\\b[^-]").MatchString(body) {
				t.Errorf("%s: --%s is not described", title, f.Name)
			}
			if name, _ := pflag.UnquoteUsage(f); name == "" && f.Value.Type() != "bool" {
				t.Errorf("%s: --help shows --%s without the name of its value", title, f.Name)
			}
			if f.Shorthand != "" && !strings.Contains(body, "`-"+f.Shorthand+"`") {
				t.Errorf("%s: -%s is not described", title, f.Shorthand)
			}
		}
		c.Flags().VisitAll(check)
		if c.Name() != program {
			for _, below := range c.Commands() {
				below.Flags().VisitAll(check)
			}
		}
		for _, name := range fields(reflect.TypeOf(d.JSON)) {
			if !strings.Contains(body, "`"+name+"`") {
				t.Errorf("%s: the JSON field %q is not described", title, name)
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

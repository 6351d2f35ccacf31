package api

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	pb "github.com/poundlock/poundlock/api/poundlockv1"
)

// TestGenerated: the generated code has the calls, fields and values of the schema,
// by names and numbers. That does not see types: .ci/run generates it anew.
func TestGenerated(t *testing.T) {
	text, err := os.ReadFile("proto/poundlock/v1/lock.proto")
	if err != nil {
		t.Fatal(err)
	}
	source := regexp.MustCompile(`(?m)^\s*//.*$`).ReplaceAllString(string(text), "")
	var want []string
	for _, m := range regexp.MustCompile(`rpc (\w+)\((\w+)\)`).FindAllStringSubmatch(source, -1) {
		want = append(want, m[1]+"("+m[2]+")")
	}
	for _, m := range regexp.MustCompile(`(?m)(\w+) = (\d+);`).FindAllStringSubmatch(source, -1) {
		want = append(want, m[1]+" = "+m[2])
	}
	var got []string
	file := pb.File_poundlock_v1_lock_proto
	methods := file.Services().Get(0).Methods()
	for i := range methods.Len() {
		m := methods.Get(i)
		got = append(got, fmt.Sprintf("%s(%s)", m.Name(), m.Input().Name()))
	}
	for i := range file.Messages().Len() {
		fields := file.Messages().Get(i).Fields()
		for k := range fields.Len() {
			got = append(got, fmt.Sprintf("%s = %d", fields.Get(k).Name(), fields.Get(k).Number()))
		}
	}
	for i := range file.Enums().Len() {
		values := file.Enums().Get(i).Values()
		for k := range values.Len() {
			got = append(got, fmt.Sprintf("%s = %d", values.Get(k).Name(), values.Get(k).Number()))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) < 20 || !slices.Equal(got, want) {
		t.Errorf("api/poundlockv1 is STALE: generate it as CONTRIBUTING.md says\ngenerated: %q\nschema:    %q", got, want)
	}
}

// TestDocs: docs/api.md names every call, every field and every reason with its code.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	var names []protoreflect.Name
	file := pb.File_poundlock_v1_lock_proto
	for i := range file.Services().Get(0).Methods().Len() {
		names = append(names, file.Services().Get(0).Methods().Get(i).Name())
	}
	for i := range file.Messages().Len() {
		fields := file.Messages().Get(i).Fields()
		for k := range fields.Len() {
			names = append(names, fields.Get(k).Name())
		}
	}
	for _, name := range names {
		if !strings.Contains(doc, "`"+string(name)+"`") {
			t.Errorf("docs/api.md does not describe %s", name)
		}
	}
	for number := range pb.Reason_name {
		reason := pb.Reason(number)
		if reason == pb.Reason_REASON_UNSPECIFIED {
			continue
		}
		code, ok := codes[reason]
		if line := fmt.Sprintf("| `%s` | `%s` |", reason, code); !ok || !strings.Contains(doc, line) {
			t.Errorf("docs/api.md has no line %q", line)
		}
	}
}

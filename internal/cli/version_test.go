package cli

import (
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	built := func(version string, settings ...debug.BuildSetting) debug.BuildInfo {
		return debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "1f3a"}
	modified := func(value string) debug.BuildSetting {
		return debug.BuildSetting{Key: "vcs.modified", Value: value}
	}
	for want, i := range map[string]debug.BuildInfo{
		"v1.2.3":                   built("v1.2.3", commit),
		"commit 1f3a":              built("(devel)", commit, modified("false")),
		"commit 1f3a with changes": built("", modified("true"), commit),
		unknownVersion:             built("(devel)"),
	} {
		if got := versionOf(&i); got != want {
			t.Errorf("%+v: %q, want %q", i, got, want)
		}
	}
}

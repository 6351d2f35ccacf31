package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version says which program this is, as far as the build knows: the module's
// version, or else the commit it was built from.
func Version() string {
	i, ok := debug.ReadBuildInfo()
	if !ok {
		i = &debug.BuildInfo{}
	}
	return fmt.Sprintf("%s %s %s/%s", versionOf(i), cmp.Or(i.GoVersion, runtime.Version()), runtime.GOOS, runtime.GOARCH)
}

// unknownVersion is that of a build that was not told which commit it is of.
const unknownVersion = "of unknown version (built without version information, as by go run or with -buildvcs=false)"

func versionOf(i *debug.BuildInfo) string {
	if v := i.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	var revision, changed string
	for _, s := range i.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = " with changes"
		}
	}
	if revision == "" {
		return unknownVersion
	}
	return "commit " + revision + changed
}

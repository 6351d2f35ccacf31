package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// elsewhere are what other programs with locks call a flag of this one.
var elsewhere = map[string][]string{
	"wait":       {"timeout", "wait-time", "blocking-timeout"},               // flock, consul
	"lease":      {"ttl", "session-ttl", "lease-ttl", "lease-duration"},      // etcdctl, consul, Kubernetes
	"try":        {"nb", "nonblock", "nonblocking", "non-blocking"},          // flock
	"servers":    {"endpoints", "endpoint", "http-addr", "hosts", "cluster"}, // etcdctl, consul
	"semaphore":  {"permits", "max-holders"},
	"tls-ca":     {"cacert", "ca-file", "ca-cert"},
	"tls-cert":   {"cert", "client-cert", "cert-file"},
	"tls-key":    {"key", "client-key", "key-file"},
	"max-memory": {"memory"},
}

// Nearest returns those of names that typed may be a misspelling or the beginning of,
// the closest ones only.
func Nearest(typed string, names []string) []string {
	var all cobra.Command // which knows how to look for a command that was meant
	for _, name := range names {
		all.AddCommand(&cobra.Command{Use: name, SuggestFor: elsewhere[name], Run: func(*cobra.Command, []string) {}})
	}
	limit := max(min(2, len(typed)-1), len(typed)/3) // two letters that changed places are two changes
	for all.SuggestionsMinimumDistance = 1; all.SuggestionsMinimumDistance <= limit; all.SuggestionsMinimumDistance++ {
		if found := all.SuggestionsFor(typed); len(found) > 0 {
			slices.Sort(found)
			return slices.Compact(found)
		}
	}
	return nil
}

// Meant is a hint that asks whether one of names was meant, and otherwise says where they
// are listed.
func Meant(typed string, names []string, listed string) string {
	found := Nearest(typed, names)
	const most = 3
	if len(found) == 0 || len(found) > most {
		return listed
	}
	return strings.TrimRight(fmt.Sprintf("did you mean %s? %s", strings.Join(found, " or "), listed), " ")
}

// Unknown is a wrong call, because of a name that there is not.
func Unknown(err error, typed string, names []string, listed string) error {
	return &Status{Code: ExitUsage, Err: err, Hint: Meant(typed, names, listed)}
}

// FlagNames are the names of those flags of a command that a user may give.
func FlagNames(cmd *cobra.Command) (names []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

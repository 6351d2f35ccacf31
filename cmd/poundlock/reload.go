package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/node"
)

// tableReader returns what reads the slot table again, the setting list, as it stands in the file then. Settings of
// the command line and the environment beat the file: it must be called before the flags are
// filled.
func (f *clusterFlags) tableReader(
	cmd *cobra.Command, list string, check func([]node.Peer) ([]node.Peer, error),
) func() (epoch uint64, table []node.Peer, err error) {
	known, fixed := settings(cmd.Root()), map[string]bool{}
	env := environment()
	for _, name := range []string{list, "epoch"} {
		_, inEnv := env[name]
		fixed[name] = inEnv || cmd.Flags().Changed(name)
	}
	return func() (epoch uint64, table []node.Peer, err error) {
		if f.file == "" {
			return 0, nil, errors.New("there is no --config file to read again")
		}
		if fixed[list] {
			return 0, nil, fmt.Errorf("%s is not asked for --%s: a flag or the environment has them", f.file, list)
		}
		values, err := readConfigFile(f.file)
		if err != nil {
			return 0, nil, err
		}
		for key := range values {
			if !known[key] {
				return 0, nil, fmt.Errorf("%s: %s: no flag has this name", f.file, key)
			}
		}
		epoch = f.epoch
		if text, ok := values["epoch"]; ok && !fixed["epoch"] {
			if epoch, err = strconv.ParseUint(text, 0, 64); err != nil {
				return 0, nil, fmt.Errorf("%s: epoch %q: %s", f.file, text, cli.Wanted("uint64"))
			}
		}
		if table, err = slots.Parse(values[list]); err == nil {
			table, err = check(table)
		}
		if err != nil {
			return 0, nil, fmt.Errorf("%s: %s: %w", f.file, list, err)
		}
		return epoch, table, nil
	}
}

// reload has set take over the table that read gives. What cannot be read or set is logged, and the old
// table stays.
func (f *clusterFlags) reload(read func() (uint64, []node.Peer, error), set func(epoch uint64, table []node.Peer) error) {
	epoch, table, err := read()
	if err == nil {
		err = set(epoch, table)
	}
	if err != nil {
		f.log.Error("the slot table stays as it is", "error", err)
		return
	}
	f.log.Info("read the slot table again", "file", f.file, "epoch", epoch)
}

// onHangup calls all of reload at each SIGHUP, until stop is called.
func onHangup(reload ...func()) (stop func()) {
	hangup, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangup, syscall.SIGHUP)
	go func() {
		defer close(done)
		for range hangup {
			for _, f := range reload {
				f()
			}
		}
	}()
	return func() {
		signal.Stop(hangup)
		close(hangup)
		<-done
	}
}

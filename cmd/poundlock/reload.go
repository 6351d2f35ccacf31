package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/node"
)

// A tableSource reads the slot table of a server again.
type tableSource struct {
	flags *clusterFlags
	known map[string]bool
	fixed map[string]bool // settings of the command line and the environment, which beat the file
}

// newTableSource must be called before the flags are filled.
func newTableSource(cmd *cobra.Command, f *clusterFlags) *tableSource {
	s := &tableSource{flags: f, known: settings(cmd.Root()), fixed: map[string]bool{}}
	env := environment()
	for _, name := range []string{"servers", "epoch"} {
		_, inEnv := env[name]
		s.fixed[name] = inEnv || cmd.Flags().Changed(name)
	}
	return s
}

// read returns the table that stands in the file now.
func (s *tableSource) read() (epoch uint64, table []node.Peer, err error) {
	f := s.flags
	if f.file == "" {
		return 0, nil, errors.New("there is no --config file to read again")
	}
	if s.fixed["servers"] {
		return 0, nil, fmt.Errorf("%s is not asked for --servers: a flag or the environment has them", f.file)
	}
	values, err := readConfigFile(f.file)
	if err != nil {
		return 0, nil, err
	}
	for key := range values {
		if !s.known[key] {
			return 0, nil, fmt.Errorf("%s: %s: no flag has this name", f.file, key)
		}
	}
	epoch = f.epoch
	if text, ok := values["epoch"]; ok && !s.fixed["epoch"] {
		if epoch, err = strconv.ParseUint(text, 0, 64); err != nil {
			return 0, nil, fmt.Errorf("%s: epoch %q: %s", f.file, text, cli.Wanted("uint64"))
		}
	}
	if table, err = slots.Parse(values["servers"]); err == nil {
		table, err = slots.Check(table, f.noAmnesia)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("%s: servers: %w", f.file, err)
	}
	return epoch, table, nil
}

// reload gives the table to set. What cannot be read or set is logged, and the old
// table stays. Without a file that is worth no word if the signal had another purpose.
func (s *tableSource) reload(
	log *slog.Logger, set func(epoch uint64, table []node.Peer) error, otherPurpose bool,
) func() {
	return func() {
		if s.flags.file == "" && otherPurpose {
			return
		}
		epoch, table, err := s.read()
		if err == nil {
			err = set(epoch, table)
		}
		if err != nil {
			log.Error("the slot table stays as it is", "error", err)
			return
		}
		log.Info("read the slot table again", "file", s.flags.file, "epoch", epoch)
	}
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

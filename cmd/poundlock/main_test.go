package main

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/poundlock/poundlock/internal/cli/clitest"
	"github.com/poundlock/poundlock/internal/demo"
	"github.com/poundlock/poundlock/internal/devcluster"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/internal/supervise"
	"github.com/poundlock/poundlock/server/status"
)

// TestMain makes this binary poundlock, also by the name with which it starts itself.
func TestMain(m *testing.M) {
	lane.Waits()
	clitest.Main(m, run, "poundlock", supervise.WatchdogName)
}

const patience = clitest.Patience

// TestScripts runs testdata/*.txt. Each has a development cluster of its own, which ends
// with it.
func TestScripts(t *testing.T) {
	clitest.Scripts(t, func(env *testscript.Env) error {
		run := filepath.Join(env.WorkDir, "run")
		env.Setenv("XDG_RUNTIME_DIR", run)
		env.Defer(func() { endDev(filepath.Join(run, "poundlock")) })
		return os.Mkdir(run, 0o700)
	})
}

// endDev kills the development cluster in a directory, if there is one.
func endDev(dir string) {
	text, err := os.ReadFile(filepath.Join(dir, devcluster.Alive))
	if err != nil {
		return
	}
	if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

func TestHelp(t *testing.T)          { clitest.Help(t, program(), 9) }
func TestHelpStatuses(t *testing.T)  { clitest.Statuses(t, program(), "../../docs/cli.md", 5) }
func TestDocCommands(t *testing.T)   { clitest.Calls(t, program, 30) }
func TestReadmeConsole(t *testing.T) { clitest.Consoles(t, "../../README.md", "poundlock", 1) }
func TestWhichConsole(t *testing.T)  { clitest.Consoles(t, "../../docs/which-lock.md", "poundlock", 1) }

func TestDocs(t *testing.T) {
	const cluster = "Naming a cluster"
	clitest.Described(t, "poundlock", []clitest.Description{
		{Command: program().Root(io.Discard)},
		{Command: caCommand()},
		{Command: benchCommand(), Shared: cluster, JSON: benchResult{}},
		{Command: electCommand(), Shared: cluster, JSON: leaderLine{}},
		{Command: demoCommand(), JSON: demo.Result{}},
		{Command: kvCommand(), Shared: cluster},
		{Command: lockCommand(), Shared: cluster},
		{Command: locksCommand(), Shared: cluster},
		{Command: peerCommand(), Shared: cluster},
		{Command: releaseCommand(), Shared: cluster},
		{Command: serveCommand(), Shared: cluster},
		{Command: statusCommand(), Shared: cluster, JSON: status.Cluster{}},
	}...)
}

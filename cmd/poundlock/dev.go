package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/supervise"
	"github.com/poundlock/poundlock/server"
)

// A development cluster is one process with four servers on unix sockets in a
// directory of its user. Three files there are locked with flock(2), which ends
// with the process that holds it, however that ends:
//
//   - "start", exclusively, by whoever joins or ends the cluster, for a moment;
//   - "alive", exclusively, by the cluster while it lives: by inheritance, from
//     before it is started, so that two cannot be started;
//   - "clients", shared, by each client while it uses the cluster.
//
// A cluster ends only while it holds "start" and nobody holds "clients". So a
// client that has joined keeps it alive, and one that comes later starts another.
const (
	devStart   = "start"
	devAlive   = "alive"
	devClients = "clients"
	devLog     = "log"
)

const (
	devCommand = "dev-cluster"
	devIdle    = time.Minute
	// All its processes share one clock. Less than the default, because a fresh
	// server lets its first clients wait for some clock bounds.
	devClockBound = time.Millisecond
	devLease      = 10 * time.Minute // the longest that a client may ask for
	devPatience   = 15 * time.Second // for another process that starts it
	devAnswer     = 2 * time.Second  // for one that was joined, before it is taken for dying
)

// A devClient is a client of the development cluster.
type devClient struct {
	config  poundlock.Config
	using   *os.File
	started bool // by this client
}

// leave lets the cluster end some time later.
func (d *devClient) leave() {
	if d != nil {
		d.using.Close()
	}
}

// errDying says that a cluster was joined that does not answer. It may be dying: a
// process that was killed holds its locks for another moment.
var errDying = errors.New("the development cluster does not answer")

// dial connects to the cluster. After errDying there may be another one to join, or
// to start. Without a development cluster, d is nil, it is poundlock.Dial.
func (d *devClient) dial(ctx context.Context, c poundlock.Config) (*poundlock.Client, error) {
	if d == nil || d.started {
		return poundlock.Dial(ctx, c)
	}
	soon, cancel := context.WithTimeout(ctx, devAnswer)
	defer cancel()
	client, err := poundlock.Dial(soon, c)
	if errors.Is(err, poundlock.ErrNoQuorum) && ctx.Err() == nil {
		return nil, errDying
	}
	return client, err
}

// joinDev starts or joins the cluster of this user and says which.
func joinDev(ctx context.Context, say func(string, ...any)) (*devClient, error) {
	return useDev(checkDevDir, func(dir string) (*devClient, error) {
		return joinDevIn(ctx, dir, devIdle, say)
	})
}

// findDev joins the cluster of this user, if there is one, and starts none.
func findDev(ctx context.Context) (*devClient, error) {
	check := func(dir string) error {
		err := ownDevDir(dir)
		if errors.Is(err, os.ErrNotExist) {
			return errNoDev
		}
		return err
	}
	return useDev(check, func(dir string) (*devClient, error) { return findDevIn(ctx, dir) })
}

// useDev calls join with this user's directory, once check has found it good, and
// gives its errors a status and a hint.
func useDev(check func(dir string) error, join func(dir string) (*devClient, error)) (*devClient, error) {
	dir, err := devDir()
	if err != nil {
		return nil, err
	}
	var d *devClient
	hint := ""
	if err = check(dir); err == nil {
		d, err = join(dir)
		hint = "its log: " + filepath.Join(dir, devLog)
	}
	var s *cli.Status
	switch {
	case err == nil:
		return d, nil
	case errors.As(err, &s):
		return nil, s
	case errors.Is(err, errNoDev):
		err, hint = fmt.Errorf("none runs in %s", dir), "poundlock lock --dev starts one"
	}
	return nil, &cli.Status{Code: cli.ExitNoQuorum, Err: fmt.Errorf("development cluster: %w", err), Hint: hint}
}

// errNoDev says that there is no cluster to join.
var errNoDev = errors.New("no cluster runs")

// devDir is the directory of this user's cluster.
func devDir() (string, error) {
	if run := os.Getenv("XDG_RUNTIME_DIR"); run != "" {
		if !filepath.IsAbs(run) {
			return "", &cli.Status{
				Code: cli.ExitUsage,
				Err:  fmt.Errorf("XDG_RUNTIME_DIR=%q is not an absolute path", run),
				Hint: "set it to a directory of yours, or unset it",
			}
		}
		return filepath.Join(run, "poundlock"), nil
	}
	tmp, err := filepath.Abs(os.TempDir())
	if err != nil {
		return "", err
	}
	return filepath.Join(tmp, "poundlock-"+strconv.Itoa(os.Getuid())), nil
}

// maxSocketPath is what every unix allows, with room to spare.
const maxSocketPath = 100

// checkDevDir makes the directory, or refuses one that others could use: whoever
// can open the sockets can take and release this user's locks.
func checkDevDir(dir string) error {
	for _, p := range server.LocalServers(dir, 0) {
		if path := strings.TrimPrefix(p.Addr, "unix:"); len(path) > maxSocketPath {
			return &cli.Status{
				Code: cli.ExitUsage,
				Err:  fmt.Errorf("development cluster: socket path %s has %d bytes, more than %d", path, len(path), maxSocketPath),
				Hint: "set XDG_RUNTIME_DIR to a directory with a shorter name",
			}
		}
	}
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		return os.Chmod(dir, 0o700) // the umask may have taken more than it should
	}
	if !errors.Is(err, os.ErrExist) {
		return &cli.Status{
			Code: cli.ExitUsage,
			Err:  fmt.Errorf("development cluster: %w", err),
			Hint: "XDG_RUNTIME_DIR, or TMPDIR where that is not set, must be a directory in which you may write",
		}
	}
	return ownDevDir(dir)
}

// ownDevDir refuses a directory that is there and that others could use.
func ownDevDir(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	refuse := func(format string, args ...any) error {
		return &cli.Status{
			Code: cli.ExitUsage,
			Err:  fmt.Errorf("development cluster: "+format, args...),
			Hint: "remove it, or set XDG_RUNTIME_DIR to a directory of yours",
		}
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode()&os.ModeSymlink != 0:
		return refuse("%s is a symbolic link", dir)
	case !info.IsDir():
		return refuse("%s is not a directory", dir)
	case !ok || int(stat.Uid) != os.Geteuid():
		return refuse("%s belongs to another user", dir)
	case info.Mode().Perm() != 0o700:
		return refuse("%s has mode %#o, want 0700", dir, info.Mode().Perm())
	}
	return nil
}

// joinDevIn joins the cluster in dir, or starts one that ends after idle without
// clients.
func joinDevIn(ctx context.Context, dir string, idle time.Duration, say func(string, ...any)) (*devClient, error) {
	ctx, cancel := context.WithTimeout(ctx, devPatience)
	defer cancel()
	d, err := enterDev(ctx, dir, func(alive *os.File) error { return startDev(ctx, dir, idle, alive) })
	switch {
	case err != nil:
		return nil, err
	case d.started:
		say("started a development cluster in %s; it ends %v after its last client", dir, idle)
	default:
		say("joined the development cluster in %s", dir)
	}
	return d, nil
}

// findDevIn joins the cluster in dir. Without one it returns errNoDev.
func findDevIn(ctx context.Context, dir string) (*devClient, error) {
	return enterDev(ctx, dir, func(alive *os.File) error { return errors.Join(errNoDev, alive.Close()) })
}

// enterDev joins the cluster in dir. If none lives it calls start, which takes over
// the lock of one that does.
func enterDev(ctx context.Context, dir string, start func(alive *os.File) error) (*devClient, error) {
	gate, err := flock(ctx, filepath.Join(dir, devStart), unix.LOCK_EX)
	if err != nil {
		return nil, fmt.Errorf("another process starts it and does not come to an end: %w", err)
	}
	defer gate.Close()
	using, err := flock(ctx, filepath.Join(dir, devClients), unix.LOCK_SH)
	if err != nil {
		return nil, err
	}
	d := &devClient{using: using, config: poundlock.Config{ClockBound: devClockBound}}
	alive, err := tryFlock(filepath.Join(dir, devAlive), unix.LOCK_EX)
	if err == nil {
		d.started = true
		err = start(alive)
	} else if errors.Is(err, unix.EWOULDBLOCK) {
		err = nil
	}
	if err != nil {
		d.leave()
		return nil, err
	}
	for _, p := range server.LocalServers(dir, 0) {
		d.config.Servers = append(d.config.Servers, poundlock.Server(p))
	}
	return d, nil
}

// startDev starts the cluster's process and waits until its servers listen. It has
// a session of its own and nothing of this process's streams.
func startDev(ctx context.Context, dir string, idle time.Duration, alive *os.File) error {
	defer alive.Close()
	self, err := supervise.Self()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(dir, devLog), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	answer, ready, err := os.Pipe()
	if err != nil {
		return err
	}
	defer answer.Close()
	cmd := exec.Command(self, devCommand, dir, idle.String())
	cmd.Args[0] = os.Args[0]
	cmd.Stderr = log
	cmd.ExtraFiles = []*os.File{alive, ready}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	ready.Close()
	if err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok {
		answer.SetReadDeadline(deadline)
	}
	stop := context.AfterFunc(ctx, func() { answer.SetReadDeadline(time.Now()) })
	defer stop()
	text, err := io.ReadAll(answer)
	if err == nil && string(text) == devReady {
		return cmd.Process.Release()
	}
	cmd.Process.Kill()
	cmd.Wait()
	if err == nil {
		err = errors.New("it ended at once")
	}
	return fmt.Errorf("start %s: %w", self, err)
}

// devReady is what the cluster's process says when its servers listen.
const devReady = "ready\n"

// flock opens a file and waits until it is locked.
func flock(ctx context.Context, path string, how int) (*os.File, error) {
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		f, err := tryFlock(path, how)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(pause):
		}
	}
}

// tryFlock returns EWOULDBLOCK if somebody else has the file locked.
func tryFlock(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

// devClusterCommand is the cluster's process. It inherits "alive", locked, as
// descriptor 3, and says on descriptor 4 that it is ready.
func devClusterCommand() *cobra.Command {
	return &cobra.Command{
		Use:    devCommand,
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			idle, err := time.ParseDuration(args[1])
			if err != nil || idle <= 0 {
				return cli.Usagef("%s: a development cluster is started by poundlock lock --dev, not by hand", devCommand)
			}
			if err := runDev(args[0], idle); err != nil {
				return &cli.Status{Code: cli.ExitError, Err: err}
			}
			return nil
		},
	}
}

func runDev(dir string, idle time.Duration) error {
	closeInherited(4)
	alive, ready := os.NewFile(3, devAlive), os.NewFile(4, "ready")
	if err := unix.Flock(3, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("descriptor 3 is not the lock of a development cluster: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	signal.Ignore(syscall.SIGHUP)
	if err := os.Chdir("/"); err != nil { // keeps no file system busy
		return err
	}
	syscall.Umask(0o077)
	// Two lines for each client would fill the disk of a busy one.
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	local, err := server.StartLocal(server.LocalConfig{
		Dir: dir, ClockBound: devClockBound, Lease: devLease, Log: log,
	})
	if err != nil {
		return err
	}
	if err := alive.Truncate(0); err == nil { // for people: who it is
		fmt.Fprintln(alive, os.Getpid())
	}
	io.WriteString(ready, devReady)
	ready.Close()
	start, err := awaitEnd(ctx, dir, idle, alive, local.Clients)
	if err != nil {
		return err // without closing: that would remove what has the sockets' names now
	}
	err = local.Close()
	alive.Close()
	start.Close() // last: who has "start" finds a cluster that lives, or none
	return err
}

// awaitEnd returns when there were no clients for a time, or when ctx has ended. It
// returns "start", locked, so that no client comes before the cluster has ended. An
// error says that the directory is not this cluster's any more.
func awaitEnd(
	ctx context.Context, dir string, idle time.Duration, alive *os.File, sessions func() int,
) (start *os.File, err error) {
	tick := time.NewTicker(min(idle/4, time.Second))
	defer tick.Stop()
	unused := func() bool {
		free, err := tryFlock(filepath.Join(dir, devClients), unix.LOCK_EX)
		if err != nil {
			return false
		}
		free.Close()
		return sessions() == 0
	}
	for busy := time.Now(); ; {
		select {
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			start, _ = flock(ctx, filepath.Join(dir, devStart), unix.LOCK_EX)
			return start, nil
		case <-tick.C:
		}
		if !names(filepath.Join(dir, devAlive), alive) {
			return nil, fmt.Errorf("%s was removed or replaced", dir)
		}
		if !unused() {
			busy = time.Now()
		}
		if time.Since(busy) < idle {
			continue
		}
		if start, err = tryFlock(filepath.Join(dir, devStart), unix.LOCK_EX); err != nil {
			continue // somebody comes
		}
		if unused() {
			return start, nil
		}
		start.Close()
		busy = time.Now()
	}
}

// names reports whether a path names an open file.
func names(path string, f *os.File) bool {
	a, errA := os.Stat(path)
	b, errB := f.Stat()
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// closeInherited closes what this process was given beyond descriptor last: a
// cluster must not keep the pipes and locks of the one who happened to start it.
// What this program opens itself is closed on exec, and so told apart.
func closeInherited(last int) {
	for fd := 3; fd <= last; fd++ {
		unix.CloseOnExec(fd)
	}
	dir, err := os.Open("/dev/fd")
	if err != nil {
		return
	}
	defer dir.Close()
	entries, _ := dir.Readdirnames(-1)
	for _, name := range entries {
		fd, err := strconv.Atoi(name)
		if err != nil || fd <= last {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.Close(fd)
		}
	}
}

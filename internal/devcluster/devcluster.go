// Package devcluster is the development cluster of a user: one process with four servers on unix
// sockets in a directory of the user's. Three files there are locked with flock(2), which ends
// with the process that holds it, however that ends:
//
//   - "start", exclusively, by whoever joins or ends the cluster, for a moment;
//   - "alive", exclusively, by the cluster while it lives: by inheritance, from
//     before it is started, so that two cannot be started;
//   - "clients", shared, by each client while it uses the cluster.
//
// A cluster ends only while it holds "start" and nobody holds "clients". So a
// client that has joined keeps it alive, and one that comes later starts another.
package devcluster

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

	"golang.org/x/sys/unix"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/private"
	"github.com/poundlock/poundlock/internal/supervise"
	"github.com/poundlock/poundlock/server"
)

// The files in the directory. Alive says who the cluster is, for people.
const (
	Alive   = "alive"
	start   = "start"
	clients = "clients"
	log     = "log"
)

// Command is the first argument with which this program is the cluster: it must hand the
// remaining ones to Run.
const Command = "dev-cluster"

const (
	idleTime = time.Minute
	// All its processes share one clock. Less than the default, because a fresh
	// server lets its first clients wait for some clock bounds.
	clockBound = time.Millisecond
	lease      = 10 * time.Minute // the longest that a client may ask for
	patience   = 15 * time.Second // for another process that starts it
	answer     = 2 * time.Second  // for one that was joined, before it is taken for dying
)

// A Client is a client of the development cluster. nil is one of any other cluster.
type Client struct {
	Config  poundlock.Config
	using   *os.File
	started bool // by this client
}

// Leave lets the cluster end some time later.
func (d *Client) Leave() {
	if d != nil {
		d.using.Close()
	}
}

// ErrDying says that a cluster was joined that does not answer. It may be dying: a
// process that was killed holds its locks for another moment.
var ErrDying = errors.New("the development cluster does not answer")

// Dial connects to the cluster. After ErrDying there may be another one to join, or
// to start. Without a development cluster it is poundlock.Dial.
func (d *Client) Dial(ctx context.Context, c poundlock.Config) (*poundlock.Client, error) {
	if d == nil || d.started {
		return poundlock.Dial(ctx, c)
	}
	soon, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	client, err := poundlock.Dial(soon, c)
	if errors.Is(err, poundlock.ErrNoQuorum) && ctx.Err() == nil {
		return nil, ErrDying
	}
	return client, err
}

// errNone says that there is no cluster to join.
var errNone = errors.New("no cluster runs")

// Join joins the cluster of this user, or starts it, and says which. With nothing to say it
// starts none. Its errors have a status and a hint.
func Join(ctx context.Context, say func(string, ...any)) (*Client, error) {
	dir, err := directory()
	if err != nil {
		return nil, err
	}
	if say == nil {
		err = own(dir)
	} else {
		err = prepare(dir)
	}
	hint := ""
	if err == nil {
		hint = "its log: " + filepath.Join(dir, log)
		var d *Client
		if d, err = join(ctx, dir, idleTime, say); err == nil {
			return d, nil
		}
	}
	if errors.Is(err, errNone) || say == nil && errors.Is(err, os.ErrNotExist) {
		err, hint = fmt.Errorf("none runs in %s", dir), "poundlock lock --dev starts one"
	}
	var s *cli.Status
	if errors.As(err, &s) {
		return nil, s
	}
	return nil, &cli.Status{Code: cli.ExitNoQuorum, Err: fmt.Errorf("development cluster: %w", err), Hint: hint}
}

// directory is that of this user's cluster.
func directory() (string, error) {
	if run := os.Getenv("XDG_RUNTIME_DIR"); run != "" {
		if !filepath.IsAbs(run) {
			return "", cli.Usagef("XDG_RUNTIME_DIR=%q is not an absolute path", run).WithHint("set it to a directory of yours, or unset it")
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

// prepare makes the directory, or refuses one that others could use: whoever
// can open the sockets can take and release this user's locks.
func prepare(dir string) error {
	for _, p := range server.LocalServers(dir, 0) {
		if path := strings.TrimPrefix(p.Addr, "unix:"); len(path) > maxSocketPath {
			return cli.Usagef("development cluster: socket path %s has %d bytes, more than %d", path, len(path), maxSocketPath).
				WithHint("set XDG_RUNTIME_DIR to a directory with a shorter name")
		}
	}
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		return os.Chmod(dir, 0o700) // the umask may have taken more than it should
	}
	if !errors.Is(err, os.ErrExist) {
		return cli.Usagef("development cluster: %w", err).
			WithHint("XDG_RUNTIME_DIR, or TMPDIR where that is not set, must be a directory in which you may write")
	}
	return own(dir)
}

// own refuses a directory that is there and that others could use.
func own(dir string) error {
	err := private.CheckDir(dir)
	if err == nil || errors.Is(err, os.ErrNotExist) {
		return err
	}
	return cli.Usagef("development cluster: %w", err).WithHint("remove it, or set XDG_RUNTIME_DIR to a directory of yours")
}

// join joins the cluster in dir, or starts one that ends after idle without clients. With nothing
// to say it starts none.
func join(ctx context.Context, dir string, idle time.Duration, say func(string, ...any)) (*Client, error) {
	if say != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	gate, err := flock(ctx, filepath.Join(dir, start), unix.LOCK_EX)
	if err != nil {
		return nil, fmt.Errorf("another process starts it and does not come to an end: %w", err)
	}
	defer gate.Close()
	using, err := flock(ctx, filepath.Join(dir, clients), unix.LOCK_SH)
	if err != nil {
		return nil, err
	}
	d := &Client{using: using, Config: poundlock.Config{Servers: server.LocalServers(dir, 0), ClockBound: clockBound}}
	alive, err := private.Lock(filepath.Join(dir, Alive), unix.LOCK_EX)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		err = nil
		if say != nil {
			say("joined the development cluster in %s", dir)
		}
	case err == nil && say == nil:
		err = errors.Join(errNone, alive.Close())
	case err == nil:
		if err = startIn(ctx, dir, idle, alive); err == nil {
			d.started = true
			say("started a development cluster in %s; it ends %v after its last client", dir, idle)
		}
	}
	if err != nil {
		d.Leave()
		return nil, err
	}
	return d, nil
}

// startIn starts the cluster's process, which takes over the lock of one that lives, and waits
// until its servers listen. It has a session of its own and nothing of this process's streams.
func startIn(ctx context.Context, dir string, idle time.Duration, alive *os.File) error {
	defer alive.Close()
	self, err := supervise.Self()
	if err != nil {
		return err
	}
	words, err := os.OpenFile(filepath.Join(dir, log), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer words.Close()
	said, ready, err := os.Pipe()
	if err != nil {
		return err
	}
	defer said.Close()
	cmd := exec.Command(self, Command, dir, idle.String())
	cmd.Args[0] = os.Args[0]
	cmd.Stderr = words
	cmd.ExtraFiles = []*os.File{alive, ready}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	ready.Close()
	if err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok {
		said.SetReadDeadline(deadline)
	}
	stop := context.AfterFunc(ctx, func() { said.SetReadDeadline(time.Now()) })
	defer stop()
	text, err := io.ReadAll(said)
	if err == nil && string(text) == listening {
		return cmd.Process.Release()
	}
	cmd.Process.Kill()
	cmd.Wait()
	if err == nil {
		err = errors.New("it ended at once")
	}
	return fmt.Errorf("start %s: %w", self, err)
}

// listening is what the cluster's process says when its servers listen.
const listening = "ready\n"

// flock opens a file and waits until it is locked.
func flock(ctx context.Context, path string, how int) (*os.File, error) {
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		f, err := private.Lock(path, how)
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

// Run is the cluster's process. Its arguments are the directory and how long it lives without
// clients. It inherits "alive", locked, as descriptor 3, and says on descriptor 4 that it is ready.
func Run(args []string) error {
	if len(args) != 2 {
		return byHand()
	}
	dir := args[0]
	idle, err := time.ParseDuration(args[1])
	if err != nil || idle <= 0 {
		return byHand()
	}
	closeInherited(4)
	alive, ready := os.NewFile(3, Alive), os.NewFile(4, "ready")
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
	words := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	local, err := server.StartLocal(server.LocalConfig{
		Dir: dir, ClockBound: clockBound, Lease: lease, Log: words,
	})
	if err != nil {
		return err
	}
	if err := alive.Truncate(0); err == nil { // for people: who it is
		fmt.Fprintln(alive, os.Getpid())
	}
	io.WriteString(ready, listening)
	ready.Close()
	gate, err := awaitEnd(ctx, dir, idle, alive, local.Clients)
	if err != nil {
		return err // without closing: that would remove what has the sockets' names now
	}
	err = local.Close()
	alive.Close()
	gate.Close() // last: who has "start" finds a cluster that lives, or none
	return err
}

func byHand() error {
	return cli.Usagef("%s: a development cluster is started by poundlock lock --dev, not by hand", Command)
}

// awaitEnd returns when there were no clients for a time, or when ctx has ended. It
// returns "start", locked, so that no client comes before the cluster has ended. An
// error says that the directory is not this cluster's any more.
func awaitEnd(
	ctx context.Context, dir string, idle time.Duration, alive *os.File, sessions func() int,
) (gate *os.File, err error) {
	tick := time.NewTicker(min(idle/4, time.Second))
	defer tick.Stop()
	unused := func() bool {
		free, err := private.Lock(filepath.Join(dir, clients), unix.LOCK_EX)
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
			gate, _ = flock(ctx, filepath.Join(dir, start), unix.LOCK_EX)
			return gate, nil
		case <-tick.C:
		}
		if !names(filepath.Join(dir, Alive), alive) {
			return nil, fmt.Errorf("%s was removed or replaced", dir)
		}
		if !unused() {
			busy = time.Now()
		}
		if time.Since(busy) < idle {
			continue
		}
		if gate, err = private.Lock(filepath.Join(dir, start), unix.LOCK_EX); err != nil {
			continue // somebody comes
		}
		if unused() {
			return gate, nil
		}
		gate.Close()
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

// Package handover passes the live table of a server from one process to the next.
//
// A table goes from one process to the next over a unix socket. The successor says
// which table it wants. The predecessor, if that is its own, stands still, closes its
// listener and its connections, and sends the table. The successor loads it, listens
// where the predecessor did, and says so. With the one byte that lets it serve it gets
// the lock of the socket, which is held all the time by the one that may serve: until
// that byte is written the predecessor can go on, and after it never does.
//
// Who holds the lock lives. Who finds it free has no predecessor, and begins empty.
package handover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/transport"
)

const (
	maxOffer       = 64 << 10              // bytes of a request or an answer
	askTime        = time.Second           // for a successor that has connected to say what it wants
	maxTransfer    = 5 * time.Second       // and at most a quarter of the shortest lease
	loadTime       = 30 * time.Second      // after which a successor gives up: its predecessor has before
	answerPatience = 10 * time.Second      // for a predecessor that lives to answer
	retryPause     = 20 * time.Millisecond // between attempts of the successor
	maxAttempts    = 3                     // to take over from a predecessor that breaks off
	maxRest        = 10 * time.Second      // after a hand-over that failed, for clients to come back
	restPause      = 20 * time.Millisecond // between looks whether they are
	goAhead        = 'g'
)

// ErrLives says that a predecessor lives and does not hand its table over: this
// process must not serve.
var ErrLives = errors.New("the predecessor does not hand its table over")

// errBroken says that the transfer ended early; the predecessor may have died.
var errBroken = errors.New("the hand-over broke off")

// A Request is what a successor wants.
type Request struct{ Title node.Title }

// An Offer is the answer: the table follows, unless it is refused.
type Offer struct {
	Refused string        `json:",omitempty"`
	Mute    time.Duration // when the server may serve, by the boot clock; 0: now
}

// A Verdict is what the successor says of the table.
type Verdict struct {
	Refused string `json:",omitempty"`
}

// WriteJSON writes one of these.
func WriteJSON(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b = append(make([]byte, 4, 4+len(b)), b...)
	transport.EndFrame(b)
	_, err = w.Write(b)
	return err
}

// ReadJSON reads one of these.
func ReadJSON(r io.Reader, v any) error {
	b, err := transport.ReadFrame(r, maxOffer)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// Check says what is wrong with an address of a hand-over, unix:/path: whoever
// can open the socket gets every lock, so its directory must be closed to others.
func Check(addr string) error {
	path, ok := transport.Unix(addr)
	if !ok {
		return fmt.Errorf("address %q: want unix:/path", addr)
	}
	if err := transport.CheckListen(addr); err != nil {
		return err
	}
	dir := filepath.Dir(path)
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case !ok || int(owner.Uid) != os.Geteuid():
		return fmt.Errorf("directory %s belongs to another user", dir)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("directory %s has mode %#o, and others can open it: want 0700", dir, info.Mode().Perm())
	}
	return nil
}

// A Server is what may have a table: the successor of another process, or the predecessor of the next one.
type Server interface {
	// Listen listens where the clients expect the server.
	Listen() (net.Listener, error)
	// Give has do hand the table over, while nothing else happens to the server, which serves from mute on,
	// by the boot clock; 0: it does. do calls stands once the node stands still, and reports whether
	// the table is another process's.
	Give(do func(mute time.Duration, stands func()) (gone bool))
	// ServeAgain has the server go on that gave its table to nobody, or returns when ctx ends.
	ServeAgain(ctx context.Context)
}

// An Inheritance is what a server begins with.
type Inheritance struct {
	Guard    *os.File      // the lock of the socket; nil: there are no hand-overs
	Node     *node.Node    // with the table; nil: there was none
	listener net.Listener  // nil: none yet
	Mute     time.Duration // when the server may serve, by the boot clock; 0: now
}

// Inherit takes the table that a server of configuration c would begin with from its predecessor, or finds that there is
// none. addr is unix:/path.
func Inherit(ctx context.Context, addr string, c node.Config, s Server) (Inheritance, error) {
	path, _ := transport.Unix(addr)
	log := c.Log.With("server", c.Label, "handover", path)
	broken := error(nil)
	for attempts, end := 0, time.Now().Add(answerPatience); ; {
		guard, err := TryLock(path + ".lock")
		switch {
		case err == nil && broken != nil:
			log.Warn("the predecessor died during the hand-over: starts empty, which is one loss of memory", "reason", broken)
		case err == nil:
			log.Info("no predecessor: starts empty")
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return Inheritance{Guard: guard}, err
		}
		in, err := receive(ctx, path, c, s)
		switch {
		case err == nil:
			return in, nil
		case errors.Is(err, ErrLives):
			return Inheritance{}, err
		case errors.Is(err, errBroken):
			broken = err
			if attempts++; attempts == maxAttempts {
				return Inheritance{}, fmt.Errorf("%w: tried %d times: %w", ErrLives, attempts, err)
			}
		case time.Now().After(end):
			return Inheritance{}, fmt.Errorf("%w: one that holds %s.lock does not answer: %w", ErrLives, path, err)
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return Inheritance{}, ctx.Err()
		}
	}
}

// receive takes the table over.
func receive(ctx context.Context, path string, c node.Config, s Server) (in Inheritance, err error) {
	dialed, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return in, err
	}
	defer dialed.Close()
	stop := context.AfterFunc(ctx, func() { dialed.Close() })
	defer stop()
	conn := dialed.(*net.UnixConn)
	began := time.Now()
	conn.SetDeadline(began.Add(loadTime))
	if err := WriteJSON(conn, Request{Title: c.Title()}); err != nil {
		return in, fmt.Errorf("%w: %w", errBroken, err)
	}
	var o Offer
	if err := ReadJSON(conn, &o); err != nil {
		return in, fmt.Errorf("%w: %w", errBroken, err)
	}
	if o.Refused != "" {
		return in, fmt.Errorf("%w: it says: %s", ErrLives, o.Refused)
	}
	in.Mute = o.Mute
	defer func() {
		if err != nil {
			in.close()
			in = Inheritance{}
		}
	}()
	frozen, size, err := node.Restore(c, conn)
	refuses := errors.Is(err, node.ErrSnapshot) || errors.Is(err, node.ErrNoHandover)
	if err == nil {
		in.Node = frozen.Node()
		if in.Mute == 0 {
			in.listener, err = s.Listen()
			refuses = err != nil
		}
	}
	if refuses {
		return in, errors.Join(fmt.Errorf("%w: %w", ErrLives, err), WriteJSON(conn, Verdict{Refused: err.Error()}))
	}
	if err == nil {
		err = WriteJSON(conn, Verdict{})
	}
	if err == nil {
		in.Guard, err = readGo(conn)
	}
	if err != nil {
		return in, fmt.Errorf("%w: %w", errBroken, err)
	}
	frozen.Thaw()
	c.Log.Info("took over from a predecessor", "server", c.Label, "locks", size.Locks,
		"sessions", size.Sessions, "bytes", size.Bytes, "after", time.Since(began).Round(time.Millisecond))
	return in, nil
}

// close undoes what receive did and nobody needs.
func (in Inheritance) close() {
	if in.listener != nil {
		in.listener.Close()
	}
	if in.Node != nil {
		in.Node.Close()
	}
}

// readGo reads the byte that lets the successor serve, and the lock that comes with it.
func readGo(conn *net.UnixConn) (*os.File, error) {
	b, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := conn.ReadMsgUnix(b, oob)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if n != 1 || b[0] != goAhead || err != nil || len(messages) != 1 {
		return nil, errors.New("no lock came with the table")
	}
	rights, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(rights) != 1 {
		return nil, errors.New("no lock came with the table")
	}
	unix.CloseOnExec(rights[0])
	return os.NewFile(uintptr(rights[0]), "lock of the hand-over"), nil
}

// writeGo lets the successor serve. An error says that nothing was written, so that
// the successor never will.
func writeGo(conn *net.UnixConn, guard *os.File) error {
	n, _, err := conn.WriteMsgUnix([]byte{goAhead}, unix.UnixRights(int(guard.Fd())), nil)
	if n > 0 || err == nil {
		return nil
	}
	return fmt.Errorf("the successor is gone: %w", err)
}

// TryLock fails with EWOULDBLOCK while another process has the lock.
func TryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Heirs are where successors ask for the table.
type Heirs struct {
	s        Server
	n        *node.Node
	log      *slog.Logger
	guard    *os.File
	listener *net.UnixListener
	path     string
	rested   time.Duration // by the boot clock, when the next one may have the table at the latest
	cancel   context.CancelFunc
	over     bool          // the table is somebody else's
	ended    chan struct{} // closed when nobody is served any more; over is known then
}

// Await listens for successors of a server, whose node is n. The lock of addr is held: what stands there is left over.
func Await(ctx context.Context, addr string, guard *os.File, n *node.Node, s Server, log *slog.Logger) (*Heirs, error) {
	path, _ := transport.Unix(addr)
	if info, err := os.Lstat(path); err == nil {
		if info.Mode().Type() != os.ModeSocket {
			return nil, fmt.Errorf("%s is there and is no socket", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := ListenPrivate(path)
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // a successor's may stand there
	h := &Heirs{s: s, n: n, log: log, guard: guard, listener: l, path: path, ended: make(chan struct{})}
	ctx, h.cancel = context.WithCancel(ctx)
	go h.accept(ctx)
	return h, nil
}

// Stop ends the hand-overs, also one that has begun.
func (h *Heirs) Stop() {
	h.cancel()
	<-h.ended
}

// Close gives the lock up, if it is still that of this process.
func (h *Heirs) Close() {
	h.Stop()
	if !h.over {
		os.Remove(h.path)
	}
	h.guard.Close()
}

// Ended is closed when nobody is served any more: the table is somebody else's, or the server ends.
func (h *Heirs) Ended() <-chan struct{} { return h.ended }

// accept serves one successor after another, until one has the table.
func (h *Heirs) accept(ctx context.Context) {
	defer close(h.ended)
	defer context.AfterFunc(ctx, func() { h.listener.Close() })()
	for !h.over {
		conn, err := h.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(retryPause) // out of descriptors, for one: it may pass
			continue
		}
		ended := context.AfterFunc(ctx, func() { conn.Close() })
		err = h.serve(ctx, conn)
		ended()
		conn.Close()
		if err != nil {
			h.log.Warn("a hand-over failed, and this process goes on serving", "reason", err)
		}
	}
}

// serve hands the table over to the process at the other end. After an error this process has it still.
func (h *Heirs) serve(ctx context.Context, conn *net.UnixConn) (err error) {
	conn.SetDeadline(time.Now().Add(askTime))
	var r Request
	if err := ReadJSON(conn, &r); err != nil {
		return fmt.Errorf("no request: %w", err)
	}
	h.rest(ctx)
	stood := false
	h.s.Give(func(mute time.Duration, stands func()) (gone bool) {
		err = h.give(conn, r.Title, mute, func() {
			stood = true
			stands()
		})
		h.over = err == nil
		return h.over
	})
	if err != nil && stood {
		conn.Close() // the successor need not wait for that
		h.s.ServeAgain(ctx)
		_, longest := h.n.Leases()
		h.rested = h.n.Boot() + min(longest/2, maxRest)
	}
	return err
}

// rest waits until the clients are back that the last attempt cost their connections:
// their leases went on meanwhile, and would not outlast one attempt after the other.
// Those that died are not waited for.
func (h *Heirs) rest(ctx context.Context) {
	for n := h.n; n.Boot() < h.rested && n.Away() > 0; {
		select {
		case <-time.After(restPause):
		case <-ctx.Done():
			return
		}
	}
}

// give hands the table over. stands is called when this process stands still for it and does not listen.
func (h *Heirs) give(conn *net.UnixConn, title node.Title, mute time.Duration, stands func()) error {
	refuse := func(err error) error { return errors.Join(err, WriteJSON(conn, Offer{Refused: err.Error()})) }
	if err := h.n.Title().Check(title); err != nil {
		return refuse(err)
	}
	shortest, _ := h.n.Leases()
	limit := min(maxTransfer, shortest/4)
	began := time.Now()
	conn.SetDeadline(began.Add(limit))
	frozen, err := h.n.Freeze()
	if err != nil {
		return refuse(err)
	}
	stands()
	size, err := transfer(conn, frozen, mute)
	if err == nil {
		err = writeGo(conn, h.guard)
	}
	if err == nil {
		h.log.Info("handed over", "locks", size.Locks, "sessions", size.Sessions,
			"bytes", size.Bytes, "after", time.Since(began).Round(time.Millisecond))
		return nil
	}
	frozen.Thaw()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("not within %v, a quarter of the shortest lease: %w", limit, err)
	}
	return err
}

// transfer sends the table, and waits until the successor has it.
func transfer(conn *net.UnixConn, frozen *node.Frozen, mute time.Duration) (node.SnapshotSize, error) {
	if err := WriteJSON(conn, Offer{Mute: mute}); err != nil {
		return node.SnapshotSize{}, err
	}
	size, err := frozen.Write(conn)
	if err != nil {
		return size, err
	}
	var v Verdict
	if err := ReadJSON(conn, &v); err != nil {
		return size, err
	}
	if v.Refused != "" {
		return size, fmt.Errorf("the successor refuses: %s", v.Refused)
	}
	return size, nil
}

// ListenPrivate listens at a unix socket that no other user may connect to, whatever the umask is.
func ListenPrivate(path string) (*net.UnixListener, error) {
	// A socket that is bound gets the mode of its descriptor, where the system has that: so there is no moment in
	// which others may connect. Elsewhere the mode follows at once.
	c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { _ = unix.Fchmod(int(fd), 0o600) })
	}}
	l, err := c.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l.(*net.UnixListener), nil
}

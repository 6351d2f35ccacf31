package server

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
	"time"

	"golang.org/x/sys/unix"

	"github.com/poundlock/poundlock/internal/private"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/transport"
)

// # Hand-over
//
// A table goes from one process to the next over a unix socket. The successor says
// which table it wants. The predecessor, if that is its own, stands still, closes its
// listener and its connections, and sends the table. The successor loads it, listens
// where the predecessor did, and says so. With the one byte that lets it serve it gets
// the lock of the socket, which is held all the time by the one that may serve: until
// that byte is written the predecessor can go on, and after it never does.
//
// Who holds the lock lives. Who finds it free has no predecessor, and begins empty.

const (
	maxOffer       = 64 << 10               // bytes of a request or an answer
	askTime        = time.Second            // for a successor that has connected to say what it wants
	maxTransfer    = 5 * time.Second        // and at most a quarter of the shortest lease
	loadTime       = 30 * time.Second       // after which a successor gives up: its predecessor has before
	answerPatience = 10 * time.Second       // for a predecessor that lives to answer
	retryPause     = 20 * time.Millisecond  // between attempts of the successor
	maxAttempts    = 3                      // to take over from a predecessor that breaks off
	maxRest        = 10 * time.Second       // after a hand-over that failed, for clients to come back
	restPause      = 20 * time.Millisecond  // between looks whether they are
	maxListenPause = 500 * time.Millisecond // between attempts to listen again
	goAhead        = 'g'
)

// ErrHandover says that a predecessor lives and does not hand its table over: this
// process must not serve.
var ErrHandover = errors.New("the predecessor does not hand its table over")

// errBroken says that the transfer ended early; the predecessor may have died.
var errBroken = errors.New("the hand-over broke off")

// An offer answers a successor that has said of which Title it wants a table: that follows, unless it is refused.
// What the successor says of the table then is a text: why it refuses it, or nothing.
type offer struct {
	Refused string        `json:",omitempty"`
	Mute    time.Duration // when the server may serve, by the boot clock; 0: now
}

// writeJSON writes what the two processes tell each other.
func writeJSON(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b = append(make([]byte, 4, 4+len(b)), b...)
	transport.EndFrame(b)
	_, err = w.Write(b)
	return err
}

// readJSON reads that.
func readJSON(r io.Reader, v any) error {
	b, err := transport.ReadFrame(r, maxOffer)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// CheckHandover says what is wrong with an address of a hand-over, unix:/path: whoever
// can open the socket gets every lock, so its directory must be closed to others.
func CheckHandover(addr string) error {
	path, ok := transport.Unix(addr)
	if !ok {
		return fmt.Errorf("address %q: want unix:/path", addr)
	}
	if err := transport.CheckListen(addr); err != nil {
		return err
	}
	return private.CheckDir(filepath.Dir(path))
}

// An inheritance is what a server begins with.
type inheritance struct {
	guard    *os.File      // the lock of the socket; nil: there are no hand-overs
	node     *node.Node    // with the table; nil: there was none
	listener net.Listener  // nil: none yet
	mute     time.Duration // when the server may serve, by the boot clock; 0: now
}

// inherit takes the table of the predecessor, or finds that there is none.
func (s *Server) inherit(ctx context.Context) (inheritance, error) {
	path, _ := transport.Unix(s.config.Handover)
	log := s.config.Log.With("server", s.config.Name, "handover", path)
	broken := error(nil)
	for attempts, end := 0, time.Now().Add(answerPatience); ; {
		guard, err := private.Lock(path+".lock", unix.LOCK_EX)
		switch {
		case err == nil && broken != nil:
			log.Warn("the predecessor died during the hand-over: starts empty, which is one loss of memory", "reason", broken)
		case err == nil:
			log.Info("no predecessor: starts empty")
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return inheritance{guard: guard}, err
		}
		in, err := s.receive(ctx, path)
		switch {
		case err == nil:
			return in, nil
		case errors.Is(err, ErrHandover):
			return inheritance{}, err
		case errors.Is(err, errBroken):
			broken = err
			if attempts++; attempts == maxAttempts {
				return inheritance{}, fmt.Errorf("%w: tried %d times: %w", ErrHandover, attempts, err)
			}
		case time.Now().After(end):
			return inheritance{}, fmt.Errorf("%w: one that holds %s.lock does not answer: %w", ErrHandover, path, err)
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return inheritance{}, ctx.Err()
		}
	}
}

// receive takes the table over.
func (s *Server) receive(ctx context.Context, path string) (in inheritance, err error) {
	dialed, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return in, err
	}
	defer dialed.Close()
	stop := context.AfterFunc(ctx, func() { dialed.Close() })
	defer stop()
	conn := dialed.(*net.UnixConn)
	began, c := time.Now(), s.nodeConfig()
	conn.SetDeadline(began.Add(loadTime))
	if err := writeJSON(conn, c.Title()); err != nil {
		return in, fmt.Errorf("%w: %w", errBroken, err)
	}
	var o offer
	if err := readJSON(conn, &o); err != nil {
		return in, fmt.Errorf("%w: %w", errBroken, err)
	}
	if o.Refused != "" {
		return in, fmt.Errorf("%w: it says: %s", ErrHandover, o.Refused)
	}
	in.mute = o.Mute
	defer func() {
		if err != nil {
			in.close()
			in = inheritance{}
		}
	}()
	frozen, size, err := node.Restore(c, conn)
	refuses := errors.Is(err, node.ErrSnapshot) || errors.Is(err, node.ErrNoHandover)
	if err == nil {
		in.node = frozen.Node()
		if in.mute == 0 {
			in.listener, err = s.listen()
			refuses = err != nil
		}
	}
	if refuses {
		return in, errors.Join(fmt.Errorf("%w: %w", ErrHandover, err), writeJSON(conn, err.Error()))
	}
	if err == nil {
		err = writeJSON(conn, "")
	}
	if err == nil {
		in.guard, err = readGo(conn)
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
func (in inheritance) close() {
	if in.listener != nil {
		in.listener.Close()
	}
	if in.node != nil {
		in.node.Close()
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

// heirs are where successors ask for the table.
type heirs struct {
	s        *Server
	log      *slog.Logger
	guard    *os.File
	listener *net.UnixListener
	path     string
	rested   time.Duration // by the boot clock, when the next one may have the table at the latest
	cancel   context.CancelFunc
	ended    chan struct{} // closed when nobody is served any more; Server.handedOver is known then
}

// awaitHeirs listens for successors. guard is the lock of the socket: what stands there is left over.
func (s *Server) awaitHeirs(ctx context.Context, guard *os.File) (*heirs, error) {
	path, _ := transport.Unix(s.config.Handover)
	if info, err := os.Lstat(path); err == nil {
		if info.Mode().Type() != os.ModeSocket {
			return nil, fmt.Errorf("%s is there and is no socket", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := private.Listen(path)
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // a successor's may stand there
	h := &heirs{s: s, log: s.config.Log.With("server", s.config.Name), guard: guard, listener: l, path: path, ended: make(chan struct{})}
	ctx, h.cancel = context.WithCancel(ctx)
	go h.accept(ctx)
	return h, nil
}

// stop ends the hand-overs, also one that has begun.
func (h *heirs) stop() {
	h.cancel()
	<-h.ended
}

// close gives the lock up, if it is still that of this process.
func (h *heirs) close() {
	h.stop()
	if !h.s.handedOver {
		os.Remove(h.path)
	}
	h.guard.Close()
}

// accept serves one successor after another, until one has the table.
func (h *heirs) accept(ctx context.Context) {
	defer close(h.ended)
	defer context.AfterFunc(ctx, func() { h.listener.Close() })()
	for !h.s.handedOver {
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
func (h *heirs) serve(ctx context.Context, conn *net.UnixConn) (err error) {
	conn.SetDeadline(time.Now().Add(askTime))
	var title node.Title
	if err := readJSON(conn, &title); err != nil {
		return fmt.Errorf("no request: %w", err)
	}
	h.rest(ctx)
	s := h.s
	s.turn.Lock()
	stood, err := h.give(conn, title)
	s.handedOver = err == nil
	s.turn.Unlock()
	if err != nil && stood {
		conn.Close() // the successor need not wait for that
		s.serveAgain(ctx)
		_, longest := s.node.Leases()
		h.rested = s.node.Boot() + min(longest/2, maxRest)
	}
	return err
}

// rest waits until the clients are back that the last attempt cost their connections:
// their leases went on meanwhile, and would not outlast one attempt after the other.
// Those that died are not waited for.
func (h *heirs) rest(ctx context.Context) {
	for n := h.s.node; n.Boot() < h.rested && n.Away() > 0; {
		select {
		case <-time.After(restPause):
		case <-ctx.Done():
			return
		}
	}
}

// give hands the table over, unless it fails. stood says that this process stood still for it, and does not listen
// since. turn is held.
func (h *heirs) give(conn *net.UnixConn, title node.Title) (stood bool, err error) {
	n := h.s.node
	refuse := func(err error) error { return errors.Join(err, writeJSON(conn, offer{Refused: err.Error()})) }
	if err := n.Title().Check(title); err != nil {
		return false, refuse(err)
	}
	shortest, _ := n.Leases()
	limit := min(maxTransfer, shortest/4)
	began := time.Now()
	conn.SetDeadline(began.Add(limit))
	frozen, err := n.Freeze()
	if err != nil {
		return false, refuse(err)
	}
	h.s.accepts.Store(false)
	size, err := transfer(conn, frozen, h.s.mute)
	if err == nil {
		err = writeGo(conn, h.guard)
	}
	if err == nil {
		h.log.Info("handed over", "locks", size.Locks, "sessions", size.Sessions,
			"bytes", size.Bytes, "after", time.Since(began).Round(time.Millisecond))
		return true, nil
	}
	frozen.Thaw()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("not within %v, a quarter of the shortest lease: %w", limit, err)
	}
	return true, err
}

// transfer sends the table, and waits until the successor has it.
func transfer(conn *net.UnixConn, frozen *node.Frozen, mute time.Duration) (node.SnapshotSize, error) {
	if err := writeJSON(conn, offer{Mute: mute}); err != nil {
		return node.SnapshotSize{}, err
	}
	size, err := frozen.Write(conn)
	if err != nil {
		return size, err
	}
	var refused string
	if err := readJSON(conn, &refused); err != nil {
		return size, err
	}
	if refused != "" {
		return size, fmt.Errorf("the successor refuses: %s", refused)
	}
	return size, nil
}

// serveAgain serves once more where the predecessor, which this still is, did. Another process may have the address
// by now: it keeps trying, and whoever has a turn meanwhile does not wait for it.
func (s *Server) serveAgain(ctx context.Context) {
	for pause := time.Millisecond; ctx.Err() == nil; pause = min(2*pause, maxListenPause) {
		err := s.reopen()
		if err == nil {
			return
		}
		s.config.Log.Error("cannot serve again after a hand-over that failed", "server", s.config.Name, "reason", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// reopen listens again, unless the server does or is mute.
func (s *Server) reopen() error {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.mute != 0 || s.accepts.Load() {
		return nil
	}
	l, err := s.listen()
	if err != nil {
		return err
	}
	if err := s.node.Serve(l); err != nil {
		return err
	}
	s.accepts.Store(true)
	return nil
}

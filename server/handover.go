package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/transport"
)

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
	maxListenPause = 500 * time.Millisecond // between attempts to listen again
	maxRest        = 10 * time.Second       // after a hand-over that failed, for clients to come back
	restPause      = 20 * time.Millisecond  // between looks whether they are
	goAhead        = 'g'
)

// ErrHandover says that a predecessor lives and does not hand its table over: this
// process must not serve.
var ErrHandover = errors.New("the predecessor does not hand its table over")

// errBroken says that the transfer ended early; the predecessor may have died.
var errBroken = errors.New("the hand-over broke off")

// A request is what a successor wants.
type request struct{ Title node.Title }

// An offer is the answer: the table follows, unless it is refused.
type offer struct {
	Refused string        `json:",omitempty"`
	Mute    time.Duration // when the server may serve, by the boot clock; 0: now
}

// A verdict is what the successor says of the table.
type verdict struct {
	Refused string `json:",omitempty"`
}

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

// An inheritance is what a server begins with.
type inheritance struct {
	guard    *os.File      // the lock of the socket
	node     *node.Node    // with the table; nil: there was none
	listener net.Listener  // nil: none yet
	mute     time.Duration // when the server may serve, by the boot clock
}

// inherit takes the table of a predecessor over, or finds that there is none.
func (s *Server) inherit(ctx context.Context) (inheritance, error) {
	path, _ := transport.Unix(s.config.Handover)
	log := s.config.Log.With("server", s.config.Name, "handover", path)
	broken := error(nil)
	for attempts, end := 0, time.Now().Add(answerPatience); ; {
		guard, err := tryLock(path + ".lock")
		switch {
		case err == nil && broken != nil:
			log.Warn("the predecessor died during the hand-over: starts empty, which is one loss of memory", "reason", broken)
			return inheritance{guard: guard}, nil
		case err == nil:
			log.Info("no predecessor: starts empty")
			return inheritance{guard: guard}, nil
		case !errors.Is(err, unix.EWOULDBLOCK):
			return inheritance{}, err
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
	began := time.Now()
	conn.SetDeadline(began.Add(loadTime))
	config := s.nodeConfig()
	if err := writeJSON(conn, request{config.Title()}); err != nil {
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
	frozen, size, err := node.Restore(config, conn)
	if err == nil {
		in.node = frozen.Node()
	}
	if errors.Is(err, node.ErrSnapshot) || errors.Is(err, node.ErrNoHandover) {
		return in, errors.Join(fmt.Errorf("%w: %w", ErrHandover, err), writeJSON(conn, verdict{Refused: err.Error()}))
	}
	if err == nil && in.mute == 0 {
		if in.listener, err = s.listen(); err != nil {
			return in, errors.Join(fmt.Errorf("%w: %w", ErrHandover, err), writeJSON(conn, verdict{Refused: err.Error()}))
		}
	}
	if err == nil {
		err = writeJSON(conn, verdict{})
	}
	if err == nil {
		in.guard, err = readGo(conn)
	}
	if err == nil {
		err = frozen.Thaw(nil)
	}
	if err != nil {
		return in, fmt.Errorf("%w: %w", errBroken, err)
	}
	s.config.Log.Info("took over from a predecessor", "server", s.config.Name, "locks", size.Locks,
		"sessions", size.Sessions, "bytes", size.Bytes, "after", time.Since(began).Round(time.Millisecond))
	return in, nil
}

// close undoes what receive did for nothing.
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

// tryLock fails with EWOULDBLOCK while another process has the lock.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// An heirs is where successors ask for the table.
type heirs struct {
	s        *Server
	guard    *os.File
	listener *net.UnixListener
	path     string
	rested   time.Duration // by the boot clock, when the next one may have the table at the latest
	cancel   context.CancelFunc
	gone     chan struct{} // closed when the table is somebody else's
	ended    chan struct{} // closed when nobody is served any more
}

// awaitHeirs listens for successors. The lock is held: what stands there is left over.
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
	l, err := listenPrivate(path)
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // a successor's may stand there
	h := &heirs{s: s, guard: guard, listener: l, path: path, gone: make(chan struct{}), ended: make(chan struct{})}
	ctx, h.cancel = context.WithCancel(ctx)
	go h.accept(ctx)
	return h, nil
}

// stop ends the hand-overs, also one that has begun.
func (h *heirs) stop() {
	h.listener.Close()
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
	stop := context.AfterFunc(ctx, func() { h.listener.Close() })
	defer stop()
	for {
		conn, err := h.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(retryPause) // out of descriptors, for one: it may pass
			continue
		}
		ended := context.AfterFunc(ctx, func() { conn.Close() })
		done, err := h.serve(ctx, conn)
		ended()
		conn.Close()
		if done {
			close(h.gone)
			return
		}
		if err != nil {
			h.s.config.Log.Warn("a hand-over failed, and this process goes on serving",
				"server", h.s.config.Name, "reason", err)
		}
	}
}

// serve hands the table over to the process at the other end. Without done this
// process has it still.
func (h *heirs) serve(ctx context.Context, conn *net.UnixConn) (done bool, err error) {
	conn.SetDeadline(time.Now().Add(askTime))
	var r request
	if err := readJSON(conn, &r); err != nil {
		return false, fmt.Errorf("no request: %w", err)
	}
	h.rest(ctx)
	stood, err := h.give(conn, r.Title)
	if err == nil {
		return true, nil
	}
	if stood {
		conn.Close() // the successor need not wait for that
		h.s.listenAgain(ctx)
		_, longest := h.s.node.Leases()
		h.rested = h.s.node.Boot() + min(longest/2, maxRest)
	}
	return false, err
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

// give hands the table over. After an error this process has it, and stood says that it
// stood still for it and does not listen.
func (h *heirs) give(conn *net.UnixConn, title node.Title) (stood bool, err error) {
	s := h.s
	s.turn.Lock()
	defer s.turn.Unlock()
	refuse := func(err error) (bool, error) {
		return false, errors.Join(err, writeJSON(conn, offer{Refused: err.Error()}))
	}
	if err := s.node.Title().Check(title); err != nil {
		return refuse(err)
	}
	shortest, _ := s.node.Leases()
	limit := min(maxTransfer, shortest/4)
	began := time.Now()
	conn.SetDeadline(began.Add(limit))
	frozen, err := s.node.Freeze()
	if err != nil {
		return refuse(err)
	}
	s.accepts.Store(false)
	size, err := h.transfer(conn, frozen)
	if err == nil {
		err = writeGo(conn, h.guard)
	}
	if err == nil {
		s.handedOver = true
		s.config.Log.Info("handed over", "server", s.config.Name, "locks", size.Locks, "sessions", size.Sessions,
			"bytes", size.Bytes, "after", time.Since(began).Round(time.Millisecond))
		return true, nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("not within %v, a quarter of the shortest lease: %w", limit, err)
	}
	return true, errors.Join(err, frozen.Thaw(nil))
}

// transfer sends the table, and waits until the successor has it.
func (h *heirs) transfer(conn *net.UnixConn, frozen *node.Frozen) (node.SnapshotSize, error) {
	if err := writeJSON(conn, offer{Mute: h.s.mute}); err != nil {
		return node.SnapshotSize{}, err
	}
	size, err := frozen.Write(conn)
	if err != nil {
		return size, err
	}
	var v verdict
	if err := readJSON(conn, &v); err != nil {
		return size, err
	}
	if v.Refused != "" {
		return size, fmt.Errorf("the successor refuses: %s", v.Refused)
	}
	return size, nil
}

// listenAgain serves once more where the predecessor, which this still is, did. Another
// process may have the address by now: it keeps
// trying, and whoever has a turn meanwhile does not wait for it.
func (s *Server) listenAgain(ctx context.Context) {
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

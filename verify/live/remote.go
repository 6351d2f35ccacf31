package live

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"sync"

	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// A remote process is a node of another program, which calls Process. Its user stays here: what goes to the user and back takes a
// pipe each way, some 20 µs, that a local process does not have.
type remote struct {
	cmd *exec.Cmd
	in  io.Closer
	log *slog.Logger

	answers chan telling  // of asked: one at a time
	ended   chan struct{} // closed when it says nothing more

	mu     sync.Mutex // of all below
	orders *gob.Encoder
	user   node.Sharer // the last one that tried
	tally  []int       // of messages, once it was halted
	ending bool        // that it ends is wanted
}

// An order is what a remote process is to do. Its role comes first.
type order struct {
	Do     act
	Wants  protocol.Groups // with try
	Group  protocol.Group  // with downgrade
	Others int             // with meet
}

// A telling is what a remote process says.
type telling struct {
	Said   act
	Entry  node.Entry      // with crit
	Reason protocol.Reason // with rem
	Error  string          // with started, rem, meet, complain
	Sent   []int           // with sent
}

type act uint8

const (
	doTry act = iota
	doDowngrade
	doExit
	doDrain
	doMeet     // answered
	doSent     // answered
	sayStarted // the answer to the role
	sayCrit
	sayEjected
	sayRem
	sayComplain
)

// childListener is the number of the file that the listener of a member is in its program.
const childListener = 3

func startRemote(r role, l net.Listener, cmd *exec.Cmd, log *slog.Logger) (process, error) {
	v := &remote{cmd: cmd, log: log, answers: make(chan telling, 1), ended: make(chan struct{})}
	if l != nil {
		tcp, is := l.(*net.TCPListener)
		if !is {
			return nil, fmt.Errorf("live: %T is no listener for another program", l)
		}
		file, err := tcp.File()
		if err != nil {
			return nil, err
		}
		defer file.Close()
		cmd.ExtraFiles = []*os.File{file}
	}
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if cmd.Stderr == nil {
		cmd.Stderr = os.Stderr
	}
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if l != nil {
		l.Close() // the program has it
	}
	v.in, v.orders = in, gob.NewEncoder(in)
	go v.hear(gob.NewDecoder(out))
	err := v.orders.Encode(r)
	if err == nil {
		_, err = v.answer(context.Background())
	}
	if err != nil {
		v.close()
		return nil, err
	}
	return v, nil
}

// hear passes on what the process says.
func (v *remote) hear(from *gob.Decoder) {
	defer close(v.ended)
	for {
		var t telling
		err := from.Decode(&t)
		v.mu.Lock()
		u, ending := v.user, v.ending
		v.mu.Unlock()
		if err != nil {
			if !ending {
				v.log.Error("a process ended by itself: " + err.Error())
			}
			return
		}
		switch t.Said {
		case sayCrit:
			u.Crit(t.Entry)
		case sayEjected:
			u.Ejected()
		case sayRem:
			u.Rem(t.why())
		case sayComplain:
			v.log.Error(t.Error)
		default:
			v.answers <- t
		}
	}
}

func (t *telling) why() error {
	switch {
	case t.Reason != 0:
		return t.Reason
	case t.Error != "":
		return errors.New(t.Error)
	}
	return nil
}

func (v *remote) order(o order) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ending {
		return errCrashed
	}
	return v.orders.Encode(o)
}

// ask returns the answer to an order.
func (v *remote) ask(ctx context.Context, o order) (t telling, err error) {
	if err := v.order(o); err != nil {
		return t, err
	}
	return v.answer(ctx)
}

func (v *remote) answer(ctx context.Context) (t telling, err error) {
	select {
	case t = <-v.answers:
		return t, t.why()
	case <-v.ended:
		return t, errCrashed
	case <-ctx.Done():
		return t, context.Cause(ctx)
	}
}

func (v *remote) meet(ctx context.Context, others int) error {
	_, err := v.ask(ctx, order{Do: doMeet, Others: others})
	return err
}

func (v *remote) try(u node.Sharer) error {
	v.mu.Lock()
	v.user = u
	v.mu.Unlock()
	return v.order(order{Do: doTry, Wants: u.Wants()})
}

// What cannot be told a process that is no more matters to nobody: its end does.

func (v *remote) downgrade(to protocol.Group) { _ = v.order(order{Do: doDowngrade, Group: to}) }
func (v *remote) exit()                       { _ = v.order(order{Do: doExit}) }
func (v *remote) drain()                      { _ = v.order(order{Do: doDrain}) }

func (v *remote) sent() []int {
	v.mu.Lock()
	tally := v.tally
	v.mu.Unlock()
	if tally != nil {
		return tally
	}
	t, _ := v.ask(context.Background(), order{Do: doSent})
	return t.Sent
}

// halt kills it.
func (v *remote) halt() {
	tally := v.sent()
	v.mu.Lock()
	v.tally, v.ending = tally, true
	v.mu.Unlock()
	_ = v.cmd.Process.Kill() // it may have ended
}

func (v *remote) close() {
	v.mu.Lock()
	v.ending = true
	v.mu.Unlock()
	v.in.Close() // what it waits for
	<-v.ended
	_ = v.cmd.Wait() // whether it was killed is known
}

// Process is a process of a run that another program drives, which orders over in and hears over out. It returns when in ends.
func Process[M any](a protocol.Algorithm[M], in io.Reader, out io.Writer) error {
	orders := gob.NewDecoder(in)
	var r role
	if err := orders.Decode(&r); err != nil {
		return fmt.Errorf("live: no program that drives this one: %w", err)
	}
	a.Share(r.Grouped)
	v := &driven{out: gob.NewEncoder(out)}
	var l net.Listener
	if int(r.ID) < len(r.Peers) {
		var err error
		if l, err = net.FileListener(os.NewFile(childListener, "listener")); err != nil {
			return fmt.Errorf("live: no listener: %w", err)
		}
	}
	n, err := r.start(l, node.HostOf(a), slog.New(slog.NewTextHandler(v, complained)), nil)
	if err != nil {
		v.say(telling{Said: sayStarted, Error: err.Error()})
		return nil
	}
	v.say(telling{Said: sayStarted})
	defer n.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for {
		var o order
		if err := orders.Decode(&o); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("live: an order: %w", err)
		}
		switch o.Do {
		case doTry:
			if err := n.Try(node.Mutex, lock, &drivenUser{v, o.Wants}, false); err != nil {
				v.say(telling{Said: sayRem, Error: err.Error()})
			}
		case doDowngrade:
			n.Downgrade(lock, o.Group)
		case doExit:
			n.Exit(lock)
		case doDrain:
			drain(n)
		case doMeet:
			go func() {
				t := telling{Said: doMeet}
				if err := meet(ctx, n, o.Others); err != nil {
					t.Error = err.Error()
				}
				v.say(t)
			}()
		case doSent:
			v.say(telling{Said: doSent, Sent: sent(n)})
		}
	}
}

// driven is what a process that is driven says.
type driven struct {
	mu  sync.Mutex
	out *gob.Encoder
}

// say says it. Whoever does not hear it has ended, and so does this process.
func (v *driven) say(t telling) {
	v.mu.Lock()
	defer v.mu.Unlock()
	_ = v.out.Encode(t)
}

// Write takes what the node logs as errors.
func (v *driven) Write(text []byte) (int, error) {
	v.say(telling{Said: sayComplain, Error: string(text)})
	return len(text), nil
}

// drivenUser is told what the node says to its user.
type drivenUser struct {
	v     *driven
	wants protocol.Groups
}

func (u *drivenUser) Wants() protocol.Groups           { return u.wants }
func (u *drivenUser) Wanted()                          {}
func (u *drivenUser) Supported(map[protocol.ID]uint64) {}
func (u *drivenUser) Ejected()                         { u.v.say(telling{Said: sayEjected}) }

// Crit is told without what only this process knows.
func (u *drivenUser) Crit(e node.Entry) {
	u.v.say(telling{Said: sayCrit, Entry: node.Entry{Token: e.Token, Group: e.Group}})
}

func (u *drivenUser) Rem(why error) {
	t := telling{Said: sayRem}
	if why != nil && !errors.As(why, &t.Reason) {
		t.Error = why.Error()
	}
	u.v.say(t)
}

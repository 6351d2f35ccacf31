//go:build unix

package supervise

import (
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// A Command is what Run runs, and the lease that it runs under.
type Command struct {
	Args []string // the command, looked up in PATH, and its arguments
	Env  []string
	// Mark is an entry of Env that is no other command's. What the command has started is known by it, also where it
	// has left the group: then no farewell is said. "": none.
	Mark string

	Name  string        // of the lock, for messages
	Lease time.Duration // how long the lock outlives its holder's silence
	// End is until when the lock is certain to be held. It moves; after Lost too, where
	// the lock is still held until the command has ended. Several goroutines may call it.
	End    func() time.Time
	Lost   <-chan struct{} // closed when the lock is lost
	Why    func() string   // what became of the lock then, for messages. nil: "is lost"
	OnLoss Action
	Grace  time.Duration // between SIGTERM and SIGKILL
	// LeaveBy is by when the command is to have ended after Lost, should the grace leave
	// it more time; zero: no such instant. It may come to be earlier. nil: none.
	LeaveBy func() time.Time

	Watchdog *Watchdog                        // nil if OnLoss is Warn. Run closes it
	Signals  chan os.Signal                   // from Signals
	Log      func(format string, args ...any) // tells the user
}

// A Result is how a command ended.
type Result struct {
	Status int  // its own, 128 + the number of the signal that ended it
	Lost   bool // the lock was lost while it ran
	// Asked is the last signal to end (HUP, INT, QUIT or TERM) that was forwarded to
	// the command, 0 for none.
	Asked syscall.Signal
	// Interrupted says that the terminal's SIGINT ended it, which nobody else got:
	// see Interrupt.
	Interrupted bool
}

// Signals returns a channel of the signals that Run forwards to the command,
// for the rest of this process's life. Those that were ignored when this process
// started stay ignored, here and in the command.
func Signals() chan os.Signal {
	c := make(chan os.Signal, 64)
	for _, s := range []syscall.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGALRM, syscall.SIGTERM, syscall.SIGCONT, syscall.SIGWINCH,
		syscall.SIGPIPE, // not forwarded: a closed standard error must not end this process
	} {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return c
}

// Run runs the command until it ends. The error says that it could not be started;
// then it does not run.
//
// When the lock is lost the whole group is ended, unless OnLoss is Warn. When a
// signal ended the command, so is what the command left of its group. When the
// command ended by itself, what it left in the background runs on, without a lock.
//
// Run returns when what is to be ended has ended. Where that cannot be done, because a
// process of it is another user's, the user is told, and Run waits: a lock that is still
// held must be held until then.
func (c Command) Run() (Result, error) {
	r := &run{Command: c, tty: openTerminal(), own: syscall.Getpgrp(), dog: c.Watchdog}
	defer r.tty.close()
	r.job = !piped()
	defer func() {
		r.dog.Close()
		r.group.tree.remove()
	}()
	if err := r.start(); err != nil {
		return Result{}, fmt.Errorf("supervise: %w", err)
	}
	defer r.takeTerminal()
	if !signal.Ignored(syscall.SIGTSTP) {
		signal.Notify(r.Signals, syscall.SIGTSTP) // the command stops first, or refuses to
	}
	over := make(chan struct{})
	go r.probe(over)
	status := r.supervise()
	close(over)
	return r.finish(status), nil
}

type run struct {
	Command
	tty   *terminal
	own   int  // process group of this process
	job   bool // the command gets the foreground when this process has it
	group group
	child *child
	dog   *Watchdog
	next  chan *Watchdog // gives the replacement of dog, nil if there is none; nil when none comes

	lost    bool
	held    bool           // the lock is, although lost: until the group has ended
	beyond  atomic.Bool    // a process of the group cannot be ended: the user was told
	asked   syscall.Signal // see Result
	ending  bool           // the group is to end, or has ended
	ended   chan struct{}  // closed when it has; nil unless that is awaited
	tick    time.Duration  // how often the lease is looked at
	leaseIn time.Duration  // the length of the lease, or what was left of it at the start
	leased  time.Time      // what End said last
	end     time.Duration  // the same instant, by now
}

// start arms the watchdog and opens the gate.
func (r *run) start() error {
	r.renew()
	r.leaseIn = min(r.Lease, r.end-now())
	orphan := syscall.SIGKILL
	if r.OnLoss == Warn {
		orphan = 0
	}
	var tty *terminal
	if r.job && r.tty.foreground() == r.own {
		tty = r.tty
	}
	child, err := startChild(r.Args, r.Env, tty, orphan)
	if err != nil {
		return err
	}
	r.child, r.group = child, group{child.pid, enclose(child.pid), r.Mark}
	if r.dog != nil {
		if err := r.dog.arm(r.group, r.leaseIn, r.end); err != nil {
			child.gate.Close()
			<-child.events
			r.takeTerminal()
			return err
		}
	}
	end := r.end
	if r.OnLoss == Warn {
		end = 1<<63 - 1
	}
	child.open(end) // an error means that the gate is gone: its status will say why
	return nil
}

// renew reports whether the lease has a new end. Each end is converted once: the
// clock of time.Time may stop while the machine is suspended, and an end that was
// converted again afterwards would have moved with it.
func (r *run) renew() bool {
	end := r.End()
	if end.Equal(r.leased) {
		return false
	}
	r.leased = end
	at := now() // before time.Until, so that a pause here makes the end earlier
	r.end = at + time.Until(end)
	return true
}

// probe tells the user, once, when the group has a process that cannot be ended: the
// command may become one at any time, or start one.
func (r *run) probe(over <-chan struct{}) {
	if r.OnLoss == Warn {
		return // nobody ends it
	}
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 10*time.Second) {
		if r.group.beyond() {
			r.beyond.Store(true)
			r.say("%s: should lock %q be lost, or poundlock be killed, it would run on without the lock",
				r.group.remains(), r.Name)
			return
		}
		select {
		case <-time.After(pause):
		case <-over:
			return
		}
	}
}

// supervise returns the status with which the command ended, when that has ended which
// is to end.
func (r *run) supervise() (status syscall.WaitStatus) {
	r.tick = max(r.leaseIn/10, 10*time.Millisecond)
	tick := time.NewTicker(r.tick)
	defer tick.Stop()
	for events := r.child.events; events != nil || r.ended != nil; {
		select {
		case s := <-events:
			if s.Stopped() {
				r.stopped(s.StopSignal())
				break
			}
			status, events = s, nil
			r.rest(s)
		case <-r.ended:
			r.ended = nil
		case s := <-r.Signals:
			r.forward(s)
		case <-tick.C:
			r.feed()
		case dog := <-r.next:
			r.adopt(dog)
		case <-r.Lost:
			r.Lost = nil // once
			r.lose()
		}
	}
	return status
}

// feed tells the watchdog of a new end of the lease, and replaces a watchdog that
// somebody killed. A lease that ended before its next end was known is a loss, even
// if everything was stopped at that time and nobody else has noticed.
func (r *run) feed() {
	switch {
	case now() < r.end && r.dog != nil && r.dog.dead() && !r.dog.barked():
		r.replaceWatchdog()
	case r.lost:
		r.keep()
	case now() >= r.end:
		r.lose()
	case !r.renew():
	case now() >= r.end:
		r.lose() // the watchdog keeps the end that it knows, so that there is time for the grace
	case r.dog != nil:
		r.dog.setEnd(r.end)
	}
}

// keep tells the watchdog until when a lock that is over is still held, if it is, and sees
// to it that nobody has more than the grace.
func (r *run) keep() {
	renewed := r.renew()
	switch held := now() < r.end; {
	case held && renewed && r.dog != nil:
		r.dog.setEnd(r.end)
	case r.held && !held:
		r.held = false
		if r.ended != nil {
			r.say("lock %q is lost before its command has ended: somebody else may get it", r.Name)
		}
	}
	if left, limited := r.left(); r.ended != nil && limited && left <= 0 {
		r.group.kill()
	}
}

// left is the time until LeaveBy, if there is such an instant.
func (r *run) left() (left time.Duration, limited bool) {
	if r.LeaveBy == nil || r.LeaveBy().IsZero() {
		return 0, false
	}
	return time.Until(r.LeaveBy()), true
}

// replaceWatchdog starts another watchdog. That may take longer than the lease on
// a busy machine, and the lease is watched meanwhile.
func (r *run) replaceWatchdog() {
	will := r.dog.will
	r.dog.Close()
	r.dog = nil
	next, group, lease, end := make(chan *Watchdog, 1), r.group, r.leaseIn, r.end
	r.next = next
	go func() {
		dog, err := StartWatchdog(r.Name, r.OnLoss, r.Grace)
		if err == nil {
			if err = dog.arm(group, lease, end); err != nil {
				dog.Close()
			} else { // not before: without its group it would say good-bye while the command runs
				dog.SetFarewell(will)
			}
		}
		if err != nil {
			r.say("the watchdog of lock %q was killed and cannot be replaced: %v", r.Name, err)
			dog = nil
		}
		next <- dog
	}()
}

// adopt takes the replacement of the watchdog, and tells it what it has missed.
func (r *run) adopt(dog *Watchdog) {
	r.dog, r.next = dog, nil
	if dog == nil {
		return
	}
	if now() < r.end {
		dog.setEnd(r.end)
	}
	r.say("the watchdog of lock %q was killed and is replaced", r.Name)
}

// lose ends the command. Unless the lock is still held until that has ended, the
// watchdog hears nothing new from now on: it ends the group with the lease if the grace
// does not before.
func (r *run) lose() {
	if r.lost {
		return
	}
	r.lost = true
	r.keep()
	r.held = now() < r.end
	why := "is lost"
	if r.Why != nil {
		why = r.Why()
	}
	grace := r.Grace
	if left, limited := r.left(); limited && left < grace-r.tick { // keep sees to less
		grace = max(0, left)
	}
	switch r.OnLoss {
	case Warn:
		r.say("lock %q %s: its command runs on without it", r.Name, why)
		return
	case Kill:
		grace = 0
	}
	what := "killing its command"
	if grace > 0 {
		what = fmt.Sprintf("ending its command, at the latest in %v", grace.Round(time.Millisecond))
	}
	beyond := r.group.beyond()
	if beyond {
		what = r.runsOn()
	}
	r.endGroup(grace, beyond)
	r.say("lock %q %s: %s", r.Name, why, what)
}

// endGroup ends the group, once, and closes r.ended when it has ended. told says that the
// user knows already that it may not end.
func (r *run) endGroup(grace time.Duration, told bool) {
	if r.ending {
		return
	}
	ended := make(chan struct{})
	r.ending, r.ended = true, ended
	go func() {
		defer close(ended)
		if r.group.end(grace) {
			return
		}
		if !told {
			r.say("lock %q: %s", r.Name, r.runsOn())
		}
		for {
			time.Sleep(time.Second)
			if !r.group.alive() {
				return
			}
			r.group.kill()
		}
	}()
}

// runsOn is what a user must know of a group that does not end.
func (r *run) runsOn() string {
	if time.Now().Before(r.End()) {
		return r.group.remains() + "; the lock is held until that has ended"
	}
	return r.group.remains() + "; somebody else may get the lock while it runs on"
}

// rest ends what must not outlive the command, which has ended.
func (r *run) rest(status syscall.WaitStatus) {
	select {
	case <-r.Lost:
		r.lost = true
	default:
		r.lost = r.lost || now() >= r.end // nobody had the time to say so
	}
	switch {
	case r.lost && r.OnLoss == Warn:
	case r.lost && r.OnLoss == Kill:
		r.endGroup(0, false)
	case r.lost || status.Signaled():
		r.endGroup(r.Grace, false)
	}
}

// finish says how it ended.
func (r *run) finish(status syscall.WaitStatus) Result {
	if r.next != nil {
		r.dog = <-r.next // it must be told that the command has ended
	}
	r.dog.Close()
	if r.dog != nil && r.dog.barked() {
		r.lost = true
	}
	result := Result{Status: status.ExitStatus(), Lost: r.lost, Asked: r.asked}
	if status.Signaled() {
		result.Status = 128 + int(status.Signal())
		result.Interrupted = status.Signal() == syscall.SIGINT && r.tty.foreground() == r.group.id
	}
	return result
}

// Interrupt passes an interrupt of the terminal on to the rest of this process's
// group and to itself, as if the command had not had the foreground: a script that
// is interrupted is to end, and not only the line that it was at. It returns if
// there is no such script, because this process leads its group.
func Interrupt() {
	if syscall.Getpgrp() != os.Getpid() {
		signal.Reset(syscall.SIGINT)
		syscall.Kill(0, syscall.SIGINT)
		time.Sleep(100 * time.Millisecond) // this process ends meanwhile, unless it ignores the signal
	}
}

// forward passes a signal on to the group.
func (r *run) forward(s os.Signal) {
	switch s {
	case syscall.SIGPIPE:
	case syscall.SIGCONT:
		r.resume()
	default:
		switch s {
		case syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM:
			r.asked = s.(syscall.Signal)
		}
		r.group.signal(s.(syscall.Signal))
	}
}

// stopped deals with a command that was stopped by a signal.
func (r *run) stopped(s syscall.Signal) {
	front := r.tty.foreground()
	switch {
	case front == 0:
		// No terminal, no job control: whoever stopped it continues it, and the lock
		// is held until then.
	case front == r.own && (s == syscall.SIGTTIN || s == syscall.SIGTTOU):
		// It wants the terminal, and this process has it to give.
		r.tty.give(r.group.id)
		r.group.signal(syscall.SIGCONT)
	case s == syscall.SIGSTOP && front != r.group.id:
		// Meant for the command only, as above.
	default:
		r.suspend()
	}
}

// suspend stops this process's group as the terminal would have, so that the shell
// notices, and continues the command when it is continued. No lease is renewed
// meanwhile: the watchdog ends the command if that lasts too long.
func (r *run) suspend() {
	r.takeTerminal()
	r.renew()
	if r.dog != nil {
		r.dog.setEnd(r.end)
		ended := " and its command ended"
		if r.beyond.Load() {
			ended = ""
		}
		r.say("stopped: unless it continues, lock %q is lost%s in %v",
			r.Name, ended, (r.end - now()).Round(100*time.Millisecond))
	}
	Pause(r.Signals, r.forward)
	r.resume()
}

// Pause stops this process's group as the terminal would have, and returns when it
// was continued, which one of signals tells. Others go to handle. It is for SIGTSTP
// where there is nothing to stop but this process, for once Run has asked for that
// signal it does nothing by itself any more.
func Pause(signals <-chan os.Signal, handle func(os.Signal)) {
	defer stopGroup()()
	// Without a shell that could continue it, the kernel does not stop a group:
	// then no SIGCONT comes.
	unstoppable := time.NewTimer(200 * time.Millisecond)
	defer unstoppable.Stop()
	for {
		select {
		case s := <-signals:
			if s == syscall.SIGCONT {
				return
			}
			handle(s)
		case <-unstoppable.C:
			return
		}
	}
}

// resume continues the command, in the foreground if the shell put this process
// there.
func (r *run) resume() {
	if r.job && r.tty.foreground() == r.own {
		r.tty.give(r.group.id)
	}
	r.group.signal(syscall.SIGCONT)
}

// takeTerminal takes the foreground back if the command has it.
func (r *run) takeTerminal() {
	if r.tty.foreground() == r.group.id {
		r.tty.give(r.own)
	}
}

// say tells the user, also where a background process that writes to the terminal
// is stopped.
func (r *run) say(format string, args ...any) {
	holdTTOU(func() { r.Log(format, args...) })
}

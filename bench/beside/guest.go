package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/poundlock/poundlock/bench/load"
)

// startGuest starts a program that is no Go package, in dir, below a process of this program:
// so it ends when this one does, however that happens. stop lets it clean up.
func startGuest(name, dir, program string, args ...string) (p *load.Process, stop func(), err error) {
	p, err = load.Start(name, append([]string{guestServer, dir, program}, args...)...)
	if err != nil {
		return nil, func() {}, err
	}
	stop = func() {
		p.In.Close()
		select {
		case <-p.Done():
		case <-time.After(10 * time.Second):
		}
		p.Kill()
	}
	return p, stop, nil
}

// serveGuest is the process between this program and a guest: it ends the guest when its own
// standard input ends.
func serveGuest(dir, program string, args []string) error {
	runtime.LockOSThread() // whose end is a signal to the guest
	cmd, err := inDir(context.Background(), dir, program, args...)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.SysProcAttr.Pdeathsig = syscall.SIGINT
	if err := cmd.Start(); err != nil {
		return err
	}
	asked := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(asked)
		_ = cmd.Process.Signal(syscall.SIGINT)
	}()
	_ = cmd.Wait() // ProcessState says it
	select {
	case <-asked:
		return nil
	default:
		return fmt.Errorf("%s ended by itself: %v", program, cmd.ProcessState)
	}
}

// inDir is a command in dir, with the rights of its owner: some programs refuse root's.
func inDir(ctx context.Context, dir, program string, args ...string) (*exec.Cmd, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{}
	if owner := info.Sys().(*syscall.Stat_t); os.Geteuid() == 0 && owner.Uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
	}
	return cmd, nil
}

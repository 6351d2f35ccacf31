package load

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"github.com/poundlock/poundlock/internal/supervise"
)

// A Process is this program, started again in another role. It must read its
// standard input, or call Tether: the end of that stream says that the process
// that started it is gone.
type Process struct {
	Name string
	In   io.WriteCloser

	out  *os.File // only of those started with startTalking
	cmd  *exec.Cmd
	log  tail
	done chan struct{}
	err  error // once done is closed
}

// Start starts a process that says nothing on its standard output.
func Start(name string, args ...string) (*Process, error) { return start(name, nil, args) }

// startTalking starts a process whose standard output is read from out.
func startTalking(name string, args []string) (*Process, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	p, err := start(name, w, args)
	if err != nil {
		r.Close()
		return nil, err
	}
	p.out = r
	return p, nil
}

func start(name string, stdout io.Writer, args []string) (*Process, error) {
	self, err := supervise.Self()
	if err != nil {
		return nil, err
	}
	p := &Process{Name: name, cmd: exec.Command(self, args...), done: make(chan struct{})}
	p.cmd.Args[0] = os.Args[0]
	p.cmd.Env = environment()
	p.cmd.Stdout, p.cmd.Stderr = stdout, &p.log
	// ^C is for the process that started it, which then ends this one.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p.In, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", self, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// environment is without the settings of poundlock: the command line of the
// process says all.
func environment() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "POUNDLOCK_") || strings.HasPrefix(kv, "POUNDLOCK_TEST_") {
			env = append(env, kv)
		}
	}
	return env
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says that the process has ended, and its last words. It is nil while it runs.
func (p *Process) Err() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	err := p.err
	if err == nil {
		err = errors.New("exit status 0")
	}
	if words := p.log.String(); words != "" {
		return fmt.Errorf("%s ended: %w: %s", p.Name, err, words)
	}
	return fmt.Errorf("%s ended: %w", p.Name, err)
}

// Kill ends the process with SIGKILL and waits until it is gone.
func (p *Process) Kill() {
	p.cmd.Process.Kill() // fails when it has ended
	<-p.done
	if p.out != nil {
		p.out.Close()
	}
}

// Tether ends this process when its standard input does.
func Tether() {
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
}

// A tail keeps the last words of a process.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const maxTail = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if len(t.b) > 2*maxTail {
		t.b = append(t.b[:0], t.b[len(t.b)-maxTail:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.b[max(0, len(t.b)-maxTail):]))
}

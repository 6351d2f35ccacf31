package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/poundlock/poundlock/internal/clock"
	"github.com/poundlock/poundlock/internal/faultnet"
	"github.com/poundlock/poundlock/internal/replica"
	"github.com/poundlock/poundlock/node"
)

// role makes this program a member: its configuration is the variable's value, its listener the
// file 3. Each line on stdin is a command, enter or operate; each line on stdout says that one is
// done, and when, by clock.Now. The first one says that all members have met.
const role = "POUNDLOCK_BENCH_MEMBER"

type memberConfig struct {
	ID    int
	Peers []node.Peer
	Lease time.Duration
	Raft  bool
}

func runMember(text string) error {
	var c memberConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	byRaft = c.Raft
	l, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return err
	}
	n, err := startMember(c.ID, c.Peers, l, c.Lease, false, &store{})
	if err != nil {
		return err
	}
	defer n.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := n.WaitAlive(ctx, len(c.Peers)-1); err != nil {
		return err
	}
	fmt.Println("met", clock.Now())
	var s *replica.Section
	r := replica.New(n, object)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch command := in.Text(); command {
		case "enter":
			s, err = r.Enter(context.Background())
		case "operate":
			err = do(s, "k")
		}
		if err != nil {
			return err
		}
		fmt.Println(in.Text(), clock.Now())
	}
	return nil
}

// A process is one member.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// A processes is members, and links between them.
type processes struct {
	net *faultnet.Net
	all []*process
}

func startProcesses(n int, delay, lease time.Duration) (p *processes, err error) {
	p = &processes{}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	var names []string
	var servers []faultnet.Server
	var files []*os.File
	for i := range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return p, err
		}
		defer l.Close()
		file, err := l.(*net.TCPListener).File()
		if err != nil {
			return p, err
		}
		defer file.Close()
		files = append(files, file)
		names = append(names, fmt.Sprint("s", i+1))
		servers = append(servers, faultnet.Server{Name: names[i], Addr: l.Addr().String()})
	}
	if p.net, err = faultnet.NewNet(names, servers); err != nil {
		return p, err
	}
	p.net.SetDelay(delay, 0)
	for i := range n {
		c := memberConfig{ID: i, Lease: lease, Raft: byRaft}
		for _, s := range p.net.Servers(names[i]) {
			c.Peers = append(c.Peers, node.Peer{Name: s.Name, Addr: s.Addr})
		}
		text, err := json.Marshal(c)
		if err != nil {
			return p, err
		}
		m := &process{cmd: exec.Command(os.Args[0])}
		m.cmd.Env, m.cmd.ExtraFiles, m.cmd.Stderr = append(os.Environ(), role+"="+string(text)), files[i:i+1], os.Stderr
		in, errIn := m.cmd.StdinPipe()
		out, errOut := m.cmd.StdoutPipe()
		if err := errors.Join(errIn, errOut, m.cmd.Start()); err != nil {
			return p, err
		}
		m.in, m.out = in, bufio.NewScanner(out)
		p.all = append(p.all, m)
	}
	for _, m := range p.all {
		if _, err := m.hear("met"); err != nil {
			return p, err
		}
	}
	return p, nil
}

// hear waits until something is done, and returns when it was.
func (m *process) hear(what string) (time.Duration, error) {
	if !m.out.Scan() {
		return 0, fmt.Errorf("a member has ended, and not said %q", what)
	}
	said, at, _ := strings.Cut(m.out.Text(), " ")
	ns, err := strconv.ParseInt(at, 10, 64)
	if err != nil || said != what {
		return 0, fmt.Errorf("a member says %q, want %q", m.out.Text(), what)
	}
	return time.Duration(ns), nil
}

func (m *process) tell(command string) { fmt.Fprintln(m.in, command) }

func (m *process) do(command string) (time.Duration, error) {
	m.tell(command)
	return m.hear(command)
}

func (m *process) kill() {
	m.cmd.Process.Kill()
	m.cmd.Wait()
}

func (p *processes) close() {
	for _, m := range p.all {
		m.kill()
	}
	if p.net != nil {
		p.net.Close()
	}
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/poundlock/poundlock/bench/load"
	"github.com/poundlock/poundlock/internal/clock"
	"github.com/poundlock/poundlock/internal/faultnet"
	"github.com/poundlock/poundlock/internal/replica"
)

// role makes this program a member, which the argument after it says. Each line on stdin is a
// command, enter or operate; each line on stdout says that one is done, and when, by clock.Now.
// The first one says that all members have met.
const role = "member"

func runMember(text string) error {
	var m member
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return err
	}
	n, err := m.start(&store{})
	if err != nil {
		return err
	}
	defer n.Close()
	if err := m.met(n); err != nil {
		return err
	}
	fmt.Println("met", clock.Now())
	var s *replica.Section
	r := replica.New(n, object)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch in.Text() {
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
	*load.Process
	lines *bufio.Scanner
}

// A processes is members, and links between them.
type processes struct {
	net *faultnet.Net
	all []*process
}

func startProcesses(n int, delay, lease time.Duration) (*processes, error) {
	links, members, err := network(n, delay, lease)
	if err != nil {
		return nil, err
	}
	p := &processes{net: links}
	for i := 0; i < n && err == nil; i++ {
		err = p.start(members[i])
	}
	for i := 0; i < n && err == nil; i++ {
		_, err = p.all[i].hear("met")
	}
	if err != nil {
		p.close()
	}
	return p, err
}

func (p *processes) start(m member) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	started, err := load.StartTalking(m.Peers[m.ID].Name, role, string(text))
	if err == nil {
		p.all = append(p.all, &process{started, bufio.NewScanner(started.Out)})
	}
	return err
}

// hear waits until something is done, and returns when it was.
func (m *process) hear(what string) (time.Duration, error) {
	if !m.lines.Scan() {
		<-m.Done()
		return 0, m.Err()
	}
	said, at, _ := strings.Cut(m.lines.Text(), " ")
	ns, err := strconv.ParseInt(at, 10, 64)
	if err != nil || said != what {
		return 0, fmt.Errorf("a member says %q, want %q", m.lines.Text(), what)
	}
	return time.Duration(ns), nil
}

func (m *process) tell(command string) { fmt.Fprintln(m.In, command) }

func (m *process) do(command string) (time.Duration, error) {
	m.tell(command)
	return m.hear(command)
}

func (p *processes) close() {
	for _, m := range p.all {
		m.Kill()
	}
	p.net.Close()
}

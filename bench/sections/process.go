package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/poundlock/poundlock/bench/load"
	"github.com/poundlock/poundlock/internal/clock"
	"github.com/poundlock/poundlock/internal/faultnet"
	"github.com/poundlock/poundlock/sections"
)

// role makes this program a member, which the argument after it says. Each line on stdin is a
// command, enter or operate, and each report on stdout says that one is done. The first one says
// that all members have met.
const role = "member"

// A report is what a member says, with the time by clock.Now.
type report struct {
	Done string
	At   time.Duration
}

func runMember(text string) error {
	var m member
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return err
	}
	n, err := m.open(&store{})
	if err != nil {
		return err
	}
	defer n.Close()
	done := func(what string) error {
		return json.NewEncoder(os.Stdout).Encode(report{what, time.Duration(clock.Now())})
	}
	if err := done("met"); err != nil {
		return err
	}
	var s *sections.Section
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch in.Text() {
		case "enter":
			s, err = n.Enter(context.Background(), object)
		case "operate":
			err = do(s, "k")
		}
		if err == nil {
			err = done(in.Text())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// processes are members, and links between them.
type processes struct {
	net    *faultnet.Net
	team   *load.Team[report]
	killed int // a member that says nothing more; -1: none
}

func startProcesses(n int, delay, lease time.Duration) (*processes, error) {
	links, members, err := network(n, delay, lease)
	if err != nil {
		return nil, err
	}
	team, err := load.StartTeam[report](n, "member", func(i int) []string {
		text, _ := json.Marshal(members[i]) // no value of this type can fail
		return []string{role, string(text)}
	})
	if err != nil {
		return nil, errors.Join(err, links.Close())
	}
	p := &processes{links, team, -1}
	for i := 0; i < n && err == nil; i++ {
		_, err = p.hear("met")
	}
	if err != nil {
		p.close()
	}
	return p, err
}

// hear waits until something is done, and returns when it was.
func (p *processes) hear(what string) (time.Duration, error) {
	from, r, err := p.team.Next(context.Background())
	if from == p.killed {
		return p.hear(what)
	}
	if err == nil && r.Done != what {
		err = fmt.Errorf("a member says %q, want %q", r.Done, what)
	}
	return r.At, err
}

func (p *processes) tell(i int, command string) { fmt.Fprintln(p.team.Members[i].In, command) }

func (p *processes) kill(i int) {
	p.killed = i
	p.team.Members[i].Kill()
}

func (p *processes) close() {
	p.team.Close()
	p.net.Close()
}

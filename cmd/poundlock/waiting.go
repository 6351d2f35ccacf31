package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/server"
	"github.com/poundlock/poundlock/server/status"
)

const (
	// A wait that is shorter says nothing.
	untilSaid = time.Second
	// How long the servers may take to say who has a lock. Without an answer the user
	// hears less, and nothing fails.
	holderPatience = 500 * time.Millisecond
)

// sayWhy tells the user of a terminal, if a wait goes on for a while, why: "" for what is not
// known. Nothing is said after stop.
func (f *holdFlags) sayWhy(ctx context.Context, waiting string, why func(context.Context) string) (stop func()) {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var over atomic.Bool
	timer := time.AfterFunc(untilSaid, func() {
		if why := why(ctx); why != "" && !over.Load() {
			f.say("waiting %s: %s", waiting, why)
		}
	})
	return func() {
		over.Store(true)
		timer.Stop()
		cancel()
	}
}

// wanted is what messages call what is waited for.
func (f *lockFlags) wanted(names []string) string {
	what := fmt.Sprintf("lock %q", title(names))
	switch {
	case f.semaphore > 0:
		return fmt.Sprintf("semaphore %q", names[0])
	case f.shared:
		return "shared " + what
	case f.group != "":
		return what + " for group " + strings.ReplaceAll(strconv.Quote(f.group), ",", `" or "`)
	}
	return what
}

// inside says who has what is waited for, as the servers know it: "" if they do not answer
// soon, or nobody has it any more.
func (f *lockFlags) inside(ctx context.Context, config poundlock.Config, names []string) string {
	return inside(ctx, config, names, f.semaphore, "has it")
}

// inside is that for the permits of a semaphore, or with 0 for locks. has is what somebody does who has one lock.
func inside(ctx context.Context, config poundlock.Config, names []string, permits int, has string) string {
	ctx, cancel := context.WithTimeout(ctx, holderPatience)
	defer cancel()
	o, err := observe(config, holderPatience)
	if err != nil {
		return ""
	}
	defer o.Close()
	if permits > 0 {
		return permitsOf(ctx, o, names[0], permits)
	}
	for _, name := range names { // in the order in which they are acquired
		l, err := one(ctx, o, name)
		if err != nil {
			return ""
		}
		if slices.ContainsFunc(l.Holders, func(h status.Holder) bool { return h.Label == config.Label }) {
			continue // it has this one already
		}
		if len(names) > 1 {
			has = fmt.Sprintf("has %q", name)
		}
		if why := before(&l, config.Label, has); why != "" {
			return why
		}
	}
	return ""
}

// before says who keeps the user with a label waiting for a lock. has is what somebody does who has it.
func before(l *status.Lock, label, has string) string {
	k := slices.IndexFunc(l.Waiters, func(w status.Waiter) bool { return w.Label == label })
	if k > 0 && l.Group != "" && l.Waiters[k].Takes(l.Group) { // it would share, but for somebody who came before
		for _, w := range l.Waiters[:k] {
			if !w.Takes(l.Group) {
				return fmt.Sprintf("%s asked for it %s ago, and is next", status.Who(w.Label, w.ID), status.Age(w.AgeMS))
			}
		}
	}
	switch len(l.Holders) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("%s %s, and asked for it %s ago", l.Who(), has, status.Age(l.Holders[0].AgeMS))
	}
	return fmt.Sprintf("%s %s, and the first asked for it %s ago", l.Who(), several(has), status.Age(l.Holders[0].AgeMS))
}

// several is what several do who each do what has says.
func several(has string) string {
	if rest, ok := strings.CutPrefix(has, "has "); ok {
		return "have " + rest
	}
	return strings.TrimSuffix(has, "s")
}

// permitsOf says who has the permits of a semaphore.
func permitsOf(ctx context.Context, o *server.Observer, name string, permits int) string {
	var inside []string
	status.Ask(ctx, o, server.LockQuery{Prefix: name + "#", Few: permits}, func(l status.Lock) bool {
		if _, err := strconv.Atoi(strings.TrimPrefix(l.Name, name+"#")); err != nil {
			return true // another name that begins so
		}
		for _, h := range l.Holders {
			inside = append(inside, status.Who(h.Label, h.ID))
		}
		return len(inside) < permits
	})
	if len(inside) == 0 {
		return ""
	}
	verb := "have"
	if len(inside) == 1 {
		verb = "has"
	}
	const most = 3
	if more := len(inside) - most; more > 0 {
		inside = append(inside[:most], fmt.Sprintf("%d more", more))
	}
	return strings.Join(inside, ", ") + " " + verb + " its permits"
}

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/quorum"
	"github.com/poundlock/poundlock/server"
)

const statusLong = `Status asks every server what it knows and shows it together: the servers, and
the locks that somebody holds or waits for.

SUPPORT is how many servers support a holder. A client needs a quorum of them to
get in and then stays in while a few are left, so with fewer than a quorum only
the client itself knows whether it is inside. Ages count from the request, and are
as exact as clocks agree.

With --dev it shows the development cluster of this user, and starts none.

Exit status: 0, 69 when no quorum can be reached (what is known is shown) or no
development cluster runs, 64 when called wrongly, 70 when the result cannot be written.`

func statusCommand() *cobra.Command {
	var f clusterFlags
	var asJSON bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the servers of a cluster, and who holds and waits for locks",
		Long:  statusLong,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := f.fillDev(cmd); err != nil {
				return err
			}
			if timeout <= 0 {
				return usagef("--timeout %v: want more than 0", timeout)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			var c poundlock.Config
			if f.dev {
				d, err := findDev(ctx)
				if err != nil {
					return err
				}
				defer d.leave()
				c = d.config
			} else if c, err = f.config(cmd); err != nil {
				return err
			}
			answers, err := server.Ask(ctx, server.AskConfig{
				Servers: peers(c), NoAmnesia: c.NoAmnesia, Epoch: c.Epoch, ClockBound: c.ClockBound, TLS: c.TLS,
			})
			if err != nil {
				return &exitStatus{code: exitUsage, err: err}
			}
			s := merge(answers, time.Now())
			if asJSON {
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				err = e.Encode(s)
			} else {
				err = s.print(cmd.OutOrStdout())
			}
			if err != nil {
				return &exitStatus{code: exitInternal, err: err}
			}
			if err := s.unreachable(); err != nil {
				var errs []error
				for _, a := range answers {
					errs = append(errs, a.Err)
				}
				return &exitStatus{code: exitNoQuorum, hint: tlsHint(errs), err: err}
			}
			return nil
		},
	}
	f.register(cmd.Flags())
	f.registerDev(cmd.Flags(), "show this user's development cluster, if there is one")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().DurationVar(&timeout, "timeout", 3*time.Second, "how long to wait for servers")
	return cmd
}

// clusterStatus is what the reachable servers know, together.
type clusterStatus struct {
	Quorum    int            `json:"quorum"` // of all groups together, and so is Reachable
	Reachable int            `json:"reachable"`
	Groups    []groupStatus  `json:"groups,omitempty"`
	Servers   []serverStatus `json:"servers"`
	Clients   []clientStatus `json:"clients"`
	Locks     []lockStatus   `json:"locks"`
}

type serverStatus struct {
	Name        string     `json:"name"`
	Group       string     `json:"group,omitempty"`
	Address     string     `json:"address"`
	Reachable   bool       `json:"reachable"`
	Epoch       uint64     `json:"epoch"` // of its slot table
	Error       string     `json:"error,omitempty"`
	Incarnation string     `json:"incarnation,omitempty"`
	Started     *time.Time `json:"started,omitempty"`
	UptimeMS    int64      `json:"uptime_ms,omitempty"`
	Sessions    int        `json:"sessions"`
}

// A clientStatus is a client with a session at Servers servers.
type clientStatus struct {
	ID      string `json:"id"`
	Label   string `json:"label"`
	Servers int    `json:"servers"`
}

type lockStatus struct {
	Name    string          `json:"name"`
	Group   string          `json:"group,omitempty"`
	Kind    string          `json:"kind"`
	Holder  *requestStatus  `json:"holder,omitempty"`
	Waiters []requestStatus `json:"waiters"` // the one that asked first comes first
	Errors  []string        `json:"errors,omitempty"`
}

type requestStatus struct {
	ID       string `json:"id"`
	Label    string `json:"label,omitempty"`
	AgeMS    int64  `json:"age_ms"`
	Supports int    `json:"supports"`
}

func merge(answers []server.Answer, now time.Time) clusterStatus {
	s := clusterStatus{Servers: []serverStatus{}, Clients: []clientStatus{}, Locks: []lockStatus{}}
	groups := groupsOf(answers)
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		g := *groups[name]
		s.Quorum += g.Quorum
		s.Reachable += g.Reachable
		if g.Name != "" {
			s.Groups = append(s.Groups, g)
		}
	}
	clients := map[string]*clientStatus{}
	type lockKey struct{ name, kind, group string }
	locks := map[lockKey]map[string]*requestStatus{}
	failures := map[lockKey][]string{}
	for _, a := range answers {
		x := serverStatus{Name: a.Server.Name, Group: slots.GroupOf(a.Server.Name), Address: a.Server.Addr}
		if a.Err != nil {
			x.Error = a.Err.Error()
			s.Servers = append(s.Servers, x)
			continue
		}
		x.Epoch = a.Status.Epoch
		x.Reachable, x.Incarnation, x.Started = true, a.Status.Incarnation, &a.Status.Started
		x.UptimeMS = max(0, now.Sub(a.Status.Started).Milliseconds())
		x.Sessions = len(a.Status.Sessions)
		s.Servers = append(s.Servers, x)
		for _, c := range a.Status.Sessions {
			if clients[c.ID] == nil {
				clients[c.ID] = &clientStatus{ID: c.ID, Label: c.Label}
			}
			clients[c.ID].Servers++
		}
		for _, l := range a.Status.Locks {
			key := lockKey{l.Name, l.Kind, x.Group}
			if locks[key] == nil {
				locks[key] = map[string]*requestStatus{}
			}
			add := func(r server.Request, supports int) {
				x := locks[key][r.ID]
				if x == nil {
					x = &requestStatus{ID: r.ID}
					locks[key][r.ID] = x
				}
				x.Label = cmp.Or(x.Label, r.Label)
				x.AgeMS = max(x.AgeMS, r.AgeMS)
				x.Supports += supports
			}
			if l.Error != "" {
				failures[key] = append(failures[key], a.Server.Name+": "+l.Error)
			}
			if l.Holder != nil {
				add(*l.Holder, 1)
			}
			for _, w := range l.Waiters {
				add(w, 0)
			}
		}
	}
	for _, c := range clients {
		s.Clients = append(s.Clients, *c)
	}
	slices.SortFunc(s.Clients, func(a, b clientStatus) int { return cmp.Compare(a.ID, b.ID) })
	for key, requests := range locks {
		if len(requests)+len(failures[key]) > 0 {
			l := lockOf(key.name, key.kind, requests, groups[key.group].Servers)
			l.Group = key.group
			l.Errors = failures[key]
			s.Locks = append(s.Locks, l)
		}
	}
	slices.SortFunc(s.Locks, func(a, b lockStatus) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	return s
}

// lockOf calls the client with most supports the holder, if it could be inside.
func lockOf(name, kind string, requests map[string]*requestStatus, n int) lockStatus {
	l := lockStatus{Name: name, Kind: kind, Waiters: []requestStatus{}}
	for _, r := range requests {
		l.Waiters = append(l.Waiters, *r)
	}
	slices.SortFunc(l.Waiters, func(a, b requestStatus) int {
		return cmp.Or(cmp.Compare(b.Supports, a.Supports), cmp.Compare(a.ID, b.ID))
	})
	if len(l.Waiters) > 0 && l.Waiters[0].Supports > quorum.Silent(n, slots.Quorum(n)) {
		first := l.Waiters[0]
		l.Holder, l.Waiters = &first, l.Waiters[1:]
	}
	slices.SortFunc(l.Waiters, func(a, b requestStatus) int {
		return cmp.Or(cmp.Compare(b.AgeMS, a.AgeMS), cmp.Compare(a.ID, b.ID))
	})
	return l
}

func (s clusterStatus) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERVER\tADDRESS\tSTATE\tUPTIME\tINCARNATION\tSESSIONS")
	for _, x := range s.Servers {
		if !x.Reachable {
			fmt.Fprintf(w, "%s\t%s\tunreachable\t-\t-\t-\n", x.Name, x.Address)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\tup\t%s\t%s\t%d\n", x.Name, x.Address, age(x.UptimeMS), x.Incarnation, x.Sessions)
	}
	grouped := func(group string) string {
		if len(s.Groups) == 0 {
			return ""
		}
		return group + "\t"
	}
	fmt.Fprintln(w, "\n"+grouped("GROUP")+"LOCK\tKIND\tHOLDER\tSUPPORT\tAGE\tWAITERS")
	for _, l := range s.Locks {
		n := len(s.Servers)
		for _, g := range s.Groups {
			if g.Name == l.Group {
				n = g.Servers
			}
		}
		holder, support, held := "-", "-", "-"
		if h := l.Holder; h != nil {
			holder, support, held = h.name(), fmt.Sprintf("%d of %d", h.Supports, n), age(h.AgeMS)
		}
		fmt.Fprintf(w, "%s%s\t%s\t%s\t%s\t%s\t%s\n", grouped(l.Group), printable(l.Name), l.Kind, holder, support, held, waiters(l.Waiters))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	var b strings.Builder
	for _, l := range s.Locks {
		for _, e := range l.Errors {
			fmt.Fprintf(&b, "\n%s: %s", printable(l.Name), printable(e))
		}
	}
	for _, x := range s.Servers {
		if x.Error != "" {
			fmt.Fprintf(&b, "\n%s: %s", x.Name, printable(x.Error))
		}
	}
	if b.Len() == 0 {
		return nil
	}
	_, err := fmt.Fprintln(out, b.String())
	return err
}

// waiters names the first three.
func waiters(all []requestStatus) string {
	if len(all) == 0 {
		return "-"
	}
	var parts []string
	for i, r := range all {
		if i == 3 {
			parts = append(parts, fmt.Sprintf("and %d more", len(all)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", r.name(), age(r.AgeMS)))
	}
	return strings.Join(parts, ", ")
}

func (r requestStatus) name() string { return printable(cmp.Or(r.Label, r.ID)) }

// age is precise to a tenth of a second below a minute.
func age(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/verify/sim"
)

// workloadFlags are what users want in a simulation, where they want groups.
type workloadFlags struct {
	groups     int
	perRequest int
	popularity string
	wantFlags
}

func (f *workloadFlags) register(s *pflag.FlagSet) {
	s.IntVar(&f.groups, "groups", 0,
		fmt.Sprintf("`number` of groups, where users want groups: 1, 2, ..; each request draws one (default %d there)", sim.DefaultGroups))
	s.StringVar(&f.popularity, "popularity", "", "`ALPHA,BETA`: BETA percent of the requests are for the first ALPHA percent of the groups (default all are alike)")
	s.IntVar(&f.perRequest, "per-request", 0, "`number` of groups that a request names, any of which will do (default 1)")
	s.StringArrayVar(&f.sets, "wants", nil,
		"`[USER=]SET` of groups that all users want all the time, or that one does, such as p1=a,b; ! before a group that is exclusive")
}

// workload completes c.
func (f *workloadFlags) workload(c *sim.Config, given func(flag string) bool) (err error) {
	for _, x := range []struct {
		flag  string
		value int
		to    *int
	}{{"groups", f.groups, &c.Groups}, {"per-request", f.perRequest, &c.PerRequest}} {
		if *x.to = x.value; given(x.flag) && x.value < 1 {
			return cli.Usagef("--%s %d: want at least 1", x.flag, x.value)
		}
	}
	if given("popularity") {
		c.Popularity, err = popularity(f.popularity)
	}
	return err
}

func popularity(text string) (p sim.Popularity, err error) {
	alpha, beta, two := strings.Cut(text, ",")
	p.Alpha, err = strconv.ParseFloat(alpha, 64)
	if err == nil {
		p.Beta, err = strconv.ParseFloat(beta, 64)
	}
	if !two || err != nil || p == (sim.Popularity{}) {
		return p, cli.Usagef("--popularity %q: want two percentages, such as 20,80: 80%% of the requests are for 20%% of the groups", text)
	}
	return p, nil
}

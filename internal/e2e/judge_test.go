package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/poundlock/poundlock/internal/clock"
	"github.com/poundlock/poundlock/verify/history"
)

// since is for how long an instant of clock.Now has been over.
func since(at int64) time.Duration { return time.Duration(clock.Now() - at) }

// judge judges the event files of all workers, which have ended.
func (j *journal) judge() *history.Report {
	j.t.Helper()
	r, err := judgeFiles(j.files, history.Bounds{})
	if err != nil {
		j.t.Fatal(err)
	}
	return r
}

func judgeFiles(names []string, b history.Bounds) (*history.Report, error) {
	files, closeAll, err := openFiles(names)
	defer closeAll()
	if err != nil {
		return nil, err
	}
	return history.Read(files, b)
}

func openFiles(names []string) (files []*history.Reader, closeAll func(), err error) {
	var opened []*os.File
	closeAll = func() {
		for _, f := range opened {
			f.Close()
		}
	}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, closeAll, err
		}
		opened = append(opened, f)
		r, err := history.NewReader(filepath.Base(name), f)
		if err != nil {
			return nil, closeAll, err
		}
		files = append(files, r)
	}
	return files, closeAll, nil
}

// problems are what a report rejects, but for some properties.
func problems(r *history.Report, but ...string) (all []string) {
	for _, v := range r.Verdicts {
		if v.Verdict == history.Violated && !slices.Contains(but, v.Property) {
			all = append(all, fmt.Sprintf("%s violated %d times", v.Property, v.Count))
		}
	}
	if r.Measures.Entries == 0 {
		all = append(all, "nobody entered")
	}
	for _, v := range r.Violations {
		if !slices.Contains(but, v.Property) {
			all = append(all, fmt.Sprintf("%s: %s", v.Property, v.Text))
		}
	}
	return all
}

// overlaps is how many sections began while another one lasted.
func overlaps(r *history.Report) uint64 {
	i := slices.IndexFunc(r.Verdicts, func(v history.Verdict) bool { return v.Property == history.Exclusion })
	return r.Verdicts[i].Count
}

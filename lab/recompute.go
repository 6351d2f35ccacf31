package lab

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Recompute makes the report of e again from the table of replications of an earlier one in
// dir (Results.Replications), at the scale of that one: no trial is made. The plan must want
// just those trials. Where samples are rounded (Rounded), the report is that of the run.
func Recompute(ctx context.Context, e Experiment, dir string) (Report, error) {
	base := filepath.Join(dir, (&Report{Experiment: e.Name}).base())
	fail := func(err error) (Report, error) {
		return Report{}, fmt.Errorf("lab: recompute %s from %s: %w", e.Name, dir, err)
	}
	text, err := os.ReadFile(base + ".json")
	if err != nil {
		return fail(err)
	}
	var earlier struct{ Scale Scale }
	if err := json.Unmarshal(text, &earlier); err != nil {
		return fail(err)
	}
	if !slices.Contains([]Scale{Quick, Default, Full}, earlier.Scale) {
		return fail(fmt.Errorf("%s.json has no scale", filepath.Base(base)))
	}
	file, err := os.Open(base + "-replications.csv")
	if err != nil {
		return fail(err)
	}
	defer file.Close()
	plan := e.Plan(earlier.Scale)
	kept, err := readReplications(plan, file)
	if err != nil {
		return fail(err)
	}
	for i := range plan.Configurations {
		labels := plan.Configurations[i].Labels
		plan.Configurations[i].Try = func(_ context.Context, point int, seed uint64) (Sample, error) {
			sample, known := kept[replication(labels, point, seed)]
			if !known {
				return Sample{}, errors.New("the table of replications has it not")
			}
			return sample, nil
		}
	}
	e.Plan = func(Scale) Plan { return plan }
	asked := 0
	r, err := Run(ctx, e, Options{Scale: earlier.Scale, Progress: func(p Progress) { asked = p.Total }})
	switch {
	case err != nil:
		return fail(err)
	case asked != len(kept):
		return fail(fmt.Errorf("the table has %d replications, and the experiment wants %d of them", len(kept), asked))
	}
	return r, nil
}

func replication(labels []string, point int, seed uint64) string {
	return fmt.Sprintf("%q %d %d", labels, point, seed)
}

// readReplications reads the table that Results.Replications makes for a plan.
func readReplications(p Plan, from io.Reader) (map[string]Sample, error) {
	rows, err := csv.NewReader(from).ReadAll()
	if err != nil {
		return nil, err
	}
	var head []string
	for _, c := range newResults(p).Replications().Columns {
		head = append(head, c.Name)
	}
	if len(rows) == 0 || !slices.Equal(rows[0], head) {
		return nil, fmt.Errorf("want a table with the columns %s", strings.Join(head, ", "))
	}
	kept := map[string]Sample{}
	for i, row := range rows[1:] {
		labels, cells := row[:len(p.Labels)], row[len(p.Labels):]
		point, notPoint := strconv.Atoi(cells[0])
		seed, notSeed := strconv.ParseUint(cells[1], 10, 64)
		if err := errors.Join(notPoint, notSeed); err != nil {
			return nil, fmt.Errorf("row %d: %w", i+1, err)
		}
		sample := Sample{Values: map[string]float64{}}
		for k, m := range p.Measures {
			if cells[2+k] == "" {
				continue
			}
			if sample.Values[m.Name], err = strconv.ParseFloat(cells[2+k], 64); err != nil {
				return nil, fmt.Errorf("row %d: %w", i+1, err)
			}
		}
		name := replication(labels, point, seed)
		if _, twice := kept[name]; twice {
			return nil, fmt.Errorf("row %d: %s is there twice", i+1, name)
		}
		kept[name] = sample
	}
	return kept, nil
}

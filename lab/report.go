package lab

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A Report is what an experiment found out. It says neither when nor where.
type Report struct {
	Experiment string
	Title      string
	Scale      Scale
	Verdicts   map[Verdict]int // how many of each
	Tables     []Table
	Notes      []string // below the tables of the text
	Figures    []Figure
	// Attached are more files, by name; Write puts them into a directory of their own.
	Attached map[string]string
	Files    []string // that Write wrote, relative to its directory
}

func (r *Report) count() map[Verdict]int {
	counts := map[Verdict]int{}
	for _, t := range r.Tables {
		for _, row := range t.Rows {
			for _, cell := range row {
				if v, ok := cell.(Verdict); ok && v != "" {
					counts[v]++
				}
			}
		}
	}
	return counts
}

// Differs is how many verdicts are not fine.
func (r *Report) Differs() (n int) {
	for v, k := range r.Verdicts {
		if !v.Fine() {
			n += k
		}
	}
	return n
}

// base begins the names of all files: classics-costs for classics/costs.
func (r *Report) base() string { return strings.ReplaceAll(r.Experiment, "/", "-") }

// AttachedName is where a file called name goes, relative to the directory of the report
// of an experiment.
func AttachedName(experiment, name string) string {
	return path.Join((&Report{Experiment: experiment}).base(), name)
}

// name is that of a file, for a part of the report or, if that is "", for the whole.
func (r *Report) name(part, ending string) string {
	if part != "" {
		part = "-" + part
	}
	return r.base() + part + ending
}

// contents are the files of the report, by name. It sets r.Files.
func (r *Report) contents() (map[string][]byte, error) {
	files := map[string]func(io.Writer) error{r.name("", ".txt"): r.Text, r.name("", ".json"): r.JSON}
	for i, t := range r.Tables {
		part := t.Name
		if i == 0 {
			part = ""
		}
		files[r.name(part, ".csv")] = t.writeCSV
	}
	for _, f := range r.Figures {
		files[r.name(f.Name, ".svg")] = f.write
	}
	for name, text := range r.Attached {
		files[AttachedName(r.Experiment, name)] = func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		}
	}
	r.Files = slices.Sorted(maps.Keys(files))
	texts := map[string][]byte{}
	for name, write := range files {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return nil, err
		}
		texts[name] = b.Bytes()
	}
	return texts, nil
}

// Text writes the report for people.
func (r *Report) Text(w io.Writer) error {
	fmt.Fprintf(w, "%s (%s): %s\n", r.Experiment, r.Scale, r.Title) // the last write tells
	for _, t := range r.Tables {
		if t.Detail {
			continue
		}
		fmt.Fprintf(w, "\n%s\n\n", t.Title)
		if err := t.writeText(w); err != nil {
			return err
		}
	}
	if len(r.Notes) > 0 {
		fmt.Fprintln(w)
	}
	for _, n := range r.Notes {
		fmt.Fprintln(w, n)
	}
	_, err := fmt.Fprintf(w, "\nverdicts: %s\n", r.Summary())
	return err
}

// Summary is the verdicts in words, such as "120 equal, 8 within interval".
func (r *Report) Summary() string {
	var list []string
	for _, v := range verdicts {
		if n := r.Verdicts[v]; n > 0 {
			list = append(list, fmt.Sprintf("%d %s", n, v))
		}
	}
	if list == nil {
		return "none"
	}
	return strings.Join(list, ", ")
}

// JSON writes the report for programs, a line for each row of a table.
func (r *Report) JSON(w io.Writer) error {
	var b bytes.Buffer
	field := func(name string, v any) error {
		value, err := json.Marshal(v)
		fmt.Fprintf(&b, " %q: %s,\n", name, value)
		return err
	}
	b.WriteString("{\n")
	if err := errors.Join(field("experiment", r.Experiment), field("title", r.Title), field("scale", r.Scale),
		field("verdicts", r.Verdicts), field("files", r.Files)); err != nil {
		return err
	}
	b.WriteString(` "tables": [`)
	for i := range r.Tables {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n  ")
		if err := r.Tables[i].writeJSON(&b); err != nil {
			return err
		}
	}
	b.WriteString("]\n}\n")
	_, err := w.Write(b.Bytes())
	return err
}

// Write writes all forms of the report into dir, which it makes. Files that an earlier
// report of the same experiment left there, and this one has not, are removed.
func (r *Report) Write(dir string) error {
	earlier := filesOf(filepath.Join(dir, r.name("", ".json")))
	texts, err := r.contents()
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	for _, name := range r.Files {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return fmt.Errorf("lab: %w", err)
		}
		if err := replace(to, texts[name]); err != nil {
			return fmt.Errorf("lab: %w", err)
		}
	}
	for _, name := range earlier {
		stale := filepath.IsLocal(name) && strings.HasPrefix(name, r.base()) && !slices.Contains(r.Files, name)
		if !stale {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("lab: a file of an earlier run: %w", err)
		}
	}
	return nil
}

// filesOf are the files of the report in a file, none if it is no report.
func filesOf(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var r struct{ Files []string }
	if json.Unmarshal(text, &r) != nil {
		return nil
	}
	return r.Files
}

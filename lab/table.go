package lab

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// A Table is part of a report. A cell is a string, an int, a float64, a Verdict, or nil
// where there is nothing to say.
type Table struct {
	Name    string // of its CSV file, and in JSON
	Title   string
	Columns []Column
	Rows    [][]any
	Detail  bool // too long for the text: in CSV and JSON only
}

// A Column of a table, or a measure: a number that trials give.
type Column struct {
	Name string // in CSV and JSON, and in Sample.Values
	Head string // in the text, with the unit; "": not there
}

// Columns reads columns: NAME=HEAD, NAME where the head is the same, NAME= where there is none.
func Columns(texts ...string) (list []Column) {
	for _, text := range texts {
		name, head, other := strings.Cut(text, "=")
		if !other {
			head = name
		}
		list = append(list, Column{name, head})
	}
	return list
}

// Add adds a row.
func (t *Table) Add(cells ...any) { t.Rows = append(t.Rows, cells) }

// Rounded has the digits that tables write, which no order of additions changes.
func Rounded(v float64) float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 9, 64), 64) // it was written just so
	return v
}

func number(v float64) string { return strconv.FormatFloat(Rounded(v), 'g', -1, 64) }

func cellText(cell any) string {
	switch v := cell.(type) {
	case nil:
		return "-"
	case float64:
		return strconv.FormatFloat(v, 'g', 5, 64)
	case string:
		if v == "" {
			return "-"
		}
	}
	return fmt.Sprint(cell)
}

func (t *Table) writeText(w io.Writer) error {
	var b bytes.Buffer
	aligned := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(cell func(i int) string) {
		var cells []string
		for i, c := range t.Columns {
			if c.Head != "" {
				cells = append(cells, cell(i))
			}
		}
		fmt.Fprintln(aligned, strings.Join(cells, "\t"))
	}
	line(func(i int) string { return t.Columns[i].Head })
	line(func(i int) string { return strings.Repeat("-", len([]rune(t.Columns[i].Head))) })
	for _, row := range t.Rows {
		line(func(i int) string { return cellText(row[i]) })
	}
	if err := aligned.Flush(); err != nil {
		return err
	}
	for text := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(text, " \n")); err != nil {
			return err
		}
	}
	return nil
}

func (t *Table) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	var row []string
	for _, c := range t.Columns {
		row = append(row, c.Name)
	}
	out.Write(row) // Error tells
	for _, cells := range t.Rows {
		row = row[:0]
		for _, cell := range cells {
			switch v := cell.(type) {
			case nil:
				row = append(row, "")
			case float64:
				row = append(row, number(v))
			default:
				row = append(row, fmt.Sprint(v))
			}
		}
		out.Write(row)
	}
	out.Flush()
	return out.Error()
}

// writeJSON writes the name, the title and the rows, a line for each: an object with its
// fields in the order of the columns. A cell without a value is null.
func (t *Table) writeJSON(w *bytes.Buffer) error {
	name, _ := json.Marshal(t.Name) // text is always written
	title, _ := json.Marshal(t.Title)
	fmt.Fprintf(w, `{"name": %s, "title": %s, "rows": [`, name, title)
	for i, row := range t.Rows {
		if i > 0 {
			w.WriteByte(',')
		}
		w.WriteString("\n    {")
		for k, cell := range row {
			if v, ok := cell.(float64); ok {
				cell = json.Number(number(v))
			}
			value, err := json.Marshal(cell)
			if err != nil {
				return err
			}
			if k > 0 {
				w.WriteString(", ")
			}
			fmt.Fprintf(w, "%q: %s", t.Columns[k].Name, value)
		}
		w.WriteByte('}')
	}
	w.WriteString("]}")
	return nil
}

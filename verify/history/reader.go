package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// maxLine is more than the longest line that a Writer writes of names of 1 KiB.
const maxLine = 64 << 10

// A Reader reads an event file, in the order of time. It keeps the events of one
// Header.Window.
type Reader struct {
	Header
	name   string
	in     *bufio.Reader
	line   int   // of the last one that was read
	newest int64 // time of the events read
	last   int64 // time of the events returned
	events uint64
	ahead  []Event // by time, and those of one time by line
	ended  bool    // an End was read
	err    error   // that of the file, io.EOF at its end
	// Truncated says that the last line has no end, as of a process that was killed while
	// it wrote: that line is left out.
	Truncated bool
}

// A LineError is about a line of an event file.
type LineError struct {
	File string
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

// Unwrap returns what is wrong with the line.
func (e *LineError) Unwrap() error { return e.Err }

// NewReader reads the header of a file. The name is for errors.
func NewReader(name string, r io.Reader) (*Reader, error) {
	in := &Reader{name: name, in: bufio.NewReaderSize(r, maxLine)}
	line, err := in.read()
	switch {
	case errors.Is(err, io.EOF):
		in.line = 1
		return nil, in.failed(errors.New("no header: the file is empty, or its first line has no end"))
	case err != nil:
		return nil, err
	}
	if err := unmarshal(line, &in.Header); err != nil || in.Format == "" {
		return nil, in.failed(errors.New(`no header: want {"poundlock":"history","version":1,..}`))
	}
	if err := in.check(); err != nil {
		return nil, in.failed(err)
	}
	return in, nil
}

// check returns what is wrong with a header.
func (h *Header) check() error {
	switch {
	case h.Format != format:
		return fmt.Errorf("a file of %.40q: want %q", h.Format, format)
	case h.Version != Version:
		return fmt.Errorf("version %d of event files: this program reads version %d", h.Version, Version)
	case h.Clock == "":
		return errors.New("no name of the clock")
	case h.Uncertainty < 0 || h.Uncertainty > int64(time.Hour):
		return fmt.Errorf("uncertainty_ns %d: want 0 to an hour", h.Uncertainty)
	case h.Window < 0 || h.Window > int64(time.Hour):
		return fmt.Errorf("window_ns %d: want 0 to an hour", h.Window)
	}
	return nil
}

func (r *Reader) failed(err error) error { return &LineError{r.name, r.line, err} }

// read returns the next line, nil without an error if it is not whole.
func (r *Reader) read() ([]byte, error) {
	line, err := r.in.ReadSlice('\n')
	switch {
	case err == nil:
		r.line++
		return line, nil
	case errors.Is(err, bufio.ErrBufferFull):
		r.line++
		return nil, r.failed(fmt.Errorf("longer than %d bytes", maxLine))
	case !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s: %w", r.name, err)
	case len(bytes.TrimSpace(line)) == 0:
		return nil, io.EOF
	case json.Valid(line):
		r.line++
		return line, nil // somebody's editor
	}
	r.Truncated = true
	return nil, io.EOF
}

// Next returns the next event, io.EOF after the last one.
func (r *Reader) Next() (Event, error) {
	for r.err == nil && (len(r.ahead) == 0 || r.newest < r.ahead[0].At+r.Window) {
		r.err = r.fetch()
	}
	if len(r.ahead) > 0 && (r.err == nil || errors.Is(r.err, io.EOF)) {
		e := r.ahead[0]
		r.ahead, r.last = r.ahead[1:], e.At
		return e, nil
	}
	return Event{}, r.err
}

// fetch reads one event ahead.
func (r *Reader) fetch() error {
	line, err := r.read()
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	var e Event
	if err := unmarshal(line, &e); err != nil {
		return r.failed(err)
	}
	if err := e.check(); err != nil {
		var again Header
		if unmarshal(line, &again) == nil && again.Format != "" {
			err = errors.New("a second header: give each file by its name")
		}
		return r.failed(err)
	}
	if r.ended {
		return r.failed(errors.New("an event after the end"))
	}
	if e.Do == End {
		r.ended = true
		e.At = max(e.At, r.newest)
	}
	if e.At < r.last {
		return r.failed(fmt.Errorf("time %d is %v before that of an earlier line: window_ns of the header allows %v",
			e.At, time.Duration(r.newest-e.At), time.Duration(r.Window)))
	}
	r.newest = max(r.newest, e.At)
	r.events++
	at := len(r.ahead)
	for at > 0 && r.ahead[at-1].At > e.At {
		at--
	}
	r.ahead = slices.Insert(r.ahead, at, e)
	return nil
}

// unmarshal says of JSON what a person wants to know.
func unmarshal(line []byte, to any) error {
	err := json.Unmarshal(line, to)
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Errorf("%s is %s: want %v", kind.Field, kind.Value, kind.Type)
	case errors.As(err, &kind):
		return fmt.Errorf("%s: want a JSON object", kind.Value)
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("no JSON: %v", err)
	}
	return err
}

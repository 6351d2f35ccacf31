package history

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// A Writer writes an event file: JSON, one object a line, the header first. It keeps at
// most 64 KiB before it writes them. It never syncs: what it has flushed survives the
// end of the process in any way, but not that of the machine. It is not for several
// goroutines at once.
type Writer struct {
	buffer *bufio.Writer // fails for ever once it has failed
	lines  *json.Encoder
}

// NewWriter begins a file with a header, whose Format and Version it fills in.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	h.Format, h.Version = format, Version
	if err := h.check(); err != nil {
		return nil, fmt.Errorf("history: header: %w", err)
	}
	b := bufio.NewWriterSize(w, 64<<10)
	out := &Writer{buffer: b, lines: json.NewEncoder(b)}
	out.lines.SetEscapeHTML(false)
	return out, out.write(h)
}

// Write writes an event. The events of one user come in their order, those of several
// in the order of their times or at most Header.Window off. After an error every Write
// fails with it.
func (w *Writer) Write(e Event) error {
	if err := e.check(); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return w.write(e)
}

// Flush passes on what is kept.
func (w *Writer) Flush() error { return wrap(w.buffer.Flush()) }

// End writes at time at that all users have stopped, and flushes. Without it a reader
// takes the last event for the end.
func (w *Writer) End(at int64) error {
	if err := w.Write(Event{At: at, Do: End}); err != nil {
		return err
	}
	return w.Flush()
}

func (w *Writer) write(line any) error { return wrap(w.lines.Encode(line)) }

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("history: %w", err)
}

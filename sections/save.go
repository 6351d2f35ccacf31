package sections

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
)

// A saved object is a title, what replica.appendState appends, and the SHA-256 of both. It is loaded by operations with a part each, so that
// all copies get the same: a byte that says which part it is, and the part. The result of each says what is wrong, if anything.
const savedTitle = "poundlock sections 1\n"

// Bits of the byte that says which part it is.
const (
	firstPart = 1 << iota
	lastPart
)

// maxLoaded bounds the parts together, as MaxState is bounded.
const maxLoaded = 1 << 30

// Save writes the object as this section finds it, or leaves it: for a planned restart of all members, or as a copy to keep. It
// costs an operation. While the section lasts nobody else changes the object: so for a restart the members are closed before
// Exit.
func (s *Section) Save(ctx context.Context, out io.Writer) error {
	if _, err := s.execute(ctx, []byte{empty}); err != nil { // the copy here has all that was before
		return err
	}
	s.r.mu.RLock()
	b := s.r.appendState([]byte(savedTitle))
	s.r.mu.RUnlock()
	if err := s.n.Settle(); err != nil { // if the section was lost just now it may have what might be lost still
		return closed(nil)
	}
	sum := sha256.Sum256(b)
	if _, err := out.Write(append(b, sum[:]...)); err != nil {
		return fmt.Errorf("sections: save %q: %w", s.r.shown(), err)
	}
	return nil
}

// Load makes the object the one that was saved, at all copies, and what it was is gone. IDs go on from the larger of
// both. After an error the object is as it was, unless that is one of ctx: then Wait tells of the part that is open, and without the
// last part nothing is loaded.
func (s *Section) Load(ctx context.Context, in io.Reader) error {
	state, err := readSaved(in, s.maxState)
	if err != nil {
		return fmt.Errorf("sections: load %q: %w", s.r.shown(), err)
	}
	if !s.loads.TryLock() { // its parts would mix with those of this one
		return fmt.Errorf("sections: load %q: another Load of this section has not ended", s.r.shown())
	}
	defer s.loads.Unlock()
	const size = MaxOperation - 1
	for which := byte(firstPart); ; which = 0 {
		part := state[:min(size, len(state))]
		if state = state[len(part):]; len(state) == 0 {
			which |= lastPart
		}
		results, err := s.execute(ctx, append([]byte{load, which}, part...))
		if err != nil {
			return err
		}
		if why := results[0]; len(why) > 0 {
			return fmt.Errorf("sections: load %q: %s", s.r.shown(), why)
		}
		if which&lastPart != 0 {
			return nil
		}
	}
}

// readSaved reads what Save has written: the state alone, of at most so many bytes.
func readSaved(in io.Reader, most int) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(in, int64(len(savedTitle)+most+sha256.Size)+1))
	if err != nil {
		return nil, err
	}
	state, found := bytes.CutPrefix(b, []byte(savedTitle))
	size := len(state) - sha256.Size
	switch {
	case !found || size < 0:
		return nil, errors.New("it was not saved by this package, or not in this version")
	case size > most:
		return nil, fmt.Errorf("it has more than %d bytes: raise MaxState at all members", most)
	case sha256.Sum256(b[:len(b)-sha256.Size]) != [sha256.Size]byte(state[size:]):
		return nil, errors.New("it is damaged: its checksum differs")
	}
	return state[:size], nil
}

func checkPart(part []byte) error {
	if len(part) == 0 || part[0] > firstPart|lastPart {
		return errForm
	}
	return nil
}

// loadPart adds a part, and loads the state with the last one. r.mu is held.
func (r *replica) loadPart(part []byte) (wrong []byte) {
	which, part := part[0], part[1:]
	switch {
	case which&firstPart != 0:
		r.loading = nil
	case len(r.loading) == 0:
		return []byte("a part without the first one")
	}
	if len(r.loading)+len(part) > maxLoaded {
		r.loading = nil
		return []byte("it is too large")
	}
	r.loading = append(r.loading, part...)
	if which&lastPart == 0 {
		return nil
	}
	state := r.loading
	r.loading = nil
	executed, replace, err := r.readSafely(state)
	if err != nil {
		return []byte(cmp.Or(err.Error(), "the object refuses it"))
	}
	replace()
	r.executed = max(r.executed, executed)
	return nil
}

// readSafely is readState, where a panic is an error: at all members alike, or it would close them all.
func (r *replica) readSafely(state []byte) (executed uint64, replace func(), err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("Restore panicked: %v", p)
		}
	}()
	return readState(r.copy, state)
}

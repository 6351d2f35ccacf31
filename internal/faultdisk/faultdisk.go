// Package faultdisk has disks in memory that lose power: after any write, in the middle of one, and with what was not synced lost in part.
package faultdisk

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"sync"

	"github.com/poundlock/poundlock/internal/journal"
)

// ErrPower is what everything fails with once the power is off.
var ErrPower = errors.New("faultdisk: the power is off")

// A Disk is a journal.Disk. What survives a loss of power are the names that were synced, and of each file what was.
type Disk struct {
	mu      sync.Mutex
	lies    bool
	full    error            // of writes
	broken  error            // of syncs
	names   map[string]*file // as processes see them
	synced  map[string]*file // as they are after a loss of power
	steps   int
	stop    int // at which step the power goes; 0: never
	off     bool
	stopped chan struct{}
}

type file struct {
	written []byte
	kept    int // bytes that were synced
}

// New returns an empty disk whose power goes at a step, counted from 1: a write, sync, create or rename. 0: never.
func New(stop int) *Disk {
	return &Disk{names: map[string]*file{}, synced: map[string]*file{}, stop: stop, stopped: make(chan struct{})}
}

// Off is closed when the power is.
func (d *Disk) Off() <-chan struct{} { return d.stopped }

// Lie has every sync from now on say that it is done, and do nothing: a broken disk, or a program that does not wait for it.
func (d *Disk) Lie() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lies = true
}

// Fail fails writes and syncs from now on, half of a write being done. nil: they do not fail.
func (d *Disk) Fail(write, sync error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full, d.broken = write, sync
}

// Keep has the power stay on, and reports whether it is.
func (d *Disk) Keep() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stop = 0
	return !d.off
}

// Cut turns the power off now.
func (d *Disk) Cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cut()
}

func (d *Disk) cut() {
	if !d.off {
		d.off = true
		close(d.stopped)
	}
}

// A Loss is how much of what was not synced is lost.
type Loss int

// The losses.
const (
	All   Loss = iota // of it
	Half              // its second half: a torn write
	First             // its first half, which reads as zeros
	Last              // its second half, which reads as zeros
	None              // of it
)

// Losses are all of them.
var Losses = []Loss{All, Half, First, Last, None}

// After is the disk after the loss of power, and turns the old one off. Power goes again at a step.
func (d *Disk) After(loss Loss, stop int) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cut()
	next := New(stop)
	names := d.synced
	if loss == None {
		names = d.names // also those of renames that were not synced
	}
	for name, f := range names {
		b := bytes.Clone(f.written[:f.kept])
		rest := bytes.Clone(f.written[f.kept:])
		switch loss {
		case Half:
			rest = rest[:len(rest)/2]
		case First:
			clear(rest[:(len(rest)+1)/2])
		case Last:
			clear(rest[len(rest)/2:])
		case All:
			rest = nil
		}
		b = append(b, rest...)
		next.names[name] = &file{b, len(b)}
	}
	next.synced = maps.Clone(next.names)
	return next
}

// Damage changes a byte of a file, counted from its end if it is negative.
func (d *Disk) Damage(name string, at int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.names[name]
	if at < 0 {
		at += len(f.written)
	}
	f.written[at] ^= 0x40
}

// Size is that of a file.
func (d *Disk) Size(name string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[name] == nil {
		return 0
	}
	return len(d.names[name].written)
}

// Unsynced is how many bytes of a file would be lost now.
func (d *Disk) Unsynced(name string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.names[name].written) - d.names[name].kept
}

// step counts one, and reports whether the power goes with it. d.mu is held.
func (d *Disk) step() (err error) {
	if d.off {
		return ErrPower
	}
	d.steps++
	if d.steps == d.stop {
		d.cut()
		return ErrPower
	}
	return nil
}

// Open implements journal.Disk.
func (d *Disk) Open(name string) (io.ReadCloser, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.names[name]
	switch {
	case d.off:
		return nil, ErrPower
	case f == nil:
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(bytes.Clone(f.written))), nil
}

// Create implements journal.Disk.
func (d *Disk) Create(name string) (journal.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return nil, err
	}
	f := &file{}
	d.names[name] = f
	return &handle{d, f}, nil
}

// Rename implements journal.Disk.
func (d *Disk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.step()
	if err != nil && (!d.off || d.steps != d.stop) {
		return err
	}
	d.names[to] = d.names[from] // perhaps, where the power goes with it
	delete(d.names, from)
	return err
}

// Sync implements journal.Disk.
func (d *Disk) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return err
	}
	if !d.lies {
		d.synced = maps.Clone(d.names)
	}
	return d.broken
}

// Path implements journal.Disk.
func (d *Disk) Path(name string) string { return name }

// Close implements journal.Disk.
func (d *Disk) Close() error { return nil }

type handle struct {
	d *Disk
	f *file
}

func (h *handle) Write(b []byte) (int, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if h.d.full != nil {
		h.f.written = append(h.f.written, b[:len(b)/2]...)
		return len(b) / 2, h.d.full
	}
	off := h.d.off
	if err := h.d.step(); err != nil {
		if !off { // the power goes with it
			h.f.written = append(h.f.written, b...)
		}
		return 0, err
	}
	h.f.written = append(h.f.written, b...)
	return len(b), nil
}

func (h *handle) Sync() error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.d.step(); err != nil {
		return err
	}
	if h.d.broken != nil {
		return h.d.broken
	}
	if !h.d.lies {
		h.f.kept = len(h.f.written)
	}
	return nil
}

func (h *handle) Close() error { return nil }

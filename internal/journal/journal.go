// Package journal keeps records in a file, so that they are there after a crash.
//
// The file begins with a title and a salt. A record follows as a mark, its size, a checksum and its bytes.
//
// The mark is the first bytes of the salt, which is random. So whoever chooses what is in a record cannot fill it with marks, at each of
// which a record would be looked for. The checksum is also of the salt and of where the record is, so that nothing that the disk had
// before looks like a record.
//
// A record that is no good is the torn end of what was being written when the power went, if no good one follows it: then it is cut
// off, as nobody was told that it is there. Otherwise the file is damaged, and refused. What is damaged at the very end, after
// it was written well, looks like a torn end.
//
// Replace writes another file, and renames it when it is on disk.
package journal

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/poundlock/poundlock/internal/private"
)

const (
	name     = "journal"
	newName  = "journal.new" // while it is written
	lockName = "lock"

	title    = "poundlock journal 1\n"
	saltSize = 8
	markSize = 4
	headSize = markSize + 4 + 4
)

// ErrDamaged says that a file is not what was written.
var ErrDamaged = errors.New("the journal is damaged")

// ErrInUse says that another process has the directory.
var ErrInUse = errors.New("another process uses it")

// A Disk is a directory of files. A test has one that loses power.
type Disk interface {
	// Open opens a file to be read. The error is fs.ErrNotExist where there is none.
	Open(name string) (io.ReadCloser, error)
	// Create makes an empty file, also in the place of another one.
	Create(name string) (File, error)
	Rename(from, to string) error
	Sync() error             // what Rename and Create have done is there after a crash
	Path(name string) string // for people
	Close() error
}

// A File is one that is written.
type File interface {
	io.WriteCloser
	Sync() error // what was written is there after a crash
}

// OpenDir opens a directory, which is made if need be, for this process alone.
func OpenDir(path string) (Disk, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	lock, err := private.Lock(filepath.Join(path, lockName), unix.LOCK_EX)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("%s: %w: each member needs a directory of its own", path, ErrInUse)
	}
	if err != nil {
		return nil, err
	}
	return &dir{path, lock}, nil
}

type dir struct {
	path string
	lock *os.File
}

func (d *dir) Path(name string) string                 { return filepath.Join(d.path, name) }
func (d *dir) Open(name string) (io.ReadCloser, error) { return os.Open(d.Path(name)) }
func (d *dir) Rename(from, to string) error            { return os.Rename(d.Path(from), d.Path(to)) }
func (d *dir) Close() error                            { return d.lock.Close() }

func (d *dir) Create(name string) (File, error) {
	return os.OpenFile(d.Path(name), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
}

func (d *dir) Sync() error {
	f, err := os.Open(d.path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// A Journal is what package node writes to: node.Journal.
type Journal struct {
	disk  Disk
	every time.Duration // 0: each record is synced
	// Unchecked has checksums not be looked at: a test shows so what they are for.
	Unchecked bool
	in        io.ReadCloser // what there was; nil: nothing, or it was read
	at        int64         // where the record is that was read last

	mu    sync.Mutex
	file  File // nil before Replace
	place int64
	salt  [saltSize]byte
	timer *time.Timer // of the next sync; nil: nothing is to be synced
	err   error       // after one nothing is known of the file
}

// Open opens the journal on a disk, which Close closes. With every, a record is on disk at most so long after Append has
// returned; else when it does.
func Open(disk Disk, every time.Duration) (*Journal, error) {
	in, err := disk.Open(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	j := &Journal{disk: disk, every: every}
	if err == nil {
		j.in = in
	}
	return j, nil
}

// Exists reports whether there was a journal.
func (j *Journal) Exists() bool { return j.in != nil }

// Where is the place of the record that was read last.
func (j *Journal) Where() string { return fmt.Sprintf("%s, at byte %d", j.disk.Path(name), j.at) }

// Records are those that were written. A torn end is left out.
func (j *Journal) Records() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if j.in == nil {
			return
		}
		defer func() {
			j.in.Close()
			j.in = nil
		}()
		in := bufio.NewReaderSize(j.in, 1<<20)
		head := make([]byte, len(title)+saltSize)
		if _, err := io.ReadFull(in, head); err != nil || string(head[:len(title)]) != title {
			yield(nil, fmt.Errorf("%w: it does not begin with %q", ErrDamaged, title))
			return
		}
		salt := head[len(title):]
		for at := int64(len(head)); ; at = j.at {
			j.at = at
			record, used, err := j.next(in, salt, at)
			if err == nil {
				if !yield(record, nil) {
					return
				}
				j.at += int64(used)
				continue
			}
			rest, more := io.ReadAll(in)
			rest = append(record, rest...)
			switch {
			case more != nil:
				yield(nil, more)
			case len(rest) > 0 && (j.follows(rest, salt, at) || at == int64(len(head))):
				yield(nil, fmt.Errorf("%w: its checksum differs there, and it goes on behind: restore the file, or remove the directory and start "+
					"this member without Bootstrap, to join", ErrDamaged))
			case len(rest) == 0 && at == int64(len(head)):
				yield(nil, fmt.Errorf("%w: it is empty", ErrDamaged))
			}
			return
		}
	}
}

var errTorn = errors.New("not a record")

// next reads a record, and tells how many bytes it took. After an error it returns what it has read.
func (j *Journal) next(in io.Reader, salt []byte, at int64) (record []byte, used int, err error) {
	head := make([]byte, headSize)
	k, err := io.ReadFull(in, head)
	if err != nil || string(head[:markSize]) != string(salt[:markSize]) {
		return head[:k], 0, errTorn
	}
	// It grows with what there is: the size may be no good.
	var b bytes.Buffer
	b.Write(head)
	size := int64(binary.BigEndian.Uint32(head[markSize:]))
	if n, err := io.CopyN(&b, in, size); err != nil || n != size {
		return b.Bytes(), 0, errTorn
	}
	if all := b.Bytes(); !j.Unchecked && binary.BigEndian.Uint32(head[headSize-4:]) != sum(salt, at, all[headSize:]) {
		return all, 0, errTorn
	}
	return b.Bytes()[headSize:], b.Len(), nil
}

// follows reports whether a record is somewhere behind the first byte of rest, which begins at a place of the file.
func (j *Journal) follows(rest, salt []byte, at int64) bool {
	for i := 1; ; i++ {
		k := bytes.Index(rest[min(i, len(rest)):], salt[:markSize])
		if k < 0 {
			return false
		}
		i += k
		if _, _, err := j.next(bytes.NewReader(rest[i:]), salt, at+int64(i)); err == nil {
			return true
		}
	}
}

func sum(salt []byte, at int64, record []byte) uint32 {
	castagnoli := crc32.MakeTable(crc32.Castagnoli) // made once, and only where there is a journal
	seed := binary.BigEndian.AppendUint64(bytes.Clone(salt), uint64(at))
	seed = binary.BigEndian.AppendUint64(seed, uint64(len(record)))
	return crc32.Update(crc32.Checksum(seed, castagnoli), castagnoli, record)
}

func frame(salt []byte, at int64, record []byte) ([]byte, error) {
	if int64(len(record)) > 1<<32-1 {
		return nil, fmt.Errorf("a record of %d bytes", len(record))
	}
	b := make([]byte, 0, headSize+len(record))
	b = binary.BigEndian.AppendUint32(append(b, salt[:markSize]...), uint32(len(record)))
	b = binary.BigEndian.AppendUint32(b, sum(salt, at, record))
	return append(b, record...), nil
}

// Append adds a record. After an error nothing more can be added: what is on disk is not known.
func (j *Journal) Append(record []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return j.err
	}
	if err := j.add(record); err != nil {
		j.err = fmt.Errorf("%s: %w", j.disk.Path(name), err)
	}
	return j.err
}

func (j *Journal) add(record []byte) error {
	b, err := frame(j.salt[:], j.place, record)
	if err != nil {
		return err
	}
	k, err := j.file.Write(b)
	j.place += int64(k)
	switch {
	case err != nil:
		return err
	case j.every == 0:
		return j.file.Sync()
	case j.timer == nil:
		j.timer = time.AfterFunc(j.every, j.sync)
	}
	return nil
}

// sync syncs what was added a while ago.
func (j *Journal) sync() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.timer == nil || j.err != nil {
		return
	}
	j.timer = nil
	if err := j.file.Sync(); err != nil {
		j.err = fmt.Errorf("%s: %w", j.disk.Path(name), err)
	}
}

// Replace puts records in the place of all. After an error nothing can be added.
func (j *Journal) Replace(records iter.Seq2[[]byte, error]) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		if err := j.replace(records); err != nil {
			j.err = fmt.Errorf("%s: %w", j.disk.Path(newName), err)
		}
	}
	return j.err
}

func (j *Journal) replace(records iter.Seq2[[]byte, error]) (err error) {
	f, err := j.disk.Create(newName)
	if err != nil {
		return err
	}
	old := j.file
	j.stop()
	j.file = f
	rand.Read(j.salt[:]) // never fails
	if _, err := f.Write(append([]byte(title), j.salt[:]...)); err != nil {
		return errors.Join(err, closeIf(old))
	}
	place := int64(len(title) + saltSize)
	for record, err := range records {
		var b []byte
		if err == nil {
			b, err = frame(j.salt[:], place, record)
		}
		if err == nil {
			_, err = f.Write(b)
		}
		if err != nil {
			return errors.Join(err, closeIf(old))
		}
		place += int64(len(b))
	}
	j.place = place
	return errors.Join(closeIf(old), after(f.Sync, func() error { return after(func() error { return j.disk.Rename(newName, name) }, j.disk.Sync) }))
}

// after does two things, the second one if the first one has gone well.
func after(first, second func() error) error {
	if err := first(); err != nil {
		return err
	}
	return second()
}

func closeIf(f File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}

func (j *Journal) stop() {
	if j.timer != nil {
		j.timer.Stop()
		j.timer = nil
	}
}

// Close closes the journal and its disk. What was added is synced.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var err error
	if j.timer != nil && j.err == nil {
		err = j.file.Sync()
	}
	j.stop()
	j.err = errors.Join(j.err, fs.ErrClosed)
	if j.in != nil {
		j.in.Close()
		j.in = nil
	}
	return errors.Join(err, closeIf(j.file), j.disk.Close())
}

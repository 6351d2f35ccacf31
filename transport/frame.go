// Package transport is the wire: frames on a byte stream, the items in them,
// and the ways to get a stream (TCP, unix sockets, TLS).
//
// A frame is a length of four bytes, the wire version (one byte), the epoch of
// the slot table (a varint) and items one after another. The version and the
// epoch stand at the same place in all versions to come, so that two ends that
// do not understand each other can still say why.
package transport

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/poundlock/poundlock/protocol"
)

// Version is the wire version that this code speaks.
const Version = 2

// Limits of what is accepted from the other end.
const (
	MaxBody        = 1 << 20   // one answer to a control request; of clients MaxRequest
	MaxRequest     = 64 << 10  // one control request
	MaxMessage     = 1 << 19   // one message of a lock
	MaxFrame       = 2 << 20   // one frame, without its length: answers, messages and more fit in
	MaxClientFrame = 384 << 10 // one of a client: a request, messages and more fit in
	MaxHandshake   = 1 << 14   // the first frame in each direction
	LengthSize     = 4         // of the length before it
)

// ErrFrame says that the other end does not speak this protocol.
var ErrFrame = errors.New("malformed frame")

// ErrHTTP says that the other end speaks HTTP.
var ErrHTTP = errors.New("the other end speaks HTTP")

// isHTTP reports whether a length is the beginning of a request or an answer of HTTP, of any
// version: no frame is that long.
func isHTTP(length [LengthSize]byte) bool {
	switch string(length[:]) {
	case "GET ", "POST", "HEAD", "PUT ", "OPTI", "PRI ", "HTTP":
		return true
	}
	return false
}

// HTTPAnswer answers HTTP on a port that does not speak it.
func HTTPAnswer(text string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"+
		"Connection: close\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
}

// AppendHeader begins a frame. Items follow; EndFrame completes it.
func AppendHeader(b []byte, epoch uint64) []byte {
	b = append(b, 0, 0, 0, 0, Version)
	return binary.AppendUvarint(b, epoch)
}

// EndFrame writes the length of the frame that fills b.
func EndFrame(b []byte) { binary.BigEndian.PutUint32(b, uint32(len(b)-LengthSize)) }

// ReadFrame reads one frame of at most limit bytes, without its length, into
// memory of its own: what is decoded from it may be kept.
func ReadFrame(r io.Reader, limit int) ([]byte, error) {
	var length [LengthSize]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	return readRest(r, length, limit, nil, nil)
}

// ReadFrameInto is ReadFrame into memory that is there already, if the frame fits. It asks for room, unless that is nil, before it takes memory: how
// large the whole frame claims to be, and how much memory is to be taken for it in all. An error of room ends the reading.
func ReadFrameInto(in *bufio.Reader, limit int, memory []byte, room func(whole, memory int) error) ([]byte, error) {
	head, err := in.Peek(LengthSize)
	if err != nil {
		if err == io.EOF && len(head) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	length := [LengthSize]byte(head)
	_, _ = in.Discard(LengthSize) // they are there
	return readRest(in, length, limit, memory[:0], room)
}

// Whole reports whether the next frame has come as a whole, so that ReadFrameInto need not read; for the length of the frame it reads itself.
func Whole(in *bufio.Reader) (bool, error) {
	head, err := in.Peek(LengthSize)
	if err != nil {
		return false, err
	}
	return int64(in.Buffered()) >= LengthSize+int64(binary.BigEndian.Uint32(head)), nil
}

// readRest reads what follows the length of a frame.
func readRest(r io.Reader, length [LengthSize]byte, limit int, b []byte, room func(whole, memory int) error) ([]byte, error) {
	n := binary.BigEndian.Uint32(length[:])
	switch {
	case n <= uint32(limit):
	case isRecord(length):
		return nil, fmt.Errorf("%w: %w", ErrFrame, ErrWantsTLS)
	case isHTTP(length):
		return nil, fmt.Errorf("%w: %w", ErrFrame, ErrHTTP)
	default:
		return nil, fmt.Errorf("%w: it claims %d bytes, the limit is %d", ErrFrame, n, limit)
	}
	// Memory follows the bytes that came, not those that were claimed.
	for first := true; first || len(b) < int(n); first = false {
		if first || len(b) == cap(b) {
			size := min(max(2*len(b), 1<<16), int(n))
			if room != nil {
				if err := room(int(n), size); err != nil {
					return nil, err
				}
			}
			if size > cap(b) {
				b = append(make([]byte, 0, size), b...)
			}
		}
		end := min(cap(b), int(n))
		if _, err := io.ReadFull(r, b[len(b):end]); err != nil {
			return nil, fmt.Errorf("a frame ends early: %w", err)
		}
		b = b[:end]
	}
	return b, nil
}

// A Header is what every frame begins with.
type Header struct {
	Version uint8
	Epoch   uint64
}

// ReadHeader takes the header from a frame and returns the items.
func ReadHeader(frame []byte) (h Header, items []byte, err error) {
	if len(frame) == 0 {
		return h, nil, fmt.Errorf("%w: it is empty", ErrFrame)
	}
	h.Version = frame[0]
	r := protocol.Reader{Rest: frame[1:]}
	h.Epoch = r.Uint()
	if r.Err != nil {
		return h, nil, fmt.Errorf("%w: no epoch", ErrFrame)
	}
	return h, r.Rest, nil
}

// Check compares the version of a header with what this end speaks. The error
// names both.
func (h Header) Check() error {
	if h.Version != Version {
		return fmt.Errorf("it speaks wire version %d, this process speaks %d", h.Version, Version)
	}
	return nil
}

package protocol

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
)

// ErrShort says that an encoding ended too early or held an impossible value.
var ErrShort = errors.New("protocol: malformed encoding")

// A Reader takes values from an encoding. After the first error it returns
// zeros, so that a decoder checks Err once, at its end.
type Reader struct {
	Rest []byte
	Err  error
}

// Uint reads a varint. Only the shortest form is accepted, because equal values
// must have equal bytes.
func (r *Reader) Uint() uint64 {
	if r.Err != nil {
		return 0
	}
	if len(r.Rest) > 0 && r.Rest[0] < 0x80 {
		v := r.Rest[0]
		r.Rest = r.Rest[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(r.Rest)
	if n <= 0 || n != uvarintLen(v) {
		r.fail()
		return 0
	}
	r.Rest = r.Rest[n:]
	return v
}

// Max reads a varint and fails when it exceeds most.
func (r *Reader) Max(most uint64) uint64 {
	v := r.Uint()
	if v > most {
		r.fail()
		return 0
	}
	return v
}

// Len reads the length of a list whose elements take at least one byte each, so
// that hostile input cannot ask for more memory than it sent.
func (r *Reader) Len() int {
	v := r.Uint()
	if v > uint64(len(r.Rest)) {
		r.fail()
		return 0
	}
	return int(v)
}

// Bool reads a boolean.
func (r *Reader) Bool() bool { return r.Max(1) == 1 }

// Text reads a string, which AppendText wrote.
func (r *Reader) Text() string { return string(r.Bytes(math.MaxInt)) }

// Bytes reads what AppendText wrote, as a part of what is read, and fails when it has more than most bytes.
func (r *Reader) Bytes(most int) []byte {
	n := r.Max(uint64(most))
	if n > uint64(len(r.Rest)) {
		r.fail()
		n = 0
	}
	b := r.Rest[:n:n]
	r.Rest = r.Rest[n:]
	return b
}

// Byte reads a byte.
func (r *Reader) Byte() byte {
	if len(r.Rest) == 0 {
		r.fail()
		return 0
	}
	b := r.Rest[0]
	r.Rest = r.Rest[1:]
	return b
}

func (r *Reader) fail() {
	if r.Err == nil {
		r.Err = ErrShort
	}
	r.Rest = nil
}

// AppendBool appends v as Reader.Bool reads it.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// AppendText appends s as Reader.Text and Reader.Bytes read it.
func AppendText[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func uvarintLen(v uint64) int { return max(1, (bits.Len64(v)+6)/7) }

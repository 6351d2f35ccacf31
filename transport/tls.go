package transport

import (
	"crypto/tls"
	"errors"
	"io"
	"syscall"
)

// A server says nothing to a client that differs from it in TLS: it cannot know
// the language of the other. So the client guesses from how the server goes.
var (
	// ErrWantsTLS says that the other end behaves as one that wants TLS.
	ErrWantsTLS = errors.New("transport: the other end seems to want TLS")
	// ErrNoTLS says that the other end behaves as one that is without TLS.
	ErrNoTLS = errors.New("transport: the other end seems to be without TLS")
)

// BrokenOff reports whether err says that the other end has closed the connection
// without a word.
func BrokenOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// withoutTLS reports whether a TLS handshake failed as with a server that is
// without it, which closes the connection or answers something else.
func withoutTLS(err error) bool {
	var garbled tls.RecordHeaderError
	return BrokenOff(err) || errors.As(err, &garbled)
}

// isRecord reports whether a length is the beginning of a TLS record, a handshake
// or an alert: no frame is that long.
func isRecord(length [lengthSize]byte) bool {
	return (length[0] == 0x15 || length[0] == 0x16) && length[1] == 3
}

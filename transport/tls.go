package transport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
)

// A server cannot know the language of a client that differs from it in TLS. One that wants TLS answers with an alert; from how
// one without TLS goes the client guesses.
var (
	// ErrWantsTLS says that the other end behaves as one that wants TLS.
	ErrWantsTLS = errors.New("the other end seems to want TLS")
	// ErrNoTLS says that the other end behaves as one that is without TLS.
	ErrNoTLS = errors.New("the other end seems to be without TLS")
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

// WantTLS is what an end that wants TLS answers to one that speaks without: the alert that the version of the protocol is none.
var WantTLS = [...]byte{0x15, 3, 1, 0, 2, 2, 70}

// isRecord reports whether a length is the beginning of a TLS record, a handshake
// or an alert: no frame is that long.
func isRecord(length [LengthSize]byte) bool {
	return (length[0] == 0x15 || length[0] == 0x16) && length[1] == 3
}

// What the other end can have against this end's certificate. It says so in a TLS
// alert, to a client after the handshake.
var (
	// ErrCertificateRequired says that this end has shown no certificate.
	ErrCertificateRequired = errors.New("the other end asks for a certificate, and this one shows none")
	// ErrUnknownAuthority says that nobody whom the other end trusts has signed it.
	ErrUnknownAuthority = errors.New("the other end does not trust the authority of this end's certificate")
	// ErrExpired says that it is over, by the other end's clock.
	ErrExpired = errors.New("the other end says that this end's certificate has expired")
	// ErrBadCertificate says that it has another defect.
	ErrBadCertificate = errors.New("the other end refuses this end's certificate")
)

// alerts are by their numbers in RFC 8446, section 6.
var alerts = map[tls.AlertError]error{
	42:  ErrBadCertificate,
	45:  ErrExpired,
	48:  ErrUnknownAuthority,
	116: ErrCertificateRequired,
}

// Explain says in words what an alert of the other end means. crypto/tls tells an
// alert from a connection by its text alone.
func Explain(err error) error {
	var remote *net.OpError
	if !errors.As(err, &remote) || remote.Op != "remote error" {
		return err
	}
	for alert, meaning := range alerts {
		if remote.Err.Error() == alert.Error() {
			return fmt.Errorf("%w: %w", meaning, err)
		}
	}
	return err
}

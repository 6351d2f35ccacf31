package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/poundlock/poundlock/internal/certs"
	"github.com/poundlock/poundlock/transport"
)

// certificates opens the files of the --tls- flags, once; nil when none is given.
func (f *clusterFlags) certificates() (*certs.Store, error) {
	files := f.files()
	if f.store != nil || files == (certs.Files{}) {
		return f.store, nil
	}
	if (f.tlsCert == "") != (f.tlsKey == "") {
		return nil, errors.New("--tls-cert and --tls-key belong together")
	}
	log := f.log
	if log == nil {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	}
	store, err := certs.Open(files, log)
	if err != nil {
		return nil, fmt.Errorf("the files of --tls-cert, --tls-key and --tls-ca: %w", err)
	}
	f.store = store
	return store, nil
}

func (f *clusterFlags) files() certs.Files {
	return certs.Files{Cert: f.tlsCert, Key: f.tlsKey, CA: f.tlsCA, ServerName: f.tlsName}
}

// clientTLS is nil when no flag of TLS is given. Without an authority the
// system's are trusted; with a certificate the client shows it.
func (f *clusterFlags) clientTLS() (*tls.Config, error) {
	store, err := f.certificates()
	if store == nil || err != nil {
		return nil, err
	}
	return store.Client(), nil
}

// serverTLS is nil when no flag of TLS is given. With an authority it asks every
// client for a certificate. protocols are those of ALPN.
func (f *clusterFlags) serverTLS(protocols ...string) (*tls.Config, error) {
	store, err := f.certificates()
	if store == nil || err != nil {
		return nil, err
	}
	if f.tlsCert == "" {
		return nil, errors.New("a server with TLS needs --tls-cert and --tls-key")
	}
	return store.Server(protocols...)
}

// tlsHint says what to do about TLS with servers that cannot be reached, "" if that
// seems to be something else. errs are why they cannot.
func tlsHint(errs []error) string {
	for _, err := range errs {
		var name x509.HostnameError
		var invalid x509.CertificateInvalidError
		var unknown x509.UnknownAuthorityError
		switch {
		case errors.Is(err, transport.ErrWantsTLS):
			return "the servers may want TLS: give --tls-ca, and --tls-cert and --tls-key where they ask for a certificate"
		case errors.Is(err, transport.ErrNoTLS):
			return "the servers may be without TLS: give no --tls- flag, nor such a setting in the environment or the file"
		case errors.Is(err, transport.ErrCertificateRequired):
			return "the servers want to see a certificate: give --tls-cert and --tls-key"
		case errors.Is(err, transport.ErrUnknownAuthority):
			return "none of the authorities in the servers' --tls-ca has signed the certificate in --tls-cert"
		case errors.Is(err, transport.ErrExpired):
			return "renew the certificate in --tls-cert, such as with poundlock ca --renew, and look at the clocks of both hosts"
		case errors.Is(err, transport.ErrBadCertificate):
			return "the servers refuse the certificate in --tls-cert; their log says why"
		case errors.As(err, &unknown):
			return "none of the authorities in --tls-ca has signed the servers' certificates: is it this cluster's file?"
		case errors.As(err, &name):
			return "the servers' certificates are for other names: dial one of those, or give --tls-server-name"
		case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
			return "the servers' certificates are not valid now: renew them, such as with poundlock ca --renew, " +
				"or is the clock of this host wrong?"
		}
	}
	return ""
}

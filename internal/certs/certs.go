// Package certs makes TLS configurations whose certificates and authorities are
// read again when their files change, without a restart: the next handshake uses
// what is new, and connections that stand go on. It also makes the authority and
// the certificates of a small cluster.
package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Files says where the PEM files are. All are optional; Cert and Key belong
// together.
type Files struct {
	Cert, Key string // of this process
	CA        string // the authorities that sign the other side's certificates. Default: the system's
	// ServerName is what the certificate of every server must name. Default: the
	// host that is dialed.
	ServerName string
}

const (
	lookEvery  = time.Second         // how often handshakes look at the files
	watchEvery = time.Minute         // how often Watch does
	warnEvery  = 24 * time.Hour      // how often a certificate that ends soon is warned of
	warnAtMost = 30 * 24 * time.Hour // how long before its end that begins
)

// A Store holds what the files said when they were last good. Its
// configurations may be used by many goroutines.
type Store struct {
	files Files
	log   *slog.Logger
	now   func() time.Time

	mu      sync.Mutex
	current *material
	read    contents  // current is made of them
	looked  time.Time // when they were last looked at
	failure string    // why they were last refused, as logged; "" if they were not
	warned  time.Time // when the end of the certificate was last warned of
}

// Open reads the files. It refuses a certificate that is not valid now. log hears
// of reloads, of files that are refused, and of an end that is near; nil: nobody.
func Open(f Files, log *slog.Logger) (*Store, error) { return open(f, log, time.Now) }

func open(f Files, log *slog.Logger, now func() time.Time) (*Store, error) {
	if (f.Cert == "") != (f.Key == "") {
		return nil, errors.New("certs: a certificate and its key belong together")
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Store{files: f, log: log, now: now, looked: now()}
	var err error
	if s.read, err = f.read(); err != nil {
		return nil, fmt.Errorf("certs: %w", err)
	}
	if s.current, err = f.parse(s.read, s.looked); err != nil {
		return nil, fmt.Errorf("certs: %w", err)
	}
	s.warn(s.looked)
	return s, nil
}

// Server is the configuration of one that accepts connections. With an authority
// it asks every client for a certificate. protocols are those of ALPN, none for
// the lock service's own.
func (s *Store) Server(protocols ...string) (*tls.Config, error) {
	if s.files.Cert == "" {
		return nil, errors.New("certs: a server needs a certificate and its key")
	}
	c := &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: protocols,
		// A resumed session would not see that its authority has gone.
		SessionTicketsDisabled: true,
	}
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.get().pair, nil }
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		m, now := s.get(), c.Clone()
		now.GetConfigForClient = nil
		if m.authorities != nil {
			now.ClientCAs, now.ClientAuth = m.authorities, tls.RequireAndVerifyClientCert
		}
		return now, nil
	}
	return c, nil
}

// Client is the configuration of one that dials. With authorities of their own
// the server's certificate is verified by VerifyConnection, because a tls.Config
// has no other place where these may change.
//
// It needs a dialer that tells VerifyConnection the name which it expects, also
// where that is an IP address. Package transport does; without a name no
// certificate is accepted.
func (s *Store) Client() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: s.files.ServerName}
	if s.files.Cert != "" {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return s.get().pair, nil }
	}
	if s.files.CA != "" {
		c.InsecureSkipVerify = true // verify does it
		c.VerifyConnection = s.verify
	}
	return c
}

// verify does to a server's certificate what crypto/tls does, with the authorities
// of now.
func (s *Store) verify(conn tls.ConnectionState) error {
	if conn.ServerName == "" {
		return errors.New("certs: it is not known whom the server's certificate should name")
	}
	options := x509.VerifyOptions{
		Roots:         s.get().authorities,
		DNSName:       conn.ServerName,
		Intermediates: x509.NewCertPool(),
		CurrentTime:   s.now(),
	}
	for _, c := range conn.PeerCertificates[1:] {
		options.Intermediates.AddCert(c)
	}
	if _, err := conn.PeerCertificates[0].Verify(options); err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: conn.PeerCertificates, Err: err}
	}
	return nil
}

// Watch looks at the files until ctx ends, so that the log hears of them also
// while nobody connects.
func (s *Store) Watch(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.get()
		}
	}
}

// Until is when the certificate ends, zero without one.
func (s *Store) Until() time.Time {
	if pair := s.get().pair; pair != nil {
		return pair.Leaf.NotAfter
	}
	return time.Time{}
}

// get returns what the files say, or said when they were last good.
func (s *Store) get() *material {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now(); now.Sub(s.looked) >= lookEvery || now.Before(s.looked) {
		s.looked = now
		s.look(now)
		s.warn(now)
	}
	return s.current
}

// look reads the files again and takes what is new and good. s.mu is held.
func (s *Store) look(now time.Time) {
	read, err := s.files.read()
	if err == nil && read == s.read && s.failure == "" {
		return
	}
	var m *material
	if err == nil {
		m, err = s.files.parse(read, now)
	}
	if err != nil {
		if s.failure != err.Error() {
			s.failure = err.Error()
			s.log.Error("new certificates are refused, the old ones stay in use", "error", err)
		}
		return
	}
	s.read = read
	s.current, s.failure, s.warned = m, "", time.Time{}
	if m.pair == nil {
		s.log.Info("authorities reloaded", "file", s.files.CA)
		return
	}
	s.log.Info("certificates reloaded", "file", s.files.Cert, "serial", m.pair.Leaf.SerialNumber.Text(16),
		"until", m.pair.Leaf.NotAfter)
}

// warn says once a day that the certificate ends soon: in the last quarter of its
// life, or the last thirty days if they are less. s.mu is held, or s is new.
func (s *Store) warn(now time.Time) {
	if s.current.pair == nil || now.Sub(s.warned) < warnEvery {
		return
	}
	leaf := s.current.pair.Leaf
	left := leaf.NotAfter.Sub(now)
	switch {
	case left <= 0:
		s.log.Error("the certificate has expired: no new connection will succeed", "file", s.files.Cert, "since", leaf.NotAfter)
	case left < min(warnAtMost, leaf.NotAfter.Sub(leaf.NotBefore)/4):
		s.log.Warn("the certificate ends soon", "file", s.files.Cert, "until", leaf.NotAfter)
	default:
		return
	}
	s.warned = now
}

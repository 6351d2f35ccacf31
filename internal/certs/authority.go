package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The files of an authority in its directory.
const (
	AuthorityName = "ca"
	certSuffix    = ".pem"
	keySuffix     = ".key"
)

const (
	day           = 24 * time.Hour
	authorityDays = 3650
	backdate      = time.Hour // for clocks that are behind
)

// An Authority signs certificates, which stand beside its own as NAME.pem and
// NAME.key in one directory, readable by their owner only.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  crypto.Signer
}

// CertPath and KeyPath are where the files of name are in dir.
func CertPath(dir, name string) string { return filepath.Join(dir, name+certSuffix) }

// KeyPath is beside CertPath.
func KeyPath(dir, name string) string { return filepath.Join(dir, name+keySuffix) }

// Create makes an authority in dir, which is made if need be. It overwrites
// nothing: an error wraps os.ErrExist.
func Create(dir string) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	a := &Authority{dir: dir}
	key, err := a.newKey(AuthorityName)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	a.key = key
	a.cert = &x509.Certificate{
		Subject:               pkix.Name{CommonName: "poundlock authority of " + now.Format(time.DateOnly)},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(authorityDays * day),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
	}
	if a.cert, err = a.sign(AuthorityName, a.cert, key); err != nil {
		return nil, err
	}
	return a, nil
}

// Load reads the authority in dir.
func Load(dir string) (*Authority, error) {
	cert, key, err := readPair(dir, AuthorityName)
	if err != nil {
		return nil, err
	}
	if err := valid(cert, time.Now()); err != nil {
		return nil, fmt.Errorf("%s: %w", CertPath(dir, AuthorityName), err)
	}
	return &Authority{dir, cert, key}, nil
}

// Issue makes a key and a certificate for s, valid for so many days but no longer
// than the authority. It overwrites nothing: an error wraps os.ErrExist.
func (a *Authority) Issue(s Subject, days int) (*x509.Certificate, error) {
	key, err := a.newKey(s.Name)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: s.Name},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if len(s.Hosts) > 0 {
		// A server's is good for a client too: one file serves both on its host.
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, h := range s.Hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	a.lasting(template, days)
	return a.sign(s.Name, template, key)
}

// Renew replaces the certificate of s by one for the same names and the same key:
// only one file changes, in one step, so that whoever reads the two never finds
// halves that do not fit. It fails when the old one is not for all of s.Hosts.
func (a *Authority) Renew(s Subject, days int) (*x509.Certificate, error) {
	old, key, err := readPair(a.dir, s.Name)
	if err != nil {
		return nil, err
	}
	for _, h := range s.Hosts {
		if old.VerifyHostname(h) != nil {
			return nil, fmt.Errorf("%s is not for %s, and is renewed for the same names: remove it and %s to have another one made",
				CertPath(a.dir, s.Name), h, KeyPath(a.dir, s.Name))
		}
	}
	template := &x509.Certificate{
		Subject: old.Subject, KeyUsage: old.KeyUsage, ExtKeyUsage: old.ExtKeyUsage,
		DNSNames: old.DNSNames, IPAddresses: old.IPAddresses,
	}
	a.lasting(template, days)
	return a.sign(s.Name, template, key)
}

// Subjects are those of the certificates in the authority's directory, itself left
// out.
func (a *Authority) Subjects() (all Subjects, err error) {
	entries, err := os.ReadDir(a.dir)
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), keySuffix); ok && name != AuthorityName {
			all = append(all, Subject{Name: name})
		}
	}
	return all, err
}

func (a *Authority) lasting(template *x509.Certificate, days int) {
	now := time.Now()
	template.NotBefore = now.Add(-backdate)
	template.NotAfter = now.Add(time.Duration(days) * day)
	if template.NotAfter.After(a.cert.NotAfter) {
		template.NotAfter = a.cert.NotAfter
	}
}

// newKey makes and writes a key, before its certificate, so that no certificate is without one.
func (a *Authority) newKey(name string) (crypto.Signer, error) {
	for _, path := range []string{CertPath(a.dir, name), KeyPath(a.dir, name)} {
		if _, err := os.Lstat(path); err == nil {
			return nil, fmt.Errorf("%s: %w", path, os.ErrExist)
		} else if !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, write(KeyPath(a.dir, name), "PRIVATE KEY", der)
}

// sign writes the certificate that template describes, for key.
func (a *Authority) sign(name string, template *x509.Certificate, key crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	if err := write(CertPath(a.dir, name), "CERTIFICATE", der); err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// write replaces a file in one step.
func write(path, kind string, der []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // unless it is renamed
	err = pem.Encode(file, &pem.Block{Type: kind, Bytes: der})
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// readPair reads a certificate, which may be over, and its key.
func readPair(dir, name string) (*x509.Certificate, crypto.Signer, error) {
	f := Files{Cert: CertPath(dir, name), Key: KeyPath(dir, name)}
	text, err := f.read()
	if err != nil {
		return nil, nil, err
	}
	pair, err := tls.X509KeyPair([]byte(text.cert), []byte(text.key))
	if err != nil {
		return nil, nil, fmt.Errorf("%s with %s: %w", f.Cert, f.Key, err)
	}
	return pair.Leaf, pair.PrivateKey.(crypto.Signer), nil // as each kind of key is
}

package certs

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"time"
)

// material is what the files hold.
type material struct {
	pair        *tls.Certificate // with its Leaf; nil: none
	authorities *x509.CertPool   // nil: the system's
}

// maxFile bounds what is read of one file.
const maxFile = 1 << 20

// contents are the files as read. They are compared themselves, every second at
// most: two writes within one tick of a file system's clock leave the same time of
// change, and often the same size.
type contents struct{ cert, key, ca string }

func (f Files) read() (c contents, err error) {
	for _, file := range []struct {
		name string
		text *string
	}{{f.Cert, &c.cert}, {f.Key, &c.key}, {f.CA, &c.ca}} {
		if file.name == "" {
			continue
		}
		if *file.text, err = read(file.name); err != nil {
			return contents{}, err
		}
	}
	return c, nil
}

func (f Files) parse(c contents, now time.Time) (*material, error) {
	m := &material{}
	if f.Cert != "" {
		pair, err := tls.X509KeyPair([]byte(c.cert), []byte(c.key))
		if err != nil {
			return nil, fmt.Errorf("%s with %s: %w", f.Cert, f.Key, err)
		}
		if err := valid(pair.Leaf, now); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Cert, err)
		}
		m.pair = &pair
	}
	if f.CA != "" {
		var err error
		if m.authorities, err = pool([]byte(c.ca), now); err != nil {
			return nil, fmt.Errorf("%s: %w", f.CA, err)
		}
	}
	return m, nil
}

func read(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", name, maxFile)
	}
	return string(text), err
}

// pool holds every certificate of text. Old ones may stand among them while a new
// authority takes over, but one must be valid.
func pool(text []byte, now time.Time) (*x509.CertPool, error) {
	authorities, found := x509.NewCertPool(), 0
	var bad error
	good := false
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		if err := valid(c, now); err != nil {
			bad = err
		} else {
			good = true
		}
		authorities.AddCert(c)
		found++
	}
	switch {
	case found == 0:
		return nil, fmt.Errorf("no PEM certificate in it")
	case !good:
		return nil, bad
	}
	return authorities, nil
}

func valid(c *x509.Certificate, now time.Time) error {
	switch {
	case now.After(c.NotAfter):
		return fmt.Errorf("the certificate of %q expired at %v", c.Subject.CommonName, c.NotAfter)
	case now.Before(c.NotBefore):
		return fmt.Errorf("the certificate of %q is not valid before %v: is this machine's clock right?",
			c.Subject.CommonName, c.NotBefore)
	}
	return nil
}

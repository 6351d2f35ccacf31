package certs

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// material is what the files hold.
type material struct {
	pair        *tls.Certificate // with its Leaf; nil: none
	authorities *x509.CertPool   // nil: the system's
}

// maxFile bounds what is read of one file.
const maxFile = 1 << 20

func (f Files) load(now time.Time) (*material, error) {
	m := &material{}
	if f.Cert != "" {
		cert, err := read(f.Cert)
		if err != nil {
			return nil, err
		}
		key, err := read(f.Key)
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("%s with %s: %w", f.Cert, f.Key, err)
		}
		if err := valid(pair.Leaf, now); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Cert, err)
		}
		m.pair = &pair
	}
	if f.CA != "" {
		text, err := read(f.CA)
		if err != nil {
			return nil, err
		}
		if m.authorities, err = pool(text, now); err != nil {
			return nil, fmt.Errorf("%s: %w", f.CA, err)
		}
	}
	return m, nil
}

func read(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", name, maxFile)
	}
	return text, err
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

// A stamp tells one content of a file from another.
type stamp struct {
	changed time.Time
	size    int64
}

// stamps looks at the files. One that is not there has the zero stamp.
func (f Files) stamps() []stamp {
	var all []stamp
	for _, name := range []string{f.Cert, f.Key, f.CA} {
		var s stamp
		if name != "" {
			if info, err := os.Stat(name); err == nil {
				s = stamp{info.ModTime(), info.Size()}
			}
		}
		all = append(all, s)
	}
	return all
}

func same(a, b []stamp) bool {
	return slices.EqualFunc(a, b, func(x, y stamp) bool { return x.size == y.size && x.changed.Equal(y.changed) })
}

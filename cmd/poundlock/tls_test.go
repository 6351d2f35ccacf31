package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/server"
)

// An authority signs certificates of processes on 127.0.0.1, and by their names.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.sign("authority", nil)
	return a
}

// sign writes NAME.pem and NAME.key, signed by a, or by itself as an authority.
func (a *authority) sign(name string, parent *authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		DNSNames:     []string{name},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	signer, signerKey := template, key
	if parent != nil {
		signer, signerKey = parent.cert, parent.key
	} else {
		template.IsCA, template.BasicConstraintsValid = true, true
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer, &key.PublicKey, signerKey)
	if err != nil {
		a.t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name+".pem", "CERTIFICATE", der)
	a.write(name+".key", "EC PRIVATE KEY", keyDER)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

func (a *authority) write(name, kind string, der []byte) {
	a.t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(filepath.Join(a.dir, name), text, 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// TestMutualTLS: with an authority, servers talk to clients that it has signed,
// and clients to servers that it has signed; to nobody else.
func TestMutualTLS(t *testing.T) {
	ours, others := newAuthority(t), newAuthority(t)
	ours.sign("server", ours)
	ours.sign("client", ours)
	others.sign("client", others)

	var listeners []net.Listener
	var table []node.Peer
	for i := range 4 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, l)
		table = append(table, node.Peer{Name: fmt.Sprintf("s%d", i+1), Addr: l.Addr().String()})
	}
	f := clusterFlags{tlsCert: ours.path("server.pem"), tlsKey: ours.path("server.key"), tlsCA: ours.path("authority.pem")}
	config, err := f.serverTLS()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	for i, l := range listeners {
		s, err := server.New(server.Config{Name: table[i].Name, Servers: table, Listener: l, TLS: config})
		if err != nil {
			t.Fatal(err)
		}
		go func() { ended <- s.Run(ctx) }()
	}
	defer func() {
		stop()
		for range listeners {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}()

	for _, x := range []struct {
		who   string
		flags clusterFlags
		ok    bool
	}{
		{"plaintext", clusterFlags{}, false},
		{"no certificate", clusterFlags{tlsCA: ours.path("authority.pem")}, false},
		{"another authority's client", clusterFlags{
			tlsCert: others.path("client.pem"), tlsKey: others.path("client.key"), tlsCA: ours.path("authority.pem"),
		}, false},
		{"a client of another cluster", clusterFlags{
			tlsCert: ours.path("client.pem"), tlsKey: ours.path("client.key"), tlsCA: others.path("authority.pem"),
		}, false},
		{"our client", clusterFlags{
			tlsCert: ours.path("client.pem"), tlsKey: ours.path("client.key"), tlsCA: ours.path("authority.pem"),
		}, true},
	} {
		config, err := x.flags.clientTLS()
		if err != nil {
			t.Fatal(err)
		}
		patience := 500 * time.Millisecond
		if x.ok {
			patience = 10 * time.Second
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		answers, err := server.Ask(ctx, server.AskConfig{Servers: table, TLS: config})
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range answers {
			if (a.Err == nil) != x.ok {
				t.Errorf("%s, %s: error %v", x.who, a.Server.Name, a.Err)
			}
		}
		if !x.ok {
			t.Logf("%s: %v", x.who, answers[0].Err)
		}
		hint := tlsHint([]error{answers[0].Err})
		if strings.Contains(hint, "may want TLS") != (x.who == "plaintext") {
			t.Errorf("%s: hint %q", x.who, hint)
		}
	}

	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	var plain poundlock.Config
	for _, p := range table {
		plain.Servers = append(plain.Servers, poundlock.Server(p))
	}
	_, err = poundlock.Dial(ctx, plain)
	var s *exitStatus
	if !errors.As(new(lockFlags).explain("a", err), &s) || s.code != exitNoQuorum ||
		!strings.Contains(s.hint, "may want TLS") {
		t.Errorf("lock without TLS: %v: %+v", err, s)
	}
}

// TestTLSOnUnixSockets: a server on a path shows a certificate for its own name,
// or for the one of --tls-server-name; another server's will not do.
func TestTLSOnUnixSockets(t *testing.T) {
	a := newAuthority(t)
	a.sign("client", a)
	dir := proctest.SocketDir(t)
	table := server.LocalServers(dir, 4)
	flags := func(certificate, name string) clusterFlags {
		return clusterFlags{
			tlsCert: a.path(certificate + ".pem"), tlsKey: a.path(certificate + ".key"),
			tlsCA: a.path("authority.pem"), tlsName: name,
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	running := 0
	defer func() {
		stop()
		for range running {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}()
	for _, p := range table {
		name := p.Name
		if name == "s4" {
			name = "imposter"
		}
		a.sign(name, a)
		f := flags(name, "")
		config, err := f.serverTLS()
		if err != nil {
			t.Fatal(err)
		}
		s, err := server.New(server.Config{Name: p.Name, Servers: table, TLS: config})
		if err != nil {
			t.Fatal(err)
		}
		running++
		go func() { ended <- s.Run(ctx) }()
	}
	for _, x := range []struct {
		expect string
		ok     []bool
	}{
		{"", []bool{true, true, true, false}},
		{"imposter", []bool{false, false, false, true}},
	} {
		f := flags("client", x.expect)
		config, err := f.clientTLS()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		answers, err := server.Ask(ctx, server.AskConfig{Servers: table, TLS: config})
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range answers {
			if (a.Err == nil) != x.ok[i] {
				t.Errorf("expecting %q, %s: error %v", x.expect, a.Server.Name, a.Err)
			} else if a.Err != nil && !strings.Contains(a.Err.Error(), "certificate") {
				t.Errorf("expecting %q, %s: error %v does not speak of the certificate", x.expect, a.Server.Name, a.Err)
			}
		}
	}
}

// TestServerTLS: an authority alone is not enough for a server.
func TestServerTLS(t *testing.T) {
	a := newAuthority(t)
	f := clusterFlags{tlsCA: a.path("authority.pem")}
	if _, err := f.serverTLS(); err == nil {
		t.Error("a server without a certificate")
	}
	f = clusterFlags{tlsName: "s1"}
	if c, err := f.clientTLS(); err != nil || c == nil || c.ServerName != "s1" {
		t.Errorf("error %v, config %+v: want TLS by the system's authorities", err, c)
	}
	f = clusterFlags{tlsCert: a.path("authority.pem"), tlsKey: a.path("authority.key")}
	c, err := f.serverTLS()
	if err != nil || len(c.Certificates) != 1 || c.ClientCAs != nil {
		t.Errorf("error %v, config %+v", err, c)
	}
	if c, err := new(clusterFlags).serverTLS(); c != nil || err != nil {
		t.Errorf("without files: %v, %v", c, err)
	}
}

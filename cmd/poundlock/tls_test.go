package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/cli"
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
	a.cert, a.key = a.sign("authority", nil, time.Hour)
	return a
}

// sign writes NAME.pem and NAME.key, signed by a, or by itself as an authority, for
// so long from now on.
func (a *authority) sign(name string, parent *authority, life time.Duration) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-2 * time.Hour),
		NotAfter:     time.Now().Add(life),
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

// flags are those of a process that shows the certificate called name, "" for none,
// and trusts a.
func (a *authority) flags(name string) clusterFlags {
	f := clusterFlags{tlsCA: a.path("authority.pem")}
	if name != "" {
		f.tlsCert, f.tlsKey = a.path(name+".pem"), a.path(name+".key")
	}
	return f
}

// forced opens the files of f at a moment when they were valid.
func forced(t *testing.T, f clusterFlags) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(f.tlsCert, f.tlsKey)
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(f.tlsCA)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	return &tls.Config{
		GetCertificate:       func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil },
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil },
		RootCAs:              pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}
}

// A tlsCluster is four servers on loopback in this process, and their log.
type tlsCluster struct {
	table []node.Peer
	log   proctest.Log
}

// startTLS starts servers with configuration c, nil for none; wrap may change how
// they listen.
func startTLS(t *testing.T, c *tls.Config, wrap func(net.Listener) net.Listener) *tlsCluster {
	t.Helper()
	cluster := &tlsCluster{}
	var listeners []net.Listener
	for i := range 4 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		cluster.table = append(cluster.table, node.Peer{Name: fmt.Sprintf("s%d", i+1), Addr: l.Addr().String()})
		if wrap != nil {
			l = wrap(l)
		}
		listeners = append(listeners, l)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	for i, l := range listeners {
		s, err := server.New(server.Config{
			Name: cluster.table[i].Name, Servers: cluster.table, Listener: l, TLS: c,
			Log: slog.New(slog.NewTextHandler(&cluster.log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		go func() { ended <- s.Run(ctx) }()
	}
	t.Cleanup(func() {
		stop()
		for range listeners {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	return cluster
}

func serverTLS(t *testing.T, f clusterFlags) *tls.Config {
	t.Helper()
	c, err := f.serverTLS()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func clientTLS(t *testing.T, f clusterFlags) *tls.Config {
	t.Helper()
	c, err := f.clientTLS()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestMutualTLS: with an authority, servers talk to clients that it has signed,
// and clients to servers that it has signed; to nobody else. Whoever is refused
// reads what is wrong and what to do, and the servers' log says it too.
func TestMutualTLS(t *testing.T) {
	t.Parallel()
	ours, others := newAuthority(t), newAuthority(t)
	for _, name := range []string{"server", "client"} {
		ours.sign(name, ours, time.Hour)
		ours.sign("expired-"+name, ours, -time.Hour)
	}
	others.sign("client", others, time.Hour)
	good, expired := serverTLS(t, ours.flags("server")), forced(t, ours.flags("expired-server"))

	named := ours.flags("client")
	named.tlsName = "another-name"
	mixed := ours.flags("client")
	mixed.tlsCA = others.path("authority.pem")
	foreign := others.flags("client")
	foreign.tlsCA = ours.path("authority.pem")

	for _, x := range []struct {
		who             string
		server, client  *tls.Config
		text, hint, log string // text "": it works
	}{
		{who: "our client", server: good, client: clientTLS(t, ours.flags("client"))},
		{"plaintext", good, nil, "seems to want TLS", "the servers may want TLS", "seems to be without TLS"},
		{
			"TLS to plaintext", nil, clientTLS(t, ours.flags("client")),
			"seems to be without TLS", "the servers may be without TLS", "seems to want TLS",
		},
		{
			"no certificate", good, clientTLS(t, ours.flags("")),
			"asks for a certificate, and this one shows none", "want to see a certificate: give --tls-cert",
			"client didn't provide a certificate",
		},
		{
			"another authority's client", good, clientTLS(t, foreign),
			"does not trust the authority of this end's certificate", "in the servers' --tls-ca has signed",
			"failed to verify certificate: x509: certificate signed by unknown authority",
		},
		{
			"an expired client", good, forced(t, ours.flags("expired-client")),
			"this end's certificate has expired", "renew the certificate in --tls-cert",
			"failed to verify certificate: x509: certificate has expired",
		},
		{
			"another authority's server", good, clientTLS(t, mixed),
			"x509: certificate signed by unknown authority", "none of the authorities in --tls-ca has signed",
			"the other end refuses this end's certificate",
		},
		{
			"an expired server", expired, clientTLS(t, ours.flags("client")),
			"x509: certificate has expired", "the servers' certificates are not valid now",
			"the other end refuses this end's certificate",
		},
		{
			"a server of another name", good, clientTLS(t, named),
			`certificate is valid for server, not another-name`, "are for other names",
			"the other end refuses this end's certificate",
		},
	} {
		t.Run(x.who, func(t *testing.T) {
			cluster := startTLS(t, x.server, nil)
			var answers []server.Answer
			// Who is refused would go on for as long as it may: it is stopped soon, and
			// asks again when the machine was too slow for that.
			ask := func(limit time.Duration) (wrong string) {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				o, err := server.Observe(server.AskConfig{Servers: cluster.table, TLS: x.client})
				if err != nil {
					t.Fatal(err)
				}
				defer o.Close()
				answers = o.Sessions(ctx)
				for _, a := range answers {
					switch {
					case x.text == "" && a.Err != nil:
						return fmt.Sprintf("%s: %v", a.Server.Name, a.Err)
					case x.text != "" && a.Err == nil:
						t.Fatalf("%s answers, want %q", a.Server.Name, x.text)
					case x.text != "" && !strings.Contains(a.Err.Error(), x.text):
						return fmt.Sprintf("%s: error %v, want one with %q", a.Server.Name, a.Err, x.text)
					}
				}
				return ""
			}
			for limit := 700 * time.Millisecond; ; limit *= 2 {
				wrong := ask(limit)
				if wrong == "" {
					break
				}
				if limit > patience/4 {
					t.Fatal(wrong)
				}
			}
			if hint := tlsHint([]error{answers[0].Err}); (hint == "") != (x.hint == "") || !strings.Contains(hint, x.hint) {
				t.Errorf("hint %q, want one with %q", hint, x.hint)
			}
			if log := cluster.log.String(); !strings.Contains(log, x.log) {
				t.Errorf("no %q in the servers' log:\n%s", x.log, log)
			}
		})
	}

	var without poundlock.Config
	for _, p := range startTLS(t, good, nil).table {
		without.Servers = append(without.Servers, poundlock.Server(p))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // in which one of four is heard of
	defer cancel()
	_, err := poundlock.Dial(ctx, without)
	var s *cli.Status
	if !errors.As(new(lockFlags).explain(err), &s) || s.Code != cli.ExitNoQuorum ||
		!strings.Contains(s.Hint, "may want TLS") {
		t.Errorf("lock without TLS: %v: %+v", err, s)
	}
}

// TestTLSComplaints: whoever goes on with bad handshakes does not fill the log.
func TestTLSComplaints(t *testing.T) {
	a := newAuthority(t)
	a.sign("server", a, time.Hour)
	cluster := startTLS(t, serverTLS(t, a.flags("server")), nil)
	for range 100 {
		c, err := net.Dial("tcp", cluster.table[0].Addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, "GET / HTTP/1.1\r\n\r\n")
		c.SetDeadline(time.Now().Add(patience))
		_, _ = io.Copy(io.Discard, c)
		c.Close()
	}
	if k := strings.Count(cluster.log.String(), "refused a connection"); k < 1 || k > 50 {
		t.Errorf("%d lines about 100 connections", k)
	}
}

// TestTLSOnUnixSockets: a server on a path shows a certificate for its own name,
// or for the one of --tls-server-name; another server's will not do.
func TestTLSOnUnixSockets(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.sign("client", a, time.Hour)
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
		a.sign(name, a, time.Hour)
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
		ask := func(limit time.Duration) (wrong string) {
			o, err := server.Observe(server.AskConfig{Servers: table, TLS: config, Timeout: limit})
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			for i, a := range o.Sessions(t.Context()) {
				if (a.Err == nil) != x.ok[i] {
					return fmt.Sprintf("expecting %q, %s: error %v", x.expect, a.Server.Name, a.Err)
				} else if a.Err != nil && !strings.Contains(a.Err.Error(), "certificate") {
					return fmt.Sprintf("expecting %q, %s: error %v does not speak of the certificate", x.expect, a.Server.Name, a.Err)
				}
			}
			return ""
		}
		for limit := time.Second; ; limit *= 2 { // for a slow machine
			wrong := ask(limit)
			if wrong == "" {
				break
			}
			if limit > patience/4 {
				t.Fatal(wrong)
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
	c, err := f.serverTLS("h2")
	if err != nil {
		t.Fatal(err)
	}
	if c, err = c.GetConfigForClient(nil); err != nil || c.ClientCAs != nil || c.ClientAuth != tls.NoClientCert {
		t.Errorf("error %v, authorities %v, asks for certificates: %v", err, c.ClientCAs, c.ClientAuth)
	}
	if len(c.NextProtos) != 1 || c.NextProtos[0] != "h2" {
		t.Errorf("protocols %q", c.NextProtos)
	}
	if c, err := new(clusterFlags).serverTLS(); c != nil || err != nil {
		t.Errorf("without files: %v, %v", c, err)
	}
}

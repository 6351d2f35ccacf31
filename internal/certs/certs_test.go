package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/poundlock/poundlock/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// authority makes an authority with a server s1 on loopback and a client.
func authority(t *testing.T) *Authority {
	t.Helper()
	a, err := Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []Subject{{Name: "s1", Hosts: []string{"s1", "127.0.0.1"}}, {Name: "client"}} {
		if _, err := a.Issue(s, 30); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

func (a *Authority) files(name string) Files {
	return Files{Cert: CertPath(a.dir, name), Key: KeyPath(a.dir, name), CA: CertPath(a.dir, AuthorityName)}
}

// A party has a store whose clock the test turns, and a log.
type party struct {
	*Store
	now time.Time
	log bytes.Buffer
}

func newParty(t *testing.T, f Files) *party {
	t.Helper()
	p := &party{now: time.Now()}
	var err error
	if p.Store, err = open(f, slog.New(slog.NewTextHandler(&p.log, nil)), func() time.Time { return p.now }); err != nil {
		t.Fatal(err)
	}
	return p
}

// later lets the store look at its files again.
func (p *party) later() { p.now = p.now.Add(lookEvery) }

// shake does one handshake on loopback and returns the serial number that the
// client saw, and how it and the server fared.
func shake(t *testing.T, server, client *party) (serial string, clientErr, serverErr error) {
	t.Helper()
	config, err := server.Server()
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ended := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			err = c.(*tls.Conn).Handshake()
			c.Close()
		}
		ended <- err
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, clientErr := transport.Dial(ctx, "s1", l.Addr().String(), client.Client())
	serverErr = <-ended
	if clientErr == nil {
		serial = c.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String()
		c.Close()
	}
	return serial, clientErr, serverErr
}

func wantShake(t *testing.T, server, client *party) string {
	t.Helper()
	serial, clientErr, serverErr := shake(t, server, client)
	if clientErr != nil || serverErr != nil {
		t.Fatalf("client: %v, server: %v", clientErr, serverErr)
	}
	return serial
}

// TestRenewed: the next handshake shows the new certificate, and only a look at the
// files in between is needed.
func TestRenewed(t *testing.T) {
	a := authority(t)
	server, client := newParty(t, a.files("s1")), newParty(t, a.files("client"))
	first := wantShake(t, server, client)
	if _, err := a.Renew(Subject{Name: "s1"}, 60); err != nil {
		t.Fatal(err)
	}
	if got := wantShake(t, server, client); got != first {
		t.Error("the files are looked at before their time")
	}
	server.later()
	if got := wantShake(t, server, client); got == first {
		t.Error("the server goes on with the old certificate")
	}
	if !strings.Contains(server.log.String(), "certificates reloaded") {
		t.Errorf("log: %s", &server.log)
	}
}

// TestNewAuthority: with both authorities in the bundle every step of a change
// leaves a cluster in which both ends trust each other; without the bundle not.
func TestNewAuthority(t *testing.T) {
	older, newer := authority(t), authority(t)
	dir := t.TempDir()
	files := func(name string) Files {
		return Files{Cert: filepath.Join(dir, name+".pem"), Key: filepath.Join(dir, name+".key"), CA: filepath.Join(dir, name+".ca")}
	}
	put := func(to string, from ...string) {
		t.Helper()
		var all []byte
		for _, f := range from {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, text...)
		}
		if err := os.WriteFile(to, all, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	install := func(a *Authority, name string) {
		put(files(name).Key, KeyPath(a.dir, name))
		put(files(name).Cert, CertPath(a.dir, name))
	}
	oldCA, newCA := CertPath(older.dir, AuthorityName), CertPath(newer.dir, AuthorityName)
	for _, name := range []string{"s1", "client"} {
		install(older, name)
		put(files(name).CA, oldCA)
	}
	server, client := newParty(t, files("s1")), newParty(t, files("client"))
	for i, step := range []func(){
		func() { put(files("s1").CA, oldCA, newCA) },
		func() { put(files("client").CA, oldCA, newCA) },
		func() { install(newer, "client") },
		func() { install(newer, "s1") },
		func() { put(files("s1").CA, newCA) },
		func() { put(files("client").CA, newCA) },
	} {
		step()
		server.later()
		client.later()
		if _, clientErr, serverErr := shake(t, server, client); clientErr != nil || serverErr != nil {
			t.Fatalf("step %d: client: %v, server: %v", i+1, clientErr, serverErr)
		}
	}
	install(older, "client")
	client.later()
	if _, _, err := shake(t, server, client); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("a client of the old authority: %v", err)
	}
}

// TestBrokenFiles: the old certificate stays, and the log has one line.
func TestBrokenFiles(t *testing.T) {
	a := authority(t)
	server, client := newParty(t, a.files("s1")), newParty(t, a.files("client"))
	first := wantShake(t, server, client)
	good, err := os.ReadFile(CertPath(a.dir, "s1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"broken", "broken again"} {
		if err := os.WriteFile(CertPath(a.dir, "s1"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			server.later()
			if got := wantShake(t, server, client); got != first {
				t.Error("another certificate")
			}
		}
	}
	if k := strings.Count(server.log.String(), "level=ERROR"); k != 1 {
		t.Errorf("%d errors in the log, want one:\n%s", k, &server.log)
	}
	if err := os.Remove(CertPath(a.dir, "s1")); err != nil {
		t.Fatal(err)
	}
	server.later()
	wantShake(t, server, client)
	if k := strings.Count(server.log.String(), "level=ERROR"); k != 2 {
		t.Errorf("%d errors in the log, want a second one for another reason:\n%s", k, &server.log)
	}
	if err := os.WriteFile(CertPath(a.dir, "s1"), good, 0o600); err != nil {
		t.Fatal(err)
	}
	server.later()
	wantShake(t, server, client)
	if !strings.Contains(server.log.String(), "certificates reloaded") {
		t.Errorf("log: %s", &server.log)
	}
}

// TestWhom: a server's certificate must name whom the client dials, also by an IP
// address, and a client's is none of a server.
func TestWhom(t *testing.T) {
	a := authority(t)
	if _, err := a.Issue(Subject{Name: "s2", Hosts: []string{"s2", "127.0.0.2"}}, 30); err != nil {
		t.Fatal(err)
	}
	client := newParty(t, a.files("client"))
	for name, want := range map[string]string{
		"s2":     "is valid for 127.0.0.2, not 127.0.0.1",
		"client": "doesn't contain any IP SANs",
	} {
		_, err, _ := shake(t, newParty(t, a.files(name)), client)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", name, err, want)
		}
	}
	named := a.files("client")
	named.ServerName = "s2"
	wantShake(t, newParty(t, a.files("s2")), newParty(t, named))
	// A dialer that does not tell the name gets nothing.
	if err := client.verify(tls.ConnectionState{}); err == nil {
		t.Error("a certificate is accepted for nobody")
	}
}

// TestEnd: a certificate that is over is refused at the start, and warned of before.
func TestEnd(t *testing.T) {
	a := authority(t)
	if _, err := a.Issue(Subject{Name: "brief", Hosts: []string{"brief"}}, 4); err != nil {
		t.Fatal(err)
	}
	f := a.files("brief")
	p := newParty(t, f)
	p.get()
	if p.log.Len() != 0 {
		t.Errorf("log: %s", &p.log)
	}
	p.now = p.now.Add(3*24*time.Hour + time.Hour)
	for range 3 {
		p.later()
		p.get()
	}
	if got := p.log.String(); strings.Count(got, "the certificate ends soon") != 1 {
		t.Errorf("log: %s", got)
	}
	p.now = p.now.Add(25 * time.Hour)
	p.get()
	if got := p.log.String(); strings.Count(got, "the certificate has expired") != 1 {
		t.Errorf("log: %s", got)
	}
	if _, err := open(f, nil, func() time.Time { return p.now }); err == nil || !strings.Contains(err.Error(), `"brief" expired at`) {
		t.Errorf("error %v", err)
	}
	early := time.Now().Add(-2 * time.Hour)
	if _, err := open(f, nil, func() time.Time { return early }); err == nil || !strings.Contains(err.Error(), "clock right") {
		t.Errorf("error %v", err)
	}
	if _, err := a.Issue(Subject{Name: "long"}, 100000); err != nil {
		t.Fatal(err)
	}
	cert, _, err := readPair(a.dir, "long")
	if err != nil || !cert.NotAfter.Equal(a.cert.NotAfter) {
		t.Errorf("error %v, until %v, the authority until %v", err, cert.NotAfter, a.cert.NotAfter)
	}
}

// TestFiles: only the owner reads what is made, and nothing is overwritten.
func TestFiles(t *testing.T) {
	a := authority(t)
	for _, name := range []string{AuthorityName, "s1", "client"} {
		for _, path := range []string{CertPath(a.dir, name), KeyPath(a.dir, name)} {
			info, err := os.Stat(path)
			if err != nil || info.Mode() != 0o600 {
				t.Errorf("%s: mode %v, error %v", path, info.Mode(), err)
			}
		}
	}
	if _, err := Create(a.dir); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second authority: %v", err)
	}
	if _, err := a.Issue(Subject{Name: "s1"}, 1); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second certificate: %v", err)
	}
	if _, err := a.Renew(Subject{Name: "s1", Hosts: []string{"elsewhere"}}, 1); err == nil {
		t.Error("renewed for another name")
	}
	again, err := Load(a.dir)
	if err != nil {
		t.Fatal(err)
	}
	if names, err := again.Subjects(); err != nil || fmt.Sprint(names) != "[{client []} {s1 []}]" {
		t.Errorf("names %q, error %v", names, err)
	}
	entries, _ := os.ReadDir(a.dir)
	if len(entries) != 6 {
		t.Errorf("%d files, want 6: %v", len(entries), entries)
	}
}

// TestWatch ends with its context.
func TestWatch(t *testing.T) {
	p := newParty(t, authority(t).files("s1"))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { p.Watch(ctx); close(ended) }()
	stop()
	<-ended
}

// FuzzPool: whatever a file holds, it is authorities or an error.
func FuzzPool(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, err := pool(text, time.Now()); (p == nil) == (err == nil) {
			t.Errorf("pool %v, error %v", p, err)
		}
	})
}

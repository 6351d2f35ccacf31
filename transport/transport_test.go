package transport

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

var (
	hello = Hello{
		From: 1 << 62, To: 3, ToName: "s4", Incarnation: 1 << 60, Session: 7, Resume: true, Received: 300,
		Members: "a/s1,a/s2", Shards: "a,b", Kinds: []Kind{{1, "sigma"}, {2, "tokengme"}}, Lease: 10 * time.Second,
		ClockBound: 50 * time.Millisecond, Label: "host:1234", EndsWithConnection: true, Process: "boot pid:[1] 2",
	}
	welcome = Welcome{Incarnation: 99, Session: 7, Received: 12, Lease: time.Second, ClockBound: 1, Label: "s4"}
	refuse  = Refuse{Code: Misfit, What: "number of members", Mine: "4", Yours: "3"}
	old     = Refuse{
		Code: OldTable, What: "epoch", Mine: "2", Yours: "1",
		Table: Table{Epoch: 2, Slots: []Slot{{"s1", "h:1"}, {"s2", "unix:/s2"}}},
	}
	items = []Item{
		{Type: HelloItem, Body: []byte("x")},
		{Type: WelcomeItem, Body: []byte{}},
		{Type: RefuseItem, Body: []byte("abc")},
		{Type: MessageItem, Seq: 1 << 40, Kind: 1, Name: []byte("build"), Body: []byte{0, 255}},
		{Type: AckItem, Seq: 128},
		{Type: PingItem, Seq: 1},
		{Type: PongItem, Seq: 1},
		{Type: CallItem, Seq: 2, Body: []byte("status")},
		{Type: ReplyItem, Seq: 2, Kind: 1, Body: []byte("no")},
		{Type: ByeItem},
		{Type: RefuseNameItem, Seq: 3, Kind: 2, Name: []byte("a"), Body: []byte("in use")},
		{Type: PartItem, Seq: 4, Kind: 3, Name: []byte("a"), Body: []byte("begin")},
	}
)

// The place of the version and of the epoch may never change: processes that do
// not understand each other must still be able to say why.
func TestFrameLayout(t *testing.T) {
	b := Item{Type: AckItem, Seq: 5}.Append(AppendHeader(nil, 300))
	EndFrame(b)
	if want := []byte{0, 0, 0, 5, Version, 0xac, 0x02, byte(AckItem), 5}; !bytes.Equal(b, want) {
		t.Errorf("% x, want % x", b, want)
	}
}

func TestItems(t *testing.T) {
	b := AppendHeader(nil, 42)
	for _, i := range items {
		b = i.Append(b)
	}
	EndFrame(b)
	frame, err := ReadFrame(iotest.OneByteReader(bytes.NewReader(b)), MaxFrame)
	if err != nil {
		t.Fatal(err)
	}
	h, rest, err := ReadHeader(frame)
	if err != nil || h.Check() != nil || h.Epoch != 42 {
		t.Fatalf("%+v, %v", h, err)
	}
	for _, want := range items {
		var got Item
		if got, rest, err = ReadItem(rest); err != nil || !equal(got, want) {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
	if len(rest) != 0 {
		t.Errorf("%d bytes are left", len(rest))
	}
	named := AppendNamed(nil, MessageItem, 9, 1, "build", []byte("body"))
	i := Item{Type: MessageItem, Seq: 9, Kind: 1, Name: []byte("build"), Body: []byte("body")}
	if want := i.Append(nil); !bytes.Equal(named, want) {
		t.Errorf("AppendNamed: % x, Append: % x", named, want)
	}
}

func equal(a, b Item) bool {
	return a.Type == b.Type && a.Kind == b.Kind && a.Seq == b.Seq &&
		bytes.Equal(a.Name, b.Name) && bytes.Equal(a.Body, b.Body)
}

func TestBodies(t *testing.T) {
	body := func(b []byte) []byte {
		i, rest, err := ReadItem(b)
		if err != nil || len(rest) != 0 {
			t.Fatal(err)
		}
		return i.Body
	}
	if got, err := ReadHello(body(hello.Append(nil))); err != nil || !reflect.DeepEqual(got, hello) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := ReadWelcome(body(welcome.Append(nil))); err != nil || got != welcome {
		t.Errorf("%+v, %v", got, err)
	}
	for _, r := range []Refuse{refuse, old} {
		if got, err := ReadRefuse(body(r.Append(nil))); err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	long := hello
	long.Label = strings.Repeat("x", 5000)
	if got, err := ReadHello(body(long.Append(nil))); err != nil || len(got.Label) != maxText {
		t.Errorf("a label of 5000 bytes becomes one of %d, %v", len(got.Label), err)
	}
	for k := range body(hello.Append(nil)) {
		if _, err := ReadHello(body(hello.Append(nil))[:k]); err == nil {
			t.Errorf("the first %d bytes of a hello pass", k)
		}
	}
	if want := "number of members: 4 there, 3 here"; !strings.Contains(refuse.Error(), want) {
		t.Errorf("%v", refuse)
	}
}

func TestChecks(t *testing.T) {
	want := "wire version 9, this process speaks 2"
	if err := (Header{Version: 9}).Check(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	many := Table{Slots: make([]Slot, maxSlots+1)}
	long := Table{Slots: []Slot{{Name: strings.Repeat("x", MaxTable)}}}
	for _, table := range []Table{many, long} {
		if table.Check() == nil {
			t.Errorf("a table of %d servers passes", len(table.Slots))
		}
	}
	if err := old.Table.Check(); err != nil {
		t.Error(err)
	}
}

func TestCheckName(t *testing.T) {
	for name, want := range map[string]string{
		"a": "", "ä b/c": "", strings.Repeat("x", MaxName): "",
		"": "needs a name", strings.Repeat("x", MaxName+1): "1025 bytes, more than 1024",
		"a\xff": "not UTF-8", "a\nb": "control character", "\x7f": "control character",
	} {
		err := CheckName(name)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", name, err, want)
		}
	}
}

// A frame cannot ask for more memory than was sent.
func TestReadFrame(t *testing.T) {
	for _, test := range []struct {
		in   []byte
		want error
	}{
		{[]byte{}, io.EOF},
		{[]byte{0, 0}, io.ErrUnexpectedEOF},
		{[]byte{0, 0, 0, 9, 1}, io.ErrUnexpectedEOF},
		{[]byte{0, 32, 0, 0, 1}, io.ErrUnexpectedEOF},
		{[]byte{0, 32, 0, 1, 1}, ErrFrame},
		{[]byte{0x16, 3, 1, 2}, ErrFrame},
		{[]byte{0x16, 3, 1, 2}, ErrWantsTLS}, // a client's first record
		{[]byte{0x15, 3, 3, 0}, ErrWantsTLS}, // an alert
	} {
		for _, read := range []func(io.Reader) ([]byte, error){
			func(r io.Reader) ([]byte, error) { return ReadFrame(r, MaxFrame) },
			func(r io.Reader) ([]byte, error) { return ReadFrameInto(bufio.NewReader(r), MaxFrame, nil, nil) },
		} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := read(bytes.NewReader(test.in))
			runtime.ReadMemStats(&after)
			if !errors.Is(err, test.want) {
				t.Errorf("% x: %v, want %v", test.in, err, test.want)
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > 1<<17 {
				t.Errorf("% x: %d bytes of memory", test.in, got)
			}
		}
	}
	big := AppendHeader(nil, 0)
	big = append(big, bytes.Repeat([]byte{7}, 300_000)...)
	EndFrame(big)
	if b, err := ReadFrame(bytes.NewReader(big), MaxFrame); err != nil || !bytes.Equal(b, big[4:]) {
		t.Errorf("%d bytes of %d, %v", len(b), len(big)-4, err)
	}
	var from bytes.Reader
	in := bufio.NewReader(&from)
	all := testing.AllocsPerRun(100, func() {
		from.Reset(big)
		in.Reset(&from)
		if b, err := ReadFrameInto(in, MaxFrame, nil, nil); err != nil || !bytes.Equal(b, big[4:]) {
			t.Fatalf("%d bytes of %d, %v", len(b), len(big)-4, err)
		}
	})
	if want := 4.0; all > want { // of 64 KB, and twice as much each time
		t.Errorf("%v allocations, want %v", all, want)
	}
}

func FuzzReadItem(f *testing.F) {
	for _, i := range items {
		f.Add(i.Append(nil))
	}
	f.Add(hello.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		i, rest, err := ReadItem(b)
		if err != nil {
			return
		}
		if again := i.Append(nil); !bytes.Equal(again, b[:len(b)-len(rest)]) {
			t.Errorf("% x is read and written as % x", b, again)
		}
	})
}

func FuzzBodies(f *testing.F) {
	for _, b := range [][]byte{hello.Append(nil), welcome.Append(nil), refuse.Append(nil), old.Append(nil)} {
		i, _, err := ReadItem(b)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(i.Body)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		check := func(err error, appended []byte) {
			if err != nil {
				return
			}
			i, _, err := ReadItem(appended)
			if err != nil || !bytes.Equal(i.Body, b) {
				t.Errorf("% x is read and written as % x", b, i.Body)
			}
		}
		h, err := ReadHello(b)
		check(err, h.Append(nil))
		w, err := ReadWelcome(b)
		check(err, w.Append(nil))
		r, err := ReadRefuse(b)
		check(err, r.Append(nil))
	})
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte{0, 0, 0, 3, 1, 0, 5})
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, err := ReadFrame(bytes.NewReader(b), MaxHandshake)
		if err != nil {
			return
		}
		_, rest, err := ReadHeader(frame)
		for err == nil && len(rest) > 0 {
			_, rest, err = ReadItem(rest)
		}
	})
}

// echo sends back what it gets on one connection.
func echo(l net.Listener) {
	c, err := l.Accept()
	if err != nil {
		return
	}
	defer c.Close()
	io.Copy(c, c)
}

func talk(t *testing.T, c net.Conn, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 5)
	if _, err := io.ReadFull(c, b); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestDial(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "unix:" + filepath.Join(t.TempDir(), "s")} {
		l, err := Listen(addr)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go echo(l)
		if !strings.HasPrefix(addr, unixPrefix) {
			addr = l.Addr().String()
		}
		c, err := Dial(t.Context(), "s1", addr, nil)
		talk(t, c, err)
	}
}

// The server must be who was dialed: the host of its address, its name where the
// address is a path, or whom the configuration names.
func TestDialTLS(t *testing.T) {
	certificate, pool := selfSigned(t)
	for _, x := range []struct {
		addr, name, serverName string
		ok                     bool
	}{
		{"127.0.0.1:0", "s2", "", true},
		{"127.0.0.1:0", "s2", "s1", true},
		{"127.0.0.1:0", "s1", "s2", false},
		{"localhost:0", "s1", "", false},
		{"localhost:0", "s2", "s1", true},
		{unixPrefix, "s1", "", true},
		{unixPrefix, "s2", "", false},
		{unixPrefix, "s2", "s1", true},
		{unixPrefix, "s2", "127.0.0.1", true},
	} {
		addr := x.addr
		if addr == unixPrefix {
			addr += filepath.Join(t.TempDir(), "s")
		}
		plain, err := Listen(strings.Replace(addr, "localhost", "127.0.0.1", 1))
		if err != nil {
			t.Fatal(err)
		}
		l := tls.NewListener(plain, &tls.Config{Certificates: []tls.Certificate{certificate}})
		defer l.Close()
		go echo(l)
		if x.addr != unixPrefix {
			_, port, _ := strings.Cut(plain.Addr().String(), ":")
			addr = strings.TrimSuffix(addr, "0") + port
		}
		c := &tls.Config{RootCAs: pool, ServerName: x.serverName}
		conn, err := Dial(t.Context(), x.name, addr, c)
		switch {
		case x.ok:
			talk(t, conn, err)
		case err == nil || !strings.Contains(err.Error(), "certificate"):
			t.Errorf("%+v: %v", x, err)
		}
		if c.ServerName != x.serverName {
			t.Errorf("%+v: the caller's configuration has become %q", x, c.ServerName)
		}

		go echo(l)
		_, err = Dial(t.Context(), x.name, addr, &tls.Config{ServerName: "s1"})
		if err == nil || !strings.Contains(err.Error(), "unknown authority") {
			t.Errorf("an unknown authority is trusted: %v", err)
		}
	}
}

// A server that is without TLS closes the connection, or says something else.
func TestDialWithoutTLS(t *testing.T) {
	for _, answer := range []string{"", "HTTP/1.1 400 Bad Request\r\n"} {
		l, err := Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer l.Close()
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			if _, err := ReadFrame(conn, MaxHandshake); !errors.Is(err, ErrWantsTLS) {
				t.Errorf("the server: %v", err)
			}
			io.WriteString(conn, answer)
		}()
		_, err = Dial(t.Context(), "s1", l.Addr().String(), &tls.Config{})
		if !errors.Is(err, ErrNoTLS) {
			t.Errorf("answer %q: %v", answer, err)
		}
	}
}

func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		DNSNames:    []string{"s1"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestCheckAddr(t *testing.T) {
	for addr, ok := range map[string]bool{
		"localhost:7000": true, "[::1]:7000": true, "unix:/run/s": true, "unix:": false, "localhost": false, "": false,
		":7000": false, "a b:7": false, strings.Repeat("h", 254) + ":7": false,
	} {
		if err := CheckAddr(addr); (err == nil) != ok {
			t.Errorf("%q: %v", addr, err)
		}
	}
	for addr, ok := range map[string]bool{
		":7001": true, "0.0.0.0:0": true, "[::]:80": true, "unix:/run/s": true, "unix:/" + strings.Repeat("x", 102): true,
		"": false, "7001": false, "h:": false, "unix:": false, "unix:s": false, "h:70000": false, "h:-1": false,
		"unix:/" + strings.Repeat("x", 103): false,
	} {
		if err := CheckListen(addr); (err == nil) != ok {
			t.Errorf("%q: %v", addr, err)
		}
	}
}

//go:build unix

package node_test

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/transport"
)

// However many connect from one address and say nothing, one from another address that
// takes its time is heard, although it has been there for longest.
func TestSilentCrowd(t *testing.T) {
	const crowd = 2048 + 200
	var files syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files))
	if most := uint64(files.Cur); most < 2*crowd+100 { // both ends are here
		t.Skipf("SKIPPED: %d connections need more than the %d descriptors that ulimit -n allows", crowd, most)
	}
	_, peers := clusterAt(t, 1, false, node.HostOf(keeper(nil)), nil)
	slow := visit(t, peers[0].Addr)
	elsewhere := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	var silent []net.Conn
	for range crowd {
		nc, err := elsewhere.DialContext(t.Context(), "tcp", peers[0].Addr)
		if err != nil && len(silent) == 0 {
			t.Skipf("SKIPPED: this machine has no second loopback address: %v", err)
		}
		must(t, err)
		defer nc.Close()
		silent = append(silent, nc)
	}
	// The first of them make room for the last ones, long before their time is over.
	silent[0].SetReadDeadline(time.Now().Add(4 * time.Second))
	if _, err := silent[0].Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Errorf("the first silent connection: %v, want its end", err)
	}
	slow.say(greeting.Append)
	slow.until(transport.WelcomeItem)
	next := visit(t, peers[0].Addr)
	h := greeting
	h.From++
	next.say(h.Append)
	next.until(transport.WelcomeItem)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

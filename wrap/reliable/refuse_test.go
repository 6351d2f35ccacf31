package reliable

import (
	"strings"
	"testing"

	"github.com/poundlock/poundlock/protocol"
)

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		i    protocol.Info
		want string
	}{
		{protocol.Info{}, ""},
		{protocol.Info{Users: protocol.Clients, Detector: protocol.LeaseDetector, Tolerates: protocol.Crash | protocol.Amnesia}, ""},
		{protocol.Info{Detector: protocol.PerfectDetector, Tolerates: protocol.Crash}, "its members crash"},
		{protocol.Info{Users: protocol.Nobody, Detector: protocol.UnreliableDetector}, "its members crash"},
		{protocol.Info{Registers: func(protocol.Config) []protocol.Register { return nil }}, "nothing to acknowledge"},
	} {
		if err := Check(c.i); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.i, err, c.want)
		}
	}
}

package control

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/poundlock/poundlock/protocol"
)

// A Release asks to end what one client does with one lock. An operator sends it to
// every server; each that knows the request passes it on to the client, which alone
// ends its grant. Of two for one request the earlier end counts, and one for a request
// that is over ends no later one.
type Release struct {
	Ask     string `json:"ask"`     // ForcedRelease
	Name    []byte `json:"name"`    // of the lock
	Request string `json:"request"` // whose, and which: node.RequestID
	Reason  string `json:"reason"`
	By      string `json:"by,omitempty"` // who asks; the server's word
	GraceMS *int64 `json:"grace_ms"`     // until the client leaves the lock by itself. Default: its own
}

// ForcedRelease is what a Release asks.
const ForcedRelease = "release"

// What became of a Release.
const (
	Told    = "told"    // the client has ended its grant or its wait
	Gone    = "gone"    // the client is in that request no more
	Unknown = "unknown" // the server does not know that request
	Silent  = "silent"  // the client does not answer the server
)

// A Released is the answer to a Release, of a client or of a server.
type Released struct {
	Outcome string `json:"outcome"`
	GraceMS int64  `json:"grace_ms,omitempty"` // Told: when the client leaves at the latest
	LeaseMS int64  `json:"lease_ms,omitempty"` // Silent: what is left of its lease at the server
	Err     string `json:"error,omitempty"`
}

// MaxReason is how long a reason may be, in bytes.
const MaxReason = 200

// CheckReason says why a text cannot be the reason of a Release: it comes into logs
// and onto terminals.
func CheckReason(reason string) error {
	switch {
	case strings.TrimSpace(reason) == "":
		return errors.New("a release needs a reason")
	case len(reason) > MaxReason:
		return fmt.Errorf("the reason has %d bytes, more than %d", len(reason), MaxReason)
	case !utf8.ValidString(reason) || strings.ContainsFunc(reason, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("the reason %q has characters that cannot be printed", reason)
	}
	return nil
}

// Check says what is wrong with a Release, and returns whose request it is about and
// the time of that.
func (r *Release) Check() (client protocol.ID, since uint64, err error) {
	if err := CheckReason(r.Reason); err != nil {
		return 0, 0, err
	}
	if r.GraceMS != nil && (*r.GraceMS < 0 || *r.GraceMS > int64(time.Hour/time.Millisecond)) {
		return 0, 0, fmt.Errorf("a grace of %d ms: want 0 to an hour", *r.GraceMS)
	}
	return ParseRequest(r.Request)
}

// ParseRequest returns whose request a node.RequestID is, and the time of it.
func ParseRequest(text string) (client protocol.ID, since uint64, err error) {
	first, second, _ := strings.Cut(text, "-")
	id, err := strconv.ParseUint(first, 16, 64)
	if err == nil {
		since, err = strconv.ParseUint(second, 16, 64)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("%.50q names no request", text)
	}
	return protocol.ID(id), since, nil
}

// CompareRequests is the order in which two requests were made. One that is none comes first.
func CompareRequests(a, b string) int {
	stamp := func(text string) (s protocol.Stamp) {
		s.ID, s.Time, _ = ParseRequest(text)
		return s
	}
	return stamp(a).Compare(stamp(b))
}

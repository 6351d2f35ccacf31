package history

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/poundlock/poundlock/protocol"
)

// Version is that of the form of event files.
const Version = 1

// format marks the first line of an event file.
const format = "history"

// A Header is the first line of an event file: what was recorded, and by which clock.
type Header struct {
	Format  string `json:"poundlock"` // "history"
	Version int    `json:"version"`
	By      string `json:"by,omitempty"` // the program that recorded it
	// Clock names the clock of the times: events of several files can be compared when
	// their clocks have one name. For a clock that all processes of a machine share the
	// name tells the machine, and since when it runs.
	Clock string `json:"clock"`
	// Uncertainty is how far the clock may be from the one of its name, in ns: 0 where
	// all processes read the same one.
	Uncertainty int64 `json:"uncertainty_ns,omitempty"`
	// Window is by how much an event may be earlier than one that stands before it, in
	// ns: several threads wrote the file.
	Window int64 `json:"window_ns,omitempty"`
}

// The clocks that need no name of a machine.
const (
	Virtual = "virtual" // of a simulation: files of two runs do not belong together
	Wall    = "wall"    // nanoseconds since 1970
)

// What happens to a user, as Event.Do.
const (
	Try       = "try"       // it wants to enter
	Crit      = "crit"      // it is inside
	Downgrade = "downgrade" // it is inside alone, and shares from now on with those of Group
	Exit      = "exit"      // it leaves
	Rem       = "rem"       // it is told that it is out, after exit, or after a try without success
	Ejected   = "ejected"   // it is told that its section is lost
	Renew     = "renew"     // it is still inside, with a new Until
	Crash     = "crash"     // it stopped for ever
	End       = "end"       // all users of this file stopped
)

// An Event is one line of an event file.
type Event struct {
	At   int64  `json:"at"` // ns, by the clock of the header
	Do   string `json:"do"`
	User string `json:"user,omitempty"` // of this file: another file has other users. None with end
	Lock string `json:"lock,omitempty"` // may be ""
	// Group is with whom the user shares the lock: with crit the group that was granted, with
	// try the one that the user wants, or several, as protocol.Groups. Where that is one it is
	// enough to give one of the two. "" is nobody, and so is a group that is exclusive.
	Group string `json:"group,omitempty"`
	Token Token  `json:"token,omitempty"` // with crit: the fencing token
	// Until is the end of the lease, with crit and renew: the user counts as out from
	// then on, whether it knows or not. 0: no lease. A user that hears too late that it is
	// inside has one that is over.
	Until int64 `json:"until,omitempty"`
}

// maxTime leaves room to add uncertainties. It is in the year 2116.
const maxTime = 1 << 62

// check returns what is wrong with an event.
func (e *Event) check() error {
	switch e.Do {
	case Try, Crit, Downgrade, Exit, Rem, Ejected, Renew, Crash, End:
	case "":
		return errors.New(`no "do"`)
	default:
		return fmt.Errorf("unknown event %.40q", e.Do)
	}
	switch {
	case e.At < 0 || e.At > maxTime:
		return fmt.Errorf("time %d: want 0 to 2^62 ns", e.At)
	case e.Until < 0 || e.Until > maxTime:
		return fmt.Errorf("lease until %d: want 0 to 2^62 ns", e.Until)
	case e.Do == End && e.User != "":
		return fmt.Errorf("an end with user %.40q: want none, or crash", e.User)
	case e.Do != End && e.User == "":
		return fmt.Errorf("%s without a user", e.Do)
	case e.Do != Crit && e.Token != 0:
		return fmt.Errorf("%s with a token: want it with crit", e.Do)
	case e.Do != Crit && e.Do != Renew && e.Until != 0:
		return fmt.Errorf("%s with a lease: want it with crit or renew", e.Do)
	case e.Do != Try && e.Do != Crit && e.Do != Downgrade && e.Group != "":
		return fmt.Errorf("%s with a group: want it with try, crit or downgrade", e.Do)
	case e.Do == Downgrade && protocol.Group(e.Group).Exclusive():
		return fmt.Errorf("downgrade to group %.40q: want one that others may share", e.Group)
	case e.Do == Renew && e.Until == 0:
		return errors.New("renew without the end of the lease")
	case e.Do == Renew && e.Until <= e.At:
		return fmt.Errorf("renew of a lease that was over %v before", time.Duration(e.At-e.Until))
	}
	return nil
}

// A Token is a fencing token. In JSON it is text, since many readers of JSON round
// numbers beyond 2^53; a number is understood, too.
type Token uint64

// MarshalJSON implements json.Marshaler.
func (t Token) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, strconv.FormatUint(uint64(t), 10)), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Token) UnmarshalJSON(b []byte) error {
	text := string(b)
	if k := len(text) - 1; k > 0 && text[0] == '"' && text[k] == '"' {
		text = text[1:k]
	}
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return fmt.Errorf("token %.40s: want a whole number below 2^64", strings.ToValidUTF8(string(b), "?"))
	}
	*t = Token(v)
	return nil
}

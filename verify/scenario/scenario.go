// Package scenario is the text form of a run: a list of atomic steps, one a
// line, in which counterexamples are printed, prefixes of a check are given and
// the faults of a simulation are scheduled.
//
//	# two holders after one memory loss
//	try c1
//	deliver c1 s1 REQUEST(1)
//	amnesia s1
//	at 30ms partition s1,s2 for 10ms
//
// Members of a client-server algorithm are s1, s2, .. and its clients c1, c2, ..;
// the members of a peer algorithm are p1, p2, ..
package scenario

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/poundlock/poundlock/protocol"
)

// A Verb is what happens in a step.
type Verb string

// The verbs, with their arguments.
const (
	Try       Verb = "try"       // USER [GROUP,GROUP,..]: the groups that it wants, of a group algorithm
	Cancel    Verb = "cancel"    // USER
	Downgrade Verb = "downgrade" // USER: who is inside alone in !GROUP shares from now on with those of GROUP
	Exit      Verb = "exit"      // USER
	Deliver   Verb = "deliver"   // FROM TO MESSAGE
	Lose      Verb = "lose"      // FROM TO MESSAGE: it never arrives
	Duplicate Verb = "duplicate" // FROM TO MESSAGE: one more copy of it is on its way
	Timeout   Verb = "timeout"   // PROCESS NUMBER
	Suspect   Verb = "suspect"   // OBSERVER SUBJECT: the detector of a member suspects a client or another member
	Lapse     Verb = "lapse"     // CLIENT MEMBER: the client's lease at the member may have lapsed
	Restore   Verb = "restore"   // OBSERVER SUBJECT: a new lease, news of a new incarnation, or the end of a suspicion
	Amnesia   Verb = "amnesia"   // MEMBER: restarts empty
	Drain     Verb = "drain"     // MEMBER: grants nothing new until it restarts
	Crash     Verb = "crash"     // PROCESS: stops for ever, or until it recovers
	Recover   Verb = "recover"   // MEMBER: one that crashed comes back empty, as a new incarnation
	Read      Verb = "read"      // PROCESS REGISTER [VALUE]: an access ends. The value is given where any may be found
	Begin     Verb = "begin"     // PROCESS REGISTER: from now on reads overlap this write
	Write     Verb = "write"     // PROCESS REGISTER: a write ends, and with it takes effect
	Pause     Verb = "pause"     // PROCESS [for DURATION]: it neither receives nor acts, until Resume or for that time
	Resume    Verb = "resume"    // PROCESS: it goes on with what it believed
	Partition Verb = "partition" // PROCESS,PROCESS,.. for DURATION: cut off from all others
	Cut       Verb = "cut"       // FROM TO for DURATION: nothing gets from the one to the other
	Issue     Verb = "issue"     // USER OPERATION
	Decide    Verb = "decide"    // INSTANCE MESSAGE: consensus has a decision
	Hear      Verb = "hear"      // PROCESS: of the decision of its instance
	Loop      Verb = "loop"      // no step: what follows repeats for ever
)

// A Step is one line.
type Step struct {
	At    time.Duration // of a simulation, from its start; 0 in a list of steps in order
	Verb  Verb
	Procs []protocol.ID // the processes named, in order; of a Partition, one side
	Timer uint32        // Timeout
	// Text is the message of Deliver, Lose and Duplicate, as the algorithm's Text gives it;
	// of Read, Begin and Write the register, and the value where it is given; of Try the
	// protocol.Groups; of Issue and Decide what they say.
	Text string
	For  time.Duration // Pause, Partition
	Line int           // where Parse found it, from 1
}

// Names maps ids to names and back.
type Names struct {
	Members int
	Clients bool // whether users are clients: s1.. and c1.., else p1..
}

// Of returns the name of process id.
func (n Names) Of(id protocol.ID) string {
	switch {
	case !n.Clients:
		return "p" + strconv.FormatUint(uint64(id)+1, 10)
	case id < protocol.ID(n.Members):
		return "s" + strconv.FormatUint(uint64(id)+1, 10)
	default:
		return "c" + strconv.FormatUint(uint64(id)-uint64(n.Members)+1, 10)
	}
}

// ID returns the process called name.
func (n Names) ID(name string) (protocol.ID, error) {
	want := "p"
	if n.Clients {
		want = "s or c"
	}
	bad := fmt.Errorf("scenario: %q is not a process: want %s and a number from 1, such as %s", name, want, n.Of(0))
	if len(name) < 2 {
		return 0, bad
	}
	k, err := strconv.ParseUint(name[1:], 10, 32)
	if err != nil || k == 0 {
		return 0, bad
	}
	id := protocol.ID(k - 1)
	if n.Clients && name[0] == 'c' {
		id += protocol.ID(n.Members)
	} else if id >= protocol.ID(n.Members) {
		return 0, fmt.Errorf("scenario: there is no member %q: members are %s to %s", name, n.Of(0), n.Of(protocol.ID(n.Members-1)))
	}
	if n.Of(id) != name {
		return 0, bad
	}
	return id, nil
}

// Format returns the line of s.
func (n Names) Format(s Step) string {
	var b strings.Builder
	if s.At != 0 {
		fmt.Fprintf(&b, "at %v ", s.At)
	}
	b.WriteString(string(s.Verb))
	sep := " "
	for i, id := range s.Procs {
		if i > 0 && s.Verb == Partition {
			sep = ","
		}
		b.WriteString(sep + n.Of(id))
	}
	if s.Verb == Timeout {
		fmt.Fprintf(&b, " %d", s.Timer)
	}
	if s.Text != "" {
		b.WriteString(" " + s.Text)
	}
	if s.For != 0 {
		fmt.Fprintf(&b, " for %v", s.For)
	}
	return b.String()
}

// Parse reads the lines of r. Empty lines and lines that begin with # are
// comments. An error names the line.
func (n Names) Parse(r io.Reader) ([]Step, error) {
	var steps []Step
	sc := bufio.NewScanner(r)
	for line := 1; sc.Scan(); line++ {
		text := strings.TrimSpace(sc.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		s, err := n.parse(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %q: %w", line, text, err)
		}
		s.Line = line
		steps = append(steps, s)
	}
	return steps, sc.Err()
}

// What follows the processes of a step.
const (
	message  = "message"
	text     = "text" // of its own
	number   = "number"
	register = "register"
	groups   = "set of groups"
)

// forms are how many processes each verb names, and what follows.
var forms = map[Verb]struct {
	processes int
	rest      string
}{
	Try: {1, groups}, Cancel: {1, ""}, Downgrade: {1, ""}, Exit: {1, ""}, Deliver: {2, message}, Lose: {2, message}, Duplicate: {2, message},
	Timeout: {1, number}, Suspect: {2, ""}, Lapse: {2, ""}, Restore: {2, ""}, Amnesia: {1, ""}, Drain: {1, ""},
	Crash: {1, ""}, Recover: {1, ""}, Read: {1, register}, Begin: {1, register}, Write: {1, register}, Pause: {1, ""},
	Resume: {1, ""}, Partition: {1, ""}, Cut: {2, ""}, Issue: {1, text}, Decide: {0, text}, Hear: {1, ""}, Loop: {0, ""},
}

// Processes is how many processes a step of this kind names; of a Partition, at least.
func (v Verb) Processes() int { return forms[v].processes }

func (n Names) parse(line string) (s Step, err error) {
	words := strings.Fields(line)
	if words[0] == "at" && len(words) > 2 {
		if s.At, err = positive(words[1]); err != nil {
			return s, err
		}
		words = words[2:]
	}
	if k := len(words); k > 2 && words[k-2] == "for" {
		if s.For, err = positive(words[k-1]); err != nil {
			return s, err
		}
		words = words[:k-2]
	}
	s.Verb = Verb(words[0])
	form, known := forms[s.Verb]
	if !known {
		return s, fmt.Errorf("scenario: unknown step %q: want one of %s", words[0],
			strings.ReplaceAll(strings.Trim(fmt.Sprint(slices.Sorted(maps.Keys(forms))), "[]"), " ", ", "))
	}
	if timed := s.Verb == Partition || s.Verb == Cut; timed != (s.For != 0) && s.Verb != Pause {
		return s, errors.New("scenario: pause, partition and cut, and only they, end with: for DURATION")
	}
	words = words[1:]
	if s.Verb == Partition && len(words) == 1 {
		words = strings.Split(words[0], ",")
		form.processes = len(words)
	}
	if len(words) < form.processes {
		return s, fmt.Errorf("scenario: %s names %d of %d processes", s.Verb, len(words), form.processes)
	}
	for _, w := range words[:form.processes] {
		id, err := n.ID(w)
		if err != nil {
			return s, err
		}
		s.Procs = append(s.Procs, id)
	}
	words = words[form.processes:]
	if len(words) == 0 && form.rest != "" && form.rest != groups {
		return s, fmt.Errorf("scenario: %s needs a %s", s.Verb, form.rest)
	}
	switch {
	case form.rest == message || form.rest == text:
		s.Text = strings.Join(words, " ")
	case len(words) > 0 && form.rest == number:
		k, err := strconv.ParseUint(words[0], 10, 32)
		if err != nil || len(words) > 1 {
			return s, fmt.Errorf("scenario: %q is not the number of a timer", strings.Join(words, " "))
		}
		s.Timer = uint32(k)
	case len(words) == 2 && s.Verb == Read:
		value, err := strconv.ParseUint(words[1], 10, 64)
		if err != nil {
			return s, fmt.Errorf("scenario: %q is not the value of a register", words[1])
		}
		s.Text = Found(words[0], value)
	case len(words) == 1 && form.rest == register:
		s.Text = words[0]
	case len(words) == 1 && form.rest == groups:
		wanted, err := protocol.ParseGroups(words[0])
		if err != nil {
			return s, fmt.Errorf("scenario: %w", err)
		}
		s.Text = string(wanted)
	case len(words) > 0:
		return s, fmt.Errorf("scenario: unexpected %q", words[len(words)-1])
	}
	return s, nil
}

func positive(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("scenario: %q is not a positive duration such as 20ms", text)
	}
	return d, nil
}

package scenario

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

// A Run is what happened, step by step, and how things stand at its end. It knows
// no algorithm: processes, messages and states are text, so that one way to show
// a run serves the checker, the simulator and a real cluster.
type Run struct {
	Processes []string `json:"processes"` // in the order of their ids
	Steps     []Event  `json:"steps"`
	// Loop is the step with which a loop without end begins, or NoLoop. If there is no
	// such step the run rests for ever where it ends.
	Loop     int      `json:"-"`
	End      []State  `json:"end"`
	InFlight []Flight `json:"in_flight"`
	// Registers are the shared memory at the end; nil: there is none.
	Registers []Cell `json:"registers,omitempty"`
}

// NoLoop is the Loop of a run that ends.
const NoLoop = -1

// An Event is a step that was taken, with what it did. Names stand for processes.
type Event struct {
	Line    string `json:"step"` // as Names.Format gives it
	Verb    Verb   `json:"verb"`
	Process string `json:"process,omitempty"` // whose step it is; "": nobody's, such as the loss of a message
	Subject string `json:"subject,omitempty"` // Suspect, Lapse, Restore: the other process
	From    string `json:"from,omitempty"`    // of a message: who sent it, and for whom it is
	To      string `json:"to,omitempty"`
	Message string `json:"message,omitempty"`
	Timer   uint32 `json:"timer,omitempty"`
	Wants   string `json:"wants,omitempty"` // Try: the groups, of a group algorithm
	// Of an access that begins or ends: its register, and what was found there or is written.
	Register string   `json:"register,omitempty"`
	Value    uint64   `json:"value,omitempty"`
	Effects  []Effect `json:"effects"`
}

// The values of Effect.Do.
const (
	Sends   = "send"
	Enters  = "crit"
	Leaves  = "rem" // or gives up
	Ejected = "ejected"
	Leads   = "leads"  // it names a leader
	Revokes = "revoke" // it ends the lease that a member holds here
	Wrong   = "wrong"  // the step is one that must not happen
	// With a replicated object, and with consensus.
	Executes = "invoke"  // its copy executes an operation
	Succeeds = "outcome" // its user's operation succeeded
	Installs = "install" // it takes over another copy
	Proposes = "propose"
)

// An Effect is something that the process of an Event did in its step.
type Effect struct {
	Do        string `json:"do"`
	To        string `json:"to,omitempty"` // Sends; Leads: who leads; Revokes: whose lease
	Message   string `json:"message,omitempty"`
	Lost      string `json:"lost,omitempty"`      // Sends: why it never arrives, if that is known already
	Token     uint64 `json:"token,omitempty"`     // Enters: the fencing token
	Group     string `json:"group,omitempty"`     // Enters: the group that was granted
	Epoch     uint64 `json:"epoch,omitempty"`     // Leads
	Reason    string `json:"reason,omitempty"`    // Leaves: why it gave up; Wrong: what is wrong
	Operation string `json:"operation,omitempty"` // Executes
	// Reads, Writes, Awaits: the register, and what is written or waited for.
	Register string `json:"register,omitempty"`
	Value    uint64 `json:"value,omitempty"`
}

// A State is one process at the end of a run.
type State struct {
	Process string `json:"process"`
	Section string `json:"section"` // of a user, in words; of another process whether it is up
	Text    string `json:"state"`   // what the algorithm tells about it
}

// A Flight is a message that is still on its way at the end of a run.
type Flight struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Message string `json:"message"`
}

// marked is a process in a text that an algorithm wrote.
var marked = regexp.MustCompile(`#\d+`)

// Text returns a text of an algorithm with names in place of processes, which it
// writes as #ID.
func (n Names) Text(text string) string {
	if !strings.Contains(text, "#") {
		return text
	}
	return marked.ReplaceAllStringFunc(text, func(mark string) string {
		id, err := strconv.ParseUint(mark[1:], 10, 64)
		if err != nil {
			return mark // no id has so many digits
		}
		return n.Of(protocol.ID(id))
	})
}

// Event returns the event that s is, without effects.
func (n Names) Event(s Step) Event {
	e := Event{Line: n.Format(s), Verb: s.Verb, Timer: s.Timer, Effects: []Effect{}}
	form := forms[s.Verb]
	switch form.processes {
	case 1:
		if s.Verb != Partition {
			e.Process = n.Of(s.Procs[0])
		}
	case 2:
		e.Process, e.Subject = n.Of(s.Procs[0]), n.Of(s.Procs[1])
	}
	switch form.rest {
	case register:
		e.Register, _, _ = strings.Cut(s.Text, " ")
	case groups:
		e.Wants = s.Text
	case message:
		e.From, e.To, e.Message = e.Process, e.Subject, s.Text
		if e.Process, e.Subject = "", ""; s.Verb == Deliver {
			e.Process = e.To
		}
	}
	return e
}

// Did says in sentences what the step did. Equal messages are one sentence.
func (e Event) Did() []string {
	var did []string
	if ended := e.ended(); ended != "" {
		did = append(did, ended)
	}
	sent := map[string]int{} // the sentence about a message
	for _, f := range e.Effects {
		switch f.Do {
		case Sends:
			what, lost := f.Message, ""
			if f.Lost != "" {
				lost = " (lost: " + f.Lost + ")"
			}
			if i, again := sent[what+lost]; again {
				did[i] += ", " + f.To
				continue
			}
			if lost == "" {
				sent[what] = len(did)
			}
			did = append(did, e.Process+" sends "+what+" to "+f.To+lost)
		case Enters:
			how := ""
			if f.Group != "" {
				how = " group " + f.Group
			}
			if f.Token != 0 {
				how += fmt.Sprintf(" with token %d", f.Token)
			}
			did = append(did, e.Process+" enters"+how)
		case Leaves:
			reason := ""
			if f.Reason != "" {
				reason = ": " + f.Reason
			}
			did = append(did, e.Process+" is in its remainder section"+reason)
		case Reads, Writes, Awaits:
			did = append(did, f.asked(e.Process))
		case Ejected:
			did = append(did, e.Process+" lost its critical section")
		case Executes:
			did = append(did, e.Process+" executes "+f.Operation)
		case Succeeds:
			did = append(did, "the operation of "+e.Process+" has its outcome")
		case Installs:
			did = append(did, e.Process+" takes over another copy of the object")
		case Proposes:
			did = append(did, e.Process+" proposes "+f.Message)
		case Revokes:
			did = append(did, e.Process+" revokes the lease of "+f.To)
		case Leads:
			did = append(did, fmt.Sprintf("%s says that %s leads epoch %d", e.Process, f.To, f.Epoch))
		default:
			did = append(did, f.Reason)
		}
	}
	return did
}

// WriteRun writes the steps of r as a scenario. What is no step are comments: head,
// line by line, and what each step did.
func WriteRun(w io.Writer, head []string, r Run) error {
	b := bufio.NewWriter(w)
	for _, line := range head {
		fmt.Fprintf(b, "# %s\n", line)
	}
	for i, e := range r.Steps {
		if i == r.Loop {
			fmt.Fprintln(b, Loop)
		}
		fmt.Fprintln(b, e.Line)
		for _, text := range e.Did() {
			fmt.Fprintf(b, "#   %s\n", text)
		}
	}
	if r.Loop == len(r.Steps) && r.Loop > 0 {
		fmt.Fprintln(b, Loop)
	}
	return b.Flush()
}

// command begins the line that says what a scenario is a run of.
const command = "# poundlock-lab "

// Command returns the words of the first comment that is a command of poundlock-lab,
// after that name: it says what the steps are a run of. Without one it is nil.
func Command(text string) []string {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), command); ok {
			return strings.Fields(rest)
		}
	}
	return nil
}

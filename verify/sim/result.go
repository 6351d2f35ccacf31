package sim

import (
	"fmt"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
)

// The values of Result.On where processes were nodes of a network: of one program, or each of one of its own.
const (
	OnNetwork   = "network"
	OnProcesses = "processes"
)

// A Result is what a run showed. All of it but Seconds and EventsPerS is a
// function of the algorithm, the Config and its seed. Delays are in virtual
// milliseconds; with the default delay they are hops.
type Result struct {
	On string `json:"on,omitempty"` // what ran it, OnNetwork or OnProcesses; "": the simulator
	// Predicted is what the simulator says of a run on a network, where somebody asked it.
	Predicted *Prediction `json:"predicted,omitempty"`
	Algorithm string      `json:"algorithm"`
	Variant   string      `json:"variant,omitempty"`
	N         int         `json:"n"`
	Clients   int         `json:"clients"`
	Seed      uint64      `json:"seed"`
	// Options are those that have names for their values, and not the default one.
	Options map[string]string `json:"options,omitempty"`

	// Discarded is what Config.Warmup and Cooldown left out. Measures, Counts, and what follows until
	// SlowPathShare, are of the time between.
	Discarded Discarded `json:"discarded,omitzero"`

	Totals
	history.Measures
	Counts

	Messages           int            `json:"messages"`          // the algorithm's own
	OverheadMessages   int            `json:"overhead_messages"` // the others
	MessagesByKind     map[string]int `json:"messages_by_kind"`
	MessagesPerEntry   float64        `json:"messages_per_entry"`
	MessagesToEnter    float64        `json:"messages_to_enter"`    // sent between a try and its crit, by whomever: a cost where one user tries at a time
	IntegersPerMessage float64        `json:"integers_per_message"` // of the algorithm's own
	AccessesPerEntry   float64        `json:"accesses_per_entry,omitempty"`

	// Throughput90 is, of groups, entries a second from the start until nine tenths of all were made, when
	// users begin to be done; 0 if so many never were.
	Throughput90 float64 `json:"throughput_90_per_s,omitempty"`

	// Of a replicated object: outcome - issue.
	OutcomeMS history.Summary `json:"outcome_ms,omitzero"`

	// SlowPathShare is the part of FencedEntries that needed one more round to get the token.
	SlowPathShare float64 `json:"slow_path_share"`

	Violations     []string          `json:"violations"` // the first ones
	ViolationCount uint64            `json:"violation_count"`
	ViolationsOf   map[string]uint64 `json:"violations_by_property,omitempty"`

	VirtualSeconds float64 `json:"virtual_seconds"`
	Events         int64   `json:"events"`
	Seconds        float64 `json:"seconds"` // of the machine
	EventsPerS     float64 `json:"events_per_s"`
	LogSHA256      string  `json:"log_sha256,omitempty"`
}

// A Prediction is what the simulator says of the costs of a run.
type Prediction struct {
	MessagesPerEntry float64         `json:"messages_per_entry"`
	Waiting          history.Summary `json:"waiting_ms"`
	Response         history.Summary `json:"response_ms"`
	SyncDelay        history.Summary `json:"sync_delay_ms"`
	Throughput       float64         `json:"throughput_per_s"`
}

// Err says that the run violates a property: what it then costs means nothing.
func (r *Result) Err() error {
	if r.ViolationCount == 0 {
		return nil
	}
	return fmt.Errorf("the run violates a property: %s", r.Violations[0])
}

// Identify notes which run r is of.
func (r *Result) Identify(i protocol.Info, c *Config) {
	r.Algorithm, r.Variant = i.Name, i.Variant
	r.N, r.Clients, r.Seed = c.N, c.Clients, c.Seed
	for _, o := range i.Options {
		if v := i.Option(c.Config, o.Name); o.Values != nil && v != o.Default(c.Config) {
			if r.Options == nil {
				r.Options = map[string]string{}
			}
			r.Options[o.Name] = o.Text(v)
		}
	}
}

// Judge notes what a monitor found.
func (r *Result) Judge(m *history.Monitor) {
	r.Violations, r.ViolationCount, r.ViolationsOf = []string{}, m.Total(), m.Counts()
	for _, v := range m.Violations() {
		r.Violations = append(r.Violations, v.String())
	}
}

// Count notes how many messages of each kind were sent, for the entries that r has.
func (r *Result) Count(kinds []protocol.Message, sent []int) {
	r.MessagesByKind = map[string]int{}
	for i, k := range sent {
		if k == 0 {
			continue
		}
		r.MessagesByKind[kinds[i].Name] = k
		if kinds[i].Overhead {
			r.OverheadMessages += k
		} else {
			r.Messages += k
		}
	}
	r.MessagesPerEntry = ratio(r.Messages, int(r.Entries))
}

// Totals are of a whole run, whatever part of it is measured.
type Totals struct {
	Amnesias     int `json:"amnesias"`
	Crashes      int `json:"crashes"`
	Recoveries   int `json:"recoveries,omitempty"`    // of members that crashed
	LeasesLapsed int `json:"leases_lapsed,omitempty"` // of members at others, that they knew to have lapsed

	Downgrades int `json:"downgrades,omitempty"` // of users that were inside alone, and came down to a group

	// Leaders are the effects Leader of an election, the first 1000 of LeadersNamed;
	// Epochs is how many different epochs they name.
	Leaders      []Leadership `json:"leaders,omitempty"`
	LeadersNamed int          `json:"leaders_named,omitempty"`
	Epochs       int          `json:"epochs,omitempty"`
}

// Counts are of the part of a run that is measured.
type Counts struct {
	// GaveUpReasons are what the algorithm told users who gave up, and how often.
	GaveUpReasons map[string]uint64 `json:"gave_up_reasons,omitempty"`

	Lost          int `json:"lost"`                     // of all messages
	Duplicated    int `json:"duplicated"`               // the same: twice on their way
	Retransmitted int `json:"retransmitted"`            // sent again, and no message of their own
	Accesses      int `json:"accesses,omitempty"`       // to a shared memory: reads, writes, and awaits, however long one waits
	FencedEntries int `json:"fenced_entries,omitempty"` // grants with a fencing token after the first six clock bounds
}

func (s *engine) result(took time.Duration) (Result, error) {
	r := s.measures()
	r.Identify(s.Info, &s.cfg)
	r.Totals = s.totals
	r.Epochs = len(s.terms)
	r.Judge(&s.monitor)
	r.Events, r.Seconds = s.events, took.Seconds()
	r.EventsPerS = float64(s.events) / max(r.Seconds, 1e-9)
	if err := s.log.close(); err != nil {
		return r, fmt.Errorf("sim: trace: %w", err)
	}
	if s.cfg.History != nil {
		if err := s.cfg.History.End(s.now); err != nil {
			return r, fmt.Errorf("sim: %w", err)
		}
	}
	if s.log != nil {
		r.LogSHA256 = s.log.digest
	}
	return r, nil
}

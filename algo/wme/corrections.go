package wme

// corrections are what is wrong in the paper as printed and put right here, numbered as in docs/errata-wme.md. The form that
// runs has all of them, and form "literal" has none. Where one makes a difference the code asks for it, so that what is printed
// can be read there, too. What no constant stands for is a slip of the text alone, or, E20, not of this algorithm.
type corrections uint32

const (
	e2   corrections = 1 << iota // who suspects the owner ends the epoch; printed: nobody begins
	e4a                          // votes are counted by sender; printed: as a set, where equal ones are one
	e4b                          // the vote that makes a process vote is counted, too
	e4c                          // whoever hears of a decision takes it; printed: a process that has proposed
	e5                           // what was executed is told apart from what was logged
	e6                           // acknowledgements and DOINVOKE count as long as they are needed; printed: those of the last record
	e7                           // who loses the token while nobody uses it does lose it
	e8                           // the request of the new owner is taken out of the queue
	e9                           // a grant that its user does not wait for passes on; printed: it enters
	e10                          // a request is made again by a REQUEST; printed: by REQ, which no rule takes
	e11a                         // all operations that are missing are compared with the open one; printed: the first one
	e11b                         // an operation is sent again wherever it died; printed: where others were missing
	e12                          // exit is immediate; printed: it waits for the end of the epoch
	e13                          // the new owner enters once it has executed what is missing; printed: before
	e14                          // a record commits those before it, see E6, too; printed: acknowledgements or DOINVOKE alone do
	e15                          // an outcome is that of the open operation; printed: of whichever is executed
	e17                          // a record that comes early waits, and what needs it; printed: nothing is said, so that it is lost
	e17b                         // messages of a later epoch wait, too
	e19                          // a request that is made again has a new number
	all  corrections = 1<<iota - 1
)

// corrects reports whether an erratum is corrected.
func (p *Process) corrects(e corrections) bool { return p.corrections&e != 0 }

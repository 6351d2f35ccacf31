package protocol

// The events of a replicated object, of which each process has a copy. Only where Info.Weak.
const (
	// Issue: the user, inside and with no operation open, asks for operation Data on the object.
	// It is answered by Outcome, or by Ejected: then the operation was never executed, and
	// never will be.
	Issue Kind = 12
	// Captured answers Capture before any other event of the process: Data is its copy of the
	// object, as Install takes it.
	Captured Kind = 14
)

// The effects on the object.
const (
	// Invoke executes operation Data on this process's copy of the object. Arg is its number:
	// those of one copy grow.
	Invoke Do = 14
	// Outcome: the user's operation succeeded. Its result is that of the last operation of
	// this process that its copy has executed, or had when it was installed.
	Outcome Do = 15
	// Capture asks for the process's copy of the object: see Captured.
	Capture Do = 18
	// Install makes Data this process's copy of the object. It is what Algorithm.Snapshot finds
	// in the message that this step receives.
	Install Do = 19
)

// NewIssue is the event that the user asks for an operation.
func NewIssue(op string) Input { return Input{Kind: Issue, Data: op} }

// NewCaptured is the event that answers Capture with a copy of the object.
func NewCaptured(object string) Input { return Input{Kind: Captured, Data: object} }

// Invoke executes operation op, which is the one with this number.
func (o *Out[M]) Invoke(op string, number uint64) {
	e := o.effect(Invoke)
	e.Data, e.Arg = op, number
}

// Outcome tells the user that its operation succeeded.
func (o *Out[M]) Outcome() { o.effect(Outcome) }

// Capture asks for the process's copy of the object.
func (o *Out[M]) Capture() { o.effect(Capture) }

// Install makes object the process's copy.
func (o *Out[M]) Install(object string) { o.effect(Install).Data = object }

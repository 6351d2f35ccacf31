package sections

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// An Object is what sections protect: each member has a copy, and all copies execute the same operations in the same
// order. Its methods are described in package node. Calls except Check exclude each other and those of Member.View, so a copy that
// nobody else uses needs no mutex. They must be short: this member does nothing else meanwhile.
type Object = node.Object

// MaxOperation is how many bytes an operation may have, or those of DoAll together with a few for each; and so for results.
const MaxOperation = node.MaxOperation - overhead

// overhead bounds what is added to an operation, or a result: a form, or a place and the size of what is withheld.
const overhead = 32

// The forms of an operation on a replica. Its result is its place in the order of all of them, the size of what is withheld, or
// 0, and then what the object has returned, in the same form. That of each is the results of those that were executed, the first ones.
const (
	empty   = iota // nothing
	one            // of the object, which is the rest
	several        // of the object: how many, and each as a text
	load           // a part of a state: see save.go
	begin          // of an object that was made later: its name
	each           // several of these, as texts, each with a result of its own: see pipeline
)

// textSize bounds what a list has beside the bytes of a text.
const textSize = 4

func encodeOne(op []byte) []byte { return append([]byte{one}, op...) }

func encodeAll(list [][]byte) []byte { return appendList([]byte{several}, list) }

func appendList(b []byte, list [][]byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, op := range list {
		b = protocol.AppendText(b, op)
	}
	return b
}

var errResult = errors.New("sections: a result that cannot be read")

var errForm = errors.New("it has none of the forms that this package makes")

// decode returns the form of what appendList and the like have made, and its parts.
func decode(form byte, rest []byte) (list [][]byte, err error) {
	switch {
	case form == empty && len(rest) == 0:
		return nil, nil
	case form == one, form == load, form == begin:
		return [][]byte{rest}, nil
	case form != several && form != each:
		return nil, errForm
	}
	r := protocol.Reader{Rest: rest}
	list = make([][]byte, 0, min(r.Len(), len(rest)))
	for k := cap(list); k > 0; k-- {
		list = append(list, r.Bytes(len(r.Rest)))
	}
	if r.Err != nil || len(r.Rest) > 0 {
		return nil, errForm
	}
	return list, nil
}

// A replica is the copy of one object at one member, as its node executes operations on it.
type replica struct {
	name  string
	turn  chan struct{} // has one element while a local user has the node's
	here  chan struct{} // closed when the copy is that of the system
	first sync.Once     // closes it
	counters

	more func(name string) Object // makes the copy where that is made later

	mu       sync.RWMutex
	copy     Object // nil: it is not made yet
	title    string // of one that is made later
	broken   error  // why it cannot be made here
	executed uint64 // operations in any form
	loading  []byte // of a state that is loaded: the parts that have come
}

func newReplica(name string, o Object) *replica {
	return &replica{name: name, turn: make(chan struct{}, 1), here: make(chan struct{}), copy: o}
}

// Check implements node.Object.
func (r *replica) Check(op []byte) error {
	if len(op) == 0 {
		return errForm
	}
	list, err := decode(op[0], op[1:])
	switch {
	case err != nil:
		return err
	case op[0] == load:
		return checkPart(list[0])
	case op[0] == each:
		return r.checkEach(list)
	case op[0] == begin && r.more == nil:
		return errForm
	case op[0] == begin:
		return checkName(string(list[0]))
	}
	o := r.object()
	if o == nil && op[0] != empty {
		return errNotMade
	}
	for k, op := range list {
		if err := o.Check(op); err != nil && len(list) > 1 {
			return fmt.Errorf("the %d. of %d: %w", k+1, len(list), err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (r *replica) checkEach(list [][]byte) error {
	if len(list) == 0 {
		return errForm
	}
	for _, op := range list {
		if len(op) > 0 && op[0] == each {
			return errForm
		}
		if err := r.Check(op); err != nil {
			return err
		}
	}
	return nil
}

// Apply implements node.Object.
func (r *replica) Apply(op []byte) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if op[0] != each {
		return r.apply(op)
	}
	list, _ := decode(op[0], op[1:])
	var results [][]byte
	for size := 0; len(results) < len(list) && size <= MaxOperation; { // there is room for one more result, of any size
		b := r.apply(list[len(results)])
		results = append(results, b)
		size += len(b) + textSize
	}
	return appendList(nil, results)
}

// apply executes an operation of any form but each. r.mu is held.
func (r *replica) apply(op []byte) []byte {
	list, _ := decode(op[0], op[1:])
	r.executed++
	results := make([][]byte, len(list))
	switch op[0] {
	case load:
		results[0] = r.loadPart(list[0])
	case begin:
		r.begin(string(list[0]))
	default:
		r.loading = nil // the section that began to load is over
		for k, op := range list {
			results[k] = r.copy.Apply(op)
		}
	}
	place := binary.AppendUvarint(nil, r.executed)
	b := append(place, 0)
	switch op[0] {
	case one, load, begin:
		b = append(b, results[0]...)
	case several:
		b = appendList(b, results)
	}
	if size := len(b) - len(place) - 1; size > MaxOperation {
		return binary.AppendUvarint(place, uint64(size))
	}
	return b
}

// readResult reads what Apply has returned for an operation of this form.
func readResult(form byte, b []byte) (place uint64, results [][]byte, err error) {
	r := protocol.Reader{Rest: b}
	place = r.Uint()
	if size := r.Uint(); size > 0 {
		return place, nil, fmt.Errorf("%w: %d bytes, and the limit is %d: ask for less at a time", ErrResultTooLarge, size, MaxOperation)
	}
	if r.Err == nil {
		results, r.Err = decode(form, r.Rest)
	}
	if r.Err != nil {
		return 0, nil, fmt.Errorf("%w: %w", errResult, r.Err)
	}
	return place, results, nil
}

// Snapshot implements node.Object.
func (r *replica) Snapshot() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := protocol.AppendText(protocol.AppendText(nil, r.loading), r.title)
	return r.appendState(b)
}

// appendState appends what is saved of a copy. r.mu is held.
func (r *replica) appendState(b []byte) []byte {
	b = binary.AppendUvarint(b, r.executed)
	if r.copy == nil {
		return b
	}
	return append(b, r.copy.Snapshot()...)
}

// readState reads what appendState has appended of a copy, which does not change yet.
func readState(o Object, b []byte) (executed uint64, replace func(), err error) {
	in := protocol.Reader{Rest: b}
	executed = in.Uint()
	switch {
	case in.Err != nil:
		return 0, nil, in.Err
	case o == nil && len(in.Rest) > 0:
		return 0, nil, errNotMade
	case o == nil:
		return executed, func() {}, nil
	}
	replace, err = o.Restore(in.Rest)
	return executed, replace, err
}

// Restore implements node.Object.
func (r *replica) Restore(snapshot []byte) (replace func(), err error) {
	in := protocol.Reader{Rest: snapshot}
	loading, title := []byte(in.Text()), in.Text()
	if in.Err != nil {
		return nil, in.Err
	}
	o, err := r.titled(title)
	if err != nil {
		return nil, err
	}
	executed, next, err := readState(o, in.Rest)
	if err != nil {
		return nil, err
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		next()
		r.executed, r.loading, r.copy, r.title = executed, loading, o, title
		r.arrive()
	}, nil
}

// arrive notes that the copy is that of the system.
func (r *replica) arrive() { r.first.Do(func() { close(r.here) }) }

// object is the copy, nil where it is not made yet.
func (r *replica) object() Object {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.copy
}

func (r *replica) view(name string, f func(Object)) (err error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	o := r.copy
	if o == nil { // so it is like a new one
		o, err = r.titled(name)
	}
	if err == nil {
		f(o)
	}
	return err
}

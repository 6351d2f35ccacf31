package protocol

import "encoding/binary"

// A Codec visits the fields of one value, a message or the state of a process, in their
// order. What a visit does depends on the purpose of the codec: it appends the field to an
// encoding, takes it from one, or moves the values of counters. So a type names its fields
// once, in a method that all three share:
//
//	func (p *Process) State(c *protocol.Codec) {
//		c.Clock(&p.clock)
//		c.Time(&p.request)
//		c.Set(p.deferred, p.n)
//		for i := range protocol.List(c, &p.queue) {
//			c.ID(&p.queue[i], p.n)
//		}
//	}
//
// Such a method may look at fields that it has visited, to decide which ones follow. It
// changes nothing by itself, except where Reading reports true: there it clears what is not
// encoded, and rebuilds what follows from the rest.
//
// Equal values have equal bytes. Numbers are varints of the shortest form. A driver keeps a
// codec and uses it again, so that a visit allocates nothing.
type Codec struct {
	// Channel is what the message is on while the values of its counters are moved.
	Channel
	b      []byte // appended to
	from   Reader // read
	move   func(Counter, uint64) uint64
	does   purpose
	frozen bool // the value is a message, whose memory is not its own
}

type purpose uint8

const (
	appends purpose = iota
	reads
	moves
)

// Appending makes c a codec that appends to b, and returns it. Bytes is the result.
func (c *Codec) Appending(b []byte) *Codec {
	*c = Codec{b: b}
	return c
}

// Bytes returns what was appended to, with what was appended.
func (c *Codec) Bytes() []byte { return c.b }

// Loading makes c a codec that reads from b, and returns it. Rest is what is left.
func (c *Codec) Loading(b []byte) *Codec {
	*c = Codec{from: Reader{Rest: b}, does: reads}
	return c
}

// Rest returns what follows the values that were read, or what is wrong with their encoding.
func (c *Codec) Rest() ([]byte, error) { return c.from.Rest, c.from.Err }

// Reading reports whether fields get their values from an encoding. After an error these
// are zero.
func (c *Codec) Reading() bool { return c.does == reads }

// Moving reports whether the values of counters are moved.
func (c *Codec) Moving() bool { return c.does == moves }

// Want refuses an encoding that is read unless ok is true: nothing else was written so.
func (c *Codec) Want(ok bool) {
	if c.does == reads && !ok {
		c.from.fail()
	}
}

// Uint visits a number.
func (c *Codec) Uint(v *uint64) {
	switch c.does {
	case appends:
		c.append(*v)
	case reads:
		*v = c.from.Uint()
	}
}

func (c *Codec) append(v uint64) {
	if v < 0x80 {
		c.b = append(c.b, byte(v))
		return
	}
	c.b = binary.AppendUvarint(c.b, v)
}

// Uints visits several numbers.
func (c *Codec) Uints(list ...*uint64) {
	for _, v := range list {
		c.Uint(v)
	}
}

// Words visits the numbers of a list of fixed length.
func (c *Codec) Words(list []uint64) {
	for i := range list {
		c.Uint(&list[i])
	}
}

// Count visits a value of a counter.
func (c *Codec) Count(v *uint64, k Counter) {
	if c.does == moves {
		*v = c.move(k, *v)
		return
	}
	c.Uint(v)
}

// Clock visits a reading of the logical clock that all processes share.
func (c *Codec) Clock(v *uint64) { c.Count(v, Clocks) }

// Time visits a timestamp of that clock, where 0 stands for no timestamp.
func (c *Codec) Time(v *uint64) {
	if c.does != moves || *v != 0 {
		c.Count(v, Clocks)
	}
}

// Clocks is the counter of timestamps of one logical clock. The smallest is moved to 1,
// because 0 stands for none.
var Clocks = Counter{Least: 1}

// Bool visits a boolean.
func (c *Codec) Bool(v *bool) {
	switch c.does {
	case appends:
		c.b = AppendBool(c.b, *v)
	case reads:
		*v = c.from.Bool()
	}
}

// Bools visits several booleans.
func (c *Codec) Bools(list ...*bool) {
	for _, v := range list {
		c.Bool(v)
	}
}

// Flags visits the booleans of a list of fixed length.
func (c *Codec) Flags(list []bool) {
	for i := range list {
		c.Bool(&list[i])
	}
}

// ID visits one of the members 0 to n-1.
func (c *Codec) ID(v *ID, n int) { Upto(c, v, ID(n-1)) }

// AnyID visits a process.
func (c *Codec) AnyID(v *ID) { c.Uint((*uint64)(v)) }

// Epoch visits an epoch whose leader is at most most.
func (c *Codec) Epoch(v *Epoch, most ID) {
	c.Uint(&v.Round)
	Upto(c, &v.Leader, most)
	c.Want(v.Round != 0 || v.Leader == 0)
}

// Upto visits a number that is at most most, such as the kind of a message.
func Upto[T ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int | ~int64](c *Codec, v *T, most T) {
	switch c.does {
	case appends:
		c.append(uint64(*v))
	case reads:
		*v = T(c.from.Max(uint64(most)))
	}
}

// Text visits a string.
func Text[T ~string](c *Codec, v *T) {
	switch c.does {
	case appends:
		c.b = AppendText(c.b, string(*v))
	case reads:
		*v = T(c.from.Text())
	}
}

// Raw visits n bytes: all of v while it is appended.
func (c *Codec) Raw(v *[]byte, n int) {
	switch {
	case c.does == appends:
		c.b = append(c.b, *v...)
	case c.does == reads && n > len(c.from.Rest):
		c.from.fail()
	case c.does == reads:
		*v = append((*v)[:0], c.from.Rest[:n]...)
		c.from.Rest = c.from.Rest[n:]
	}
}

// List visits the length of a list, whose elements the caller visits next: each of them
// takes at least one byte. While it is read the list keeps its memory, and has elements
// that are zero.
func List[L ~[]T, T any](c *Codec, list *L) L {
	switch c.does {
	case appends:
		c.append(uint64(len(*list)))
	case reads:
		*list = resized(*list, c.from.Len())
	case moves:
		if c.frozen {
			*list = append(L(nil), *list...)
		}
	}
	return *list
}

func resized[L ~[]T, T any](list L, n int) L {
	if n > cap(list) {
		return make(L, n)
	}
	clear(list[:n])
	return list[:n]
}

// Pointer visits what a pointer points to, whose fields the caller visits next: while it
// is read it is new. The pointer is not nil.
func Pointer[T any](c *Codec, p **T) *T {
	switch {
	case c.does == reads:
		*p = new(T)
	case c.does == moves && c.frozen:
		own := **p
		*p = &own
	}
	return *p
}

// Optional visits whether a pointer is nil. It returns what it points to, like Pointer, or nil.
func Optional[T any](c *Codec, p **T) *T {
	there := *p != nil
	switch c.Bool(&there); {
	case there:
		return Pointer(c, p)
	case c.does == reads:
		*p = nil
	}
	return nil
}

// Nested visits a message within another one, or one that a state holds.
func Nested[M any](c *Codec, m *M, fields func(M, *Codec) M) {
	v := *m
	if c.does == reads {
		v = *new(M)
	}
	if v = fields(v, c); c.does != appends { // else others may read it at the same time
		*m = v
	}
}

// A Stateful is what has a state to encode: its method State visits the fields.
type Stateful interface{ State(c *Codec) }

// AppendState appends the canonical encoding of a state: equal states have equal bytes.
func AppendState(b []byte, p Stateful) []byte {
	c := new(Codec).Appending(b)
	p.State(c)
	return c.b
}

// LoadState replaces a state by an encoded one, and returns what follows it. It never panics.
func LoadState(b []byte, p Stateful) (rest []byte, err error) {
	c := new(Codec).Loading(b)
	p.State(c)
	return c.Rest()
}

// MapState is Model.MapState of an algorithm that visits its counters with Codec.Count.
func MapState[M any](p Process[M], f func(Counter, uint64) uint64) {
	p.State(&Codec{move: f, does: moves})
}

// MapMsg is Model.MapMsg of an algorithm with these Fields.
func MapMsg[M any](fields func(M, *Codec) M) func(ch Channel, m *M, f func(Counter, uint64) uint64) {
	return func(ch Channel, m *M, f func(Counter, uint64) uint64) {
		*m = fields(*m, &Codec{Channel: ch, move: f, does: moves, frozen: true})
	}
}

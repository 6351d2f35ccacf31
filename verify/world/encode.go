package world

import (
	"encoding/binary"

	"github.com/poundlock/poundlock/protocol"
)

// Append appends the encoding of e: equal ends have equal bytes. The number of members is known
// where it is compared.
func (e *End) Append(b []byte) []byte {
	for _, is := range [...]bool{e.Gone, e.Paused, e.Leading.Named, e.Told} {
		b = protocol.AppendBool(b, is)
	}
	for _, v := range [...]uint64{
		uint64(e.Section), e.Life, e.Lost, e.Doubts, e.Lapsed, e.Ended, e.Revoked, e.Missed,
		uint64(e.Tasks), uint64(e.Issued), uint64(e.Copied), e.Leading.Epoch, uint64(e.Leading.Leader),
		uint64(len(e.Timers)), uint64(len(e.Open)), uint64(len(e.Past)),
	} {
		b = binary.AppendUvarint(b, v)
	}
	b = protocol.AppendText(protocol.AppendText(b, string(e.Wants)), string(e.Group))
	for _, life := range e.Known {
		b = binary.AppendUvarint(b, life)
	}
	for _, t := range e.Timers {
		b = binary.AppendUvarint(b, uint64(t))
	}
	for _, o := range e.Open {
		b = append(b, byte(o.Do), byte(o.Register))
		b = protocol.AppendBool(binary.AppendUvarint(b, o.Arg), o.Begun)
	}
	for _, t := range e.Past {
		b = binary.AppendUvarint(binary.AppendUvarint(b, t.Epoch), uint64(t.Leader))
	}
	return b
}

// Renamed is e where each member j is called to[j].
func (e *End) Renamed(to []uint8) End {
	r := *e
	for _, set := range [...]*uint64{&r.Lost, &r.Lapsed, &r.Ended, &r.Doubts, &r.Revoked, &r.Missed} {
		renamed := uint64(0)
		for j, k := range to {
			renamed |= *set >> j & 1 << k
		}
		*set = renamed
	}
	if r.Known != nil {
		r.Known = make([]uint64, len(e.Known))
		for j, life := range e.Known {
			r.Known[to[j]] = life
		}
	}
	return r
}

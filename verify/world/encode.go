package world

import (
	"encoding/binary"

	"github.com/poundlock/poundlock/protocol"
)

// What an End has beside a section, a life, timers and leases, by bits in its encoding.
const (
	hasGroups = 1 << iota
	hasOpen
	hasObject
	hasPeers
	hasPause
)

// Append appends the encoding of e: equal ends have equal bytes. The number of members is known
// where it is compared.
func (e *End) Append(b []byte) []byte {
	has := byte(0)
	if e.Wants != "" || e.Group != "" {
		has |= hasGroups
	}
	if len(e.Open) > 0 {
		has |= hasOpen
	}
	if e.Tasks|e.Issued|e.Copied != 0 {
		has |= hasObject
	}
	if e.Gone || e.Doubts|e.Revoked != 0 || len(e.Past) > 0 {
		has |= hasPeers
	}
	if e.Paused {
		has |= hasPause
	}
	b = append(b, has, byte(e.Section))
	for _, v := range [...]uint64{e.Life, e.Lost, e.Lapsed, e.Ended} {
		b = binary.AppendUvarint(b, v)
	}
	for _, v := range e.Known {
		b = binary.AppendUvarint(b, v)
	}
	b = binary.AppendUvarint(b, uint64(len(e.Timers)))
	for _, t := range e.Timers {
		b = binary.AppendUvarint(b, uint64(t))
	}
	if has&hasGroups != 0 {
		b = protocol.AppendText(protocol.AppendText(b, string(e.Wants)), string(e.Group))
	}
	if has&hasOpen != 0 {
		b = binary.AppendUvarint(b, uint64(len(e.Open)))
		for _, o := range e.Open {
			b = append(b, byte(o.Do), byte(o.Register))
			b = protocol.AppendBool(binary.AppendUvarint(b, o.Arg), o.Begun)
		}
	}
	if has&hasObject != 0 {
		for _, v := range [...]uint32{e.Tasks, e.Issued, e.Copied} {
			b = binary.AppendUvarint(b, uint64(v))
		}
	}
	if has&hasPause != 0 {
		b = binary.AppendUvarint(b, e.Missed)
	}
	if has&hasPeers == 0 {
		return b
	}
	b = protocol.AppendBool(b, e.Gone)
	b = binary.AppendUvarint(binary.AppendUvarint(b, e.Doubts), e.Revoked)
	b = protocol.AppendBool(b, e.Leading.Named)
	b = binary.AppendUvarint(b, e.Leading.Epoch)
	b = binary.AppendUvarint(b, uint64(e.Leading.Leader))
	b = binary.AppendUvarint(b, uint64(len(e.Past)))
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

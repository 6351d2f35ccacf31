package server

import (
	"fmt"
	"testing"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// A successor may be another release, so what the state of a lock looks like may not
// change under one format of snapshots.
func TestStateOfSnapshots(t *testing.T) {
	p := slots.Hosts()[node.Mutex].New(0, slots.System(4, slots.DefaultClockBound))
	step := func(in protocol.Input, msg []byte) {
		t.Helper()
		if err := p.Step(in, msg, nowhere{}); err != nil {
			t.Fatal(err)
		}
	}
	const now = 1_700_000_000_000_000_000
	request := func(id protocol.ID, time uint64) {
		msg := sigma.Algorithm.Append(nil, sigma.Message{Kind: sigma.Request, Time: time})
		step(protocol.Input{Kind: protocol.Receive, From: id, Now: now}, msg)
	}
	step(protocol.Input{Kind: protocol.Start, Arg: 7, Now: now}, nil)
	request(1<<62+1, now-3)
	request(1<<62+2, now-2)
	request(1<<62+3, now-1)
	state, err := p.AppendState(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%x", state); got != stateOfFormat2 {
		t.Errorf("the state of a lock is %s\nand was %s:\n"+
			"raise snapshotFormat in node/snapshot.go, write here what it is now, and tell in CHANGELOG.md\n"+
			"that this release cannot take a table over from the one before", got, stateOfFormat2)
	}
}

const stateOfFormat2 = "0007818080808080808040fdffa7b1e39fe7cb1701818080808080808040fdffa7b1e39fe7cb1780bca7f0be" +
	"9fe7cb1702828080808080808040feffa7b1e39fe7cb170000000001838080808080808040ffffa7b1e39fe7cb17000000000000"

type nowhere struct{}

func (nowhere) Received(int)                     {}
func (nowhere) Snapshot(string) error            { return nil }
func (nowhere) Effect(protocol.Act, int, []byte) {}

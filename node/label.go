package node

import (
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// A Labelled user has a label of its own, for people, beside that of its node: one
// client may hold locks for many. It goes with each message of its lock, so that a
// member knows the label as long as it knows the request, whatever it forgot in
// between: at most 256 bytes of UTF-8 without control characters. An empty one is none.
type Labelled interface {
	User
	Label() string // always the same
}

// labelOf is the label of a user. What no member would accept is left out.
func labelOf(u User) string {
	l, ok := u.(Labelled)
	if !ok || transport.CheckUserLabel(l.Label()) != nil {
		return ""
	}
	return l.Label()
}

// FullLabel is what people are shown of a user: the label of its client, and its own if
// it has one, such as "server s1: nightly backup".
func FullLabel(client, user string) string {
	if user == "" {
		return client
	}
	return client + ": " + user
}

// labelled is the user of an instance if it has a label, else nil.
func (l *loop) labelled(i *instance) *user {
	if !l.labels.used {
		return nil
	}
	if u := l.users.get(i.name); u != nil && u.labelled {
		return u
	}
	return nil
}

// maxLabels is how many bytes the labels of users may have at one member. Beyond, a
// user is shown with the label of its client alone.
const maxLabels = 64 << 20

// labelCost is what a label takes beside its bytes.
const labelCost = 64

// labels are those of the users of clients that a member knows: of a client that uses
// the instance.
type labels struct {
	used  bool // at clients: there has been a user with one
	known map[*instance]map[protocol.ID]string
	bytes int
	most  int // bytes
}

func (l *labels) get(i *instance, client protocol.ID) string { return l.known[i][client] }

// set notes the label of a client's user, or, empty, that it has none. It is left out
// where the labels would take more than that.
func (l *labels) set(i *instance, client protocol.ID, label []byte) {
	old, had := l.known[i][client]
	if old == string(label) {
		return
	}
	if had {
		delete(l.known[i], client)
		l.bytes -= len(old) + labelCost
		if len(l.known[i]) == 0 {
			delete(l.known, i)
		}
	}
	if len(label) == 0 || l.bytes+len(label)+labelCost > l.most {
		return
	}
	if l.known == nil {
		l.known = map[*instance]map[protocol.ID]string{}
	}
	if l.known[i] == nil {
		l.known[i] = map[protocol.ID]string{}
	}
	l.known[i][client] = string(label)
	l.bytes += len(label) + labelCost
}

// of returns those of the users that an instance knows.
func (l *labels) of(i *instance, standing protocol.Standing) map[protocol.ID]string {
	known := l.known[i]
	if len(known) == 0 {
		return nil
	}
	found := map[protocol.ID]string{}
	for _, all := range [][]protocol.Request{standing.Holders, standing.Waiters} {
		for _, r := range all {
			if label := known[r.User]; label != "" {
				found[r.User] = label
			}
		}
	}
	return found
}

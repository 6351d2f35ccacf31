package sigma

import "github.com/poundlock/poundlock/protocol"

// asked claims that RELEASE is sent again: as long as a server supports an epoch that its
// client has left, it asks (CHECK), and is told. More often or less, this matters to nobody:
// a RELEASE of an epoch that the client has left changes nothing where that is not supported,
// but that it takes it out of the queue; and one that stays in a queue for ever, and is never
// supported, does nothing there.
func asked(m Message) bool { return m.Kind == Release }

// late claims that a RESPONSE comes too late to matter: the client that it goes to is
// inside or out already and tries no more, and the support, if it is one, is not its own
// at present. From then on the client learns no more from it than a time. A RESPONSE of
// a life that the client does not know tells of that life, so it is none of these. Where users come down to a group,
// and answer, the checker does not ask.
func late(p protocol.Process[Message], from protocol.ID, m Message, again bool) bool {
	if again || m.Kind != Response {
		return false
	}
	switch c := p.(type) {
	case *LiteralClient:
		return c.section != protocol.InTry && request{m.Owner, m.Time} != request{c.id, c.timestamp}
	case *Client:
		return c.section != protocol.InTry && request{m.Owner, m.Time} != c.me() && m.Inc <= c.servers[from].inc
	}
	return false
}

// anyway claims that servers are interchangeable.
func anyway(protocol.Config) bool { return true }

// unfenced claims it where no tokens are recorded: a client that has more supporters
// than it needs asks those with small ids to record its token. And which ones it asks later depends on their ids, too.
func unfenced(c protocol.Config) bool {
	return info.Option(c, "fence") == FenceOff && info.Option(c, "thrifty") == 0
}

// rename gives servers other ids. What a server knows is about clients.
func rename(p protocol.Process[Message], f func(protocol.ID) protocol.ID) {
	switch c := p.(type) {
	case *LiteralClient:
		c.resp = renamed(c.resp, f)
	case *Client:
		c.servers = renamed(c.servers, f)
	}
}

// renamed is a list by server for servers with other ids.
func renamed[T any](list []T, f func(protocol.ID) protocol.ID) []T {
	other := make([]T, len(list))
	for j, v := range list {
		other[f(protocol.ID(j))] = v
	}
	return other
}

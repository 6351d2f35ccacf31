package membership

// The fencing token of an entry is a number of its instance, by epoch, and behind it one of the entry: first those of the
// groups of old requests, and from n+1 on what the algorithm says. So tokens grow over instances as epochs do.
//
// An epoch has numberBits of numbers for itself. What an algorithm counts beyond that is in order, too, unless the
// clock of who begins the next instance is behind by so much.
//
// Rounds are at least a clock in units of 2^roundBits ns, which is one millisecond, where there is one. So they grow also where
// a majority of new lives has heard of none, as long as clocks do. Among 72 members tokens are below 2^64 until the year 2099.
const (
	roundBits  = 20
	numberBits = 16
)

// nextRound is the round of a new instance.
func (p *Process[M]) nextRound() uint64 { return max(p.seen+1, p.now>>roundBits) }

// token is that of an entry of which the algorithm says seq; 0 where that says nothing.
func (p *Process[M]) token(seq uint64) uint64 {
	if seq == 0 {
		return 0
	}
	return p.epoch.Number(p.n)<<numberBits + uint64(p.n) + seq
}

// oldToken is that of an old request: the least process of the group behind its own, and n in the last group. These grow, since
// each group, but that of those who are inside already, is one that the least process wants of those with old requests left.
func (p *Process[M]) oldToken() uint64 {
	if !p.w.fenced {
		return 0
	}
	place := uint64(p.n)
	if !p.old.last {
		place = uint64(p.old.next.first())
	}
	return p.epoch.Number(p.n)<<numberBits + place
}

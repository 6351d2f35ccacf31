package limit

import "net/netip"

// Host is who counts as one host at the other end of a connection with an address: the
// address of IPv4, the network of 64 bits of an address of IPv6, because one customer is given as many,
// and for all that have no such address, as through a unix socket, one and the same.
// Example: "[2001:db8::1:2]:7" is of "2001:db8::/64".
func Host(addr string) string {
	a, err := netip.ParseAddrPort(addr)
	if err != nil {
		return "the unix socket"
	}
	ip := a.Addr().Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	network, _ := ip.Prefix(64) // without a zone and with so few bits it has one
	return network.String()
}

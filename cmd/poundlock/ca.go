package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/poundlock/poundlock/internal/certs"
	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/transport"
)

const caLong = `Ca makes what mutual TLS needs, as PEM files in DIR that only their owner can read:
an authority of its own (ca.pem, ca.key), and a certificate and key for each server
and each client (NAME.pem, NAME.key).

The servers are those of --servers, with the hosts of their addresses, and those of
--server; both name more hosts of one server. A certificate of a server is good for a
client on its host too; one of a client is not good for a server.

It overwrites nothing. Where the authority exists already, it signs what is new only
with --renew, which also replaces the certificates that are named by ones that last
longer, for the same names and the same key; without names, all in DIR. Servers and
clients that run notice within a second of their next connection.

ca.key makes certificates that the whole cluster trusts: keep it off the servers.

Exit status: 0, 1 when files exist already or cannot be read or written, 64 when called
wrongly, 70 when the list of what was made cannot be written.`

// caFlags are the flags of ca.
type caFlags struct {
	clusterFlags // only the table
	extra        []string
	clients      []string
	days         int
	renew        bool
}

func caCommand() *cobra.Command {
	var f caFlags
	cmd := &cobra.Command{
		Use:   "ca DIR",
		Short: "Make an authority and certificates for mutual TLS",
		Long:  caLong,
		Example: "  poundlock ca certs --config poundlock.yaml --client alice --client bob\n" +
			"  poundlock ca certs --renew",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("ca wants one directory, not %d arguments", len(args))
			}
			return f.run(cmd, args[0])
		},
	}
	s := cmd.Flags()
	s.StringVar(&f.file, "config", "", "YAML `file` with the names of flags as keys")
	s.StringVar(&f.servers, "servers", "", "servers to make certificates for: `NAME=HOST:PORT,...` or NAME=unix:/path")
	s.StringArrayVar(&f.extra, "server", nil, "one server and what else it is called: `NAME=HOST[,HOST...]`; may be repeated")
	s.StringArrayVar(&f.clients, "client", nil, "`NAME` of a client; may be repeated (default client, where there are servers)")
	s.IntVar(&f.days, "days", 365, "`NUMBER` of days that certificates are valid, 1 to 3650")
	s.BoolVar(&f.renew, "renew", false, "keep the authority in DIR, and replace its certificates")
	return cmd
}

func (f *caFlags) run(cmd *cobra.Command, dir string) error {
	everybody := f.renew && !slices.ContainsFunc([]string{"servers", "server", "client"}, cmd.Flags().Changed)
	if err := f.fill(cmd); err != nil {
		return err
	}
	if everybody {
		f.servers = "" // of the environment or the file
	}
	if f.days < 1 || f.days > 3650 {
		return cli.Usagef("--days %d: want 1 to 3650", f.days)
	}
	subjects, err := f.subjects()
	if err != nil {
		return &cli.Status{Code: cli.ExitUsage, Err: err}
	}
	if len(subjects) == 0 && !f.renew {
		return &cli.Status{
			Code: cli.ExitUsage, Err: errors.New("nobody to make a certificate for"),
			Hint: "name servers with --servers or --server, and clients with --client",
		}
	}
	made, err := f.make(dir, subjects)
	if errors.Is(err, os.ErrExist) {
		return &cli.Status{Code: cli.ExitError, Err: err, Hint: "--renew keeps the authority and replaces certificates"}
	}
	if err != nil {
		return &cli.Status{Code: cli.ExitError, Err: err}
	}
	return f.report(cmd, dir, made)
}

// subjects are who the flags name, servers first.
func (f *caFlags) subjects() ([]certs.Subject, error) {
	var all []certs.Subject
	add := func(name string, hosts ...string) error {
		for part := range strings.SplitSeq(name, "/") { // of GROUP/NAME
			if checkFileName(part) != nil {
				return checkFileName(name)
			}
		}
		name = transport.CertName(name)
		if err := checkFileName(name); err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(s certs.Subject) bool { return s.Name == name })
		if i < 0 {
			all = append(all, certs.Subject{Name: name, Hosts: []string{name}})
			i = len(all) - 1
		}
		for _, h := range hosts {
			if !isHost(h) {
				return fmt.Errorf("server %s: %q is neither a host name nor an IP address", name, h)
			}
			if !slices.Contains(all[i].Hosts, h) {
				all[i].Hosts = append(all[i].Hosts, h)
			}
		}
		return nil
	}
	if f.servers != "" {
		table, err := slots.Parse(f.servers)
		if err != nil {
			return nil, fmt.Errorf("--servers: %w", err)
		}
		for _, p := range table {
			if err := transport.CheckAddr(p.Addr); err != nil {
				return nil, fmt.Errorf("--servers: server %s: %w", p.Name, err)
			}
			var hosts []string
			if _, ok := transport.Unix(p.Addr); !ok {
				host, _, _ := net.SplitHostPort(p.Addr)
				hosts = append(hosts, host)
			}
			if err := add(p.Name, hosts...); err != nil {
				return nil, fmt.Errorf("--servers: %w", err)
			}
		}
	}
	for _, text := range f.extra {
		name, hosts, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("--server %q: want NAME=HOST[,HOST...]", text)
		}
		if err := add(name, strings.Split(hosts, ",")...); err != nil {
			return nil, fmt.Errorf("--server: %w", err)
		}
	}
	clients := f.clients
	if len(clients) == 0 && len(all) > 0 && !f.renew {
		clients = []string{"client"}
	}
	for _, name := range clients {
		if err := checkFileName(name); err != nil {
			return nil, fmt.Errorf("--client: %w", err)
		}
		if slices.ContainsFunc(all, func(s certs.Subject) bool { return s.Name == name }) {
			return nil, fmt.Errorf("--client %q: the name is taken", name)
		}
		all = append(all, certs.Subject{Name: name})
	}
	return all, nil
}

// isHost says that a certificate may name h: an IP address or a name of DNS.
func isHost(h string) bool {
	if net.ParseIP(h) != nil {
		return true
	}
	return h != "" && len(h) <= 253 && !strings.ContainsFunc(h, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._*", r))
	})
}

// checkFileName says why a name does not name files, or a host in a certificate.
func checkFileName(name string) error {
	switch {
	case !isHost(name) || strings.HasPrefix(name, ".") || strings.Contains(name, "*"):
		return fmt.Errorf("the name %q cannot be that of a file: want letters, digits, dots, hyphens and underscores", name)
	case name == certs.AuthorityName:
		return fmt.Errorf("%q is the name of the authority's own files", name)
	}
	return nil
}

// A certificate is one that was made.
type certificate struct {
	name string
	leaf *x509.Certificate
}

// make signs for subjects, or renews. What it has made when it fails stays.
func (f *caFlags) make(dir string, subjects []certs.Subject) (made []certificate, err error) {
	var a *certs.Authority
	if f.renew {
		a, err = certs.Load(dir)
	} else {
		a, err = certs.Create(dir)
	}
	if err != nil {
		return nil, err
	}
	if len(subjects) == 0 {
		names, err := a.Names()
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			subjects = append(subjects, certs.Subject{Name: name})
		}
	}
	for _, s := range subjects {
		leaf, err := a.Issue(s, f.days)
		if f.renew && errors.Is(err, os.ErrExist) {
			leaf, err = a.Renew(s, f.days)
		}
		if err != nil {
			return nil, err
		}
		made = append(made, certificate{s.Name, leaf})
	}
	return made, nil
}

// report says what was made, and with which flags to use it.
func (f *caFlags) report(cmd *cobra.Command, dir string, made []certificate) error {
	var b strings.Builder
	usage := map[bool]string{}
	for _, c := range made {
		isServer := slices.Contains(c.leaf.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		who := "client " + c.name
		if isServer {
			names := c.leaf.DNSNames
			for _, ip := range c.leaf.IPAddresses {
				names = append(names, ip.String())
			}
			who = fmt.Sprintf("server %s (%s)", c.name, strings.Join(names, ", "))
		}
		fmt.Fprintf(&b, "%s: %s, until %s\n", certs.CertPath(dir, c.name), who, c.leaf.NotAfter.Format(time.DateOnly))
		if usage[isServer] == "" {
			usage[isServer] = fmt.Sprintf("--tls-ca %s --tls-cert %s --tls-key %s", certs.CertPath(dir, certs.AuthorityName),
				certs.CertPath(dir, c.name), certs.KeyPath(dir, c.name))
		}
	}
	if u := usage[true]; u != "" {
		fmt.Fprintf(&b, "a server: poundlock serve %s\n", u)
	}
	if u := usage[false]; u != "" {
		fmt.Fprintf(&b, "a client: poundlock lock %s\n", u)
	}
	if !f.renew {
		fmt.Fprintf(&b, "keep %s off the servers: it makes certificates that all of them trust\n",
			filepath.Clean(certs.KeyPath(dir, certs.AuthorityName)))
	}
	if _, err := fmt.Fprint(cmd.OutOrStdout(), b.String()); err != nil {
		return &cli.Status{Code: cli.ExitInternal, Err: err}
	}
	return nil
}

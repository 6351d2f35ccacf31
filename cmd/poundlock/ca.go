package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/poundlock/poundlock/internal/certs"
	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/slots"
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
	if err := cli.Within("--days", f.days, 1, 3650); err != nil {
		return err
	}
	subjects, err := f.subjects()
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	if len(subjects) == 0 && !f.renew {
		return cli.Usagef("nobody to make a certificate for").
			WithHint("name servers with --servers or --server, and clients with --client")
	}
	a, err := f.authority(dir)
	if err == nil && len(subjects) == 0 {
		subjects, err = a.Subjects()
	}
	var text strings.Builder
	usage := map[bool]string{}
	for _, s := range subjects { // what was made before another one fails stays
		if err == nil {
			err = f.certify(&text, usage, a, dir, s)
		}
	}
	switch {
	case errors.Is(err, os.ErrExist):
		return &cli.Status{Code: cli.ExitError, Err: err, Hint: "--renew keeps the authority and replaces certificates"}
	case err != nil:
		return cli.Exit(cli.ExitError, err)
	}
	if u := usage[true]; u != "" {
		fmt.Fprintf(&text, "a server: poundlock serve %s\n", u)
	}
	if u := usage[false]; u != "" {
		fmt.Fprintf(&text, "a client: poundlock lock %s\n", u)
	}
	if !f.renew {
		fmt.Fprintf(&text, "keep %s off the servers: it makes certificates that all of them trust\n",
			filepath.Clean(certs.KeyPath(dir, certs.AuthorityName)))
	}
	_, err = io.WriteString(cmd.OutOrStdout(), text.String())
	return cli.Exit(cli.ExitInternal, err)
}

// subjects are who the flags name, servers first.
func (f *caFlags) subjects() (all certs.Subjects, err error) {
	if f.servers != "" {
		table, err := slots.Parse(f.servers)
		for _, p := range table {
			if err == nil {
				err = all.AddServer(p.Name, p.Addr)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("--servers: %w", err)
		}
	}
	for _, text := range f.extra {
		name, hosts, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("--server %q: want NAME=HOST[,HOST...]", text)
		}
		if err := all.AddHosts(name, strings.Split(hosts, ",")...); err != nil {
			return nil, fmt.Errorf("--server: %w", err)
		}
	}
	clients := f.clients
	if len(clients) == 0 && len(all) > 0 && !f.renew {
		clients = []string{"client"}
	}
	for _, name := range clients {
		if err := all.AddClient(name); err != nil {
			return nil, fmt.Errorf("--client: %w", err)
		}
	}
	return all, nil
}

func (f *caFlags) authority(dir string) (*certs.Authority, error) {
	if f.renew {
		return certs.Load(dir)
	}
	return certs.Create(dir)
}

// certify signs for s, or renews, and says what was made. usage are the flags of the first server
// and the first client.
func (f *caFlags) certify(w io.Writer, usage map[bool]string, a *certs.Authority, dir string, s certs.Subject) error {
	leaf, err := a.Issue(s, f.days)
	if f.renew && errors.Is(err, os.ErrExist) {
		leaf, err = a.Renew(s, f.days)
	}
	if err != nil {
		return err
	}
	isServer := slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	who := "client " + s.Name
	if isServer {
		names := leaf.DNSNames
		for _, ip := range leaf.IPAddresses {
			names = append(names, ip.String())
		}
		who = fmt.Sprintf("server %s (%s)", s.Name, strings.Join(names, ", "))
	}
	cert := certs.CertPath(dir, s.Name)
	if usage[isServer] == "" {
		usage[isServer] = fmt.Sprintf("--tls-ca %s --tls-cert %s --tls-key %s", certs.CertPath(dir, certs.AuthorityName), cert, certs.KeyPath(dir, s.Name))
	}
	_, err = fmt.Fprintf(w, "%s: %s, until %s\n", cert, who, leaf.NotAfter.Format(time.DateOnly))
	return err
}

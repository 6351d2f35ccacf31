package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/bench/load"
	"github.com/poundlock/poundlock/internal/freeaddr"
)

// startPostgres starts one server, and clients. PostgreSQL has no others that vote with it.
func startPostgres(ctx context.Context, name, dir string) (crew *load.Crew, stop func(), err error) {
	var stops stops
	initdb, server, err := postgresPrograms()
	if err != nil {
		return nil, stops.all, err
	}
	data, err := os.MkdirTemp(dir, "poundlock-bench-postgres")
	if err != nil {
		return nil, stops.all, err
	}
	stops.add(func() { os.RemoveAll(data) })
	if err := giveAway(data); err != nil {
		return nil, stops.all, err
	}
	cmd, err := inDir(ctx, data, initdb, "-D", "data", "-U", "bench", "-A", "trust", "-E", "UTF8", "--locale=C")
	if err != nil {
		return nil, stops.all, err
	}
	if out, err := cmd.CombinedOutput(); errors.Is(err, fs.ErrPermission) {
		return nil, stops.all, fmt.Errorf("--disk %q: PostgreSQL's user cannot enter it: %w", dir, err)
	} else if err != nil {
		return nil, stops.all, fmt.Errorf("%s: %w: %s", initdb, err, out)
	}
	addrs, err := freeaddr.Find(1)
	if err != nil {
		return nil, stops.all, err
	}
	host, port, err := net.SplitHostPort(addrs[0])
	if err != nil {
		return nil, stops.all, err
	}
	p, end, err := startGuest(name, data, server, "-D", "data", "-h", host, "-p", port,
		"-c", "unix_socket_directories=", "-c", "max_connections=200")
	stops.add(end)
	if err != nil {
		return nil, stops.all, err
	}
	url := "postgres://bench@" + addrs[0] + "/postgres?sslmode=disable"
	if err := awaitPostgres(ctx, url, p); err != nil {
		return nil, stops.all, err
	}
	crew, err = load.StartCrew(ctx, name, processes, []*load.Process{p}, postgresClient, url)
	if err != nil {
		return nil, stops.all, err
	}
	stops.add(crew.Close)
	return crew, stops.all, nil
}

// postgresPrograms are those of the path, or else of the newest version that Debian has installed.
func postgresPrograms() (initdb, server string, err error) {
	if server, err = exec.LookPath("postgres"); err != nil {
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
		if len(found) == 0 {
			return "", "", fmt.Errorf("%w: no program postgres", errAbsent)
		}
		server = slices.MaxFunc(found, func(a, b string) int { return major(a) - major(b) })
	}
	initdb = filepath.Join(filepath.Dir(server), "initdb")
	if _, err := os.Stat(initdb); err != nil {
		return "", "", fmt.Errorf("%w: no program initdb beside %s", errAbsent, server)
	}
	return initdb, server, nil
}

func major(program string) int {
	v, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(program))))
	return v
}

// giveAway gives a directory to somebody else if this process is root's, which PostgreSQL refuses.
func giveAway(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return err
		}
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return err
	}
	return os.Chown(dir, uid, gid)
}

func awaitPostgres(ctx context.Context, url string, server *load.Process) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		c, err := pgx.Connect(ctx, url)
		if err == nil {
			return c.Close(ctx)
		}
		select {
		case <-server.Done():
			return server.Err()
		case <-ctx.Done():
			return fmt.Errorf("it does not answer: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// A postgresUser has one connection for each lock that its users want: a lock belongs to a
// connection, and a wait keeps it busy.
type postgresUser struct {
	*meter
	pool *pgxpool.Pool
}

func openPostgres(ctx context.Context, url string) (load.Client, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	m := &meter{}
	config.ConnConfig.DialFunc = func(ctx context.Context, _, addr string) (net.Conn, error) { return m.dial(ctx, addr) }
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return &postgresUser{m, pool}, nil
}

func (p *postgresUser) Lock(ctx context.Context, name string) (load.Held, error) {
	return p.lock(ctx, name, "", "pg_advisory_lock", "pg_advisory_unlock")
}

// RLock implements load.Sharer.
func (p *postgresUser) RLock(ctx context.Context, name string) (load.Held, error) {
	return p.lock(ctx, name, poundlock.Shared, "pg_advisory_lock_shared", "pg_advisory_unlock_shared")
}

func (p *postgresUser) lock(ctx context.Context, name, group, lock, unlock string) (load.Held, error) {
	c, err := p.pool.Acquire(ctx)
	if err != nil {
		return load.Held{}, err
	}
	if _, err := c.Exec(ctx, "SELECT "+lock+"(hashtextextended($1, 0))", name); err != nil {
		c.Release()
		return load.Held{}, err
	}
	return load.Held{Group: group, Unlock: func() error {
		defer c.Release()
		var held bool
		err := c.QueryRow(context.WithoutCancel(ctx), "SELECT "+unlock+"(hashtextextended($1, 0))", name).Scan(&held)
		if err == nil && !held {
			err = fmt.Errorf("lock %q was not held", name)
		}
		return err
	}}, nil
}

func (p *postgresUser) Close() error {
	p.pool.Close()
	return nil
}

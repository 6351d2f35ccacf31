package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	_ "net/http/pprof"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/poundlock/poundlock/internal/door"
	"github.com/poundlock/poundlock/internal/listen"
	"github.com/poundlock/poundlock/internal/prom"
	"github.com/poundlock/poundlock/transport"
)

// Bounds of the admin port.
const (
	maxAdminConns = 64
	maxScrapes    = 4 // at once; so many profiles, too
	adminAnswer   = 15 * time.Second
	maxProfile    = time.Minute // and adminAnswer, to send it
	adminClose    = 2 * time.Second
)

// AdminConfig describes the admin port of a server, or of a peer. Listen and Quorum are required.
type AdminConfig struct {
	Peer        string // the name of a process that is no server
	Listen      string // HOST:PORT or unix:/path
	TLS         *tls.Config
	ClientCerts bool // TLS asks for them: required off loopback
	Insecure    bool // allow to listen off loopback without them

	// Quorum says whether a quorum of servers, or enough peers, can be reached: nil, or what stands in
	// the way. It does not wait.
	Quorum     func() error
	Collectors []prometheus.Collector // more metrics
	Log        *slog.Logger           // nil: discarded
}

// ErrAdminInsecure says that an admin port would be open to everybody.
var ErrAdminInsecure = errors.New("an admin port off loopback without client certificates lets anybody profile the server")

// An Admin answers HTTP requests about one server, or peer: /metrics for Prometheus,
// /healthz, and /debug/pprof/.
type Admin struct {
	config   AdminConfig
	server   *Server // nil: a peer
	listener net.Listener
	http     *http.Server
	profiles chan struct{}
}

// NewAdmin checks the configuration and listens. Run must follow. s is nil for a peer.
func NewAdmin(s *Server, c AdminConfig) (*Admin, error) {
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Quorum == nil {
		return nil, errors.New("server: admin: AdminConfig.Quorum is nil: /healthz has to know whether there is a quorum")
	}
	if err := transport.CheckListen(c.Listen); err != nil {
		return nil, fmt.Errorf("server: admin: %w", err)
	}
	trusted := c.Insecure || c.TLS != nil && c.ClientCerts
	if tcp, err := net.ResolveTCPAddr("tcp", c.Listen); err == nil && !tcp.IP.IsLoopback() && !trusted {
		return nil, fmt.Errorf("server: admin address %q: %w", c.Listen, ErrAdminInsecure)
	}
	l, err := listen.At(c.Listen, nil, true)
	if err != nil {
		return nil, fmt.Errorf("server: admin: %w", err)
	}
	names, local := door.Names(l, c.Listen, c.TLS != nil)
	l = listen.Secure(door.Listener{Listener: l}, c.TLS)
	a := &Admin{config: c, server: s, listener: l, profiles: make(chan struct{}, maxScrapes)}
	handler := a.handler()
	if local {
		handler = door.Guard(names, handler)
	}
	var open atomic.Int64
	a.http = &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      maxProfile + adminAnswer,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    8 << 10,
		ErrorLog:          slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
		ConnState: func(nc net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				if open.Add(1) > maxAdminConns {
					nc.Close()
				}
			case http.StateClosed, http.StateHijacked:
				open.Add(-1)
			}
		},
	}
	return a, nil
}

// Addr is where the admin port listens.
func (a *Admin) Addr() net.Addr { return a.listener.Addr() }

// Run answers until ctx ends, and then for two seconds those who have asked.
func (a *Admin) Run(ctx context.Context) error {
	if err := door.Serve(ctx, a.http, a.listener, adminClose, nil); err != nil {
		return fmt.Errorf("server: admin: %w", err)
	}
	return nil
}

func (a *Admin) handler() http.Handler {
	registry := prometheus.NewRegistry()
	if a.server != nil {
		registry.MustRegister(prom.Metrics(a.server.metrics))
	}
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewBuildInfoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(a.config.Collectors...)
	scrape := promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(a.config.Log.Handler(), slog.LevelWarn),
		MaxRequestsInFlight: maxScrapes,
		Timeout:             adminAnswer,
		EnableOpenMetrics:   true,
	})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", within(adminAnswer, scrape))
	mux.Handle("GET /healthz", within(adminAnswer, http.HandlerFunc(a.health)))
	mux.Handle("GET /debug/pprof/", a.profile(http.DefaultServeMux.ServeHTTP)) // net/http/pprof is there
	mux.Handle("GET /", door.About(fmt.Sprintf(about, a.name())))
	return mux
}

// name is what it is about.
func (a *Admin) name() string {
	if a.server == nil {
		return fmt.Sprintf("peer %q", a.config.Peer)
	}
	return fmt.Sprintf("server %q", a.server.config.Name)
}

// about is what GET / answers.
const about = `This is the admin port of %s of the distributed lock service Poundlock.

/metrics         for Prometheus
/healthz         200 while a quorum can be reached and this process
                 does not drain
/debug/pprof/    profiles of this process

docs/operations.md of Poundlock tells what to watch.
`

// within gives an answer so long to be sent.
func within(limit time.Duration, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit))
		h.ServeHTTP(w, r)
	})
}

// profile bounds the profiles that are made: how many at once, and for how long each.
func (a *Admin) profile(f http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := checkSeconds(r.FormValue("seconds")); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		select {
		case a.profiles <- struct{}{}:
			defer func() { <-a.profiles }()
			f(w, r)
		default:
			http.Error(w, fmt.Sprintf("%d profiles are being made: try again later", maxScrapes),
				http.StatusServiceUnavailable)
		}
	})
}

// checkSeconds says what is wrong with how long a profile is to take. pprof itself takes
// any text, which it replaces by a default, and any length.
func checkSeconds(text string) error {
	if text == "" {
		return nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if most := maxProfile.Seconds(); err != nil || !(seconds > 0 && seconds <= most) {
		return fmt.Errorf("seconds=%.40q: want more than 0 and at most %v", text, most)
	}
	return nil
}

// Health is what /healthz answers: with status 200 while a quorum of servers can
// be reached and this one does not drain, and 503 otherwise.
type Health struct {
	Server   string `json:"server"`
	Serving  bool   `json:"serving"`         // this server accepts sessions
	Draining bool   `json:"draining"`        // it gives nothing new to anybody, and is about to end
	Quorum   bool   `json:"quorum"`          // a quorum of servers can be reached from here
	Error    string `json:"error,omitempty"` // what each of the others says
}

func (a *Admin) health(w http.ResponseWriter, _ *http.Request) {
	h := Health{Server: a.config.Peer, Serving: true, Quorum: true}
	if a.server != nil {
		h.Server, h.Serving = a.server.config.Name, false
		if n := a.server.running(); n != nil {
			h.Serving, h.Draining = a.server.accepts.Load(), n.Draining()
		}
	}
	status := http.StatusOK
	if h.Draining { // an API beside it takes no lock any more
		status = http.StatusServiceUnavailable
	}
	if err := a.config.Quorum(); err != nil {
		h.Quorum, h.Error, status = false, err.Error(), http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.Encode(h) // whoever asked may have gone
}

package main

import (
	"context"
	"net"
	"net/http"
	"net/http/pprof"

	"sandboxd/internal/fault"
)

// checkPprof refuses an address for profiles that others than this machine could reach.
func (c *Config) checkPprof() error {
	if c.PprofAddress == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(c.PprofAddress)
	if err != nil || !isLoopback(host) {
		return fault.Field("pprof-address", "--pprof-address is %q; it must be a loopback address with a port, such as 127.0.0.1:6060.", c.PprofAddress)
	}
	return nil
}

// listenPprof takes the address at which profiles are read, or gives nil when they are not.
func listenPprof(ctx context.Context, c *Config) (net.Listener, error) {
	if c.PprofAddress == "" {
		return nil, nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.PprofAddress)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "Cannot serve profiles on %s: %v. Choose another address with --pprof-address.", c.PprofAddress, err)
	}
	return l, nil
}

// profiles serves the Go runtime's profiles below /debug/pprof/. Every user of this machine may read them; pages in a
// browser may not, because they come with a host name.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return byLoopback(mux, "Profiles are read by a loopback address.")
}

// byLoopback refuses requests that come with a host name, in these words.
func byLoopback(next http.Handler, refusal string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if !isLoopback(host) {
			http.Error(w, refusal, http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"os"
	"strings"

	"sandboxd/internal/fault"
)

// Bounds on the token for scrapes, in bytes. A shorter one can be guessed.
const (
	minMetricsToken = 16
	maxMetricsToken = 4096
)

// checkMetrics refuses to give figures to others than this machine without a token.
func (c *Config) checkMetrics() error {
	if c.MetricsListen == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(c.MetricsListen)
	if err != nil {
		return fault.Field("metrics-listen", "--metrics-listen is %q; it must be an address with a port, such as 127.0.0.1:9464.", c.MetricsListen)
	}
	if c.MetricsTokenFile == "" && !isLoopback(host) {
		return fault.Field("metrics-token-file", "--metrics-listen is %s, which others can reach. Name a file with a token as --metrics-token-file, or listen on 127.0.0.1.", c.MetricsListen)
	}
	return nil
}

// metricsToken reads the token for scrapes; nil when none is asked for.
func (c *Config) metricsToken() ([]byte, error) {
	if c.MetricsTokenFile == "" {
		return nil, nil
	}
	token, err := os.ReadFile(c.MetricsTokenFile)
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "The file of --metrics-token-file cannot be read: %v.", err)
	}
	token = bytes.TrimSpace(token)
	if len(token) < minMetricsToken || len(token) > maxMetricsToken || bytes.ContainsAny(token, " \t\r\n") {
		return nil, fault.Field("metrics-token-file", "The file of --metrics-token-file must hold one token of %d to %d characters.", minMetricsToken, maxMetricsToken)
	}
	return token, nil
}

// scrapes is what answers Prometheus.
type scrapes struct {
	listener net.Listener
	handler  http.Handler
}

// openMetrics takes the address at which figures are read. It does nothing when they are not.
func (a *app) openMetrics(ctx context.Context) (scrapes, error) {
	if a.figures == nil {
		return scrapes{}, nil
	}
	token, err := a.config.metricsToken()
	if err != nil {
		return scrapes{}, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a.config.MetricsListen)
	if err != nil {
		return scrapes{}, fault.Wrap(err, fault.Unavailable, "Cannot serve figures on %s: %v. Choose another address with --metrics-listen.", a.config.MetricsListen, err)
	}
	return scrapes{l, metricsHandler(a.figures.Handler(), token)}, nil
}

// metricsHandler serves figures at /metrics to those who have the token. Without one, every user of this machine may read them;
// pages in a browser may not, because they come with a host name.
func metricsHandler(figures http.Handler, token []byte) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", figures)
	if token == nil {
		return byLoopback(mux, "Without a token, figures are read by a loopback address.")
	}
	want := sha256.Sum256(token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(given)) // of equal length, so that nothing is learned from how long it takes
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 || !strings.EqualFold(scheme, "Bearer") {
			w.Header().Set("WWW-Authenticate", `Bearer realm="sandboxd metrics"`)
			http.Error(w, "Send the token of --metrics-token-file as a bearer token.", http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"sandboxd/web"
)

// TestServeHTTP_ARequestInFlightLearnsThatTheServerStops lets a handler answer what ended its request.
func TestServeHTTP_ARequestInFlightLearnsThatTheServerStops(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- serveHTTP(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			stop()
			<-r.Context().Done()
			if errors.Is(context.Cause(r.Context()), web.ErrStopping) {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}), slog.New(slog.DiscardHandler))
	}()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("status %d", res.StatusCode)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

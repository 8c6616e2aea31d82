package main

import (
	"context"
	"errors"
	"io"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"strings"
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

// TestTakeStray_WhatASandboxSaysUnaskedIsADebugLineAndShort has a server say more than it was asked on a connection that
// is kept.
func TestTakeStray_WhatASandboxSaysUnaskedIsADebugLineAndShort(t *testing.T) {
	flags, out := stdlog.Flags(), stdlog.Writer()
	t.Cleanup(func() { stdlog.SetFlags(flags); stdlog.SetOutput(out) })
	lines := make(lineWriter, 1)
	takeStray(slog.New(slog.NewTextHandler(lines, &slog.HandlerOptions{Level: slog.LevelDebug})))
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = conn.Read(make([]byte, 4096))
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		_, _ = conn.Read(make([]byte, 4096))
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nlevel=ERROR msg=\"sandboxd is broken\"\n"+strings.Repeat("x", 4000))
	}()
	client := &http.Client{Transport: &http.Transport{}}
	for range 2 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	line := <-lines
	if !strings.Contains(line, "level=DEBUG") || !strings.Contains(line, "Unsolicited response") || strings.Contains(line, " level=ERROR") ||
		strings.Count(line, "\n") != 1 || len(line) > strayLimit+200 {
		t.Errorf("the log has %q", line)
	}
}

// lineWriter gives what is written to it; what is more than one line is dropped.
type lineWriter chan string

func (l lineWriter) Write(p []byte) (int, error) {
	select {
	case l <- string(p):
	default:
	}
	return len(p), nil
}

package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"sandboxd/internal/fault"
)

// A process that was killed leaves its socket behind; the next one takes its place.
func TestSocketProxy_TakesTheSocketOfADeadOneAndClosesItToOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "docker.sock")
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	listener, err := listenUnix(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v, %v", info.Mode(), err)
	}
	if second, err := listenUnix(t.Context(), path); err == nil {
		second.Close()
		t.Error("a second one took the socket of a living one")
	}
}

func TestSocketProxy_TouchesNoFileThatIsNoSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := serveSocketProxy(t.Context(), path, "", slog.New(slog.DiscardHandler))
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "mine" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

func TestSocketProxy_AnswersUntilItEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "docker.sock")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	listener, err := listenUnix(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	listener.Close() // the path is free again
	ended := make(chan error, 1)
	ready, logged := io.Pipe()
	go func() {
		ended <- serveSocketProxy(ctx, path, filepath.Join(t.TempDir(), "no-engine"), slog.New(slog.NewTextHandler(logged, nil)))
	}()
	if _, err := ready.Read(make([]byte, 1000)); err != nil { // it logs once it listens
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	resp, err := client.Post("http://engine/containers/create", "application/json", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("a create is answered by %s", resp.Status)
	}
	client.CloseIdleConnections()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

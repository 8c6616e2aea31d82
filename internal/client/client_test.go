package client

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"sandboxd/internal/fault"
)

const secret = "sbx_a-token-that-nobody-else-may-see"

func at(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := New(Options{URL: s.URL, Token: secret, Agent: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNew_TheTokenIsNotSentInTheClear(t *testing.T) {
	for url, ok := range map[string]bool{
		"https://box.example.com": true, "http://localhost:8080": true, "http://127.0.0.1:8080/": true, "http://[::1]:8080": true,
		"http://box.localhost": true, "http://box.example.com": false, "http://10.0.0.1": false, "http://localhost.example.com": false,
		"ftp://localhost": false, "localhost:8080": false, "https://user:pass@box.example.com": false, "https://box.example.com/path": false, "": false,
	} {
		_, err := New(Options{URL: url, Token: secret})
		if (err == nil) != ok || err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", url, err)
		}
	}
	if _, err := New(Options{URL: "http://box.example.com", Token: secret, Insecure: true}); err != nil {
		t.Errorf("with --insecure: %v", err)
	}
	if _, err := New(Options{URL: "https://box.example.com", Token: "a\r\nHost: x"}); err == nil || strings.Contains(err.Error(), "Host") {
		t.Errorf("a token with a line end: %v", err)
	}
}

// TestLocal_GoesThroughNoProxy runs itself again, as the environment's proxy is read once in a process.
func TestLocal_GoesThroughNoProxy(t *testing.T) {
	if at := os.Getenv("TEST_LOCAL_SERVER"); at != "" {
		c, err := New(Options{URL: at, Token: secret})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Sandboxes(t.Context()); err != nil {
			t.Errorf("over HTTP: %v", err)
		}
		if ws, err := c.dial(t.Context(), "/ws", nil); err != nil {
			t.Errorf("a websocket: %v", err)
		} else {
			ws.Close()
		}
		return
	}
	var proxied, served atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { proxied.Add(1); w.WriteHeader(http.StatusTeapot) }))
	defer proxy.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		if !strings.HasSuffix(r.URL.Path, "/ws") {
			io.WriteString(w, `{"sandboxes":[],"total":0}`)
		} else if ws, err := (&websocket.Upgrader{}).Upgrade(w, r, nil); err == nil {
			ws.Close()
		}
	}))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	for _, host := range []string{"box.localhost", "localhost", "127.0.0.1"} {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLocal_GoesThroughNoProxy$")
		again.Env = append(os.Environ(), "TEST_LOCAL_SERVER=http://"+host+":"+port, "HTTP_PROXY="+proxy.URL, "http_proxy="+proxy.URL, "NO_PROXY=", "no_proxy=")
		if out, err := again.CombinedOutput(); err != nil || proxied.Load() != 0 {
			t.Errorf("%s: %v, through the proxy %d times: %s", host, err, proxied.Load(), out)
		}
	}
	if served.Load() != 6 {
		t.Errorf("served %d times", served.Load())
	}
	if proxy, _ := wayTo("box.example.com"); proxy == nil {
		t.Error("elsewhere the environment's proxy is not used")
	}
}

func TestErrors_AreTheServersSentencesWithoutEscapes(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"problem": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(409)
			json.NewEncoder(w).Encode(map[string]any{"detail": "lab is \x1b[31mstopped.\nStart it first."})
		},
		"html": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(409); io.WriteString(w, "<h1>no</h1>") },
		"huge": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(409)
			io.WriteString(w, `{"detail":"`+strings.Repeat("x", 1<<20)+`"}`)
		},
	} {
		_, err := at(t, h).Sandboxes(t.Context())
		text := fault.Message(err)
		if !fault.Is(err, fault.Conflict) || strings.ContainsAny(text, "\x1b\n<") || len(text) > 2*maxDetail || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "problem" && text != "lab is [31mstopped. Start it first." {
			t.Errorf("got %q", text)
		}
	}
}

func TestRedirect_TheTokenStaysHere(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	c := at(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) })
	_, err := c.Sandboxes(t.Context())
	if err == nil || !strings.Contains(fault.Message(err), other.URL) || elsewhere.Load() != 0 {
		t.Errorf("%v; asked %d times", err, elsewhere.Load())
	}
	if _, err := c.SSH(t.Context(), "lab"); err == nil || elsewhere.Load() != 0 {
		t.Errorf("a websocket: %v; asked %d times", err, elsewhere.Load())
	}
}

func TestAgain_OnlyWhileNobodyAnswers(t *testing.T) {
	var asked atomic.Int32
	c := at(t, func(w http.ResponseWriter, _ *http.Request) { asked.Add(1); w.WriteHeader(503) })
	if _, err := c.Sandboxes(t.Context()); !fault.Is(err, fault.Unavailable) || asked.Load() != 1 {
		t.Errorf("%v; asked %d times", err, asked.Load())
	}
	s := httptest.NewServer(http.NotFoundHandler())
	gone := s.URL
	s.Close()
	synctest.Test(t, func(t *testing.T) {
		c, err := New(Options{URL: gone, Token: secret})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err = c.Sandboxes(ctx)
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Message(err), "refused") || time.Since(began) < firstPause {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestUnpack_IsSentOnce(t *testing.T) {
	var asked atomic.Int32
	c := at(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(503)
	})
	if err := c.Unpack(t.Context(), "lab", ".", strings.NewReader("x")); err == nil || asked.Load() != 1 {
		t.Errorf("%v; asked %d times", err, asked.Load())
	}
}

func TestSaved_IsItsOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sandboxd", "client.json")
	s, err := Load(path)
	if err != nil || len(s.Tokens) != 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	s.Current, s.Tokens["https://box.example.com"] = "https://box.example.com", secret
	if err := s.Save(path); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	if again, err := Load(path); err != nil || again.Tokens[again.Current] != secret {
		t.Errorf("%+v, %v", again, err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); !fault.Is(err, fault.Forbidden) || strings.Contains(err.Error(), secret) {
		t.Errorf("one that others may read: %v", err)
	}
}

func TestReplaceConfig_KeepsALinkAndItsMode(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "config")
	if err := os.WriteFile(real, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", link); err != nil {
		t.Fatal(err)
	}
	if err := ReplaceConfig(link, []byte("new")); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(real)
	text, _ := os.ReadFile(real)
	if to, linkErr := os.Readlink(link); to != "real" || linkErr != nil || err != nil || st.Mode().Perm() != 0o640 || string(text) != "new" {
		t.Errorf("%q, %v, %v, %q", to, linkErr, st, text)
	}
}

// TestExec_ADialogue has a server that speaks as web does.
func TestExec_ADialogue(t *testing.T) {
	c := at(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+secret || r.URL.Query().Get("patient") != "true" {
			t.Errorf("asked by %v of %s", r.Header, r.URL)
		}
		ws, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer ws.Close()
		var start message
		_ = ws.ReadJSON(&start)
		ws.WriteJSON(message{Type: "started"})
		for {
			kind, data, err := ws.ReadMessage()
			if err != nil || kind == websocket.TextMessage {
				break
			}
			ws.WriteMessage(websocket.BinaryMessage, append([]byte{streamStdout}, data...))
		}
		ws.WriteMessage(websocket.BinaryMessage, append([]byte{streamStderr}, start.Command[0]...))
		ws.WriteMessage(websocket.BinaryMessage, []byte{77, 1}) // of a later version
		ws.WriteJSON(message{Type: "exit", ExitCode: 7})
	})
	r, err := c.Exec(t.Context(), "lab", Command{Args: []string{"cat"}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go r.Feed(strings.NewReader(strings.Repeat("0123456789", 10_000)))
	var out, errs bytes.Buffer
	if code, err := r.Wait(&out, &errs); code != 7 || err != nil || out.Len() != 100_000 || errs.String() != "cat" {
		t.Errorf("%d, %v, %d bytes, %q", code, err, out.Len(), errs.String())
	}
}

func TestExec_WhatTheServerSaysOfFailure(t *testing.T) {
	last := map[string]string{
		`{"type":"error","problem":{"status":404,"detail":"There is no program x.","field":"command"}}`: "There is no program x.",
		`{"type":"exit","timed_out":true,"exit_code":-1}`:                                               "killed",
		`nonsense`: "cannot be read",
		``:         "lost",
	}
	for say, want := range last {
		c := at(t, func(w http.ResponseWriter, r *http.Request) {
			ws, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
			if err != nil {
				return
			}
			defer ws.Close()
			if say != "" {
				ws.WriteMessage(websocket.TextMessage, []byte(say))
			}
		})
		r, err := c.Exec(t.Context(), "lab", Command{Args: []string{"x"}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Wait(io.Discard, io.Discard)
		if err == nil || !strings.Contains(fault.Message(err), want) || (fault.FieldOf(err) == "command") != strings.Contains(say, "command") {
			t.Errorf("%.100s: %v", say, err)
		}
		r.Close()
	}
}

// TestExec_AMessageWithoutEndIsNotRead has a server that sends more than any memory holds.
func TestExec_AMessageWithoutEndIsNotRead(t *testing.T) {
	var sent atomic.Int64
	c := at(t, func(w http.ResponseWriter, r *http.Request) {
		ws, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer ws.Close()
		_, _, _ = ws.ReadMessage() // what is to be run
		to, err := ws.NextWriter(websocket.BinaryMessage)
		for piece := make([]byte, 64<<10); err == nil && sent.Load() < 64<<20; sent.Add(int64(len(piece))) {
			_, err = to.Write(piece)
		}
		if err == nil && to.Close() == nil {
			_ = ws.WriteJSON(message{Type: "exit"})
			_, _, _ = ws.ReadMessage() // until the client leaves
		}
	})
	r, err := c.Exec(t.Context(), "lab", Command{Args: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if code, err := r.Wait(io.Discard, io.Discard); !fault.Is(err, fault.Unavailable) {
		t.Errorf("%d, %v, after %d bytes", code, err, sent.Load())
	}
}

func TestStubborn_GivesUpWhenNothingComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, tries := time.Now(), 0
		away := fault.New(fault.Unavailable, "It is away.")
		err := stubborn(t.Context(), func() (bool, error) { tries++; return tries == 5, away })
		if took := time.Since(begun); err != away || tries != 5+maxFruitless-1 || took < 30*time.Second || took > 5*time.Minute {
			t.Errorf("%v after %d tries, %v", err, tries, took)
		}
		tries = 0
		gone := fault.New(fault.NotFound, "It is gone.")
		if err := stubborn(t.Context(), func() (bool, error) { tries++; return false, gone }); err != gone || tries != 1 {
			t.Errorf("%v after %d tries", err, tries)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if begun = time.Now(); stubborn(ctx, func() (bool, error) { return false, away }) != away || time.Since(begun) != 5*time.Second {
			t.Errorf("it ends after %v", time.Since(begun))
		}
	})
}

package scrub

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// cookies is the table that the tests of the real Traefik use too.
const cookies = "testdata/cookies.json"

func TestOwnCookie(t *testing.T) {
	text, err := os.ReadFile(cookies)
	if err != nil {
		t.Fatal(err)
	}
	var table struct{ Kept, Dropped []string }
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	for _, line := range table.Kept {
		if !ownCookie(line) {
			t.Errorf("%q is dropped", line)
		}
	}
	for _, line := range table.Dropped {
		if ownCookie(line) {
			t.Errorf("%q is kept", line)
		}
	}
	if len(table.Kept) == 0 || len(table.Dropped) == 0 {
		t.Error("the table is empty")
	}
}

// serve runs the middleware in front of a handler, on a real server.
func serve(t *testing.T, next http.HandlerFunc) *httptest.Server {
	t.Helper()
	handler, err := New(context.Background(), next, CreateConfig(), "scrub")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func TestHead_LosesWhatReachesBeyondItsHost(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h["Set-Cookie"] = []string{"own=1", "tossed=1; Domain=localhost"}
		h.Set("Clear-Site-Data", `"cookies"`)
		h.Set("Alt-Svc", `h3=":443"`)
		h.Set("Sandboxd-Notice", "x")
		h.Set("X-Own", "stays")
		h.Set("Date", "")
		w.WriteHeader(http.StatusTeapot)
	})
	resp, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	resp.Header.Del("Date")
	want := http.Header{"Set-Cookie": {"own=1"}, "X-Own": {"stays"}}
	if diff := cmp.Diff(want, resp.Header); diff != "" || resp.StatusCode != http.StatusTeapot {
		t.Errorf("status %d\n%s", resp.StatusCode, diff)
	}
}

func TestInterimAnswers_AreScrubbedToo(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Set-Cookie", "early=1; Domain=localhost")
		w.Header().Set("Link", "</x>")
		w.WriteHeader(http.StatusEarlyHints)
		io.WriteString(w, "late")
	})
	var early []textproto.MIMEHeader
	trace := &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
		early = append(early, h)
		return nil
	}}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if diff := cmp.Diff([]textproto.MIMEHeader{{"Link": {"</x>"}}}, early); diff != "" {
		t.Error(diff)
	}
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "late" || resp.StatusCode != http.StatusOK {
		t.Errorf("got %s %q, %v", resp.Status, body, err)
	}
}

func TestTrailers_SetNoCookies(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Sum, Set-Cookie")
		io.WriteString(w, "body")
		w.Header().Set("X-Sum", "42")
		w.Header().Set("Set-Cookie", "own=1")
		w.Header().Set(http.TrailerPrefix+"Set-Cookie", "own=1")
		w.Header().Set(http.TrailerPrefix+"Clear-Site-Data", `"*"`)
		w.Header().Set(http.TrailerPrefix+"X-More", "43")
	})
	resp, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	want := http.Header{"X-Sum": {"42"}, "X-More": {"43"}, "Set-Cookie": nil} // announced, but without a value
	if diff := cmp.Diff(want, resp.Trailer); diff != "" {
		t.Error(diff)
	}
}

// Whoever reads sees the head before there is a body, and each piece before the next is written.
func TestBody_StreamsWithoutBeingAskedToFlush(t *testing.T) {
	next := make(chan struct{})
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		for _, line := range []string{"one\n", "two\n"} {
			select {
			case <-next:
				io.WriteString(w, line)
			case <-r.Context().Done():
			}
		}
	})
	resp, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for _, want := range []string{"one", "two"} {
		next <- struct{}{}
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("got %q, %v, want %q", lines.Text(), lines.Err(), want)
		}
	}
}

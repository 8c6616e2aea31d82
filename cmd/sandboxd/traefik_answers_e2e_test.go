//go:build e2e

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http/httpguts"
)

// head asks the sandbox to answer with just these header lines, and gives what comes out.
func (k traefikBed) head(client *http.Client, header http.Header) http.Header {
	k.t.Helper()
	text, err := json.Marshal(header)
	if err != nil {
		k.t.Fatal(err)
	}
	resp, err := client.Post(k.url(k.box.host, "/head"), "application/json", bytes.NewReader(text))
	if err != nil {
		k.t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.Header
}

// The plugin is interpreted in Traefik, so what its own tests show compiled is shown again here.
func TestTraefik_CookiesOfOtherHostsDoNotComeOut(t *testing.T) {
	k := newTraefikBed(t)
	text, err := os.ReadFile("../../traefik/plugins-local/src/sandboxd/scrub/testdata/cookies.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct{ Kept, Dropped []string }
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	client := k.client()
	for _, line := range table.Kept {
		if got := k.head(client, http.Header{"Set-Cookie": {line}})["Set-Cookie"]; !cmp.Equal(got, []string{textproto.TrimString(line)}) {
			t.Errorf("%q comes out as %q", line, got)
		}
	}
	for _, line := range table.Dropped {
		if got, there := k.head(client, http.Header{"Set-Cookie": {line}})["Set-Cookie"]; there {
			t.Errorf("%q comes out as %q", line, got)
		}
	}
	// An answer with a control character in its head is refused as a whole.
	tossed := slices.DeleteFunc(table.Dropped, func(line string) bool { return !httpguts.ValidHeaderFieldValue(line) })
	mixed := http.Header{"Set-Cookie": slices.Concat(tossed, []string{"own=1"}, tossed), "Clear-Site-Data": {`"*"`}, "Alt-Svc": {"h3"},
		"Sandboxd-X": {"1"}, "X-Own": {"stays"}, "Date": nil}
	got := k.head(k.client2(), mixed)
	for _, name := range []string{"Date", "Content-Length", "Strict-Transport-Security"} {
		got.Del(name)
	}
	if diff := cmp.Diff(http.Header{"Set-Cookie": {"own=1"}, "X-Own": {"stays"}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTraefik_HintsAndTrailersAreScrubbed(t *testing.T) {
	k := newTraefikBed(t)
	for _, client := range []*http.Client{k.client(), k.client2()} {
		var early []textproto.MIMEHeader
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
			early = append(early, h)
			return nil
		}})
		if body, _ := k.read(ctx, client, "/early"); body != "late" {
			t.Errorf("after the hints comes %q", body)
		}
		if diff := cmp.Diff([]textproto.MIMEHeader{{"Link": {"</style.css>; rel=preload"}}}, early); diff != "" {
			t.Error(diff)
		}
		body, resp := k.read(t.Context(), client, "/trailers")
		if diff := cmp.Diff(http.Header{"X-Sum": {"42"}, "X-More": {"43"}, "Set-Cookie": nil}, resp.Trailer); diff != "" || body != "body" {
			t.Errorf("%q with trailers\n%s", body, diff)
		}
	}
}

func (k traefikBed) read(ctx context.Context, client *http.Client, path string) (string, *http.Response) {
	k.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, k.url(k.box.host, path), nil)
	if err != nil {
		k.t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		k.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		k.t.Fatal(err)
	}
	return string(body), resp
}

// Each line is read before the server in the sandbox is told to write the next, so nothing on the way holds one back.
func TestTraefik_StreamsAsTheSandboxWrites(t *testing.T) {
	k := newTraefikBed(t)
	for name, client := range map[string]*http.Client{"HTTP/1.1": k.client(), "HTTP/2": k.client2()} {
		for _, path := range []string{"/events", "/slow"} {
			resp, err := client.Get(k.url(k.box.host, path))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			lines := bufio.NewReader(resp.Body)
			for i := range 3 {
				k.read(t.Context(), client, "/next")
				if line, err := lines.ReadString('\n'); err != nil || strings.TrimSpace(line) != fmt.Sprintf("data: %d", i) {
					t.Fatalf("%s over %s gives %q, %v", path, name, line, err)
				}
			}
			if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
				t.Errorf("%s over %s ends with %q, %v", path, name, rest, err)
			}
		}
	}
}

func TestTraefik_BodiesArriveWhole(t *testing.T) {
	k := newTraefikBed(t)
	const size = 20 << 20
	up := make([]byte, size)
	for i := 0; i < size; i += 4096 {
		up[i] = byte(rand.IntN(256))
	}
	for _, client := range []*http.Client{k.client(), k.client2()} {
		for _, query := range []string{"", "&announced=1"} {
			if body, _ := k.read(t.Context(), client, fmt.Sprintf("/bytes?n=%d%s", size, query)); len(body) != size {
				t.Errorf("%d of %d bytes arrive (%s)", len(body), size, query)
			}
		}
		for _, body := range []io.Reader{bytes.NewReader(up), io.MultiReader(bytes.NewReader(up))} { // announced, chunked
			resp, err := client.Post(k.url(k.box.host, "/sum"), "application/octet-stream", body)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			if want := fmt.Sprintf("%d %x <nil>", size, sha256.Sum256(up)); err != nil || string(got) != want {
				t.Errorf("the upload arrives as %s, want %s; %v", got, want, err)
			}
		}
	}
}

// What ends too early must not look whole, also with an interpreter between.
func TestTraefik_ABrokenAnswerIsSeenToBeBroken(t *testing.T) {
	k := newTraefikBed(t)
	for name, client := range map[string]*http.Client{"HTTP/1.1": k.client(), "HTTP/2": k.client2()} {
		for range 20 {
			resp, err := client.Get(k.url(k.box.host, "/broken"))
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err == nil {
				t.Fatalf("over %s half an answer looks whole: %q", name, body)
			}
		}
		if got := via(client, k.url(k.box.host, "/")); got != "gateway" {
			t.Errorf("afterwards the route leads to %s", got)
		}
	}
	if log := k.tail(); len(log) > 10_000 {
		t.Errorf("a sandbox can fill Traefik's log: %d bytes, such as %s", len(log), log[len(log)-1000:])
	}
}

//go:build e2e

package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
)

// get asks for something of lab's with the token.
func (b behind) get(t *testing.T, client *http.Client, path string) *http.Response {
	t.Helper()
	return b.send(t, client, "GET", path, nil)
}

func (b behind) send(t *testing.T, client *http.Client, method, path string, body io.Reader) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "https://"+b.echoHost()+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.token)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// TestBehind_AnswersAndUploadsComeAsTheyAre asks over HTTP/1.1 and HTTP/2.
func TestBehind_AnswersAndUploadsComeAsTheyAre(t *testing.T) {
	t.Parallel()
	b := newBehind(t)
	for name, client := range map[string]*http.Client{"HTTP/1.1": b.k.client(), "HTTP/2": b.k.client2()} {
		t.Run(name, func(t *testing.T) {
			b.streams(t, client)
			b.carriesBodies(t, client)
			b.breaksOff(t, client)
		})
	}
	if log := b.k.tail(); len(log) > 10_000 {
		t.Errorf("a sandbox can fill Traefik's log: %d bytes, such as %s", len(log), log[len(log)-1000:])
	}
}

// streams reads each line before the server in the sandbox is told to write the next, so nothing on the way holds one back.
func (b behind) streams(t *testing.T, client *http.Client) {
	for _, path := range []string{"/steps", "/steps?announced=1"} {
		lines := bufio.NewReader(b.get(t, client, path).Body)
		for i := range 3 {
			b.get(t, client, "/next")
			if line, err := lines.ReadString('\n'); err != nil || strings.TrimSpace(line) != fmt.Sprintf("data: %d", i) {
				t.Fatalf("%s gives %q, %v", path, line, err)
			}
		}
		if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
			t.Errorf("%s ends with %q, %v", path, rest, err)
		}
	}
}

func (b behind) carriesBodies(t *testing.T, client *http.Client) {
	const size = 20 << 20
	if got, err := io.Copy(io.Discard, b.get(t, client, fmt.Sprintf("/bytes?n=%d", size)).Body); got != size || err != nil {
		t.Errorf("%d of %d bytes arrive, %v", got, size, err)
	}
	up := make([]byte, size)
	for i := 0; i < size; i += 4096 {
		up[i] = byte(rand.IntN(256))
	}
	for _, body := range []io.Reader{bytes.NewReader(up), io.MultiReader(bytes.NewReader(up))} { // announced, chunked
		got, err := io.ReadAll(b.send(t, client, "POST", "/sum", body).Body)
		if want := fmt.Sprintf("%d %x", size, sha256.Sum256(up)); err != nil || string(got) != want {
			t.Errorf("the upload arrives as %s, want %s; %v", got, want, err)
		}
	}
}

// breaksOff looks that what ends too early does not look whole.
func (b behind) breaksOff(t *testing.T, client *http.Client) {
	for range 20 {
		if body, err := io.ReadAll(b.get(t, client, "/broken").Body); err == nil {
			t.Fatalf("half an answer looks whole: %q", body)
		}
	}
	if resp := b.get(t, client, "/small"); resp.StatusCode != http.StatusOK {
		t.Errorf("afterwards the sandbox answers %s", resp.Status)
	}
}

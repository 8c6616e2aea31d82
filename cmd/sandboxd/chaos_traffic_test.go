//go:build e2e

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// hangLimit is how long anything that is asked may go without a word. sandboxd holds a request for 30 s at most.
const hangLimit = time.Minute

// way is a way to sandboxes: by Traefik, or straight to sandboxd.
type way struct {
	name   string
	scheme string
	client *http.Client
	dialer websocket.Dialer
	domain string // with the port, as it stands in addresses
}

func (f way) url(sandbox, path string) string {
	return f.scheme + "://" + echoPort + "-" + sandbox + "." + f.domain + path
}

// ways gives both ways. Traefik's certificate is checked.
func (c *chaos) ways() (traefik, straight way) {
	domain := c.k.authority(c.k.domain)
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return c.s.place.dial(ctx, network, c.s.addr)
	}
	stays := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	traefik = way{name: "Traefik", scheme: "https", domain: domain,
		client: &http.Client{CheckRedirect: stays, Transport: &http.Transport{DialContext: c.k.dial, TLSClientConfig: c.k.tlsConfig()}},
		dialer: websocket.Dialer{NetDialContext: c.k.dial, TLSClientConfig: c.k.tlsConfig(), HandshakeTimeout: hangLimit}}
	straight = way{name: "sandboxd", scheme: "http", domain: domain,
		client: &http.Client{CheckRedirect: stays, Transport: &http.Transport{DialContext: dial}},
		dialer: websocket.Dialer{NetDialContext: dial, HandshakeTimeout: hangLimit}}
	return traefik, straight
}

// pause waits between the two times, and reports whether ctx has not ended.
func pause(ctx context.Context, least, most time.Duration) bool {
	timer := time.NewTimer(least + rand.N(most-least+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// get asks for a path, and gives the answer once its head is there; nil when there is none. The caller must close it.
func (c *chaos) get(ctx context.Context, f way, sandbox, path string) *http.Response {
	begun := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url(sandbox, path), nil)
	if err != nil {
		c.wrong("%v", err)
		return nil
	}
	req.Header.Set("Authorization", "Bearer "+c.s.token)
	resp, err := f.client.Do(req)
	if err != nil {
		c.failed(f.name, sandbox, begun, err)
		return nil
	}
	return resp
}

// failed counts a request that had no answer. That is no fault while something is down, but waiting without end is.
func (c *chaos) failed(what, sandbox string, begun time.Time, err error) {
	if waited := time.Since(begun); waited >= hangLimit {
		c.wrong("%s: a request to %s hung for %s: %v", what, sandbox, waited, err)
	}
	c.count(what, "no answer")
}

// excused counts an answer that says that something is down, and condemns all others that are not the right one.
func (c *chaos) excused(what, sandbox string, status int, body []byte) {
	switch {
	case status == http.StatusBadGateway, status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		c.count(what, fmt.Sprint(status))
	default:
		c.wrong("%s: %s answers %d %.300q", what, sandbox, status, body)
	}
}

// page asks for a page once, and says whether it came.
func (c *chaos) page(ctx context.Context, f way, sandbox string) bool {
	ctx, cancel := context.WithTimeout(ctx, hangLimit)
	defer cancel()
	begun := time.Now()
	nonce := fmt.Sprintf("%016x", rand.Uint64())
	resp := c.get(ctx, f, sandbox, "/page/"+nonce)
	if resp == nil {
		return false
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	switch want := "page of " + sandbox + ": " + nonce + "\n"; {
	case err != nil:
		c.failed(f.name, sandbox, begun, err)
	case resp.StatusCode != http.StatusOK:
		c.excused(f.name, sandbox, resp.StatusCode, body)
	case string(body) != want:
		c.wrong("%s: %s answers with %.300q, wanted %q", f.name, sandbox, body, want)
	default:
		c.used(sandbox, f.name+" page", begun, time.Now())
		return true
	}
	return false
}

// pages asks for one page after another, several times a second.
func (c *chaos) pages(ctx context.Context, f way, sandbox string) {
	for pause(ctx, 100*time.Millisecond, 400*time.Millisecond) {
		c.page(ctx, f, sandbox)
	}
}

// downloads fetches a file of some seconds, by one way and the other, and rests in between for long enough that its sandbox does.
func (c *chaos) downloads(ctx context.Context, sandbox string, ways ...way) {
	for n := 0; pause(ctx, 0, 14*time.Second); n++ {
		c.download(ctx, ways[n%len(ways)], sandbox, 30+rand.IntN(100))
	}
}

func (c *chaos) download(ctx context.Context, f way, sandbox string, pieces int) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hung := time.AfterFunc(hangLimit, cancel)
	defer hung.Stop()
	resp := c.get(ctx, f, sandbox, fmt.Sprintf("/long/%d", pieces))
	if resp == nil {
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		c.excused(f.name, sandbox, resp.StatusCode, body)
		return
	}
	begun, last := time.Now(), time.Now()
	lines := bufio.NewReader(resp.Body)
	for n := range pieces {
		line, err := lines.ReadString('\n')
		if err != nil {
			c.flowed(sandbox, begun, last)
			c.failed(f.name+" download", sandbox, last, err)
			return
		}
		if want := fmt.Sprintf("piece of %s: %d", sandbox, n); strings.TrimRight(line, " \n") != want {
			c.wrong("%s: a download from %s has %.100q, wanted %q", f.name, sandbox, line, want)
			return
		}
		last = time.Now()
		hung.Reset(hangLimit)
	}
	c.flowed(sandbox, begun, last)
	c.count(f.name+" download", "ok")
}

// sockets echoes over a WebSocket, which it opens again whenever it is cut.
func (c *chaos) sockets(ctx context.Context, f way, sandbox string) {
	for pause(ctx, 200*time.Millisecond, 500*time.Millisecond) {
		c.dial(ctx, f, sandbox)
	}
}

func (c *chaos) dial(ctx context.Context, f way, sandbox string) {
	begun := time.Now()
	url := "ws" + strings.TrimPrefix(f.url(sandbox, "/ws"), "http")
	conn, resp, err := f.dialer.DialContext(ctx, url, http.Header{"Authorization": {"Bearer " + c.s.token}})
	what := f.name + " WebSocket"
	if err != nil {
		if resp != nil {
			body, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
			c.excused(what, sandbox, resp.StatusCode, body)
		} else {
			c.failed(what, sandbox, begun, err)
		}
		return
	}
	defer conn.Close()
	ended := context.AfterFunc(ctx, func() { conn.Close() })
	defer ended()
	for n := 0; pause(ctx, 200*time.Millisecond, time.Second); n++ {
		begun := time.Now()
		_ = conn.SetReadDeadline(begun.Add(hangLimit))
		_ = conn.SetWriteDeadline(begun.Add(hangLimit))
		text := fmt.Sprintf("%016x %d", rand.Uint64(), n)
		err := conn.WriteMessage(websocket.TextMessage, []byte(text))
		var got []byte
		if err == nil {
			_, got, err = conn.ReadMessage()
		}
		if err != nil {
			c.failed(what, sandbox, begun, err)
			return
		}
		if want := "echo of " + sandbox + ": " + text; string(got) != want {
			c.wrong("%s: %s echoes %.300q, wanted %q", what, sandbox, got, want)
			return
		}
		c.used(sandbox, what, begun, time.Now())
	}
}

// commands runs commands of some seconds over the API, and rests in between.
func (c *chaos) commands(ctx context.Context, sandbox string) {
	for pause(ctx, 0, 20*time.Second) {
		c.command(ctx, sandbox)
	}
}

func (c *chaos) command(ctx context.Context, sandbox string) {
	begun := time.Now()
	nonce := fmt.Sprintf("%016x", rand.Uint64())
	text := fmt.Sprintf("cat /home/agent/name; sleep %d; echo %s", 1+rand.IntN(8), nonce)
	status, body, err := c.api(ctx, "POST", "/sandboxes/"+sandbox+"/exec", map[string]any{"command": text})
	if err != nil {
		c.failed("exec", sandbox, begun, err)
		return
	}
	var out execBody
	switch err := json.Unmarshal(body, &out); {
	case status == http.StatusConflict && bytes.Contains(body, []byte("has failed")):
		c.count("exec", "409")
	case status != http.StatusOK:
		c.excused("exec", sandbox, status, body)
	case err == nil && (out.ExitCode == 137 || out.ExitCode == 143) && strings.HasPrefix(sandbox+"\n", out.Stdout): // perhaps before it wrote
		c.count("exec", "ended with its sandbox")
	case err != nil || out.ExitCode != 0 || out.Stdout != sandbox+"\n"+nonce+"\n":
		c.wrong("exec: %s answers %.300q, %v", sandbox, body, err)
	default:
		c.used(sandbox, "exec", begun, time.Now())
	}
}

// api calls the API, for callers that expect sandboxd to die under them.
func (c *chaos) api(ctx context.Context, method, path string, in any) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, hangLimit)
	defer cancel()
	var text []byte
	if in != nil {
		var err error
		if text, err = json.Marshal(in); err != nil {
			return 0, nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+c.s.addr+"/api/v1"+path, bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.s.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.s.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// askStopped asks for a page of a sandbox that its owner has stopped: it says so, and stays stopped.
func (c *chaos) askStopped(ctx context.Context, f way, sandbox string) {
	for pause(ctx, time.Second, 3*time.Second) {
		if c.page(ctx, f, sandbox) {
			c.wrong("%s: %s answers, although its owner has stopped it", f.name, sandbox)
		}
	}
}

package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/sandbox"
)

// hold serves a port that holds every request but /now until the returned leave.
func hold(w *world, port int) (leave func()) {
	over := make(chan struct{})
	w.serve(portHost(port), func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/now" {
			select {
			case <-over:
			case <-r.Context().Done():
			}
		}
		_, _ = io.WriteString(rw, "hello")
	})
	return sync.OnceFunc(func() { close(over) })
}

// requests sends so many at once, from that many networks, and gives the status of each.
func (w *world) requests(many, networks int) (statuses func() map[int]int) {
	var all sync.WaitGroup
	var mu sync.Mutex
	got := map[int]int{}
	for i := range many {
		r := w.request("GET", port3000+"/", nil, header{"X-Forwarded-For", fmt.Sprintf("198.51.100.%d", 1+i%networks)})
		all.Go(func() {
			a := w.send(r)
			mu.Lock()
			defer mu.Unlock()
			got[a.StatusCode]++
		})
	}
	synctest.Wait()
	return func() map[int]int { all.Wait(); return got }
}

// crowdedWorld has a public port, which is full of those whom nobody knows before a test begins.
func crowdedWorld(t *testing.T) *world {
	w := newStillWorld(t)
	w.proxy.cfg.Trusted = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}
	w.expose(3000, sandbox.Public)
	return w
}

func TestConcurrency_OneClientDoesNotFillAPort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := crowdedWorld(t)
		leave := hold(w, 3000)
		got := w.requests(outsidersPerClient, 1)
		begun := time.Now()
		from := header{"X-Forwarded-For", "198.51.100.1"}
		w.wantStatus(w.ask("GET", port3000+"/now", from), 429)
		if waited := time.Since(begun); waited != outsiderPatience {
			t.Errorf("it waits for %v", waited)
		}
		w.wantStatus(w.ask("GET", port3000+"/now", header{"X-Forwarded-For", "198.51.100.2"}), 200)
		w.wantStatus(w.ask("GET", port3000+"/now", append(from, bearer...)), 200)
		time.AfterFunc(outsiderPatience/2, leave)
		w.wantStatus(w.ask("GET", port3000+"/now", from), 200) // as soon as there is room
		if s := got(); s[200] != outsidersPerClient {
			t.Errorf("%v", s)
		}
		w.wantReleased()
		if n := w.proxy.outsiders.Len(); n != 0 {
			t.Errorf("%d places are remembered", n)
		}
	})
}

func TestConcurrency_AllOutsidersTogetherLeaveRoomForWhoMayUseTheSandbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := crowdedWorld(t)
		leave := hold(w, 3000)
		got := w.requests(maxPerPort, maxPerPort)
		if _, inside := w.boxes.entered(); inside != outsidersPerPort {
			t.Errorf("%d are inside", inside)
		}
		w.wantStatus(w.ask("GET", port3000+"/now", bearer), 200)
		time.Sleep(outsiderPatience + time.Second)
		leave()
		if s := got(); s[200] != outsidersPerPort || s[503] != maxPerPort-outsidersPerPort {
			t.Errorf("%v", s)
		}
	})
}

func TestConcurrency_APageMayAskForAsMuchAsItsConnectionCan(t *testing.T) {
	const streams = 250 // of HTTP/2, as net/http and Traefik let a browser have
	synctest.Test(t, func(t *testing.T) {
		w := crowdedWorld(t)
		leave := hold(w, 3000)
		got := w.requests(streams, 1)
		leave()
		if s := got(); s[200] != streams {
			t.Errorf("%v", s)
		}
	})
}

func TestConcurrency_BeyondAQueueNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := crowdedWorld(t)
		leave := hold(w, 3000)
		got := w.requests(outsidersPerClient+outsiderQueue, 1)
		begun := time.Now()
		w.wantStatus(w.ask("GET", port3000+"/now", header{"X-Forwarded-For", "198.51.100.1"}), 429)
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("it waits for %v", waited)
		}
		leave()
		if s := got(); s[200] != outsidersPerClient+outsiderQueue {
			t.Errorf("%v", s)
		}
	})
}

func TestConcurrency_AnOutsiderWhoSendsNothingMoreIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := crowdedWorld(t)
		w.serve(portHost(3000), func(rw http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(rw, "hello")
		})
		body, begin := io.Pipe()
		defer begin.Close()
		go func() {
			for range 5 { // slowly, but without end
				_, _ = io.WriteString(begin, "a")
				time.Sleep(outsiderPause - time.Second)
			}
		}()
		begun := time.Now()
		if a := w.send(w.request("POST", port3000, body, nil)); a.StatusCode != 504 && a.StatusCode != 503 { // the latter when the server notices first
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
		if took := time.Since(begun); took < 4*(outsiderPause-time.Second) || took > 6*outsiderPause {
			t.Errorf("after %v", took)
		}
		w.wantReleased()
	})
}

// bare is the writer of an answer to a connection.
type bare struct {
	http.ResponseWriter
	net.Conn
}

func (b bare) Write(p []byte) (int, error) { return b.Conn.Write(p) }

// On a pipe, because an HTTP server waits on a lock meanwhile, at which fake time stands still.
func TestConcurrency_AnOutsiderWhoTakesNothingMoreIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		out := &final{ResponseWriter: bare{Conn: far}, pause: outsiderPause}
		go func() { // slowly, but without end
			for range 3 {
				time.Sleep(outsiderPause - time.Second)
				_, _ = near.Read(make([]byte, 1))
			}
		}()
		for range 3 {
			if _, err := out.Write([]byte("a")); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour) // in which the program says nothing
		begun := time.Now()
		if _, err := out.Write([]byte("a")); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != outsiderPause {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

// A stream in which nothing happens is no reason: it is the sandbox that is waited for.
func TestConcurrency_AQuietStreamOfAnOutsidersLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := crowdedWorld(t)
		w.serve(portHost(3000), func(rw http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			for range 2 {
				_, _ = io.WriteString(rw, "a")
				_ = http.NewResponseController(rw).Flush()
				time.Sleep(3 * outsiderPause)
			}
		})
		for _, method := range []string{"GET", "POST"} {
			if a := w.ask(method, port3000, nil); a.StatusCode != 200 || a.body != "aa" {
				t.Errorf("%s: %d %q", method, a.StatusCode, a.body)
			}
		}
	})
}

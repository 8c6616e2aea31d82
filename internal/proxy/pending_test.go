package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"sandboxd/internal/hostname"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

// looksOften looks at the sandbox every minute of that time and puts it to rest as soon as nothing uses it.
func (w *world) looksOften(during time.Duration) (frozen time.Duration) {
	begun := time.Now()
	for time.Since(begun) < during {
		time.Sleep(time.Minute)
		synctest.Wait()
		if w.because() == "" && frozen == 0 {
			frozen = time.Since(begun)
			w.boxes.set("ml", sandbox.Frozen, "")
		}
	}
	return frozen
}

func TestStream_AnUploadThatTheProgramDoesNotTakeIsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.serve(portHost(3000), func(rw http.ResponseWriter, r *http.Request) {
			_, _ = r.Body.Read(make([]byte, 1000))
			time.Sleep(5 * time.Hour)
			n, _ := io.Copy(io.Discard, r.Body)
			_, _ = fmt.Fprint(rw, n > 1_000_000)
		})
		frozen := make(chan time.Duration, 1)
		go func() { frozen <- w.looksOften(4 * time.Hour) }()
		body := bytes.NewReader(make([]byte, 2_000_000))
		if a := w.send(w.request("POST", port3000+"/", body, bearer)); a.body != "true" {
			t.Errorf("%d %q", a.StatusCode, a.body)
		}
		if at := <-frozen; at != 0 {
			t.Errorf("nothing used it after %v", at)
		}
		w.wantReleased()
	})
}

func TestStream_AnUploadThatTheProgramDoesNotTakeDoesNotUndoAHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.serve(portHost(3000), func(_ http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Hour)
			_, _ = io.Copy(io.Discard, r.Body)
		})
		time.AfterFunc(20*time.Minute+time.Second, func() {
			w.boxes.uses.Dismiss("1")
			w.boxes.set("ml", sandbox.Frozen, "")
		})
		time.AfterFunc(50*time.Minute, func() {
			if state := w.boxes.state("ml"); state != sandbox.Frozen {
				t.Errorf("it is %s", state)
			}
		})
		w.send(w.request("POST", port3000+"/", bytes.NewReader(make([]byte, 2_000_000)), bearer))
	})
}

func TestStream_WhatTheVisitorDoesNotTakeIsInUseForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.serve(portHost(3000), func(rw http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(rw).Flush()
			time.Sleep(time.Second) // the proxy passes the head on, under a lock that a write would hold
			_, _ = rw.Write(make([]byte, 2_000_000))
		})
		res, err := w.client.Do(w.request("GET", port3000+"/file", nil, bearer))
		if err != nil {
			t.Fatal(err)
		}
		if at := w.looksOften(3 * time.Hour); at < idle.Attention || at > idle.Attention+2*time.Minute {
			t.Errorf("nothing used it after %v", at)
		}
		_ = res.Body.Close()
		w.wantReleased()
	})
}

func TestWebSocket_WhatTheProgramDoesNotTakeIsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		done := make(chan struct{})
		w.serve(portHost(3000), func(rw http.ResponseWriter, r *http.Request) {
			conn, err := (&websocket.Upgrader{}).Upgrade(rw, r, nil)
			if err != nil {
				return
			}
			defer func() { _ = conn.Close() }()
			time.Sleep(5 * time.Hour)
			if _, message, err := conn.ReadMessage(); len(message) != 1_000_000 {
				t.Errorf("%d bytes, %v", len(message), err)
			}
			close(done)
		})
		conn := w.socket(port3000+"/ws", bearer)
		go func() { _ = conn.WriteMessage(websocket.BinaryMessage, make([]byte, 1_000_000)) }()
		if at := w.looksOften(4 * time.Hour); at != 0 {
			t.Errorf("nothing used it after %v", at)
		}
		<-done
		_ = conn.Close()
		w.wantReleased()
	})
}

func TestObserve_EndsWhenTheSandboxIsFrozenUnderIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.serve(portHost(3000), func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/half" {
				_, _ = io.WriteString(rw, "half")
				_ = http.NewResponseController(rw).Flush()
			}
			<-r.Context().Done()
		})
		probe := append(header{hostname.ObserveHeader, "1"}, bearer...)
		begun := time.Now()
		time.AfterFunc(time.Second, func() { w.boxes.set("ml", sandbox.Frozen, "") })
		if a := w.ask("GET", port3000+"/health", probe); a.StatusCode != 504 || time.Since(begun) != observeLimit {
			t.Errorf("%d after %v", a.StatusCode, time.Since(begun))
		}
		w.boxes.set("ml", sandbox.Running, "")
		begun = time.Now()
		res, err := w.client.Do(w.request("GET", port3000+"/half", nil, probe))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(res.Body); err == nil || time.Since(begun) != observeLimit {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		_ = res.Body.Close()
	})
}

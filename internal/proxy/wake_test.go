package proxy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/activity"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
)

// wayIn is one way to send a request.
type wayIn struct {
	name   string
	method string
	body   string
	h      header
}

// waysIn are the ways in of Ann's, who is signed in with cookie.
func waysIn(cookie string) []wayIn {
	return []wayIn{
		{"page", "GET", "", header{"Cookie", cookie, "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Site", "none", "Accept", "text/html"}},
		{"api", "GET", "", header{"Authorization", "Bearer " + annToken, "Accept", "application/json"}},
		{"post", "POST", "a body", header{"Authorization", "Bearer " + annToken}},
		{"form", "POST", "a body", header{"Cookie", cookie, "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Site", "same-origin", "Accept", "text/html"}},
		{"events", "GET", "", header{"Cookie", cookie, "Sec-Fetch-Mode", "cors", "Sec-Fetch-Site", "same-origin", "Accept", "text/event-stream"}},
		{"anonymous", "GET", "", header{"Accept", "application/json"}},
		{"stranger", "GET", "", header{"Authorization", "Bearer " + bobToken}},
		{"probe", "GET", "", header{"Authorization", "Bearer " + annToken, hostname.ObserveHeader, "1"}},
	}
}

// answersAs tells what a program in the sandbox got.
func answersAs(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s", r.Method, body)
}

func TestWake_EveryWayInEveryState(t *testing.T) {
	const quick, slow = 100 * time.Millisecond, 5 * time.Second
	through := map[string]int{"page": 200, "api": 200, "post": 200, "form": 200, "events": 200, "probe": 503}
	started := map[string]int{"page": 200, "api": 200, "post": 200, "form": 200, "events": 503, "probe": 503} // a script starts nothing
	paged := map[string]int{"page": 503, "api": 200, "post": 200, "form": 200, "events": 503, "probe": 503}
	all := func(status int) map[string]int {
		return map[string]int{"page": status, "api": status, "post": status, "form": status, "events": status, "probe": status}
	}
	refused := all(503)
	for what, c := range map[string]struct {
		state  sandbox.State
		takes  time.Duration
		err    error
		status map[string]int
		wakes  bool
		says   string // in a page
	}{
		"running":               {sandbox.Running, quick, nil, all(200), false, ""},
		"frozen":                {sandbox.Frozen, quick, nil, through, true, ""},
		"asleep":                {sandbox.Asleep, quick, nil, started, true, ""},
		"on its way to sleep":   {sandbox.Sleeping, quick, nil, started, true, ""},
		"asleep, slow to start": {sandbox.Asleep, slow, nil, paged, true, "Waking ml…"},
		"stopped":               {sandbox.Stopped, quick, nil, refused, false, "ml is stopped"},
		"being stopped":         {sandbox.Stopping, quick, nil, refused, false, "ml is stopped"},
		"failed":                {sandbox.Failed, quick, nil, refused, false, "ml has failed"},
		"being deleted":         {sandbox.Deleting, quick, nil, all(410), false, "ml is being deleted"},
		"a wake that fails":     {sandbox.Asleep, quick, fault.New(fault.Conflict, "The disk is broken."), refused, true, "The disk is broken."},
		"a full host":           {sandbox.Asleep, 0, fault.New(fault.Unavailable, "The host is full."), refused, false, "The host is full."},
	} {
		for _, d := range waysIn("") {
			t.Run(what+"/"+d.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newStillWorld(t)
					w.serve(portHost(3000), answersAs)
					w.boxes.takes, w.boxes.wakeErr = c.takes, c.err
					w.boxes.set("ml", c.state, "")
					d := waysIn(w.signIn("3000-ml.localhost"))[indexOf(d.name)]
					a := w.send(w.request(d.method, port3000+"/x", strings.NewReader(d.body), d.h))
					want := map[string]int{"anonymous": 401, "stranger": 404}[d.name]
					if want == 0 {
						want = c.status[d.name]
					}
					if a.StatusCode != want || want == 200 && a.body != d.method+" "+d.body {
						t.Errorf("%d %q, want %d", a.StatusCode, a.body, want)
					}
					turnedAway := d.name == "probe" || d.name == "events" && (c.state == sandbox.Asleep || c.state == sandbox.Sleeping)
					if got := w.boxes.woken(); got != 0 != (c.wakes && d.name != "anonymous" && d.name != "stranger" && !turnedAway) {
						t.Errorf("woken %d times", got)
					}
					if d.name == "page" && !contains(a.body, c.says) {
						t.Errorf("the page does not say %q: %s", c.says, a.body)
					}
					if got := a.Header.Get(stateHeader); turnedAway != (got == string(c.state)) {
						t.Errorf("state %q", got)
					}
				})
			})
		}
	}
}

func indexOf(name string) int {
	for i, d := range waysIn("") {
		if d.name == name {
			return i
		}
	}
	return -1
}

func TestWake_TellsWhoWakes(t *testing.T) {
	for name, want := range map[string]activity.Caller{
		"page": {UserID: "u-ann", User: "ann", Via: activity.Address, From: "127.0.0.1"},
		"api":  {UserID: "u-ann", User: "ann", Token: "t1", Via: activity.Address, From: "127.0.0.1"},
	} {
		w := newWorld(t)
		w.serve(portHost(3000), answersAs)
		w.boxes.set("ml", sandbox.Frozen, "")
		d := waysIn(w.signIn("3000-ml.localhost"))[indexOf(name)]
		w.send(w.request(d.method, port3000+"/x", nil, d.h))
		w.boxes.mu.Lock()
		if got := w.boxes.by; got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		w.boxes.mu.Unlock()
	}
}

func TestWake_ManyWaitersStartOnceAndAllAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.serve(portHost(3000), greet)
		w.boxes.takes = 3 * time.Second
		w.boxes.set("ml", sandbox.Asleep, "")
		begun := time.Now()
		var asking sync.WaitGroup
		for range 100 {
			asking.Go(func() {
				a := w.ask("GET", port3000+"/", bearer)
				if took := time.Since(begun); a.body != "hello" || took > 3100*time.Millisecond {
					t.Errorf("%d %q after %v", a.StatusCode, a.body, took)
				}
			})
		}
		asking.Wait()
		if got := w.boxes.woken(); got != 1 {
			t.Errorf("%d wakes", got)
		}
	})
}

func TestWake_AnAcceptedStartIsWaitedForAlsoBeforeItsTurn(t *testing.T) {
	for _, state := range []sandbox.State{sandbox.Stopping, sandbox.Stopped, sandbox.Failed} {
		synctest.Test(t, func(t *testing.T) {
			w := newStillWorld(t)
			w.serve(portHost(3000), greet)
			w.boxes.starts = true
			w.boxes.set("ml", state, "")
			time.AfterFunc(20*time.Second, func() { w.boxes.set("ml", sandbox.Running, "") })
			if a := w.ask("GET", port3000+"/", header{"Cookie", w.signIn("3000-ml.localhost"), "Sec-Fetch-Mode", "navigate"}); !contains(a.body, "Waking ml…") {
				t.Errorf("%s, a page: %d %s", state, a.StatusCode, a.body)
			}
			if a := w.ask("GET", port3000+"/", bearer); a.body != "hello" {
				t.Errorf("%s: %d %s", state, a.StatusCode, a.body)
			}
		})
	}
}

func TestWake_TheUseIsRegisteredBeforeTheWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.serve(portHost(3000), greet)
		w.boxes.takes = time.Second
		w.boxes.set("ml", sandbox.Asleep, "")
		time.AfterFunc(500*time.Millisecond, func() {
			because := w.boxes.uses.Status("1").Because
			if len(because) != 1 || because[0].Kind != idle.Web || because[0].Detail != "GET /lab/tree" {
				t.Errorf("while waking: %+v", because)
			}
		})
		w.wantStatus(w.ask("GET", port3000+"/lab/tree?token=secret", bearer), 200)
	})
}

func TestWake_WhatTakesTooLongIsToldWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.boxes.takes = time.Hour
		for _, state := range []sandbox.State{sandbox.Asleep, sandbox.Creating, sandbox.Starting} {
			w.boxes.set("ml", state, "")
			begun := time.Now()
			a := w.ask("POST", port3000+"/", asProgram)
			if took := time.Since(begun); a.StatusCode != 504 || took != wakeLimit || !contains(a.body, `"code":"timeout"`, "ml is not ready yet.") {
				t.Errorf("%s: %d after %v: %s", state, a.StatusCode, took, a.body)
			}
			begun = time.Now()
			a = w.ask("GET", port3000+"/", asPerson)
			if took := time.Since(begun); a.StatusCode != 503 || took != pageAfter || a.Header.Get("Retry-After") != "2" {
				t.Errorf("%s: %d after %v", state, a.StatusCode, took)
			}
		}
	})
}

func TestWake_AVisitorWhoLeavesDoesNotUndoIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.serve(portHost(3000), greet)
		w.boxes.takes = 10 * time.Second
		w.boxes.set("ml", sandbox.Asleep, "")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.client.Do(w.request("GET", port3000+"/", nil, bearer).WithContext(ctx)); err == nil {
			t.Error("an answer came")
		}
		time.Sleep(10 * time.Second)
		if w.boxes.state("ml") != sandbox.Running || w.boxes.woken() != 1 {
			t.Errorf("%s after %d wakes", w.boxes.state("ml"), w.boxes.woken())
		}
		w.wantReleased()
	})
}

// reluctant is a body that tells whether it has been read.
type reluctant struct {
	io.Reader
	read chan struct{}
	once sync.Once
}

func (r *reluctant) Read(p []byte) (int, error) {
	r.once.Do(func() { close(r.read) })
	return r.Reader.Read(p)
}

func TestWake_ABodyIsReadOnlyWhenTheSandboxIsThereAndArrivesWhole(t *testing.T) {
	const size = 8 << 20
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.boxes.takes = 5 * time.Second
		w.boxes.set("ml", sandbox.Asleep, "")
		got := sha256.New()
		w.serve(portHost(3000), func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(got, r.Body) })
		sent := sha256.New()
		body := &reluctant{Reader: io.TeeReader(io.LimitReader(rand.NewChaCha8([32]byte{2}), size), sent), read: make(chan struct{})}
		r := w.request("PUT", port3000+"/", io.NopCloser(body), bearer)
		r.ContentLength = size
		r.Header.Set("Expect", "100-continue")
		w.client.Transport.(*http.Transport).ExpectContinueTimeout = time.Hour // it waits for the word
		begun := time.Now()
		go func() {
			<-body.read
			if took := time.Since(begun); took < 5*time.Second {
				t.Errorf("the body was asked for after %v", took)
			}
		}()
		w.wantStatus(w.send(r), 200)
		if !bytes.Equal(sent.Sum(nil), got.Sum(nil)) {
			t.Error("another body arrived")
		}
	})
}

func TestWake_ADeletedSandboxIsGoneForThoseWhoHadIt(t *testing.T) {
	w := newWorld(t)
	w.boxes.put("ml", sandbox.Sandbox{})
	w.boxes.tombstones["ml"] = sandbox.Tombstone{Name: "ml", Owner: "u-ann", Deleted: time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)}
	for token, status := range map[string]int{annToken: 410, rootToken: 410, bobToken: 404, oneToken: 404} {
		a := w.ask("GET", port3000+"/", header{"Authorization", "Bearer " + token, "Accept", "text/html"})
		if a.StatusCode != status || status == 410 != contains(a.body, "ml has been deleted", "It was deleted on 3 November 2026") {
			t.Errorf("%s: %d %s", token, a.StatusCode, a.body)
		}
	}
	w.wantStatus(w.ask("POST", port3000+"/", nil), 401)
	if opened, _ := w.boxes.entered(); opened != 0 {
		t.Errorf("%d sessions were opened", opened)
	}
}

func TestWake_APooledSandboxIsNobodys(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	w.boxes.put("ml", sandbox.Sandbox{ID: "1", Name: "ml", State: sandbox.Frozen, Pooled: true})
	for _, token := range []string{annToken, rootToken} {
		w.wantStatus(w.ask("GET", port3000+"/", header{"Authorization", "Bearer " + token}), 404)
	}
	if w.boxes.woken() != 0 {
		t.Error("it was woken")
	}
}

func TestWake_AFullHostSaysWhenToTryAgain(t *testing.T) {
	w := newWorld(t)
	w.boxes.set("ml", sandbox.Asleep, "")
	w.boxes.wakeErr = fault.New(fault.Unavailable, "The host has no memory left.")
	a := w.ask("GET", port3000+"/", asProgram)
	if a.StatusCode != 503 || a.Header.Get("Retry-After") != "5" || !contains(a.body, `"code":"unavailable"`, "The host has no memory left.") {
		t.Errorf("%d %v %s", a.StatusCode, a.Header, a.body)
	}
	a = w.ask("GET", port3000+"/", asPerson)
	if a.StatusCode != 503 || !contains(a.body, "ml cannot be woken now", "The host has no memory left.", `data-wait="/.sandboxd/wait"`) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

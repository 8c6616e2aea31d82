package proxy

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/html"

	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// askWait asks as a waiting page does, and tells how long the answer took.
func (w *world) askWait(h header) (waitAnswer, time.Duration) {
	w.t.Helper()
	begun := time.Now()
	a := w.ask("GET", port3000+waitPath, h)
	w.wantStatus(a, 200)
	var o waitAnswer
	if err := json.Unmarshal([]byte(a.body), &o); err != nil || a.Header.Get("Cache-Control") != "no-store" {
		w.t.Fatalf("%v %q", a.Header, a.body)
	}
	return o, time.Since(begun)
}

func TestWaitingPage_GoesOnByItselfAlsoWithoutScripts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.boxes.takes = time.Minute
		w.boxes.set("ml", sandbox.Asleep, "")
		a := w.ask("GET", port3000+"/a?b=c", asPerson)
		if a.StatusCode != 503 || a.Header.Get("Cache-Control") != "no-store" || a.Header.Get(noticeHeader) != "waking" || a.Header.Get("Retry-After") != "2" {
			t.Errorf("%d %v", a.StatusCode, a.Header)
		}
		doc, err := html.Parse(strings.NewReader(a.body))
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for n := range doc.Descendants() {
			switch {
			case n.Data == "h1":
				found[n.FirstChild.Data] = true
			case n.Data == "noscript":
				found[n.FirstChild.Data] = true
			case n.Data == "script":
				found[n.Attr[0].Val] = true
			}
		}
		for _, want := range []string{"Waking ml…", `<meta http-equiv="refresh" content="2">`, scriptPath} {
			if !found[want] {
				t.Errorf("the page lacks %q: %v", want, found)
			}
		}
	})
}

func TestWaitingPage_IsToldWhenToGoOnAndHowFarItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		cookie := header{"Cookie", w.signIn("3000-ml.localhost"), "Sec-Fetch-Mode", "cors", "Sec-Fetch-Site", "same-origin"}
		w.boxes.takes = 7 * time.Second
		w.boxes.set("ml", sandbox.Asleep, "")
		w.wantStatus(w.ask("GET", port3000+"/", append(header{"Accept", "text/html", "Sec-Fetch-Mode", "navigate"}, cookie[:2]...)), 503)
		for phase, says := range map[sandbox.Phase]string{sandbox.PhaseStart: "It is being started.", sandbox.PhaseReady: "about to answer"} {
			w.boxes.progress.Phase = phase
			if o, took := w.askWait(cookie); o.Go || took != waitLimit || !contains(o.Text, says) {
				t.Errorf("%s: %+v after %v", phase, o, took)
			}
		}
		if o, took := w.askWait(cookie); !o.Go || took != 1500*time.Millisecond {
			t.Errorf("when it is there: %+v after %v", o, took)
		}
		if got := w.boxes.woken(); got != 1 {
			t.Errorf("%d wakes", got)
		}
	})
}

func TestWaitingPage_WaitsForADeclaredServiceToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.session.services = []wire.ServiceStatus{{Name: "lab", Port: 3000, State: wire.ServiceRunning}}
		w.boxes.set("ml", sandbox.Running, "")
		if a := w.ask("GET", port3000+"/", asPerson); a.StatusCode != 503 || !contains(a.body, "Waking ml…", "It is awake") {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
		if o, took := w.askWait(bearer); o.Go || took != waitLimit {
			t.Errorf("before it answers: %+v after %v", o, took)
		}
		w.serve(portHost(3000), greet)
		if o, took := w.askWait(bearer); !o.Go || took > longPause {
			t.Errorf("when it answers: %+v after %v", o, took)
		}
		if a := w.ask("GET", port3000+"/", asPerson); a.body != "hello" {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
	})
}

func TestWaitingPage_EndsWhenThereIsNothingToWaitFor(t *testing.T) {
	w := newWorld(t)
	for _, state := range []sandbox.State{sandbox.Stopped, sandbox.Failed, sandbox.Deleting, sandbox.Running} {
		w.boxes.set("ml", state, "")
		if o, _ := w.askWait(bearer); !o.Go {
			t.Errorf("%s: %+v", state, o)
		}
	}
	w.boxes.set("ml", sandbox.Asleep, "")
	w.boxes.openErr = fault.New(fault.Unavailable, "The host is full.")
	if o, _ := w.askWait(bearer); o.Go || o.Again != int(fault.DefaultRetry.Seconds()) || o.Text != "The host is full." {
		t.Errorf("on a full host: %+v", o)
	}
	w.boxes.put("ml", sandbox.Sandbox{})
	w.wantStatus(w.ask("GET", port3000+waitPath, bearer), 404)
	w.wantStatus(w.ask("GET", port3000+waitPath, nil), 401)
	w.wantStatus(w.ask("GET", port3000+waitPath, header{"Cookie", w.signIn("3000-ml.localhost"), "Sec-Fetch-Site", "same-site"}), 403)
	w.wantStatus(w.ask("POST", port3000+waitPath, bearer), 405)
}

func TestWaitingPage_AForgottenOneDoesNotWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStillWorld(t)
		w.boxes.set("ml", sandbox.Asleep, "")
		w.boxes.uses.Touch("1", idle.Use{Kind: idle.Web})
		time.Sleep(2 * time.Hour)
		if o, _ := w.askWait(bearer); o.Go || !o.Stay || !contains(o.Text, "ml is asleep. Reload the page") {
			t.Errorf("%+v", o)
		}
		if w.boxes.woken() != 0 {
			t.Error("it was woken")
		}
	})
}

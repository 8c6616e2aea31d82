package proxy

import (
	"strings"
	"testing"

	"sandboxd/internal/auth"
	"sandboxd/internal/sandbox"
)

const emptied = `"storage"`

// arrive signs a browser in at a host and gives the answer that brings its session, and all cookies that it has then.
func (w *world) arrive(address string, before header) (back answer, cookies header) {
	w.t.Helper()
	j := w.begin(address, before)
	a := w.ask("GET", j.mustPass(), append(append(header{"Cookie", j.nonce}, before...), page...))
	w.wantStatus(a, 303)
	cookies = append(cookies, before...)
	for _, c := range a.Cookies() {
		if c.MaxAge >= 0 {
			cookies = append(cookies, "Cookie", c.Name+"="+c.Value)
		}
	}
	return a, cookies
}

func sandboxOf(a answer) string {
	for _, c := range a.Cookies() {
		if strings.HasSuffix(c.Name, "sandboxd_box") {
			return c.Value
		}
	}
	return ""
}

func TestStaleData_TheFirstSignInClearsWhatOthersHaveLeftAndTheNextDoesNot(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	a, cookies := w.arrive(port3000+"/", nil)
	if a.Header.Get("Clear-Site-Data") != emptied || sandboxOf(a) != "1" {
		t.Errorf("the first time: %v", a.Header)
	}
	for _, c := range a.Cookies() {
		if c.Name == w.cookie(sandboxCookie) && (!c.HttpOnly || c.Domain != "" || c.Path != "/" || c.MaxAge < 86400) {
			t.Errorf("cookie = %q", c.Raw)
		}
	}
	w.wantStatus(w.ask("GET", port3000+"/", append(cookies, page...)), 200)
	var known header // without the session, which has ended
	for i := 1; i < len(cookies); i += 2 {
		if strings.HasPrefix(cookies[i], w.cookie(sandboxCookie)) {
			known = header{"Cookie", cookies[i]}
		}
	}
	if a, _ = w.arrive(port3000+"/", known); a.Header.Get("Clear-Site-Data") != "" || sandboxOf(a) != "" {
		t.Errorf("once more: %v", a.Header)
	}
}

func TestStaleData_ANewSandboxAtTheHostIsEnteredByWayOfTheDashboard(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	_, cookies := w.arrive(port3000+"/", nil)
	w.boxes.put("ml", sandbox.Sandbox{ID: "9", Name: "ml", Owner: "u-ann", State: sandbox.Running})
	w.wantStatus(w.ask("GET", port3000+"/", append(cookies, "Accept", "*/*")), 401) // of a page that is open already
	w.wantStatus(w.ask("GET", port3000+"/", append(cookies, page...)), 303)
	a, cookies := w.arrive(port3000+"/x", cookies)
	if a.Header.Get("Clear-Site-Data") != emptied || sandboxOf(a) != "9" || a.Header.Get("Location") != port3000+"/x" {
		t.Errorf("%v", a.Header)
	}
	w.wantStatus(w.ask("GET", port3000+"/x", append(cookies, page...)), 200)
}

func TestStaleData_AFormerSandboxsServiceWorkerEndsAndANewOneWorks(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	worker := header{"Service-Worker", "script", "Sec-Fetch-Site", "same-origin"}
	_, cookies := w.arrive(port3000+"/", nil)
	w.wantStatus(w.ask("GET", port3000+"/sw.js", append(cookies, worker...)), 200)
	w.boxes.put("ml", sandbox.Sandbox{ID: "9", Name: "ml", Owner: "u-ann", State: sandbox.Running})
	if a := w.ask("GET", port3000+"/sw.js", append(cookies, worker...)); a.StatusCode != 403 || a.Header.Get("Clear-Site-Data") != emptied {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
	_, cookies = w.arrive(port3000+"/", cookies)
	w.wantStatus(w.ask("GET", port3000+"/sw.js", append(cookies, worker...)), 200)
}

func TestStaleData_AnUnknownBrowserDoesNotLearnWhichSandboxesThereAre(t *testing.T) {
	w := newWorld(t)
	for _, value := range []string{"", "x"} {
		h := header{"Service-Worker", "script", "Cookie", w.cookie(sandboxCookie) + "=" + value}
		for _, host := range []string{"3000-ml", "3000-nobodys", "web--ml", "nothing--ml"} {
			w.wantStatus(w.ask("GET", "http://"+host+".localhost:8080/sw.js", h), 403)
		}
	}
}

func TestStaleData_NoServiceWorkerComesToATerminal(t *testing.T) {
	w := newWorld(t)
	w.serve(tabHost("main"), greet)
	for _, path := range []string{"/sw.js", "/t/x/sw.js", "/.sandboxd/static/sw.js"} {
		a := w.ask("GET", "http://ml.localhost:8080"+path, append(header{"Service-Worker", "script"}, bearer...))
		if a.StatusCode != 403 || a.Header.Get("Clear-Site-Data") != emptied {
			t.Errorf("%s: %d %v", path, a.StatusCode, a.Header)
		}
	}
}

func TestStaleData_NeighboursCookiesMakeNoCircle(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), greet)
	_, cookies := w.arrive(port3000+"/", nil)
	tossed := append(header{"Cookie", w.cookie(sandboxCookie) + "=evil"}, cookies...)
	w.wantStatus(w.ask("GET", port3000+"/", append(tossed, page...)), 200)
	many := header{"Cookie", strings.Repeat(w.cookie(sandboxCookie)+"=evil; ", auth.MaxShown+1) + w.signIn("3000-ml.localhost")}
	w.wantStatus(w.ask("GET", port3000+"/", append(many, page...)), 200)
}

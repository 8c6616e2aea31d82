package proxy

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// asPerson and asProgram are Ann's two ways of asking.
var (
	asPerson  = append(header{"Accept", "text/html"}, bearer...)
	asProgram = append(header{"Accept", "application/json"}, bearer...)
)

func TestNotice_EachStateSaysWhatToDo(t *testing.T) {
	w := newWorld(t)
	w.serve(portHost(3000), func(http.ResponseWriter, *http.Request) { t.Error("the sandbox was asked") })
	for _, c := range []struct {
		state  sandbox.State
		status int
		says   string
	}{
		{sandbox.Stopping, 503, "ml is stopped"},
		{sandbox.Stopped, 503, "ml is stopped"},
		{sandbox.Failed, 503, "step 4 &lt;b&gt;"},
		{sandbox.Deleting, 410, "ml is being deleted"},
	} {
		w.boxes.set("ml", c.state, "step 4 <b>")
		a := w.ask("GET", port3000+"/", asPerson)
		refreshes := strings.Contains(a.body, scriptPath) || strings.Contains(a.body, `http-equiv="refresh"`) || a.Header.Get("Retry-After") != ""
		if a.StatusCode != c.status || !contains(a.body, c.says, "http://localhost:8080/") || refreshes {
			t.Errorf("%s: %d\n%s", c.state, a.StatusCode, a.body)
		}
	}
	if opened, _ := w.boxes.entered(); opened != 0 {
		t.Errorf("a request opened %d sessions", opened)
	}
}

func TestNotice_ProgramsGetTheSameAsAProblem(t *testing.T) {
	w := newWorld(t)
	w.boxes.set("ml", sandbox.Stopped, "")
	a := w.ask("POST", port3000+"/", asProgram)
	var p struct {
		Type, Title, Detail, Code, Hint string
		Status                          int
	}
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		t.Fatal(err)
	}
	if a.StatusCode != 503 || p.Status != 503 || p.Code != "stopped" || !contains(p.Detail, "stopped it") || p.Hint == "" || p.Type != "about:blank" {
		t.Errorf("%d %+v", a.StatusCode, p)
	}
}

func TestNotice_WhereNothingListensAProgramIsToldTheSame(t *testing.T) {
	w := newWorld(t)
	a := w.ask("GET", port3000+"/", asProgram)
	w.wantStatus(a, 502)
	if !contains(a.body, `"detail":"Nothing is listening on port 3000 in ml. Start a program`, `"hint":"For example, in the terminal: python3 -m http.server 3000"`) {
		t.Error(a.body)
	}
}

func TestNotice_WhereNothingListensThePageSaysSoAndLooksAgain(t *testing.T) {
	w := newWorld(t)
	a := w.ask("GET", port3000+"/", asPerson)
	w.wantStatus(a, 502)
	if !contains(a.body, "Nothing is listening on port 3000 in ml", "python3 -m http.server 3000", "http://ml.localhost:8080/", scriptPath) {
		t.Error(a.body)
	}
	if got := a.Header.Get(noticeHeader); got != "nothing_listens" || !contains(a.body, `data-notice="`+got+`"`) {
		t.Errorf("notice = %q", got)
	}
	w.serve(portHost(3000), greet)
	if a := w.ask("GET", port3000+"/", asPerson); a.body != "hello" || a.Header.Get(noticeHeader) != "" {
		t.Errorf("after it has started: %q %v", a.body, a.Header)
	}
	script := w.ask("GET", port3000+scriptPath, nil)
	if script.StatusCode != 200 || !contains(script.Header.Get("Content-Type"), "javascript") || !contains(script.body, noticeHeader) {
		t.Errorf("script: %d %s", script.StatusCode, script.body)
	}
	if head := w.ask("HEAD", port3000+"/nope", header{"Authorization", "Bearer " + bobToken}); head.StatusCode != 404 || head.body != "" {
		t.Errorf("HEAD: %d %q", head.StatusCode, head.body)
	}
}

func TestNotice_ThePolicyAllowsOurStyleAndNothingElse(t *testing.T) {
	w := newWorld(t)
	a := w.ask("GET", port3000+"/", asPerson)
	doc, err := html.Parse(strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	policy := a.Header.Get("Content-Security-Policy")
	for n := range doc.Descendants() {
		switch {
		case n.Type != html.ElementNode:
		case n.Data == "style":
			sum := sha256.Sum256([]byte(n.FirstChild.Data))
			if want := "style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !contains(policy, want) {
				t.Errorf("%q lacks %q", policy, want)
			}
		case n.Data == "script" && (n.FirstChild != nil || len(n.Attr) == 0):
			t.Error("there is an inline script")
		}
		for _, attr := range n.Attr {
			if attr.Key == "style" || strings.HasPrefix(attr.Key, "on") {
				t.Errorf("inline %s", attr.Key)
			}
		}
	}
	if !contains(policy, "default-src 'none'", "base-uri 'none'", "form-action 'none'") || a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("policy %q, headers %v", policy, a.Header)
	}
}

func TestNotice_AnErrorOfOpeningIsShown(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		err     error
		status  int
		says    string
		refresh bool
	}{
		{fault.New(fault.NotFound, "gone"), 404, "No such sandbox", false},
		{fault.New(fault.Conflict, "ml was stopped by its owner: start it first."), 503, "start it first", false},
		{fault.New(fault.Unavailable, "The guest does not answer."), 503, "The guest does not answer.", true},
		{fault.New(fault.Timeout, "It took too long."), 504, "It took too long.", false},
		{fault.New(fault.Limited, "Too many."), 429, "Too many.", true},
		{errors.New("secret"), 500, "Something went wrong", false},
	} {
		w.boxes.openErr = c.err
		a := w.ask("GET", port3000+"/", asPerson)
		if a.StatusCode != c.status || !contains(a.body, c.says) || strings.Contains(a.body, scriptPath) != c.refresh || strings.Contains(a.body, "secret") {
			t.Errorf("%v: %d\n%s", c.err, a.StatusCode, a.body)
		}
	}
}

func TestNotice_UnknownHosts(t *testing.T) {
	w := newWorld(t)
	for address, status := range map[string]int{
		"http://evil.com/":                421,
		"http://evil.com:8080/":           421,
		"http://ml.localhost:9090/":       404,
		"http://localhost:8080/":          421,
		"http://a.b.localhost:8080/":      404,
		"http://UPPER--x.localhost:8080/": 404,
		"http://99999-ml.localhost:8080/": 404,
		"http://ml.localhost.evil.com/":   421,
	} {
		a := w.ask("GET", address, asPerson)
		if a.StatusCode != status || strings.Contains(a.body, "evil") {
			t.Errorf("%s: %d %s", address, a.StatusCode, a.body)
		}
	}
}

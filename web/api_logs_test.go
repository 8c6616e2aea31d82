package web

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/auth"
	"sandboxd/internal/logs"
)

// logsShape is what a search answers.
type logsShape struct {
	Lines []logShape `json:"lines"`
	logsEnd
}

// say appends lines of a service, a second apart, the last one now.
func (w *world) say(name, service string, texts ...string) {
	w.t.Helper()
	now := time.Now()
	for i, text := range texts {
		w.logs.Append(logs.Line{Sandbox: w.ref(name).ID(), Service: service, Text: text, Time: now.Add(time.Duration(i-len(texts)+1) * time.Second)})
	}
}

// logOf gives the texts that a user finds.
func (w *world) logOf(user, query string) (texts []string) {
	w.t.Helper()
	var found logsShape
	if err := json.Unmarshal(w.call(user, "GET", "/api/v1/logs"+query, "").is(http.StatusOK).Body.Bytes(), &found); err != nil {
		w.t.Fatal(err)
	}
	for _, l := range found.Lines {
		texts = append(texts, l.Text)
	}
	return texts
}

// logWorld has two people with a sandbox each.
func logWorld(t *testing.T) *world {
	w := newWorld(t)
	w.box("ada", "lab")
	w.box("bob", "den")
	w.say("lab", "web", "GET / 200", "error: no disk <b>", "GET /x 404")
	w.say("lab", "db", `{"level":"warn","msg":"slow query"}`)
	w.say("den", "web", "bob's secret GET")
	return w
}

func TestLogs_AMemberSeesOnlyTheirOwn(t *testing.T) {
	w := logWorld(t)
	limited := w.token("root", auth.NewToken{Name: "one", Sandbox: "lab", SandboxID: w.ref("lab").ID()})
	for _, c := range []struct {
		user, query string
		want        int
	}{{"ada", "", 4}, {"bob", "", 1}, {"root", "", 5}, {"ada", "?q=secret", 0}, {"root", "?owner=bob", 1}, {"ada", "?owner=ada", 4}, {"root", "?sandbox=den", 1}} {
		if got := w.logOf(c.user, c.query); len(got) != c.want {
			t.Errorf("%s finds %q with %q, want %d lines", c.user, got, c.query, c.want)
		}
	}
	w.call("ada", "GET", "/api/v1/logs?sandbox=den", "").problem(http.StatusNotFound, "not_found", "")
	w.call("ada", "GET", "/api/v1/logs?owner=bob", "").problem(http.StatusBadRequest, "invalid", "owner")
	w.call("ada", "GET", "/api/v1/logs?owner=nobody", "").problem(http.StatusBadRequest, "invalid", "owner")
	r := w.call("", "GET", "/api/v1/logs", "", "Authorization", "Bearer "+limited)
	if body := r.is(http.StatusOK).Body.String(); strings.Contains(body, "secret") || !strings.Contains(body, "no disk") {
		t.Errorf("a token for one sandbox finds %s", body)
	}
	var found logsShape
	if err := json.Unmarshal(w.call("bob", "GET", "/api/v1/logs", "").Body.Bytes(), &found); err != nil {
		t.Fatal(err)
	}
	w.call("ada", "GET", "/api/v1/logs/"+found.Lines[0].ID, "").problem(http.StatusNotFound, "not_found", "")
	w.call("bob", "GET", "/api/v1/logs/"+found.Lines[0].ID, "").is(http.StatusOK)
}

func TestLogs_Filters(t *testing.T) {
	w := logWorld(t)
	for query, want := range map[string]string{
		"?q=get":                    "GET /x 404|GET / 200",
		"?q=%22no%20disk%22":        "error: no disk <b>",
		"?level=error,warn":         `{"level":"warn","msg":"slow query"}|error: no disk <b>`,
		"?service=db":               `{"level":"warn","msg":"slow query"}`,
		"?service=web&limit=1":      "GET /x 404",
		"?since=500ms&service=web":  "GET /x 404",
		"?until=1500ms&service=web": "GET / 200",
		"?q=nothing":                "",
	} {
		if got := strings.Join(w.logOf("ada", query), "|"); got != want {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
	for query, field := range map[string]string{
		"since=x": "since", "until=x": "until", "limit=0": "limit", "limit=1001": "limit", "next=%00": "next", "level=loud": "level",
		"q=" + strings.Repeat("x", 2000): "q", "follow=perhaps": "follow",
	} {
		w.call("ada", "GET", "/api/v1/logs?"+query, "").problem(http.StatusBadRequest, "invalid", field)
	}
}

func TestLogs_PagesAndLinesAround(t *testing.T) {
	w := logWorld(t)
	var all []string
	query := "?limit=2"
	for range 5 {
		var found logsShape
		if err := json.Unmarshal(w.call("ada", "GET", "/api/v1/logs"+query, "").is(http.StatusOK).Body.Bytes(), &found); err != nil {
			t.Fatal(err)
		}
		for _, l := range found.Lines {
			all = append(all, l.ID)
		}
		if found.Next == nil {
			break
		}
		query = "?limit=2&next=" + *found.Next
	}
	if len(all) != 4 {
		t.Fatalf("%d lines over all pages", len(all))
	}
	var around logsShape
	if err := json.Unmarshal(w.call("ada", "GET", "/api/v1/logs/"+all[2]+"?lines=1", "").is(http.StatusOK).Body.Bytes(), &around); err != nil {
		t.Fatal(err)
	}
	if len(around.Lines) != 3 || around.Lines[1].ID != all[2] {
		t.Errorf("around %s: %+v", all[2], around.Lines)
	}
	for _, bad := range []string{"x%20y", "0", "zzzzzzzzzzzzzzzzzzz"} {
		w.call("ada", "GET", "/api/v1/logs/"+bad, "").is(http.StatusBadRequest)
	}
	w.call("ada", "GET", "/api/v1/logs/abc", "").is(http.StatusNotFound)
	lines := strings.Split(strings.TrimSpace(w.call("ada", "GET", "/api/v1/logs", "", "Accept", lineType).is(http.StatusOK).Body.String()), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], `{"id":`) {
		t.Errorf("as lines: %q", lines)
	}
}

func TestLogs_FollowGivesWhatComesAlsoOfANewSandbox(t *testing.T) {
	w := logWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	resp := w.open(ctx, "ada", "GET", "/api/v1/logs?follow=true&q=line", "", "")
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	next := func(want string) {
		t.Helper()
		for lines.Scan() {
			if lines.Text() == "" {
				continue
			}
			var l logShape
			if err := json.Unmarshal(lines.Bytes(), &l); err != nil || l.Text != want {
				t.Fatalf("got %s, want %q", lines.Text(), want)
			}
			return
		}
		t.Fatal("the tail has ended")
	}
	w.say("den", "web", "line of bob's")
	w.say("lab", "web", "no match", "line one")
	next("line one")
	w.box("ada", "more")
	stop := make(chan struct{})
	defer close(stop)
	go func() { // it is seen within some seconds, also while another one writes
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.say("lab", "web", "line of an old one")
				w.say("more", "web", "line of a new one")
			case <-stop:
				return
			}
		}
	}()
	for lines.Scan() {
		if strings.Contains(lines.Text(), "line of a new one") {
			return
		}
	}
	t.Error("the tail has ended without a line of the new one")
}

func TestLogs_AKeptLogOutlivesItsSandbox(t *testing.T) {
	w := logWorld(t)
	id := w.ref("lab").ID()
	w.call("ada", "DELETE", "/api/v1/sandboxes/lab?keep_log=maybe", "").problem(http.StatusBadRequest, "invalid", "keep_log")
	w.call("bob", "DELETE", "/api/v1/sandboxes/lab?keep_log=true", "").problem(http.StatusNotFound, "not_found", "")
	w.call("ada", "DELETE", "/api/v1/sandboxes/lab?wait=gone&keep_log=true", "").is(http.StatusNoContent)
	if body := w.call("ada", "GET", "/api/v1/logs/kept", "").is(http.StatusOK).Body.String(); !strings.Contains(body, `"sandbox_id":"`+id+`","name":"lab"`) {
		t.Errorf("kept: %s", body)
	}
	if body := w.call("bob", "GET", "/api/v1/logs/kept", "").is(http.StatusOK).Body.String(); strings.Contains(body, id) {
		t.Errorf("bob is told of it: %s", body)
	}
	for _, c := range []struct {
		user, query string
		want        int
	}{{"ada", "", 4}, {"ada", "?sandbox=lab", 4}, {"ada", "?sandbox=" + id, 4}, {"bob", "", 1}, {"root", "", 5}, {"root", "?owner=ada", 4}, {"root", "?owner=bob", 1}} {
		if got := w.logOf(c.user, c.query); len(got) != c.want {
			t.Errorf("%s finds %q with %q, want %d lines", c.user, got, c.query, c.want)
		}
	}
	w.call("bob", "GET", "/api/v1/logs?sandbox="+id, "").problem(http.StatusNotFound, "not_found", "")
	w.call("bob", "DELETE", "/api/v1/logs/kept/"+id, "").problem(http.StatusNotFound, "not_found", "")
	w.call("bob", "DELETE", "/api/v1/logs/kept/"+w.ref("den").ID(), "").problem(http.StatusNotFound, "not_found", "")

	w.box("bob", "lab") // the name is another's now
	w.say("lab", "web", "of the new one")
	for query, want := range map[string]int{"?sandbox=lab": 4, "?sandbox=" + id: 4, "": 4} {
		if got := w.logOf("ada", query); len(got) != want {
			t.Errorf("ada finds %q with %q", got, query)
		}
	}
	if got := w.logOf("bob", "?sandbox=lab"); len(got) != 1 {
		t.Errorf("bob finds %q", got)
	}
	w.call("ada", "DELETE", "/api/v1/logs/kept/"+id, "").is(http.StatusNoContent)
	w.call("ada", "DELETE", "/api/v1/logs/kept/"+id, "").problem(http.StatusNotFound, "not_found", "")
	if got := w.logOf("ada", ""); len(got) != 0 {
		t.Errorf("deleted, and ada finds %q", got)
	}
}

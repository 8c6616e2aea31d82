package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"sandboxd/internal/auth"
	"sandboxd/internal/logs"
)

// controls are n lines of a service that are as long as lines are, each byte of which is six in JSON.
func controls(n int) (texts []string) {
	for i := range n {
		texts = append(texts, fmt.Sprintf("%04d", i)+strings.Repeat("\x01", logs.MaxText-4))
	}
	return texts
}

func TestLogs_AnAnswerIsBoundedInBytesAndNothingIsLost(t *testing.T) {
	w := logWorld(t)
	const all = 700
	w.say("lab", "flood", controls(all)...)
	get := func(path string) (found logsShape) {
		t.Helper()
		if err := json.Unmarshal(w.call("ada", "GET", path, "").is(http.StatusOK).Body.Bytes(), &found); err != nil {
			t.Fatal(err)
		}
		return found
	}
	var ids []string
	pages := 0
	for next := ""; ; pages++ {
		found := get("/api/v1/logs?service=flood&limit=1000" + next)
		if n := len(found.Lines); n*logs.MaxText > logs.MaxPage {
			t.Errorf("%d lines at once", n)
		}
		for _, l := range found.Lines {
			if want := fmt.Sprintf("%04d\x01", all-1-len(ids)); !strings.HasPrefix(l.Text, want) {
				t.Fatalf("%.6q, want %q", l.Text, want)
			}
			ids = append(ids, l.ID)
		}
		if (found.Next == nil) != (found.SearchedBackTo == nil) {
			t.Errorf("next %v, searched back to %v", found.Next, found.SearchedBackTo)
		}
		if found.Next == nil {
			break
		}
		next = "&next=" + *found.Next
	}
	if len(ids) != all || pages != 2 {
		t.Errorf("%d lines on %d pages", len(ids), pages+1)
	}
	middle := ids[all/2]
	around := get("/api/v1/logs/" + middle + "?lines=1000").Lines
	side := logs.MaxPage / 2 / logs.MaxText
	if len(around) != 2*side+1 || around[side].ID != middle {
		t.Errorf("%d lines around it", len(around))
	}
	if n := strings.Count(w.call("ada", "GET", "/api/v1/logs?service=flood&limit=1000", "", "Accept", lineType).Body.String(), "\n"); n*logs.MaxText != logs.MaxPage {
		t.Errorf("%d lines as lines", n)
	}
}

func TestLogsPage_WhatIsShownIsBounded(t *testing.T) {
	s := newLogStage(t)
	var fields []string
	for i := range 80 {
		fields = append(fields, fmt.Sprintf(`"f%d":"%s"`, i, strings.Repeat("a\x7f", 50)))
	}
	s.say("lab", "json", "{"+strings.Join(fields, ",")+"}")
	s.say("lab", "flood", controls(500)...)
	s.say("lab", "json", "{"+strings.Join(fields, ",")+"}")
	v := s.get("ada", "/logs?service=json").is(http.StatusOK)
	if n := strings.Count(v.Body.String(), "aaa") + strings.Count(v.Body.String(), "log-sign"); n > 2*(shownText+shownFields+shownValue) {
		t.Errorf("%d signs", n)
	}
	id := attr(v.all("li.log-line")[0], "data-id")
	if whole := s.get("ada", "/logs/lines/"+id+"/text").is(http.StatusOK).Body.String(); !strings.Contains(whole, "f79") {
		t.Error("all of a line has not all of its fields")
	}
	if n := len(texts(s.get("ada", "/logs/lines/"+id+"?lines=500").is(http.StatusOK))); n != contextText/logs.MaxText+1 {
		t.Errorf("%d lines around one", n)
	}
}

// stuckReader takes no answer before it may.
type stuckReader struct {
	*httptest.ResponseRecorder
	begun *sync.WaitGroup
	may   <-chan struct{}
	once  sync.Once
}

func (w *stuckReader) Write(p []byte) (int, error) {
	w.once.Do(w.begun.Done)
	<-w.may
	return w.ResponseRecorder.Write(p)
}

// TestLogs_ASearchHasItsPlaceUntilItsAnswerIsTaken has readers that take nothing yet, as many as there are places.
func TestLogs_ASearchHasItsPlaceUntilItsAnswerIsTaken(t *testing.T) {
	w, s := logWorld(t), newLogStage(t)
	var found logsShape
	if err := json.Unmarshal(w.call("ada", "GET", "/api/v1/logs", "").Body.Bytes(), &found); err != nil {
		t.Fatal(err)
	}
	api := func(r *http.Request) (*Server, string) {
		r.Header.Set("Authorization", "Bearer "+w.tokens["ada"])
		return w.server, w.ids["ada"]
	}
	lines := func(r *http.Request) (*Server, string) {
		r.Header.Set("Accept", lineType)
		return api(r)
	}
	page := func(r *http.Request) (*Server, string) {
		r.AddCookie(&http.Cookie{Name: s.server.sessionCookie(), Value: s.sessions["ada"]})
		return s.server, s.users["ada"].ID
	}
	for _, c := range []struct {
		path string
		as   func(r *http.Request) (*Server, string)
	}{
		{"/api/v1/logs", api}, {"/api/v1/logs", lines}, {"/api/v1/logs/" + found.Lines[0].ID, api},
		{"/logs", page}, {"/logs/lines/" + s.line("ada", "no disk"), page}, {"/logs/download?format=text", page}, {"/logs/download?format=json", page},
	} {
		var begun, ended sync.WaitGroup
		may := make(chan struct{})
		var server *Server
		var user string
		begun.Add(searchesAtOnce)
		for range searchesAtOnce {
			r := httptest.NewRequest("GET", "http://localhost:8080"+c.path, nil)
			of, who := c.as(r)
			server, user = of, who
			out := &stuckReader{ResponseRecorder: httptest.NewRecorder(), begun: &begun, may: may}
			ended.Go(func() { of.ServeHTTP(out, r) })
		}
		begun.Wait()
		if leave, ok := server.handlers.logs.searching.Try(user, searchesAtOnce); ok {
			leave()
			t.Errorf("%s: a search has no place while its answer is not taken", c.path)
		}
		close(may)
		ended.Wait()
		if n := server.handlers.logs.searching.Len(); n != 0 {
			t.Errorf("%s: places are left over", c.path)
		}
	}
}

// TestLogs_TokensForOneSandboxHaveSearchesOfTheirOwn has a user who searches as much as they may.
func TestLogs_TokensForOneSandboxHaveSearchesOfTheirOwn(t *testing.T) {
	w := logWorld(t)
	limited := w.token("ada", auth.NewToken{Name: "one", Sandbox: "lab", SandboxID: w.ref("lab").ID()})
	for range searchesAtOnce {
		leave, ok := w.server.handlers.logs.searching.Try(w.ids["ada"], searchesAtOnce)
		if !ok {
			t.Fatal("no place")
		}
		defer leave()
	}
	w.call("", "GET", "/api/v1/logs", "", "Authorization", "Bearer "+limited).is(http.StatusOK)
}

package web

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

func TestSearch_CanBeReadLineByLine(t *testing.T) {
	w := newFilesWorld(t)
	w.files.found = []wire.Found{{Path: "a", Type: wire.TypeFolder}, {Path: "b", Type: wire.TypeFile, Line: 3, Column: 1, Text: "x\xff", Start: 0, End: 1}}
	got := w.call("ada", "POST", labFiles+":search", `{"path":"/srv","query":"x"}`, "Accept", lineType).is(200)
	lines := strings.Split(strings.TrimSpace(got.Body.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("got %q", lines)
	}
	for _, line := range lines[:2] {
		checkSchema(t, "FoundFile", []byte(line))
	}
	checkSchema(t, "SearchEnd", []byte(lines[2]))
	if lines[0] != `{"path":"/srv/a","type":"folder"}` || lines[2] != `{"end":true,"more":false}` || !strings.Contains(lines[1], `"after":"�"`) {
		t.Errorf("got %q", lines)
	}
	w.files.lie = func(verb string) error {
		if verb == "search" {
			return fault.New(fault.NotFound, "There is no /srv.")
		}
		return nil
	}
	w.call("ada", "POST", labFiles+":search", `{"query":"x"}`, "Accept", lineType).problem(404, "not_found", "")
}

func TestSearch_AnswersAreBounded(t *testing.T) {
	w := newFilesWorld(t)
	w.files.found = make([]wire.Found, 5000)
	for i := range w.files.found {
		w.files.found[i] = wire.Found{Path: strings.Repeat("d/", 2000) + "x", Type: wire.TypeFile}
	}
	var got searchShape
	w.call("ada", "POST", labFiles+":search", `{"query":"x","limit":10000}`).is(200).into(&got)
	if !got.More || len(got.Found) == 0 || len(got.Found)*4000 > foundBytes {
		t.Errorf("%d found, more %v", len(got.Found), got.More)
	}
}

// nextEvent reads one event of a stream, past comments.
func nextEvent(t *testing.T, scan *bufio.Scanner) (kind, data string) {
	t.Helper()
	for scan.Scan() {
		switch line := scan.Text(); {
		case strings.HasPrefix(line, "event: "):
			kind = line[7:]
		case strings.HasPrefix(line, "data: "):
			data = line[6:]
		case line == "" && kind != "":
			return kind, data
		}
	}
	t.Fatalf("the stream ended: %v", scan.Err())
	return "", ""
}

func TestWatch_TellsOfFoldersUntilTheSandboxRests(t *testing.T) {
	w := newFilesWorld(t)
	got := w.open(t.Context(), "ada", "GET", labFiles+":watch?path=src&path=/tmp", "", "text/event-stream")
	if got.StatusCode != 200 || got.Header.Get("Content-Security-Policy") != sandboxPolicy {
		t.Fatalf("%s %v", got.Status, got.Header)
	}
	scan := bufio.NewScanner(got.Body)
	told := map[string]int{}
	hear := func() {
		kind, data := nextEvent(t, scan)
		checkSchema(t, "ChangedFolder", []byte(data))
		var c changedShape
		if err := json.Unmarshal([]byte(data), &c); err != nil || kind != "changed" {
			t.Fatalf("%s %s: %v", kind, data, err)
		}
		told[c.Path]++
	}
	hear()
	hear()
	w.files.changes <- "src"
	hear()
	if told["src"] != 2 || told["/tmp"] != 1 {
		t.Errorf("told of %v", told)
	}
	close(w.files.changes)
	if kind, data := nextEvent(t, scan); kind != "ended" || !strings.Contains(data, "connection") {
		t.Errorf("%s %s", kind, data)
	}
	if scan.Scan(); scan.Text() != "" {
		t.Errorf("more came: %q", scan.Text())
	}
}

func TestWatch_EndsWithItsReader(t *testing.T) {
	w := newFilesWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := w.open(ctx, "ada", "GET", labFiles+":watch?path=src", "", "text/event-stream")
	nextEvent(t, bufio.NewScanner(got.Body))
	cancel()
	w.settled()
}

// settled waits until nothing is open.
func (w *world) settled() {
	w.t.Helper()
	w.until("nothing is open", func() bool { return w.server.open.users.Len() == 0 })
}

func (w *world) until(what string, cond func() bool) {
	w.t.Helper()
	until(w.t, what, cond)
}

// until looks again and again.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !cond(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("it is not so that %s", what)
		}
	}
}

func TestWatch_TooManyAndBadPathsAreRefused(t *testing.T) {
	w := newFilesWorld(t)
	for _, query := range []string{"", "?path=../x", "?path=%00", "?" + strings.Repeat("path=x&", 65)} {
		w.call("ada", "GET", labFiles+":watch"+query, "").problem(400, "invalid", "path")
	}
}

// TestFiles_ThePageHasThemToo with its session, and is told of errors as programs are.
func TestFiles_ThePageHasThemToo(t *testing.T) {
	s := newStage(t)
	s.put("ada", "lab", nil)
	got := s.get("ada", "/sandboxes/lab/files?path=notes.txt").is(200)
	if got.Body.String() != "hello" || got.Header().Get("Content-Security-Policy") != sandboxPolicy {
		t.Errorf("%s %v", got.Body, got.Header())
	}
	s.get("ada", "/sandboxes/lab/files?path=src").is(200)
	s.ask("ada", "POST", "/sandboxes/lab/files:mkdir", nil, "Content-Type", "application/json").is(400)
	for user, status := range map[string]int{"": 401, "bob": 404} {
		got := s.get(user, "/sandboxes/lab/files?path=notes.txt").is(status)
		if got.Header().Get("Content-Type") != problemType {
			t.Errorf("%q: %v", user, got.Header())
		}
	}
	r := httptest.NewRequest("PUT", "http://localhost:8080/sandboxes/lab/files?path=notes.txt", strings.NewReader("evil"))
	r.AddCookie(&http.Cookie{Name: s.server.sessionCookie(), Value: s.sessions["ada"]})
	r.Header.Set("Origin", "http://lab.localhost:8080")
	w := httptest.NewRecorder()
	s.server.ServeHTTP(w, r)
	if w.Code != http.StatusForbidden || s.files.content("/home/agent/notes.txt") != "hello" {
		t.Errorf("a sandbox's page writes: %d", w.Code)
	}
}

func TestPut_TakesMoreThanOtherBodiesAndWaitsWhileSomethingComes(t *testing.T) {
	w := newFilesWorld(t)
	w.server.arrival = 50 * time.Millisecond // what other bodies have
	s := w.serve()
	pieces := make(chan string)
	slow := time.NewTicker(30 * time.Millisecond)
	defer slow.Stop()
	r, err := http.NewRequest("PUT", s.URL+labFiles+"?path=big", &fed{from: pieces})
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.tokens["ada"])
	go func() {
		defer close(pieces)
		for range 4 {
			pieces <- strings.Repeat("x", 1<<20)
			<-slow.C
		}
	}()
	got, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	got.Body.Close()
	if n := len(w.files.content("/home/agent/big")); got.StatusCode != 201 || n != 4<<20 {
		t.Errorf("%s, %d bytes", got.Status, n)
	}
}

// fed reads what comes from a channel.
type fed struct {
	from chan string
	rest string
}

func (f *fed) Read(p []byte) (int, error) {
	for f.rest == "" {
		next, open := <-f.from
		if !open {
			return 0, io.EOF
		}
		f.rest = next
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// upload begins to write a file as ada whose content comes from a channel, and gives the end.
func (w *world) upload(from chan string) (ended chan *http.Response) {
	w.t.Helper()
	s := w.serve()
	r, err := http.NewRequest("PUT", s.URL+labFiles+"?path=big", &fed{from: from})
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.tokens["ada"])
	ended = make(chan *http.Response, 1)
	go func() {
		got, err := s.Client().Do(r)
		if err != nil {
			w.t.Error(err)
		}
		ended <- got
	}()
	return ended
}

func TestPut_AClientThatFallsSilentIsEnded(t *testing.T) {
	w := newFilesWorld(t)
	w.server.move = 50 * time.Millisecond
	from := make(chan string)
	ended := w.upload(from)
	from <- "some"
	got := <-ended
	defer got.Body.Close()
	if got.StatusCode != http.StatusRequestTimeout || w.files.content("/home/agent/big") != "" {
		t.Errorf("%s, %q", got.Status, w.files.content("/home/agent/big"))
	}
	close(from)
}

func TestPut_WhoMayNotAnyMoreIsEnded(t *testing.T) {
	w := newFilesWorld(t)
	w.server.check = 5 * time.Millisecond
	from := make(chan string)
	ended := w.upload(from)
	from <- "some"
	w.until("the guest takes it", func() bool {
		w.files.mu.Lock()
		defer w.files.mu.Unlock()
		return slices.Contains(w.files.asked, "write big")
	})
	tokens, err := w.accounts.Tokens(t.Context(), w.ids["ada"])
	if err != nil {
		t.Fatal(err)
	}
	if err := w.accounts.RevokeToken(t.Context(), w.ids["ada"], tokens[0].ID); err != nil {
		t.Fatal(err)
	}
	got := <-ended
	defer got.Body.Close()
	if got.StatusCode != http.StatusUnauthorized || w.files.content("/home/agent/big") != "" {
		t.Errorf("%s, %q", got.Status, w.files.content("/home/agent/big"))
	}
	close(from)
}

func TestFile_AClientThatTakesNothingIsEnded(t *testing.T) {
	w := newFilesWorld(t)
	w.server.move = 50 * time.Millisecond
	w.files.files["/home/agent/big"] = strings.Repeat("x", 64<<20)
	got := w.open(t.Context(), "ada", "GET", labFiles+"?path=big", "", "")
	w.settled()
	if n, err := io.Copy(io.Discard, got.Body); err == nil || n >= 64<<20 {
		t.Errorf("%d bytes, and it looked whole: %v", n, err)
	}
}

func TestListing_AClientThatTakesNothingIsEnded(t *testing.T) {
	w := newFilesWorld(t)
	w.server.move = 50 * time.Millisecond
	for i := range 4000 {
		w.files.files["/home/agent/"+strings.Repeat("n", 200)+strconv.Itoa(i)] = ""
	}
	w.files.shape = func(e *wire.Entry) { e.Type, e.Target = wire.TypeLink, strings.Repeat("\xff", 4000) } // six times as much in JSON
	got := w.open(t.Context(), "ada", "GET", labFiles+"?path=~&limit=10000", "", "")
	w.settled()
	if n, err := io.Copy(io.Discard, got.Body); err == nil {
		t.Errorf("%d bytes, and it looked whole", n)
	}
}

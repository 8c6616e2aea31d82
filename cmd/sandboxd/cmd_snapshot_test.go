package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/client"
	"sandboxd/internal/fault"
)

// album is a server with snapshots of the sandbox lab: "first" of 0…a, two that are called "twice", and one that has failed.
type album struct {
	mu    sync.Mutex
	polls int // how often the one that is being taken is not ready yet
	asked []string
	seen  chan string // hears of each request, if there is room
}

// idOf is the id of a snapshot that ends in that digit.
func idOf(digit string) string { return strings.Repeat("0", 15) + digit }

func newAlbum(t *testing.T) *album {
	t.Helper()
	homeless(t)
	a := &album{seen: make(chan string, 100)}
	s := httptest.NewServer(a)
	t.Cleanup(s.Close)
	t.Setenv("SANDBOXD_URL", s.URL)
	t.Setenv("SANDBOXD_TOKEN", "sbx_secret")
	return a
}

func snapShape(digit, name, parent, state string, minute int) string {
	return fmt.Sprintf(`{"id":%q,"sandbox":"lab","name":%q,"parent":%q,"kind":"manual","state":%q,"problem":"the disk is \u001b[31mfull","created_at":"2026-11-25T10:%02d:00Z",
		"files":3,"folders":1,"bytes":2048,"consistent":true,"paused_ms":1234,"memory_bytes":0,"note":"a\nnote","lost":[{"path":"s","reason":"is a socket"}],"more_lost":2}`, idOf(digit), name, parent, state, minute)
}

// ServeHTTP implements http.Handler: as much of the API as snapshots and clones need.
func (a *album) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	path := strings.TrimPrefix(r.URL.Path, "/api/v1/sandboxes/lab")
	line := strings.TrimSpace(r.Method + " " + path + " " + r.URL.RawQuery + string(body))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, line)
	select {
	case a.seen <- line:
	default:
	}
	switch r.Method + " " + path {
	case "GET /snapshots":
		fmt.Fprintf(w, `{"head":%q,"undo":%q,"snapshots":[%s]}`, idOf("a"), idOf("b"), strings.Join([]string{
			snapShape("e", "first", "", "failed", 5), snapShape("d", "busy", "", "making", 4), snapShape("c", "twice", idOf("a"), "ready", 3), snapShape("b", "twice", idOf("a"), "ready", 2),
			snapShape("b", "twice", idOf("a"), "ready", 2), snapShape("a", "first", "", "ready", 1)}, ","))
	case "POST /snapshots":
		w.WriteHeader(http.StatusAccepted)
		io.WriteString(w, snapShape("d", "new", "", "making", 4))
	case "GET /snapshots/" + idOf("d"):
		state := "ready"
		if a.polls--; a.polls >= 0 {
			state = "making"
		}
		io.WriteString(w, snapShape("d", "new", "", state, 4))
	case "PATCH /snapshots/" + idOf("a"):
		io.WriteString(w, snapShape("a", "works", "", "ready", 1))
	case "POST /snapshots/" + idOf("a") + "/restore", "POST /snapshots/" + idOf("b") + "/restore":
		io.WriteString(w, `{"sandbox":{"name":"lab","state":"running","problem":"Its memory did not come back."},"safety":"x"}`)
	case "GET /snapshots/" + idOf("a") + "/diff":
		io.WriteString(w, `{"changes":[{"path":"a\u001b[1m/b","change":"added","kind":"file","size":2048},{"path":"c","change":"deleted","kind":"folder","size":9}],"more":true}`)
	case "GET /snapshots/" + idOf("a") + "/diff/file":
		io.WriteString(w, `{"path":"f","change":"changed","diff":"-a\n+b\tc\n"}`)
	case "POST /clone":
		io.WriteString(w, `{"sandboxes":[{"name":"try-1","state":"running"}],"failed":["There is a sandbox \"try-2\" already."]}`)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func TestSnapshot_IsTakenAndItsIDPrinted(t *testing.T) {
	a := newAlbum(t)
	a.polls = 1
	root, out, said := newRootCmd(), &bytes.Buffer{}, &bytes.Buffer{}
	root.SetArgs([]string{"snapshot", "lab", "--name", "new", "--note", "why", "--memory"})
	root.SetOut(out)
	root.SetErr(said)
	if err := root.ExecuteContext(t.Context()); err != nil || out.String() != idOf("d")+"\n" {
		t.Fatalf("%v, %q", err, out)
	}
	for _, want := range []string{"2 KiB in 3 files", "frozen for 1.2 s", `"s" is a socket`, "and 2 more"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("no %q in:\n%s", want, said)
		}
	}
	if a.asked[0] != `POST /snapshots {"name":"new","note":"why","memory":true}` || len(a.asked) != 3 {
		t.Errorf("asked was %q", a.asked)
	}
	if got, err := anywhere(t, "snapshot", "lab", "-q"); err != nil || got != idOf("d")+"\n" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestSnapshot_CtrlCCancelsIt(t *testing.T) {
	a := newAlbum(t)
	a.polls = 1_000_000
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	done := make(chan error, 1)
	go func() {
		root := newRootCmd()
		root.SetArgs([]string{"snapshot", "lab"})
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		done <- root.ExecuteContext(ctx)
	}()
	for {
		select {
		case line := <-a.seen:
			if line == "GET /snapshots/"+idOf("d") {
				interrupt()
			}
			continue
		case err := <-done:
			if !fault.Is(err, fault.Gone) || !slices.Contains(a.asked, "DELETE /snapshots/"+idOf("d")) {
				t.Errorf("%v, asked was %q", err, a.asked)
			}
		case <-time.After(time.Minute):
			t.Error("it does not end")
		}
		return
	}
}

func TestSnapshots_AreListedAsATree(t *testing.T) {
	newAlbum(t)
	out, err := anywhere(t, "snapshots", "lab")
	if err != nil || strings.Contains(out, "\x1b") || strings.Contains(out, "a\nnote") {
		t.Fatalf("%v\n%s", err, out)
	}
	var tree []string
	for _, line := range strings.Split(strings.TrimSpace(out), "\n")[1:] {
		mark, rest, _ := strings.Cut(line, idOf("")[:15])
		tree = append(tree, strings.TrimSpace(mark)+rest[:1])
	}
	if got := strings.Join(tree, ", "); got != "xe, od, |-oc, |-ob, *a" {
		t.Errorf("%s\n%s", got, out)
	}
	if !strings.Contains(out, "failed: the disk is [31mfull") || !strings.Contains(out, "PARENT") {
		t.Error(out)
	}
	if out, err := anywhere(t, "snapshots", "lab", "--quiet"); err != nil || strings.Count(out, "\n") != 5 || !strings.HasPrefix(out, idOf("e")+"\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestSnapshots_AreFoundByIDOrByTheirOnlyName(t *testing.T) {
	const list, first = "GET /snapshots", "/snapshots/000000000000000a"
	for _, c := range []struct {
		args   []string
		asks   string // after the list
		says   string
		failed fault.Kind
	}{
		{[]string{"snapshots", "restore", "lab", "first"}, "POST " + first + "/restore {}", "undo lab", 0}, // the one that failed is no other
		{[]string{"snapshots", "restore", "lab", idOf("a")}, "POST " + first + "/restore {}", "Its memory did not come back.", 0},
		{[]string{"snapshots", "restore", "lab", "twice"}, "", "2 snapshots of lab are called", fault.Conflict},
		{[]string{"snapshots", "restore", "lab", "gone"}, "", "'sandboxd snapshots lab' lists them", fault.NotFound},
		{[]string{"snapshots", "restore", "lab", ""}, "", "lab has no snapshot", fault.NotFound},
		{[]string{"snapshots", "undo", "lab"}, "POST /snapshots/" + idOf("b") + "/restore {}", "Restored lab", 0},
		{[]string{"snapshots", "set", "lab", "first", "--name", "works"}, "PATCH " + first + ` {"name":"works"}`, `"works"`, 0},
		{[]string{"snapshots", "delete", "lab", "first"}, "", "say --yes", fault.Invalid},
		{[]string{"snapshots", "delete", "lab", "first", "--yes"}, "DELETE " + first, "Deleted", 0},
		{[]string{"snapshots", "delete", "lab", "busy"}, "DELETE /snapshots/" + idOf("d"), "Cancelled", 0},
		{[]string{"snapshots", "diff", "lab", "first"}, "GET " + first + "/diff", "a[1m/b", 0},
		{[]string{"snapshots", "diff", "lab", "first", "a b"}, "GET " + first + "/diff/file path=a+b", "-a\n+b\tc\n", 0},
		{[]string{"clone", "lab", "try", "--snapshot", "first"}, `POST /clone {"name":"try","count":1,"snapshot":"` + idOf("a") + `"}`, "", fault.Unavailable},
	} {
		a := newAlbum(t)
		out, err := anywhere(t, c.args...)
		want := list
		if c.asks != "" {
			want += ", " + c.asks
		}
		if got := strings.Join(a.asked, ", "); got != want {
			t.Errorf("%q: asks %s", c.args, got)
		}
		if err != nil {
			out += fault.Message(err)
		}
		if !strings.Contains(out, c.says) || strings.Contains(out, "\x1b") || (err != nil) != (c.failed != 0) || err != nil && !fault.Is(err, c.failed) {
			t.Errorf("%q: %v\n%s", c.args, err, out)
		}
	}
	for _, args := range [][]string{{"snapshot"}, {"snapshot", "../x"}, {"snapshots"}, {"snapshots", "set", "lab", "first"}, {"clone", "lab", "../x"}} {
		a := newAlbum(t)
		if _, err := anywhere(t, args...); !fault.Is(err, fault.Invalid) || len(a.asked) > 0 {
			t.Errorf("%q: %v, asked %q", args, err, a.asked)
		}
	}
}

func TestSnapshots_ASandboxMayBeCalledAsACommand(t *testing.T) {
	a := newAlbum(t)
	_, err := anywhere(t, "snapshots", "--", "undo")
	if len(a.asked) != 1 || !strings.Contains(a.asked[0], "/sandboxes/undo/snapshots") {
		t.Errorf("asked was %q, %v", a.asked, err)
	}
}

func TestClone_SaysWhatWasNotMade(t *testing.T) {
	a := newAlbum(t)
	out, err := anywhere(t, "clone", "lab", "try", "--count", "2")
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Message(err), `1 of 2 clones were not made: There is a sandbox "try-2" already.`) || !strings.HasPrefix(out, "try-1\n") {
		t.Errorf("%v\n%s", err, out)
	}
	if a.asked[0] != `POST /clone {"name":"try","count":2}` {
		t.Errorf("asked was %q", a.asked)
	}
}

func TestSnapshotSize_IsWhatTheServerCounts(t *testing.T) {
	if got := snapshotSize(client.Snapshot{Memory: 1 << 20}); got != "1 MiB of memory" {
		t.Errorf("%q", got)
	}
}

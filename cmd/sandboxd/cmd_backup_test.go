package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/fault"
)

// anID is the id of a backup.
const anID = "0123456789abcdef"

// vault is a server with one backup of the sandbox lab, and connections that are cut.
type vault struct {
	t *testing.T

	mu       sync.Mutex
	content  []byte
	piece    int // bytes after which a download is cut; 0 for never
	tag      string
	next     string // the tag after the first download; "" for the same
	polls    int    // how often the backup is still being made
	making   bool   // it was being made before
	name     string // the sandbox's, as the server says
	refuse   int    // a status with which an upload is refused, after piece bytes
	asked    []string
	uploaded []byte
	seen     chan string // hears of each request, if there is room
}

func newVault(t *testing.T) *vault {
	t.Helper()
	homeless(t)
	t.Chdir(t.TempDir())
	v := &vault{t: t, content: bytes.Repeat([]byte("0123456789"), 100_000), tag: anID, polls: 1, name: "lab", seen: make(chan string, 100)}
	s := httptest.NewServer(v)
	t.Cleanup(s.Close)
	t.Setenv("SANDBOXD_URL", s.URL)
	t.Setenv("SANDBOXD_TOKEN", "sbx_secret")
	return v
}

// ServeHTTP implements http.Handler: as much of the API as backups need.
func (v *vault) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/api/v1")
	line := strings.TrimSpace(r.Method + " " + path + " " + r.URL.RawQuery + " " + r.Header.Get("Range"))
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked = append(v.asked, line)
	select {
	case v.seen <- line:
	default:
	}
	switch r.Method + " " + path {
	case "GET /backups":
		if v.making || r.URL.Query().Get("sandbox") == "" {
			fmt.Fprintf(w, `{"backups":[%s]}`, v.shape("making"))
			return
		}
		io.WriteString(w, `{"backups":[]}`)
	case "POST /sandboxes/lab/backups":
		w.WriteHeader(http.StatusAccepted)
		io.WriteString(w, v.shape("making"))
	case "GET /backups/" + anID:
		state := "ready"
		if v.polls--; v.polls >= 0 {
			state = "making"
		}
		io.WriteString(w, v.shape(state))
	case "GET /backups/" + anID + "/archive":
		v.archive(w, r)
	case "DELETE /backups/" + anID, "DELETE /sandboxes/lab/restore":
		w.WriteHeader(http.StatusNoContent)
	case "GET /sandboxes/lab":
		io.WriteString(w, `{"name":"lab","state":"running"}`)
	case "PUT /sandboxes/lab/restore", "POST /restore":
		v.restore(w, r)
	default:
		answerProblem(w, http.StatusNotFound, "There is no such thing.")
	}
}

func answerProblem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"status": status, "detail": detail})
}

func (v *vault) shape(state string) string {
	text, err := json.Marshal(map[string]any{
		"id": anID, "sandbox": v.name, "state": state, "consistent": false, "size": len(v.content), "files": 3, "bytes": 5,
		"created_at": "2026-11-25T10:21:15.5Z", "expires_at": "2026-12-02T10:21:15Z", "lost": []any{map[string]string{"path": "s\x1b[31m", "reason": "is a socket"}}, "more_lost": 2,
	})
	if err != nil {
		v.t.Error(err)
	}
	return string(text)
}

// archive answers with the content from where it is wanted, and breaks the connection after a piece.
func (v *vault) archive(w http.ResponseWriter, r *http.Request) {
	from, status := 0, http.StatusOK
	if text, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok && r.Header.Get("If-Range") == `"`+v.tag+`"` {
		from, _ = strconv.Atoi(strings.TrimSuffix(text, "-"))
		status = http.StatusPartialContent
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(v.content)-1, len(v.content)))
	}
	rest := v.content[from:]
	w.Header().Set("ETag", `"`+v.tag+`"`)
	w.Header().Set("Content-Length", strconv.Itoa(len(rest)))
	w.WriteHeader(status)
	if v.piece == 0 || v.piece >= len(rest) {
		w.Write(rest)
		return
	}
	w.Write(rest[:v.piece])
	w.(http.Flusher).Flush()
	if v.next != "" {
		v.tag = v.next
	}
	panic(http.ErrAbortHandler)
}

func (v *vault) restore(w http.ResponseWriter, r *http.Request) {
	if v.refuse != 0 {
		io.CopyN(io.Discard, r.Body, int64(v.piece))
		answerProblem(w, v.refuse, "The backups of one owner may take 1 KiB in all.")
		w.(http.Flusher).Flush()
		io.CopyN(io.Discard, r.Body, 64<<20) // as sandboxd does, so that the answer is read before the connection breaks
		return
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	v.uploaded = text
	if v.polls > 1 { // it takes until the client leaves
		v.mu.Unlock()
		<-r.Context().Done()
		v.mu.Lock()
		return
	}
	io.WriteString(w, `{"name":"lab","state":"running"}`)
}

// requests gives what was asked.
func (v *vault) requests() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.asked)
}

// interrupted runs a command line, and has Ctrl-C end it once the server was asked that.
func (v *vault) interrupted(asked string, args ...string) error {
	ctx, interrupt := context.WithCancel(v.t.Context())
	defer interrupt()
	done := make(chan error, 1)
	go func() {
		root := newRootCmd()
		root.SetArgs(args)
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		done <- root.ExecuteContext(ctx)
	}()
	for {
		select {
		case got := <-v.seen:
			if got == asked {
				interrupt()
			}
		case err := <-done:
			return err
		case <-time.After(time.Minute):
			v.t.Fatal("it does not end")
		}
	}
}

func TestBackup_ADownloadThatIsCutIsContinued(t *testing.T) {
	v := newVault(t)
	v.piece = 400_000
	out, err := anywhere(t, "backup", "lab")
	if err != nil {
		t.Fatalf("%v, %s", err, out)
	}
	files := tree(t, ".")
	if len(files) != 1 || !strings.HasPrefix(files[0], "lab-2026-11-2") || !strings.HasSuffix(files[0], ".tar.zst") {
		t.Fatalf("there are %q", files)
	}
	if got, err := os.ReadFile(files[0]); err != nil || !bytes.Equal(got, v.content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if st, err := os.Stat(files[0]); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v, %v", st.Mode(), err)
	}
	ranges := 0
	for _, line := range v.requests() {
		if strings.Contains(line, " bytes=") {
			ranges++
		}
	}
	if ranges < 2 {
		t.Errorf("asked was %q", v.requests())
	}
	for _, want := range []string{"in 3 files", `"s`, "is a socket", "and 2 more", "Programs ran meanwhile", "outside of the home", anID} {
		if !strings.Contains(out, want) || strings.Contains(out, "\x1b") {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}

func TestBackup_WhatIsAnotherArchiveIsNotPutBehindTheFirst(t *testing.T) {
	v := newVault(t)
	v.piece = 400_000
	v.next = "another"
	if out, err := anywhere(t, "backup", "lab", "f"); !fault.Is(err, fault.Conflict) || len(tree(t, ".")) != 0 {
		t.Errorf("%v, %s, %q", err, out, tree(t, "."))
	}
}

func TestBackup_ReplacesNoFileUnlessTold(t *testing.T) {
	v := newVault(t)
	if err := os.WriteFile("f", []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := anywhere(t, "backup", "lab", "f"); !fault.Is(err, fault.Conflict) || len(v.requests()) != 0 {
		t.Errorf("%v, asked was %q", err, v.requests())
	}
	if err := os.WriteFile("g.part", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := anywhere(t, "backup", "lab", "g"); !fault.Is(err, fault.Conflict) || !slices.Contains(v.requests(), "DELETE /backups/"+anID) {
		t.Errorf("%v, asked was %q", err, v.requests())
	}
	for _, name := range []string{"f", "g"} {
		if out, err := anywhere(t, "backup", "lab", name, "--force"); err != nil {
			t.Errorf("%s: %v, %s", name, err, out)
		}
	}
	if got := tree(t, "."); !slices.Equal(got, []string{"f", "g"}) {
		t.Errorf("there are %q", got)
	}
}

func TestBackup_AServersNameIsNoPath(t *testing.T) {
	v := newVault(t)
	v.name, v.polls = "../../evil", 0
	if err := os.Mkdir("d", 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := anywhere(t, "backup", "--id", anID, "d"); err != nil {
		t.Fatalf("%v, %s", err, out)
	}
	if got := tree(t, "."); len(got) != 2 || !strings.HasPrefix(got[1], filepath.Join("d", "backup-")) {
		t.Errorf("there are %q", got)
	}
}

func TestBackup_CtrlCCancelsWhatWasBegun(t *testing.T) {
	for _, joined := range []bool{false, true} {
		v := newVault(t)
		v.polls, v.making = 1_000_000, joined
		err := v.interrupted("GET /backups/"+anID, "backup", "lab", "f")
		cancelled := slices.Contains(v.requests(), "DELETE /backups/"+anID)
		if !fault.Is(err, fault.Gone) || cancelled == joined || len(tree(t, ".")) != 0 {
			t.Errorf("made by another: %v: %v, cancelled %v, %q", joined, err, cancelled, tree(t, "."))
		}
	}
}

func TestBackup_ToStandardOutput(t *testing.T) {
	v := newVault(t)
	v.piece = 600_000
	root, out := newRootCmd(), &bytes.Buffer{}
	root.SetArgs([]string{"backup", "lab", "-"})
	root.SetOut(out)
	root.SetErr(io.Discard)
	if err := root.ExecuteContext(t.Context()); err != nil || !bytes.Equal(out.Bytes(), v.content) {
		t.Errorf("%v, %d bytes", err, out.Len())
	}
	for _, args := range [][]string{{}, {"lab", "f", "g"}, {"Not_A_Name"}, {"--id", "lab"}, {"--id", anID, "lab", "f"}} {
		if _, err := anywhere(t, append([]string{"backup"}, args...)...); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestBackups_AreListedAndDeleted(t *testing.T) {
	v := newVault(t)
	if out, err := anywhere(t, "backups"); err != nil || !strings.Contains(out, anID+"   lab ") || !strings.Contains(out, "making") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := anywhere(t, "backups", "-q"); err != nil || out != anID+"\n" {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := anywhere(t, "backups", "--delete", anID); err != nil || !strings.Contains(out, "Cancelled") || !slices.Contains(v.requests(), "DELETE /backups/"+anID) {
		t.Errorf("%v\n%s", err, out)
	}
	for _, args := range [][]string{{"--delete", "../x"}, {"--delete", anID, "lab"}, {"../x"}} {
		if _, err := anywhere(t, append([]string{"backups"}, args...)...); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestBar_IsFullAtTheEndOnly(t *testing.T) {
	for part, want := range map[int64]string{0: "[" + strings.Repeat("-", 20) + "]   0 %", 50: "[##########----------]  50 %", 99: "[###################-]  99 %",
		100: "[" + strings.Repeat("#", 20) + "] 100 %", 200: "[" + strings.Repeat("#", 20) + "] 100 %"} {
		if got := bar(part, 100); got != want {
			t.Errorf("%d: %s", part, got)
		}
	}
}

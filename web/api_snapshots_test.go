package web

import (
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/auth"
)

const labSnapshots = "/api/v1/sandboxes/lab/snapshots"

// shot has ada make a sandbox called lab and a snapshot of it.
func (w *world) shot(text string) boxSnapshotShape {
	w.t.Helper()
	w.homes.text = text
	w.call("ada", "POST", "/api/v1/sandboxes?wait=ready", `{"name": "lab", "template": "base"}`).is(http.StatusCreated)
	var n boxSnapshotShape
	w.call("ada", "POST", labSnapshots+"?wait=ready", `{"name": "first", "note": "why\nso"}`).is(http.StatusCreated).into(&n)
	return n
}

func TestSnapshots_AreTakenChangedAndRestored(t *testing.T) {
	w := newWorld(t)
	n := w.shot("old")
	if n.State != "ready" || n.Kind != "manual" || n.Name != "first" || n.Note != "why\nso" || !n.Consistent || n.Files != 1 || n.Bytes != 3 || !n.Head || n.Sandbox != "lab" {
		t.Fatalf("got %+v", n)
	}
	path := labSnapshots + "/" + n.ID
	golden(t, "snapshot", w.call("ada", "GET", path, "").is(http.StatusOK).Body.Bytes())
	golden(t, "snapshots", w.call("ada", "GET", labSnapshots, "").is(http.StatusOK).Body.Bytes())
	var next boxSnapshotShape
	begun := w.call("ada", "POST", labSnapshots, `{"automatic": true}`).is(http.StatusAccepted)
	begun.into(&next)
	if at := begun.Header().Get("Location"); at != labSnapshots+"/"+next.ID || next.Kind != "automatic" {
		t.Errorf("at %q: %+v", at, next)
	}
	if _, err := w.server.cfg.Snapshots.Wait(t.Context(), next.ID); err != nil {
		t.Fatal(err)
	}
	var list snapshotsShape
	w.call("ada", "GET", labSnapshots, "").is(http.StatusOK).into(&list)
	if len(list.Snapshots) != 2 || list.Head != next.ID || list.Snapshots[0].Parent != n.ID || list.Snapshots[1].Head {
		t.Errorf("listed are %+v", list)
	}
	w.call("ada", "PATCH", path, `{"name": "second"}`).is(http.StatusOK).into(&n)
	if n.Name != "second" || n.Note != "why\nso" {
		t.Errorf("changed to %+v", n)
	}
	restored := w.call("ada", "POST", path+"/restore", "").is(http.StatusOK)
	golden(t, "snapshot_restore", restored.Body.Bytes())
	var done revertedShape
	restored.into(&done)
	var safety boxSnapshotShape
	w.call("ada", "GET", labSnapshots+"/"+done.Safety, "").is(http.StatusOK).into(&safety)
	if safety.Kind != "safety" || safety.Parent != next.ID || done.Sandbox.Name != "lab" {
		t.Errorf("kept was %+v", safety)
	}
	w.call("ada", "DELETE", path, "").is(http.StatusNoContent)
	w.call("ada", "GET", path, "").is(http.StatusNotFound)
}

func TestSnapshots_OneThatIsBeingTakenIsJoinedOrCancelled(t *testing.T) {
	w := newWorld(t)
	w.shot("x")
	release := w.homes.hold()
	defer release()
	var one, same boxSnapshotShape
	w.call("ada", "POST", labSnapshots, `{"name": "a"}`).is(http.StatusAccepted).into(&one)
	w.call("ada", "POST", labSnapshots, `{"name": "a"}`).is(http.StatusOK).into(&same)
	if one.ID != same.ID || one.State != "making" {
		t.Errorf("%+v and %+v", one, same)
	}
	w.call("ada", "POST", labSnapshots, `{"name": "b"}`).problem(http.StatusConflict, "conflict", "")
	late := w.call("ada", "POST", labSnapshots+"?wait=ready&timeout=0.01", `{"name": "a"}`).is(http.StatusGatewayTimeout)
	if late.Header().Get("Location") != labSnapshots+"/"+one.ID {
		t.Errorf("at %q", late.Header().Get("Location"))
	}
	w.call("ada", "POST", labSnapshots+"/"+one.ID+"/restore", "").problem(http.StatusConflict, "conflict", "")
	w.call("ada", "DELETE", labSnapshots+"/"+one.ID, "").is(http.StatusNoContent)
	w.call("ada", "GET", labSnapshots+"/"+one.ID, "").is(http.StatusNotFound)
}

func TestSnapshots_TellWhatHasChangedSince(t *testing.T) {
	w := newWorld(t)
	n := w.shot("one\ntwo\n")
	path := labSnapshots + "/" + n.ID + "/diff"
	var d diffShape
	if w.call("ada", "GET", path, "").is(http.StatusOK).into(&d); len(d.Changes) != 0 || d.More {
		t.Errorf("at once: %+v", d)
	}
	w.homes.text = "one\n2\n"
	w.call("ada", "GET", path, "").is(http.StatusOK).into(&d)
	if len(d.Changes) != 1 || d.Changes[0] != (differenceShape{Path: "a.txt", Change: "changed", Kind: "file", Size: 6}) {
		t.Errorf("%+v", d)
	}
	var f fileDiffShape
	w.call("ada", "GET", path+"/file?path=a.txt", "").is(http.StatusOK).into(&f)
	if f.Change != "changed" || f.Diff != "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n" {
		t.Errorf("%+v", f)
	}
	w.call("ada", "GET", path+"/file?path=none", "").problem(http.StatusNotFound, "not_found", "")
	w.call("ada", "GET", path+"/file", "").problem(http.StatusBadRequest, "invalid", "path")
	w.call("bob", "GET", path, "").is(http.StatusNotFound)
	w.call("bob", "GET", path+"/file?path=a.txt", "").is(http.StatusNotFound)
}

func TestSnapshots_BadInputIsSaid(t *testing.T) {
	w := newWorld(t)
	n := w.shot("x")
	w.call("ada", "POST", labSnapshots, `{"name": "`+strings.Repeat("x", 65)+`"}`).problem(http.StatusBadRequest, "invalid", "name")
	w.call("ada", "POST", labSnapshots, `{"note": "`+strings.Repeat("x", 1001)+`"}`).problem(http.StatusBadRequest, "invalid", "note")
	w.call("ada", "POST", labSnapshots+"?wait=stopped", "").problem(http.StatusBadRequest, "invalid", "wait")
	w.call("ada", "PATCH", labSnapshots+"/"+n.ID, `{"name": "a\u202eb"}`).problem(http.StatusBadRequest, "invalid", "name")
	for body, field := range map[string]string{
		`{"count": 0}`: "count", `{"count": 21}`: "count", `{"name": "Not A Name"}`: "name", `{"snapshot": "0123456789abcdef"}`: "snapshot",
	} {
		w.call("ada", "POST", "/api/v1/sandboxes/lab/clone", body).problem(http.StatusBadRequest, "invalid", field)
	}
	w.call("ada", "POST", "/api/v1/sandboxes/lab/clone", `{"name": "lab"}`).problem(http.StatusConflict, "conflict", "name")
}

func TestSnapshots_AreForThoseWhoMayUseTheSandbox(t *testing.T) {
	w := newWorld(t)
	n := w.shot("x")
	w.box("bob", "cave")
	for _, box := range []string{"lab", "cave"} { // a snapshot of another sandbox than the path names
		path := "/api/v1/sandboxes/" + box + "/snapshots/" + n.ID
		w.call("bob", "GET", path, "").is(http.StatusNotFound)
		w.call("bob", "PATCH", path, `{"name": "mine"}`).is(http.StatusNotFound)
		w.call("bob", "DELETE", path, "").is(http.StatusNotFound)
		w.call("bob", "POST", path+"/restore", "").is(http.StatusNotFound)
	}
	w.call("bob", "GET", labSnapshots, "").is(http.StatusNotFound)
	w.call("bob", "POST", labSnapshots, "").is(http.StatusNotFound)
	w.call("bob", "POST", "/api/v1/sandboxes/lab/clone", `{}`).is(http.StatusNotFound)
	w.call("bob", "POST", "/api/v1/sandboxes/cave/clone", `{"snapshot": "`+n.ID+`"}`).problem(http.StatusBadRequest, "invalid", "snapshot")
	w.call("root", "GET", labSnapshots+"/"+n.ID, "").is(http.StatusOK)
	w.tokens["limited"] = w.token("ada", auth.NewToken{Name: "one", Sandbox: "lab"})
	w.call("limited", "POST", labSnapshots+"?wait=ready", "").is(http.StatusCreated)
	w.call("limited", "POST", "/api/v1/sandboxes/lab/clone", `{}`).is(http.StatusForbidden)
}

func TestClone_MakesSandboxesOfTheCallers(t *testing.T) {
	w := newWorld(t)
	n := w.shot("x")
	var made clonesShape
	answer := w.call("ada", "POST", "/api/v1/sandboxes/lab/clone", `{"name": "two"}`).is(http.StatusCreated)
	golden(t, "clone", answer.Body.Bytes())
	w.call("root", "POST", "/api/v1/sandboxes/lab/clone", `{"name": "many", "count": 3, "snapshot": "`+n.ID+`"}`).is(http.StatusCreated).into(&made)
	if len(made.Sandboxes) != 3 || len(made.Failed) != 0 || made.Sandboxes[2].Name != "many-3" || made.Sandboxes[0].Owner != "root" || made.Sandboxes[0].ClonedFrom != "lab" {
		t.Errorf("made are %+v", made)
	}
	w.call("root", "POST", "/api/v1/sandboxes/lab/clone", `{"name": "many", "count": 4}`).is(http.StatusCreated).into(&made)
	if len(made.Sandboxes) != 1 || len(made.Failed) != 3 || !strings.Contains(made.Failed[0], "many-1") {
		t.Errorf("made are %+v", made)
	}
	var list snapshotsShape
	if w.call("ada", "GET", labSnapshots, "").into(&list); len(list.Snapshots) != 1 {
		t.Errorf("what the clones were made of is listed: %+v", list)
	}
}

func TestRecord_TellsWhoTookASnapshot(t *testing.T) {
	w := newWorld(t)
	n := w.shot("x")
	path := labSnapshots + "/" + n.ID
	w.call("ada", "GET", path, "")
	w.call("root", "PATCH", path, `{"note": "hush"}`)
	w.call("bob", "POST", path+"/restore", "")
	w.call("ada", "POST", path+"/restore", "")
	w.call("ada", "POST", "/api/v1/sandboxes/lab/clone", `{"name": "two"}`)
	w.call("ada", "DELETE", path, "")
	checkRecorded(t, w.server, "ada api sandbox.create lab base done", "ada api sandbox.snapshot lab first done", "root api snapshot.change lab first done",
		"bob api sandbox.revert lab  refused", "ada api sandbox.revert lab first done", "ada api sandbox.clone lab two done", "ada api snapshot.delete lab first done")
}

func TestSnapshots_HaveTheMemoryIfAsked(t *testing.T) {
	w := newWorld(t)
	w.shot("old")
	var n boxSnapshotShape
	w.call("ada", "POST", labSnapshots+"?wait=ready", `{"memory": true}`).is(http.StatusCreated).into(&n)
	if n.Memory != 24<<20 {
		t.Errorf("got %+v", n)
	}
}

package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// anyBytes says that a body is no JSON.
var anyBytes = []string{"Content-Type", "application/octet-stream"}

// ready has ada make a sandbox called lab and a backup of it.
func (w *world) ready(text string) backupShape {
	w.t.Helper()
	w.homes.text = text
	w.call("ada", "POST", "/api/v1/sandboxes?wait=ready", `{"name": "lab", "template": "base"}`).is(http.StatusCreated)
	var b backupShape
	w.call("ada", "POST", "/api/v1/sandboxes/lab/backups?wait=ready", "").is(http.StatusCreated).into(&b)
	return b
}

func TestBackups_AreMadeDownloadedAndRestored(t *testing.T) {
	w := newWorld(t)
	b := w.ready("old")
	if b.State != "ready" || !b.Consistent || b.Files != 1 || b.Bytes != 3 || len(b.Lost) != 1 || b.Owner != "ada" {
		t.Fatalf("got %+v", b)
	}
	path := "/api/v1/backups/" + b.ID
	all := w.call("ada", "GET", path+"/archive", "").is(http.StatusOK)
	if int64(all.Body.Len()) != b.Size || all.Header().Get("ETag") != `"`+b.ID+`"` {
		t.Errorf("%d bytes of %d, %v", all.Body.Len(), b.Size, all.Header())
	}
	part := w.call("ada", "GET", path+"/archive", "", "Range", "bytes=7-", "If-Range", `"`+b.ID+`"`).is(http.StatusPartialContent)
	if part.Body.String() != all.Body.String()[7:] {
		t.Error("a part is another one")
	}
	w.call("ada", "GET", path+"/archive", "", "Range", "bytes=99999999-").is(http.StatusRequestedRangeNotSatisfiable)
	w.homes.text = "new"
	for _, c := range []struct {
		body  string
		query string
		want  int
	}{{all.Body.String(), "", 200}, {"", "?save_first=true&backup=" + b.ID, 200}, {"no archive", "", 400}, {"", "?backup=1", 400}, {"", "?home_only=yes&backup=" + b.ID, 400}, {"", "?save_first=1&backup=" + b.ID, 400}} {
		w.homes.text = "new"
		if w.call("ada", "PUT", "/api/v1/sandboxes/lab/restore"+c.query, c.body, anyBytes...).is(c.want); (w.homes.text == "old") != (c.want == 200) {
			t.Errorf("%.10q%s: the home has %q", c.body, c.query, w.homes.text)
		}
	}
	w.call("ada", "GET", "/api/v1/sandboxes/lab/backup?root=1", "").is(http.StatusBadRequest)
	w.call("ada", "POST", "/api/v1/restore?name=other", all.Body.String(), anyBytes...).is(http.StatusCreated)
	w.call("ada", "POST", "/api/v1/restore?name=lab&backup="+b.ID, "").is(http.StatusConflict)
	w.call("ada", "POST", "/api/v1/restore?name=lab", "is not read", anyBytes...).problem(http.StatusConflict, "conflict", "name")
	w.call("ada", "POST", "/api/v1/restore?name=Not_A_Name", "is not read", anyBytes...).problem(http.StatusBadRequest, "invalid", "name")
	var list backupsShape
	if w.call("ada", "GET", "/api/v1/backups?sandbox=lab", "").is(http.StatusOK).into(&list); len(list.Backups) != 2 {
		t.Errorf("listed are %+v", list)
	}
	w.call("ada", "DELETE", path, "").is(http.StatusNoContent)
	w.call("ada", "GET", path, "").is(http.StatusNotFound)
}

func TestBackups_AreForThoseWhoMayUseTheSandbox(t *testing.T) {
	w := newWorld(t)
	b := w.ready("x")
	path := "/api/v1/backups/" + b.ID
	var list backupsShape
	if w.call("bob", "GET", "/api/v1/backups", "").is(http.StatusOK).into(&list); len(list.Backups) != 0 {
		t.Errorf("bob sees %+v", list)
	}
	w.call("bob", "GET", path, "").is(http.StatusNotFound)
	w.call("bob", "GET", path+"/archive", "").is(http.StatusNotFound)
	w.call("bob", "DELETE", path, "").is(http.StatusNotFound)
	w.call("bob", "POST", "/api/v1/restore?backup="+b.ID, "").is(http.StatusBadRequest)
	w.call("root", "GET", path, "").is(http.StatusOK)
}

func TestBackups_CanBeCancelled(t *testing.T) {
	w := newWorld(t)
	b := w.ready("x")
	release := w.homes.hold()
	defer release()
	var next backupShape
	w.call("ada", "POST", "/api/v1/sandboxes/lab/backups", `{"live": true}`).is(http.StatusAccepted).into(&next)
	w.call("ada", "GET", "/api/v1/backups/"+next.ID+"/archive", "").is(http.StatusConflict)
	w.call("ada", "DELETE", "/api/v1/backups/"+next.ID, "").is(http.StatusNoContent)
	if _, err := w.server.cfg.Backups.Wait(t.Context(), next.ID); err == nil || !strings.Contains(err.Error(), "cancelled") {
		t.Errorf("it ends with %v", err)
	}
	w.call("ada", "DELETE", "/api/v1/sandboxes/lab/restore", "").is(http.StatusNotFound)
	w.call("ada", "GET", "/api/v1/backups/"+b.ID, "").is(http.StatusOK)
}

func TestRecord_TellsWhoTookABackup(t *testing.T) {
	w := newWorld(t)
	b := w.ready("x")
	w.call("ada", "GET", "/api/v1/backups", "")
	w.call("ada", "GET", "/api/v1/backups/"+b.ID, "")
	w.call("root", "GET", "/api/v1/backups/"+b.ID+"/archive", "")
	w.call("bob", "GET", "/api/v1/backups/"+b.ID+"/archive", "")
	head := httptest.NewRequest("HEAD", "http://localhost:8080/api/v1/backups/"+b.ID+"/archive", nil)
	head.Header.Set("Authorization", "Bearer "+w.tokens["ada"])
	w.server.ServeHTTP(httptest.NewRecorder(), head)
	w.call("ada", "PUT", "/api/v1/sandboxes/lab/restore?backup="+b.ID, "")
	got := w.call("ada", "GET", "/api/v1/sandboxes/lab/backup", "").is(http.StatusOK)
	at := strings.Split(got.Header().Get("Content-Location"), "/")
	checkRecorded(t, w.server, "ada api sandbox.create lab base done", "ada api sandbox.backup lab "+b.ID+" done",
		"root api backup.download lab "+b.ID+" done", "bob api backup.download  "+b.ID+" refused",
		"ada api sandbox.restore lab "+b.ID+" done", "ada api sandbox.backup lab "+at[len(at)-2]+" done")
}

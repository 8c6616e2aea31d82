package web

import (
	"archive/tar"
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"sandboxd/internal/archive"
	"sandboxd/internal/backup"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// newBackupStage is a stage whose clock is that of the backups.
func newBackupStage(t *testing.T) *stage {
	s := newStage(t)
	s.server.cfg.Now = time.Now
	return s
}

// backed makes a backup of a sandbox on the stage, with this text in its file "notes", and gives it.
func (s *stage) backed(name, notes string) backup.Backup {
	s.t.Helper()
	box, err := s.boxes.Sandbox(s.t.Context(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	s.homes.put(box.ID, map[string]string{"notes": notes})
	b, _, err := s.server.cfg.Backups.Begin(box, backup.Options{})
	if err == nil {
		b, err = s.server.cfg.Backups.Wait(s.t.Context(), b.ID)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

// backupOn finds a backup on a page; nil when it is not there.
func backupOn(v view, b backup.Backup) *html.Node { return v.find("#backup-" + b.ID) }

// homeTar is an archive of a home by another program.
func homeTar(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: "notes", Mode: 0o644, Size: int64(len(text))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// sends uploads an archive as the page's script does.
func (s *stage) sends(user, method, path, body string) answer {
	s.t.Helper()
	r := httptest.NewRequest(method, "http://localhost:8080"+path, strings.NewReader(body))
	r.Header.Set("Origin", "http://localhost:8080")
	r.AddCookie(&http.Cookie{Name: s.server.sessionCookie(), Value: s.sessions[user]})
	w := httptest.NewRecorder()
	s.server.ServeHTTP(w, r)
	return answer{w, s.t}
}

func (s *stage) state(name string) sandbox.State {
	s.t.Helper()
	box, err := s.boxes.Sandbox(s.t.Context(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	return box.State
}

func TestBackupsPage_ListsWhatThereIs(t *testing.T) {
	s := newBackupStage(t)
	s.put("ada", "lab", nil)
	s.put("ada", "den", nil)
	if text := textOf(s.get("ada", "/sandboxes/lab/backups").is(http.StatusOK).need("#backups")); !strings.Contains(text, "No backups of this sandbox yet") {
		t.Errorf("says %q", text)
	}
	old, other := s.backed("lab", "one"), s.backed("den", "other")
	s.homes.loses = []archive.Loss{{Path: "run/<b>socket\x1b[2J", Reason: "is a socket"}}
	last := s.backed("lab", "two")
	v := s.get("ada", "/sandboxes/lab/backups").is(http.StatusOK)
	if items := v.all("li.backup"); len(items) != 2 || attr(items[0], "data-backup") != last.ID || attr(items[1], "data-backup") != old.ID {
		t.Fatalf("lists %d: %s", len(items), textOf(v.need("#backups")))
	}
	text := textOf(backupOn(v, last))
	for _, want := range []string{"Ready", "1 file", "kept for 7 d more", "1 entry could not be kept", "run/<b>socket", "is a socket", "Restore…", "Download", "New sandbox…", "Delete…"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	if strings.Contains(text, "\x1b") || strings.Contains(textOf(backupOn(v, old)), "could not be kept") {
		t.Errorf("says %q", textOf(v.need("#backups")))
	}
	if backupOn(v, other) != nil {
		t.Error("lists the backup of another sandbox")
	}
	all := s.get("ada", "/backups").is(http.StatusOK)
	if len(all.all("li.backup")) != 3 || !strings.Contains(textOf(all.need("#backups-summary")), "of 1 GiB") {
		t.Errorf("all: %s", textOf(all.need("#backups")))
	}
	one := s.get("ada", "/backups?sandbox=den").is(http.StatusOK)
	if len(one.all("li.backup")) != 1 || backupOn(one, other) == nil {
		t.Errorf("filtered: %s", textOf(one.need("#backups")))
	}
}

func TestBackupsPage_AnotherUsersAreNotThere(t *testing.T) {
	s := newBackupStage(t)
	s.put("ada", "lab", nil)
	b := s.backed("lab", "secret")
	one := "/backups/" + b.ID
	for _, path := range []string{"/sandboxes/lab/backups", one + "/archive", one + "/restore", one + "/new", one + "/delete"} {
		s.get("bob", path).is(http.StatusNotFound)
		s.get("", path).is(http.StatusSeeOther)
	}
	for _, path := range []string{"/sandboxes/lab/backups", "/sandboxes/lab/restore/cancel", "/sandboxes/lab/restore/dismiss", one + "/restore", one + "/new", one + "/delete"} {
		s.post("bob", path, fields("name", "mine")).is(http.StatusNotFound)
	}
	s.sends("bob", http.MethodPut, "/sandboxes/lab/restore", homeTar(t, "x")).is(http.StatusNotFound)
	s.sends("bob", http.MethodDelete, "/sandboxes/lab/restore", "").is(http.StatusNotFound)
	if p := s.sends("bob", http.MethodPost, "/restore?backup="+b.ID, "").problem(http.StatusBadRequest, "invalid", "backup"); strings.Contains(p.Detail, "lab") {
		t.Errorf("says %q", p.Detail)
	}
	if v := s.get("bob", "/backups").is(http.StatusOK); len(v.all("li.backup")) != 0 {
		t.Error("bob sees ada's")
	}
	v := s.get("root", "/backups").is(http.StatusOK)
	if text := textOf(backupOn(v, b)); !strings.Contains(text, "ada") {
		t.Errorf("whose it is does not stand in %q", text)
	}
}

func TestBackupsPage_OneIsMadeDownloadedAndDeleted(t *testing.T) {
	s := newBackupStage(t)
	box := s.put("ada", "lab", nil)
	s.homes.put(box.ID, map[string]string{"notes": "text"})
	release := s.homes.hold()
	s.post("ada", "/sandboxes/lab/backups", fields()).leads("/sandboxes/lab/backups")
	until(t, "it is being made", func() bool {
		v := s.get("ada", "/sandboxes/lab/backups")
		return strings.Contains(textOf(v.need("#backups")), "4 B in 1 file read") && hasAttr(in(v.need("#backups-up"), "button.primary"), "disabled")
	})
	release()
	until(t, "it is ready", func() bool { return strings.Contains(textOf(s.get("ada", "/backups").need("#backups")), "Ready") })
	b := s.server.cfg.Backups.List(func(backup.Backup) bool { return true })[0]
	if b.Still != true || s.state("lab") != sandbox.Running {
		t.Errorf("%+v of one that is %s", b, s.state("lab"))
	}
	got := s.get("ada", "/backups/"+b.ID+"/archive", "Range", "bytes=0-3")
	if got.Code != http.StatusPartialContent || got.Body.String() != "\x28\xB5\x2F\xFD" || !strings.Contains(got.Header().Get("Content-Disposition"), `lab-`) {
		t.Errorf("download: %d %q %v", got.Code, got.Body, got.Header())
	}
	if ask := s.get("ada", "/backups/"+b.ID+"/delete", "HX-Request", "true").is(http.StatusOK); !strings.Contains(textOf(ask.need(".sheet")), "Delete this backup of lab?") {
		t.Errorf("asks %s", ask.Body)
	}
	s.post("ada", "/backups/"+b.ID+"/delete", fields("next", "/sandboxes/lab/backups")).leads("/sandboxes/lab/backups")
	s.get("ada", "/backups/"+b.ID+"/archive").is(http.StatusNotFound)
	s.post("ada", "/backups/"+b.ID+"/delete", fields()).is(http.StatusNotFound)
}

func TestBackupsPage_OneThatIsCancelledCanBeRemoved(t *testing.T) {
	s := newBackupStage(t)
	s.put("ada", "lab", nil)
	defer s.homes.hold()()
	s.post("ada", "/sandboxes/lab/backups", fields("live", "on")).leads("/sandboxes/lab/backups")
	id := s.server.cfg.Backups.List(func(backup.Backup) bool { return true })[0].ID
	s.post("ada", "/backups/"+id+"/delete", fields()).leads("/backups")
	until(t, "it is cancelled", func() bool {
		return strings.Contains(textOf(s.get("ada", "/backups").need("#backups")), "The backup was cancelled")
	})
	if text := textOf(s.get("ada", "/backups").need("#backup-" + id)); strings.Contains(text, "Restore…") || !strings.Contains(text, "Remove") {
		t.Errorf("offers %q", text)
	}
	s.post("ada", "/backups/"+id+"/delete", fields()).leads("/backups")
	if v := s.get("ada", "/backups"); len(v.all("li.backup")) != 0 {
		t.Errorf("still there: %s", textOf(v.need("#backups")))
	}
}

func TestBackupsPage_ARestoreBacksUpWhatIsThereIfAsked(t *testing.T) {
	s := newBackupStage(t)
	box := s.put("ada", "lab", nil)
	b := s.backed("lab", "before")
	s.homes.put(box.ID, map[string]string{"notes": "after"})
	ask := s.get("ada", "/backups/"+b.ID+"/restore", "HX-Request", "true").is(http.StatusOK)
	if check := ask.byAttr("input", "name", "save_first"); !hasAttr(check, "checked") || !strings.Contains(textOf(ask.need(".sheet")), "The sandbox is stopped meanwhile") {
		t.Errorf("asks %s", ask.Body)
	}
	s.post("ada", "/backups/"+b.ID+"/restore", fields("save_first", "on")).leads("/sandboxes/lab")
	until(t, "it is restored", func() bool { return s.homes.home(box.ID)["notes"] == "before" && s.state("lab") == sandbox.Running })
	if n := len(s.server.cfg.Backups.List(func(backup.Backup) bool { return true })); n != 2 {
		t.Errorf("%d backups, want what was there too", n)
	}
	s.post("ada", "/backups/"+b.ID+"/restore", fields()).leads("/sandboxes/lab")
	if n := len(s.server.cfg.Backups.List(func(backup.Backup) bool { return true })); n != 2 {
		t.Errorf("%d backups", n)
	}
}

func TestBackupsPage_TheRootFileSystemIsInItIfAsked(t *testing.T) {
	s := newBackupStage(t)
	box := s.put("ada", "lab", nil)
	for _, name := range []string{"root", "live"} {
		s.get("ada", "/sandboxes/lab/backups").byAttr("input", "name", name)
	}
	s.post("ada", "/sandboxes/lab/backups", fields("root", "on", "live", "on")).is(http.StatusBadRequest)
	s.homes.put(box.ID, map[string]string{"notes": "before"})
	s.post("ada", "/sandboxes/lab/backups", fields("root", "on")).leads("/sandboxes/lab/backups")
	id := s.server.cfg.Backups.List(func(backup.Backup) bool { return true })[0].ID
	until(t, "it is ready", func() bool {
		return strings.Contains(textOf(s.get("ada", "/backups").need("#backup-"+id)), "with root file system")
	})
	for path, want := range map[string]string{"/restore": "outside of its home is replaced, too", "/new": "its root file system and its settings"} {
		if ask := s.get("ada", "/backups/"+id+path, "HX-Request", "true").is(http.StatusOK); !strings.Contains(textOf(ask.need(".sheet")), want) {
			t.Errorf("%s asks %s", path, ask.Body)
		}
	}
	for n, form := range []url.Values{fields("home_only", "on"), fields()} {
		s.homes.put(box.ID, map[string]string{"notes": "after"})
		s.post("ada", "/backups/"+id+"/restore", form).leads("/sandboxes/lab")
		until(t, "it is restored", func() bool { return s.homes.home(box.ID)["notes"] == "before" && s.state("lab") == sandbox.Running })
		if s.homes.roots != n {
			t.Errorf("with %v, %d root file systems were restored", form, s.homes.roots)
		}
	}
}

func TestBackupsPage_ALongRestoreDoesNotHoldThePage(t *testing.T) {
	s := newBackupStage(t)
	box := s.put("ada", "lab", nil)
	b := s.backed("lab", "before")
	release := s.homes.hold()
	s.post("ada", "/backups/"+b.ID+"/restore", fields()).leads("/sandboxes/lab")
	page := s.get("ada", "/sandboxes/lab").is(http.StatusOK)
	if text := textOf(page.need("#work")); !strings.Contains(text, "Being restored") || !strings.Contains(text, "Cancel restore") {
		t.Errorf("shows %q", text)
	}
	again := s.post("ada", "/backups/"+b.ID+"/restore", fields("save_first", "on"), "HX-Request", "true").is(http.StatusConflict)
	if !strings.Contains(textOf(again.need(".sheet")), "Another archive is being restored") || !hasAttr(again.byAttr("input", "name", "save_first"), "checked") {
		t.Errorf("says %s", again.Body)
	}
	s.post("ada", "/sandboxes/lab/restore/cancel", fields()).leads("/sandboxes/lab")
	until(t, "it is cancelled", func() bool { return s.state("lab") == sandbox.Running })
	release()
	until(t, "a page says so", func() bool {
		return strings.Contains(textOf(s.get("ada", "/sandboxes/lab/backups").need("#backups-failed")), "The restore was cancelled")
	})
	if sign := s.get("ada", "/sandboxes/lab").need("#ws-restore"); !strings.Contains(textOf(sign), "Not restored") {
		t.Errorf("the workspace says %q", textOf(sign))
	}
	s.post("ada", "/sandboxes/lab/restore/dismiss", fields()).leads("/sandboxes/lab/backups")
	if text := textOf(s.get("ada", "/sandboxes/lab/backups").need("#backups-failed")); text != "" {
		t.Errorf("still says %q", text)
	}
	if got := s.homes.home(box.ID)["notes"]; got != "before" {
		t.Errorf("the home has %q", got)
	}
	s.post("ada", "/sandboxes/lab/restore/cancel", fields()).is(http.StatusNotFound)
}

func TestBackupsPage_ASandboxIsMadeFromABackup(t *testing.T) {
	s := newBackupStage(t)
	box := s.put("ada", "lab", nil)
	b := s.backed("lab", "text")
	ask := s.get("ada", "/backups/"+b.ID+"/new", "HX-Request", "true").is(http.StatusOK)
	if name := attr(ask.need("#new-from-name"), "value"); name != "lab-2" {
		t.Errorf("suggests %q", name)
	}
	for name, want := range map[string]string{"": "name", "Not A Name": "name", "lab": "already a sandbox"} {
		again := s.post("ada", "/backups/"+b.ID+"/new", fields("name", name), "HX-Request", "true")
		if text := textOf(again.need("#new-from-name-fault")); again.Code < 400 || !strings.Contains(strings.ToLower(text), want) || attr(again.need("#new-from-name"), "value") != name {
			t.Errorf("%q: %d %q", name, again.Code, text)
		}
	}
	release := s.homes.hold()
	s.post("ada", "/backups/"+b.ID+"/new", fields("name", "lab-2")).leads("/sandboxes/lab-2")
	s.get("ada", "/sandboxes/lab-2").is(http.StatusOK)
	release()
	until(t, "it runs", func() bool { return s.state("lab-2") == sandbox.Running })
	if got := s.homes.home(s.ref("lab-2").ID())["notes"]; got != "text" {
		t.Errorf("its home has %q", got)
	}
	s.boxes.drop(box)
	v := s.get("ada", "/backups").is(http.StatusOK)
	if text := textOf(backupOn(v, b)); !strings.Contains(text, "sandbox deleted") || strings.Contains(text, "Restore…") || !strings.Contains(text, "New sandbox…") {
		t.Errorf("says %q", text)
	}
	if text := textOf(s.post("ada", "/backups/"+b.ID+"/restore", fields()).is(http.StatusNotFound).need("main")); !strings.Contains(text, "Make a new sandbox") {
		t.Errorf("says %q", text)
	}
	if ask := s.get("ada", "/backups/"+b.ID+"/new"); attr(ask.need("#new-from-name"), "value") != "lab" {
		t.Error("the old name is free, and is not suggested")
	}
}

func TestBackupsPage_AFileIsUploaded(t *testing.T) {
	s := newBackupStage(t)
	box := s.put("ada", "lab", nil)
	form := s.get("ada", "/sandboxes/lab/backups").is(http.StatusOK).need("form.archive-form")
	path := attr(form, "data-url")
	if got := s.sends("ada", http.MethodPut, path+"&save_first=true", homeTar(t, "mine")).is(http.StatusOK).sandbox(); got.Name != "lab" {
		t.Errorf("answers %+v", got)
	}
	if s.homes.home(box.ID)["notes"] != "mine" || len(s.server.cfg.Backups.List(func(backup.Backup) bool { return true })) != 1 {
		t.Errorf("home %v", s.homes.home(box.ID))
	}
	s.sends("ada", http.MethodPut, path, "no archive").problem(http.StatusBadRequest, "invalid", "")
	s.homes.fails = fault.New(fault.Unavailable, "The disk is full.")
	s.sends("ada", http.MethodPut, path, homeTar(t, "other")).problem(http.StatusServiceUnavailable, "unavailable", "")
	if text := textOf(s.get("ada", "/sandboxes/lab/backups").need("#backups-failed")); !strings.Contains(text, "The disk is full") {
		t.Errorf("says %q", text)
	}
	s.homes.fails = nil
	form = s.get("ada", "/backups").is(http.StatusOK).need("form.archive-form")
	s.sends("ada", http.MethodPost, attr(form, "data-url")+"?name=fresh", homeTar(t, "mine")).problem(http.StatusBadRequest, "invalid", "template")
	if got := s.sends("ada", http.MethodPost, attr(form, "data-url")+"?name=fresh&template=base", homeTar(t, "mine")).is(http.StatusCreated).sandbox(); got.Name != "fresh" {
		t.Errorf("answers %+v", got)
	}
}

func TestBackupsPage_IsReachedFromEverywhere(t *testing.T) {
	s := newBackupStage(t)
	box := s.put("ada", "lab", nil)
	b := s.backed("lab", "text")
	if s.get("ada", "/new").is(http.StatusOK).byAttr("a", "href", "/backups") == nil {
		t.Error("the form of a new sandbox does not lead to backups")
	}
	if text := textOf(s.get("ada", "/sandboxes/lab/delete").is(http.StatusOK).need(".sheet")); !strings.Contains(text, "Its backup is kept for 7 d more.") {
		t.Errorf("the question about deleting says %q", text)
	}
	s.backed("lab", "again")
	if text := textOf(s.get("ada", "/sandboxes/lab/delete").need(".sheet")); !strings.Contains(text, "Its 2 backups are kept") {
		t.Errorf("the question about deleting says %q", text)
	}
	for _, state := range []sandbox.State{sandbox.Creating, sandbox.Running, sandbox.Frozen, sandbox.Asleep, sandbox.Stopped, sandbox.Failed, sandbox.Capturing, sandbox.Restoring} {
		if _, err := s.boxes.change(t.Context(), box.Ref(), func(b *sandbox.Sandbox) { b.State = state }); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(textOf(s.get("ada", "/sandboxes/lab").need("#ws-acts")), "Backups") {
			t.Errorf("%s: its menu has no backups", state)
		}
	}
	if link := s.get("ada", "/backups").byAttr("a", "href", "/sandboxes/lab/backups?"+url.Values{"sandbox_id": {b.SandboxID}}.Encode()); link == nil {
		t.Error("a backup does not lead to its sandbox's")
	}
}

func TestBackupsPage_ManyAndLongNames(t *testing.T) {
	s := newBackupStage(t)
	name := strings.Repeat("long-name-", 3) + "x"
	s.put("ada", name, nil)
	for range 200 {
		s.backed(name, "text")
	}
	v := s.get("ada", "/backups").is(http.StatusOK)
	if n := len(v.all("li.backup")); n != 200 || !strings.Contains(textOf(v.need("#backups-summary")), "200 ready") {
		t.Errorf("%d backups: %s", n, textOf(v.need("#backups-summary")))
	}
	if size := v.Body.Len(); size > 1<<20 {
		t.Errorf("the page has %d bytes", size)
	}
}

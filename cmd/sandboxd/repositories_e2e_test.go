//go:build e2e

package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestRepositories_AHomeComesBackBitByBit backs a home of every kind of file up to a repository, deletes the sandbox, and makes one of
// the backup; it is unpacked from a download too.
func TestRepositories_AHomeComesBackBitByBit(t *testing.T) {
	s := newServer(t, "--prebuild", "")
	where := []string{"--url", "http://" + s.addr, "--token", s.token}
	place := filepath.Join(t.TempDir(), "repository")
	password := strings.TrimSpace(s.cli(append([]string{"repository", "add", "nas", "--folder", place}, where...)...))
	s.create(map[string]any{"name": "odd", "template": "base", "env": map[string]string{"KEPT": "yes"}})
	s.asRoot("odd", oddHome)
	oddAttributes(t, s.homeOf("odd"))
	was := filepath.Join(t.TempDir(), "was")
	if out, err := exec.Command("cp", "-a", s.homeOf("odd"), was).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v %s", err, out)
	}
	s.cli(append([]string{"backup", "odd", "--repository", "nas"}, where...)...)
	s.cli(append([]string{"backup", "odd", "--repository", "nas"}, where...)...)
	var list struct{ Backups []backupBody }
	s.call("GET", "/backups?repository=nas", nil, &list)
	if len(list.Backups) != 2 || list.Backups[0].Size > list.Backups[1].Size/20 {
		t.Fatalf("the second one adds too much: %+v", list)
	}
	if out := s.cli("doctor", "--only", "repositories", "--data", s.data); !strings.Contains(out, "nas") {
		t.Errorf("doctor says %s", out)
	}
	s.cli(append([]string{"repository", "check", "nas", "--contents"}, where...)...)
	s.raw("DELETE", "/sandboxes/odd", nil)
	id := list.Backups[0].ID
	s.cli(append([]string{"restore", id, "moved", "--new"}, where...)...)
	wantSame(t, was, s.homeOf("moved"), "made from a repository")
	if out := s.exec("moved", map[string]any{"command": "echo $KEPT"}); out.Stdout != "yes\n" {
		t.Errorf("its settings: %+v", out)
	}
	file := filepath.Join(t.TempDir(), "odd.tar.zst")
	s.cli(append([]string{"backup", "--id", id, file}, where...)...)
	to := t.TempDir()
	if out, err := exec.Command("tar", "--zstd", "--xattrs", "--xattrs-include=*", "--numeric-owner", "--warning=no-unknown-keyword", "--sparse", "-C", to, "-xpf", file).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v %s", err, out)
	}
	wantSame(t, was, filepath.Join(to, "home"), "downloaded")

	s.cli(append([]string{"repository", "remove", "nas"}, where...)...)
	if s.call("GET", "/backups?repository=nas", nil, &list); len(list.Backups) != 0 {
		t.Errorf("after the repository was removed: %+v", list)
	}
	key := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(key, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.cli(append([]string{"repository", "add", "nas", "--folder", place, "--password-file", key}, where...)...)
	if s.call("GET", "/backups?repository=nas", nil, &list); len(list.Backups) != 2 {
		t.Errorf("connected again: %+v", list)
	}
	if status, body := s.raw("DELETE", "/backups/"+id, nil); status != http.StatusNoContent {
		t.Errorf("delete: %d %s", status, body)
	}
}

// TestRepositories_AScheduleMakesAndTestsItsBackupsThere has a schedule keep two backups in a repository and restore the newest one, and
// moves the repository away.
func TestRepositories_AScheduleMakesAndTestsItsBackupsThere(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "")
	where := []string{"--url", "http://" + s.addr, "--token", s.token}
	place := filepath.Join(t.TempDir(), "repository")
	s.cli(append([]string{"repository", "add", "nas", "--folder", place}, where...)...)
	s.create(map[string]any{"name": "lab", "template": "base"})
	s.asRoot("lab", oddHome)
	s.cli(append([]string{"schedule", "create", "nightly", "--sandbox", "lab", "--repository", "nas", "--keep-last", "2", "--keep-daily", "0", "--keep-weekly", "0"}, where...)...)
	if out := s.cli(append([]string{"schedule", "list"}, where...)...); !strings.Contains(out, " nas ") {
		t.Errorf("listed as %s", out)
	}
	var all struct{ Schedules []scheduleBody }
	s.call("GET", "/schedules", nil, &all)
	id := all.Schedules[0].ID
	for range 3 {
		if got := s.plannedRun(id, "backup"); got.Runs[0].Failed != 0 || len(got.Runs[0].Items) != 1 {
			t.Fatalf("run %+v", got.Runs[0])
		}
	}
	there := func() (n int) {
		var list struct{ Backups []backupBody }
		s.call("GET", "/backups?repository=nas", nil, &list)
		for _, b := range list.Backups {
			if b.State == "ready" {
				n++
			}
		}
		return n
	}
	if n := there(); n != 2 {
		t.Errorf("%d backups are there", n)
	}
	if got := s.plannedRun(id, "test"); got.Runs[0].Failed != 0 || len(got.Runs[0].Items) != 1 {
		t.Errorf("test %+v", got.Runs[0])
	}
	s.wantBoxes("after a test", "lab")
	if err := os.Rename(place, place+"-moved"); err != nil {
		t.Fatal(err)
	}
	if status, text := s.raw("POST", "/schedules/"+id+"/run", nil); status != http.StatusAccepted {
		t.Fatalf("run: %d %s", status, text)
	}
	s.until("the run says why it failed", func() bool {
		var got runsBody
		s.call("GET", "/schedules/"+id+"/runs", nil, &got)
		return len(got.Runs[0].Items) == 1 && strings.Contains(got.Runs[0].Items[0].Problem, "The folder of the repository is not there.")
	})
	if n := there(); n != 2 {
		t.Errorf("%d backups are listed while the repository is away", n)
	}
}

// TestRepositories_PageAddsChecksAndRemoves does what an admin does, and makes a backup to a repository.
func TestRepositories_PageAddsChecksAndRemoves(t *testing.T) {
	s := newServer(t, "--prebuild", "", "--templates", echoTemplates(t))
	s.create(map[string]any{"name": "lab", "template": "echo"})
	s.in("seq 200000 >notes")
	place := filepath.Join(t.TempDir(), "repository")
	p := newPerson(t)
	dashboard := "http://localhost:" + s.port()
	p.signsIn(dashboard)
	p.does("open the page", chromedp.Navigate(dashboard+"/settings/repositories"))
	p.sees("that there are none", current+` && document.querySelector("#repositories").textContent.includes("No repositories yet")`)
	p.pictures("repositories-none")
	p.does("add one", chromedp.Click(`a[href="/settings/repositories/new"]`))
	p.sees("the kinds", sheetIsOpen+` && document.querySelectorAll("#sheet .kind").length === 3`)
	p.pictures("repositories-kinds")
	for kind, field := range map[string]string{"s3": "endpoint", "sftp": "host"} {
		p.does("look at the form", chromedp.Navigate(dashboard+"/settings/repositories/new?kind="+kind))
		p.sees("the form", `document.querySelector("#repository-`+field+`") !== null`)
		p.pictures("repositories-form-" + kind)
	}
	p.does("open the page", chromedp.Navigate(dashboard+"/settings/repositories"))
	p.sees("it", current)
	p.does("add one", chromedp.Click(`a[href="/settings/repositories/new"]`))
	p.sees("the kinds", sheetIsOpen+` && document.querySelectorAll("#sheet .kind").length === 3`)
	p.does("choose a folder", chromedp.Click(`#sheet a[href$="kind=folder"]`))
	p.sees("the form", `document.querySelector("#sheet #repository-path") !== null`)
	p.does("enter it wrongly", chromedp.SendKeys("#repository-name", "nas"), chromedp.SendKeys("#repository-path", "relative"), chromedp.Click("#sheet .button.primary"))
	p.sees("what is wrong beside the field", `document.querySelector("#repository-path-fault") !== null && document.querySelector("#repository-name").value === "nas"`)
	p.pictures("repositories-form-folder")
	p.does("mend it", chromedp.SetValue("#repository-path", place), chromedp.Click("#sheet .button.primary"))
	p.sees("the password, once", sheetIsOpen+` && document.querySelector("#secret")?.value.length > 20`)
	p.picture("repositories-password-light", "desktop")
	p.does("have seen it", chromedp.Click("#sheet .button.primary"))
	p.sees("it in the list", current+` && document.querySelector("#repository-nas").textContent.includes("Can be used")`)

	p.does("look at the backups of a sandbox", chromedp.Navigate(dashboard+"/sandboxes/lab/backups"))
	p.sees("the page", current)
	p.does("choose where", chromedp.Click("#backups-up summary"))
	p.sees("that it is offered", `document.querySelector("#backup-repository").value === "nas"`)
	p.pictures("repositories-where-to")
	p.does("back up", chromedp.Click("#backups-up .backup-to .button"))
	p.sees("that it is ready, and where", firstBackup+`?.textContent.includes("Ready") && `+firstBackup+`.textContent.includes("nas")`)
	p.runs("close the menu", `document.querySelector("#backups-up details").open = false`)
	p.pictures("repositories-backup")

	p.schedulesTo("nas", dashboard)
	p.does("go back", chromedp.Navigate(dashboard+"/settings/repositories"))
	p.sees("that it has one", current+` && document.querySelector("#repository-nas").textContent.includes("1 backup")`)
	p.does("have it checked", chromedp.Click("#repository-nas summary"))
	p.does("all of it", chromedp.Click(`#repository-nas form:has([name="contents"][value="on"]) button`))
	p.sees("what was found", `document.querySelector("#repository-nas").textContent.includes("read in full")`)
	p.pictures("repositories-list")
	p.runs("ask to remove it", `document.querySelector('#repository-nas a[href$="/remove"]').click()`)
	p.sees("what that means", sheetIsOpen+` && document.querySelector("#sheet").textContent.includes("Nothing in the repository is deleted") && document.querySelector("#sheet").textContent.includes("until you change them: Every night.")`)
	p.pictures("repositories-remove")
	p.does("remove it", chromedp.Click("#sheet .button.danger"))
	p.sees("that it is gone", current+` && document.querySelector("#repository-nas") === null`)
	if _, err := os.Stat(filepath.Join(place, "kopia.repository.f")); err != nil {
		t.Errorf("its content: %v", err)
	}
}

// schedulesTo makes a schedule whose backups go to a repository.
func (p *person) schedulesTo(name, dashboard string) {
	p.t.Helper()
	p.does("look at schedules", chromedp.Navigate(dashboard+"/schedules"))
	p.sees("none", current+` && document.querySelector("#schedules").textContent.includes("No schedules yet")`)
	p.does("make one", chromedp.Click(`.page-head a[href="/schedules/new"]`))
	p.sees("that it asks where to", sheetIsOpen+` && document.querySelector("#schedule-repository")?.value === ""`)
	p.does("choose", chromedp.SetValue("#schedule-name", "Every night"), chromedp.SetValue("#schedule-repository", name))
	p.pictures("repositories-schedule-form")
	p.does("save it", chromedp.Click("#sheet .button.primary"))
	p.sees("it in the list", at("/schedules")+" && "+current+` && `+firstSchedule+`?.querySelector(".tag")?.textContent.trim() === "`+name+`"`)
	p.pictures("repositories-schedules")
}

//go:build e2e

package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// taughtHome is a home with owners, links, a hole and without a file that its image has; taughtLook tells of it.
const (
	taughtHome = "cd /home/agent && rm .bashrc && mkdir -p work/deep && echo own > work/deep/file && chown 1234:5678 work/deep/file && chmod 4755 work/deep/file && " +
		"ln -s deep/file work/link && ln work/deep/file work/again && truncate -s 20M work/sparse && echo end >> work/sparse && chown -h agent:agent work work/deep work/link work/sparse"
	taughtLook = "cd /home/agent && find . -not -name '.[a-z]*' | sort | xargs stat -c '%n %a %u:%g %F %h %N' && sudo sha256sum work/sparse work/again && ls .bashrc; cat /usr/local/bin/tool"
)

// templateImages lists what the engine has of a server's roots, and of a template.
func (s *server) templateImages(template string) string {
	s.t.Helper()
	list := func(of string) string {
		return strings.TrimSpace(engine(s.t, "images", "--format", "{{.Repository}}:{{.Tag}}", "--filter", "reference="+of))
	}
	return strings.TrimSpace(list("sandboxd/root/"+s.instance()+":*") + " " + list("sandboxd/root/"+s.instance()+"/part:*") + " " + list("sandboxd/"+template+":*"))
}

// TestSnapshotTemplates_OutliveTheirSandbox makes a template by the command, deletes what it was made of, uses it, and makes another of that.
func TestSnapshotTemplates_OutliveTheirSandbox(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(t *testing.T) *server{
		"plain": func(t *testing.T) *server { return newServer(t, "--prebuild", "") },
		"pool":  func(t *testing.T) *server { return newPoolServer(t, "1GiB", "--prebuild", "") },
	} {
		t.Run(name, func(t *testing.T) {
			tools, next := "tools-"+name, "next-"+name
			dropImages(t, tools)
			dropImages(t, next)
			s := begin(t)
			s.create(map[string]any{"name": "lab", "template": "base", "env": map[string]string{"SECRET": "hunter2"}, "memory": 768 << 20})
			s.asRoot("lab", "echo 00000000000000000000000000000000 > /etc/machine-id; echo tool > /usr/local/bin/tool; "+taughtHome)
			want := s.exec("lab", map[string]any{"command": taughtLook}).Stdout
			s.snapshot("lab", "ready")
			if out := s.remote("template", "create", tools, "--from-snapshot", "lab/ready", "--home"); !strings.Contains(out, "was made") {
				t.Fatalf("the command says %s", out)
			}
			s.forgets("lab")
			s.stop()
			s.start()
			machines := map[string]bool{}
			s.taught(tools, want, machines)
			s.call("POST", "/templates/"+tools+"/build", map[string]any{"no_cache": true, "pull": true}, nil)
			s.untilWithin(2*time.Minute, "it is built again", func() bool { list := s.builds(tools); return len(list) == 2 && list[0].State == "done" })
			s.snapshot("user", "again")
			if status, text := s.raw("POST", "/sandboxes/user/snapshots/"+s.snapshots("user")[0].ID+"/template", map[string]any{"name": next, "home": true}); status != http.StatusCreated {
				t.Fatalf("make another: %d %s", status, text)
			}
			s.forgets("user")
			s.call("DELETE", "/templates/"+tools, nil, nil)
			s.untilWithin(time.Minute, "the images of the first go", func() bool { return !strings.Contains(s.templateImages(tools), "sandboxd/"+tools) })
			s.taught(next, want, machines)
			s.forgets("user")
			s.call("DELETE", "/templates/"+next, nil, nil)
			s.untilWithin(time.Minute, "nothing is left", func() bool { return s.templateImages(next) == "" && s.snapshotParts() == "" })
		})
	}
}

// forgets deletes a sandbox, with its snapshots.
func (s *server) forgets(name string) {
	s.t.Helper()
	if status, text := s.raw("DELETE", "/sandboxes/"+name+"?wait=gone", nil); status >= 300 {
		s.t.Fatalf("delete %s: %d %s", name, status, text)
	}
	s.untilWithin(time.Minute, "its snapshots are gone", func() bool {
		return strings.TrimSpace(engine(s.t, "images", "-q", "--filter", "reference=sandboxd/snapshot/"+s.instance()+":*")) == "" && s.snapshotParts() == ""
	})
}

// taught makes the sandbox user of a template, and looks at what it was given, and at what it was not.
func (s *server) taught(template, want string, machines map[string]bool) {
	s.t.Helper()
	s.create(map[string]any{"name": "user", "template": template})
	if got := s.exec("user", map[string]any{"command": taughtLook}).Stdout; got != want {
		s.t.Errorf("of %s it has\n%s\nwant\n%s", template, got, want)
	}
	got := s.exec("user", map[string]any{"command": "cat /etc/machine-id; echo $SECRET$SANDBOXD_CLONED_FROM"}).Stdout
	if len(got) != 34 || machines[got] || strings.HasPrefix(got, "0000") {
		s.t.Errorf("its machine id and secrets are %q", got)
	}
	machines[got] = true
	var box struct {
		Limits struct{ Memory int64 } `json:"limits"`
	}
	if s.call("GET", "/sandboxes/user", nil, &box); box.Limits.Memory != 768<<20 {
		s.t.Errorf("it has %d bytes of memory", box.Limits.Memory)
	}
}

// TestSnapshotTemplates_AKillLeavesNone kills sandboxd while the home is being copied into the image.
func TestSnapshotTemplates_AKillLeavesNone(t *testing.T) {
	t.Parallel()
	dropImages(t, "cut")
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "template": "base"})
	s.exec("lab", map[string]any{"command": "head -c 600M /dev/urandom > large"})
	b := s.snapshot("lab", "ready")
	path, mover := "/sandboxes/lab/snapshots/"+b.ID+"/template", "label=sandboxd.mover="+s.instance()
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		_, _, _ = s.try("POST", path, map[string]any{"name": "cut", "home": true}) // it is cut off
	}()
	s.until("the home is copied", func() bool { return strings.TrimSpace(engine(t, "ps", "-q", "--filter", mover)) != "" })
	s.kill()
	<-asked
	s.start()
	s.untilWithin(time.Minute, "nothing is left", func() bool {
		return s.templateImages("cut") == "" && strings.TrimSpace(engine(t, "ps", "-aq", "--filter", mover)) == ""
	})
	if status, _ := s.raw("GET", "/templates/cut", nil); status != http.StatusNotFound {
		t.Errorf("the template is there: %d", status)
	}
	if status, text := s.raw("POST", path, map[string]any{"name": "cut"}); status != http.StatusCreated {
		t.Errorf("once more: %d %s", status, text)
	}
	s.call("DELETE", "/templates/cut", nil, nil)
	s.untilWithin(time.Minute, "its image goes", func() bool { return !strings.Contains(s.templateImages("cut"), "sandboxd/root") })
}

// TestSnapshotsPage_MakesATemplate does what an admin does who has set up a sandbox for others.
func TestSnapshotsPage_MakesATemplate(t *testing.T) {
	dropImages(t, "course")
	s := newServer(t, "--prebuild", "", "--templates", echoTemplates(t))
	s.create(map[string]any{"name": "lab", "template": "echo"})
	s.writes("lab", "first")
	s.snapshot("lab", "Ready for the course")
	p := newPerson(t)
	dashboard := "http://localhost:" + s.port()
	p.signsIn(dashboard)
	p.does("open the snapshots", chromedp.Navigate(dashboard+"/sandboxes/lab/snapshots"))
	p.sees("its menu", current+` && document.querySelector('a[href*="/template"][data-sheet]') !== null`)
	p.runs("open the menu", `document.querySelector("#snapshot-items details.menu").open = true`)
	p.pictures("snapshot-template-menu")
	p.runs("choose it", `document.querySelector('#snapshot-items a[href*="/template"]').click()`)
	p.sees("the form", sheetIsOpen+` && document.querySelector("#template-name") !== null`)
	p.pictures("snapshot-template")
	p.does("take a name that is taken", chromedp.SetValue("#template-name", "base"), chromedp.Click("#sheet .button.primary"))
	p.sees("what is wrong", `document.querySelector("#template-name-fault")?.textContent.includes("There is a template base already")`)
	p.pictures("snapshot-template-taken")
	p.does("take another", chromedp.SetValue("#template-name", "course"), chromedp.SetValue("#template-description", "Everything for the course"), chromedp.Click("#sheet .button.primary"))
	p.sees("its page", at("/templates/course")+` && document.querySelector("main").textContent.includes("Everything for the course")`)
	p.seesWithin("that it is built", `document.querySelector("main").textContent.includes("Built")`, 2*time.Minute)
	p.pictures("snapshot-template-made")
	s.forgets("lab")
	s.create(map[string]any{"name": "pupil", "template": "course"})
	if out := s.exec("pupil", map[string]any{"command": "cat notes " + installed}); out.Stdout != "first\nfirst\n" {
		t.Errorf("it has %+v", out)
	}
	s.forgets("pupil")
	s.call("DELETE", "/templates/course", nil, nil)
	s.untilWithin(time.Minute, "its images go", func() bool { return s.templateImages("course") == "" })
}

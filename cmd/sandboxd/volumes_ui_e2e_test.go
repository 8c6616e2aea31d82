//go:build e2e

package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// putIn uploads a file to a volume, and gives the status and the answer.
func (s *server) putIn(name, path, content string) (int, string) {
	s.t.Helper()
	status, answer := s.sendBody("PUT", "/volumes/"+name+"/files?path="+path, strings.NewReader(content))
	return status, string(answer)
}

// volumeObjects are what the engine has of volumes: their guests, and they themselves.
func (s *server) volumeObjects() (guests, volumes []string) {
	return strings.Fields(engine(s.t, "ps", "-aq", "--filter", "label=sandboxd.files="+s.instance())),
		strings.Fields(engine(s.t, "volume", "ls", "-q", "--filter", "label=sandboxd.volume="+s.instance()))
}

// TestVolumes_AreMadeFilledGivenAndDeleted does what an admin does with volumes, on a real engine.
func TestVolumes_AreMadeFilledGivenAndDeleted(t *testing.T) {
	s := newServer(t, "--prebuild", "", "--templates", echoTemplates(t))
	s.create(map[string]any{"name": "lab", "template": "echo", "label": "Protein folding"})
	s.in("grep ' /shared ' /proc/mounts | grep -w ro && echo installed >/opt/mine")
	p := newPerson(t)
	dashboard := "http://localhost:" + s.port()
	p.signsIn(dashboard)
	p.makesAVolume(dashboard)
	if status, text := s.putIn("models", "deep/hello.txt&parents=true", "hello from the admin\n"); status != http.StatusCreated {
		t.Fatalf("upload: %d %s", status, text)
	}
	p.sees("it in the tree", `document.querySelector('.tree-row[data-path$="/deep"]') !== null`)
	p.sees("where it is", `document.querySelector("sandbox-files .path-field").value === "/volumes/models" && document.querySelector('sandbox-files button[aria-label="Home"]') === null`)
	p.pictures("volume")
	p.restartsFor(s, dashboard)
	if got := s.in("cat /volumes/models/deep/hello.txt /opt/mine"); got != "hello from the admin\ninstalled\n" {
		t.Errorf("in the sandbox: %q", got)
	}
	s.hostile()
	s.survivesAKill()
	p.deletesAVolume(s, dashboard)
}

func (p *person) makesAVolume(dashboard string) {
	p.t.Helper()
	p.does("look at volumes", chromedp.Navigate(dashboard+"/volumes"))
	p.sees("the one that is there", current+` && document.querySelector('[data-volume="shared"]')?.textContent.includes("All sandboxes")`)
	p.pictures("volumes-none")
	p.does("ask for one", chromedp.Click(`.page-head a[href="/volumes/new"]`))
	p.sees("the form", sheetIsOpen+` && document.querySelector("#volume-give").value === "chosen" && document.querySelector(".volume-grants").checkVisibility()`)
	p.does("fill it in", chromedp.SetValue("#volume-name", "Models"), chromedp.SetValue("#volume-note", "Model weights"), chromedp.SetValue("#volume-mode", "rw"),
		chromedp.SetValue("#volume-give", "all"))
	p.sees("no lists", `!document.querySelector(".volume-grants").checkVisibility()`)
	p.does("call for chosen ones", chromedp.SetValue("#volume-give", "chosen"))
	p.does("choose", chromedp.Click(`.volume-grants [name="sandboxes"]`), chromedp.Click("#sheet .button.primary"))
	p.sees("what is wrong", `document.querySelector("#sheet").textContent.includes("A name has up to 32") && document.querySelector('.volume-grants [name="sandboxes"]').checked`)
	p.pictures("volume-form")
	p.does("call it otherwise", chromedp.SetValue("#volume-name", "models"), chromedp.Click("#sheet .button.primary"))
	p.sees("its page, empty", at("/volumes/models")+` && document.querySelector("sandbox-files .note, sandbox-files [role=treeitem]") !== null`)
}

func (p *person) restartsFor(s *server, dashboard string) {
	p.t.Helper()
	p.does("look at the sandbox", chromedp.Navigate(dashboard+"/sandboxes/lab"))
	p.sees("that it gets it later", `document.querySelector("#ws-volumes a")?.getAttribute("aria-label") === "Restart to get volume models"`)
	p.picture("volume-sign-light", "desktop")
	p.does("ask", chromedp.Click("#ws-volumes a"))
	p.sees("its volumes", sheetIsOpen+` && document.querySelector("#sheet").textContent.includes("After the next start")`)
	p.pictures("volume-restart")
	p.does("restart", chromedp.Click("#sheet .button.primary"))
	s.until("it has it", func() bool {
		var box struct {
			State   string
			Volumes []struct{ State string }
		}
		s.call("GET", "/sandboxes/lab", nil, &box)
		return box.State == "running" && len(box.Volumes) == 2 && box.Volumes[0].State == "mounted" && box.Volumes[1].State == "mounted"
	})
	p.sees("no sign any more", `document.querySelector("#ws-volumes a") === null`)
}

// hostile has a sandbox put into a volume what would lead a careless server astray.
func (s *server) hostile() {
	s.t.Helper()
	s.in(`cd /volumes/models && ln -s /etc/passwd users && ln -s / root && ln -s ../../../../../etc/shadow up && mkfifo pipe && ln -s self self &&
		mkdir "$(head -c 200 /dev/zero | tr '\0' x)" && ln -s /var/run/docker.sock sock && mkdir -m 0 closed && echo ok`)
	for _, path := range []string{"users", "up", "root/etc/shadow", "root/var/lib/docker", "sock", "self", "pipe", "root/etc/hostname", "root/proc/1/environ", "../../etc/shadow"} {
		status, body := s.raw("GET", "/volumes/models/files?path="+path, nil)
		if strings.Contains(string(body), "root:") || status == http.StatusOK && path != "users" && path != "root/etc/hostname" {
			s.t.Errorf("%s is answered with %d %.100q", path, status, body)
		}
	}
	for _, path := range []string{"root/etc/x", "users", "root/tmp/../etc/cron.d/x", "../x", "/x"} {
		if status, text := s.putIn("models", path, "evil"); status < 400 && path != "users" {
			s.t.Errorf("%s could be written: %d %s", path, status, text)
		}
	}
	if status, body := s.raw("GET", "/volumes/models/files?archive=tar", nil); status != http.StatusOK && status != http.StatusForbidden {
		s.t.Errorf("an archive: %d %.100q", status, body)
	}
	if status, body := s.raw("POST", "/volumes/models/files:search", map[string]any{"query": "hello", "in": "content"}); status != http.StatusOK || !strings.Contains(string(body), "hello.txt") {
		s.t.Errorf("a search: %d %s", status, body)
	}
	if status, body := s.raw("DELETE", "/volumes/models/files?path=root&path=up&path=pipe&path=self&permanent=true", nil); status != http.StatusNoContent {
		s.t.Errorf("a delete: %d %s", status, body)
	}
	if got := s.in("ls /volumes/models | grep -c . ; test -e /etc/passwd && echo there"); !strings.Contains(got, "there") {
		s.t.Errorf("after the delete: %s", got)
	}
}

// survivesAKill ends sandboxd while it serves the files of a volume.
func (s *server) survivesAKill() {
	s.t.Helper()
	if guests, _ := s.volumeObjects(); len(guests) != 1 {
		s.t.Errorf("guests of volumes: %v", guests)
	}
	s.kill()
	s.start()
	s.until("no guest of before is left", func() bool {
		guests, _ := s.volumeObjects()
		return len(guests) == 0
	})
	if status, body := s.raw("GET", "/volumes/models/files?path=deep/hello.txt", nil); status != http.StatusOK || string(body) != "hello from the admin\n" {
		s.t.Errorf("after a crash: %d %s", status, body)
	}
}

func (p *person) deletesAVolume(s *server, dashboard string) {
	p.t.Helper()
	p.does("look at volumes", chromedp.Navigate(dashboard+"/volumes"))
	p.sees("both", current+` && document.querySelectorAll("[data-volume]").length === 2`)
	p.pictures("volumes")
	p.runs("ask to delete it, and confirm as soon as that shows", `
		document.addEventListener("htmx:afterSwap", () => queueMicrotask(() => document.querySelector("#sheet .button.danger").click()), { once: true });
		document.querySelector('a[href="/volumes/models/delete"]').click()`)
	p.sees("who has it, and that its name must be typed", sheetIsOpen+` && document.querySelector(".volume-boxes")?.textContent.includes("lab") && document.querySelector("#sheet").textContent.includes("Type models to confirm.")`)
	p.does("type another name", chromedp.SetValue("#delete-volume-name", "model"), chromedp.Click("#sheet .button.danger"))
	p.sees("that it is another", `document.querySelector("#delete-volume-name")?.value === "model" && document.querySelector("#sheet").textContent.includes("Type models to confirm.")`)
	p.pictures("volume-delete")
	p.does("type it", chromedp.SetValue("#delete-volume-name", "models"), chromedp.Click("#sheet .button.danger"))
	p.sees("that it is gone", `document.querySelectorAll("[data-volume]").length === 1`)
	s.in("test -e /volumes/models/deep/hello.txt") // until it is started again
	s.call("POST", "/sandboxes/lab/restart?wait=ready", map[string]any{}, nil)
	s.in("! test -e /volumes/models/deep && cat /opt/mine")
	s.untilWithin(buildLimit, "its content is gone", func() bool { _, volumes := s.volumeObjects(); return len(volumes) == 2 })
}

package template_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/template"
)

// lab asks for a template of a snapshot of a sandbox with settings of its own, some of them secret.
func lab(name string) template.FromSnapshot {
	on := true
	return template.FromSnapshot{
		Name: name, Home: true, Snapshot: "5107", Called: `the snapshot "Ready" of the sandbox lab`,
		Spec: sandbox.Spec{Template: "app", Limits: sandbox.Limits{CPUs: 3, Memory: 3 << 30, Pids: 300, Disk: 5 << 30}, Env: map[string]string{"TOKEN": "hunter2"}},
		Overrides: sandbox.Overrides{IDE: &on, HasServices: true, Services: []catalog.Service{
			{Name: "api", Command: []string{"api"}, Port: 3000, Env: map[string]string{"MODE": "public", "KEY": "hunter3"}, Autostart: true},
			{Name: "extra", Command: []string{"extra"}, Port: 4000, Env: map[string]string{"MODE": "hunter4"}},
		}},
		Rest: catalog.Rest{StopAfter: catalog.Never}, Order: catalog.Order{Why: catalog.WhyAsked},
	}
}

// labWorld is a world with the template of that sandbox.
func labWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	app := yaml("app", "base: base\nicon: server\nuser_namespaces: true\npool: 3\nfreeze_after: 5m\nenv:\n  PORT: \"3000\"\n"+
		"ports:\n  - port: 9000\n    title: Docs\nservices:\n  - name: api\n    command: [old]\n    port: 3000\n    env: {MODE: public}\n  - name: gone\n    command: [gone]\n    port: 5000\n")
	if _, err := w.Put(t.Context(), "app", edit(map[string]string{"template.yaml": app, "Dockerfile": onBase})); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestMakeFrom_TakesTheSettingsAndNoSecrets(t *testing.T) {
	w := labWorld(t)
	made, err := w.MakeFrom(t.Context(), lab("ours"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range made.List {
		if strings.Contains(f.Text, "hunter") {
			t.Errorf("%s has a secret:\n%s", f.Path, f.Text)
		}
	}
	got, err := w.catalog.Template("ours")
	if err != nil {
		t.Fatal(err)
	}
	ids, _ := w.roots.Roots(t.Context())
	if len(ids) != 1 || got.Root != ids[0] || cmp.Diff([]string{"5107 with its home"}, w.roots.Kept()) != "" || w.builds() != "ours asked" {
		t.Errorf("kept %v for %q, built %s", w.roots.Kept(), got.Root, w.builds())
	}
	got.Source = catalog.Source{}
	want := catalog.Template{
		Name: "ours", Title: "Ours", Description: `Made from the snapshot "Ready" of the sandbox lab.`, Icon: "server", Profile: catalog.Dev, Namespaces: true, IDE: true,
		Size: catalog.Size{CPUs: 3, Memory: 3 << 30, Pids: 300, Disk: 5 << 30}, Env: map[string]string{"PORT": "3000"},
		Ports: []catalog.Port{{Number: 9000, Title: "Docs"}, {Number: 3000, Title: "api"}, {Number: 4000, Title: "extra"}},
		Services: []catalog.Service{
			{Name: "api", Command: []string{"api"}, Port: 3000, Env: map[string]string{"MODE": "public"}, Autostart: true}, {Name: "extra", Command: []string{"extra"}, Port: 4000},
		},
		Standby: catalog.Standby{Rest: catalog.Rest{FreezeAfter: catalog.After(5 * time.Minute), StopAfter: catalog.Never}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestMakeFrom_RefusesBeforeAnythingIsKept(t *testing.T) {
	w := labWorld(t)
	ask := func(change func(*template.FromSnapshot)) template.FromSnapshot {
		f := lab("ours")
		change(&f)
		return f
	}
	for field, f := range map[string]template.FromSnapshot{
		"name":        lab("base"),
		"name ":       lab("app"),
		"name  ":      lab("No good"),
		"name   ":     lab("new"),
		"description": ask(func(f *template.FromSnapshot) { f.Description = strings.Repeat("x", 301) }),
		"":            ask(func(f *template.FromSnapshot) { f.Spec.Template = "absent" }),
	} {
		if _, err := w.MakeFrom(t.Context(), f); err == nil || fault.FieldOf(err) != strings.TrimSpace(field) || len(w.roots.Kept()) > 0 {
			t.Errorf("%s: %v about %q, kept %v", field, err, fault.FieldOf(err), w.roots.Kept())
		}
	}
}

// TestMakeFrom_LeavesNothingWhenItFails has a sweep remove what is left, but not what is being made.
func TestMakeFrom_LeavesNothingWhenItFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := labWorld(t)
		w.run()
		w.roots.Wrong, w.roots.Held = fault.New(fault.Unavailable, "The disk is full."), make(chan struct{})
		made := make(chan error, 1)
		go func() {
			_, err := w.MakeFrom(t.Context(), lab("ours"))
			made <- err
		}()
		time.Sleep(3 * time.Hour)
		if kept := w.roots.Kept(); len(kept) != 1 {
			t.Errorf("while it is made there is %v", kept)
		}
		close(w.roots.Held)
		if err := <-made; fault.Message(err) != "The disk is full." {
			t.Error(err)
		}
		synctest.Wait()
		if _, err := w.catalog.Template("ours"); !fault.Is(err, fault.NotFound) || len(w.roots.Kept()) > 0 || w.builds() != "" {
			t.Errorf("left: %v, %v, built %s", err, w.roots.Kept(), w.builds())
		}
	})
}

func TestMakeFrom_TwoOfOneNameMakeOne(t *testing.T) {
	w := labWorld(t)
	var works sync.WaitGroup
	errs := make([]error, 2)
	for i := range errs {
		works.Go(func() { _, errs[i] = w.MakeFrom(t.Context(), lab("ours")) })
	}
	works.Wait()
	if errs[0] == nil {
		errs[0], errs[1] = errs[1], errs[0]
	}
	if errs[1] != nil || !fault.Is(errs[0], fault.Conflict) || fault.FieldOf(errs[0]) != "name" || len(w.roots.Kept()) != 1 {
		t.Errorf("%v and %v, kept %v", errs[0], errs[1], w.roots.Kept())
	}
}

// TestRoots_StayAsLongAsATemplateNamesThem deletes one template of two, and then the other; and starts anew after a crash.
func TestRoots_StayAsLongAsATemplateNamesThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := labWorld(t)
		end := w.run()
		if _, err := w.MakeFrom(t.Context(), lab("ours")); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Copy(t.Context(), "ours", "copy"); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			delete string
			kept   int
		}{{"ours", 1}, {"copy", 0}} {
			if err := w.Delete(t.Context(), step.delete); err != nil {
				t.Fatal(err)
			}
			if synctest.Wait(); len(w.roots.Kept()) != step.kept {
				t.Errorf("without %s there is %v", step.delete, w.roots.Kept())
			}
		}
		if _, err := w.MakeFrom(t.Context(), lab("ours")); err != nil {
			t.Fatal(err)
		}
		end()
		if err := w.roots.KeepRoot(t.Context(), "of a server that was killed", "0000000000000000", false); err != nil {
			t.Fatal(err)
		}
		w.open()
		w.run()
		if synctest.Wait(); len(w.roots.Kept()) != 1 {
			t.Errorf("after a start there is %v", w.roots.Kept())
		}
	})
}

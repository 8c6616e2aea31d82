package catalog

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
)

func TestStatus_MissingBuildingBuiltStale(t *testing.T) {
	bubble(t, func(r *rig) {
		if s := r.state("base", ImageMissing); s.Ref == "" {
			r.t.Error("no reference")
		}
		sub := r.Subscribe()
		defer sub.Close()
		if err := r.Build("base", Order{}); err != nil {
			r.t.Fatal(err)
		}
		time.Sleep(buildTime * 3 / 4)
		synctest.Wait()
		if s := r.state("base", ImageBuilding); s.Step != 2 || s.Steps != 3 || s.Progress < 0.9 || s.Progress > 0.93 { // it takes longer than is guessed
			r.t.Errorf("status is %+v", s)
		}
		time.Sleep(buildTime)
		synctest.Wait()
		r.state("base", ImageBuilt)
		var states []string
		for len(sub.C) > 0 {
			e := <-sub.C
			states = append(states, string(e.Status.State)+" "+e.Line)
		}
		want := "building |building Step of sandboxd/base|building Step of sandboxd/base|built "
		if got := strings.Join(states, "|"); got != want {
			r.t.Errorf("events are %q, want %q", got, want)
		}
		write(r.t, filepath.Join(r.dir, "base/Dockerfile"), "FROM debian:trixie-slim\nRUN false\n")
		r.state("base", ImageStale)
		r.state("top", ImageMissing)
	})
}

func TestStatus_OfAnotherProcessesImageIsBuilt(t *testing.T) {
	bubble(t, func(r *rig) {
		ref := r.state("base", ImageMissing).Ref
		r.engine.set(func() { r.engine.images[ref] = true })
		r.state("base", ImageBuilt)
		r.engine.set(func() { delete(r.engine.images, ref); r.engine.images["sandboxd/base:000000000000"] = true })
		r.state("base", ImageStale)
	})
}

func TestStatus_OfBrokenAndUnknownTemplates(t *testing.T) {
	bubble(t, func(r *rig) {
		write(r.t, filepath.Join(r.dir, "base/Dockerfile"), "FRUM x\n")
		if s := r.state("base", ImageFailed); !strings.Contains(s.Problem, "Dockerfile:1:") {
			r.t.Errorf("problem is %q", s.Problem)
		}
		if err := r.Build("base", Order{}); !fault.Is(err, fault.Invalid) {
			r.t.Errorf("Build gives %v", err)
		}
		if err := r.Build("nothing", Order{}); !fault.Is(err, fault.NotFound) {
			r.t.Errorf("Build gives %v", err)
		}
	})
}

func TestBuild_RunsAgainWhenTheImageIsThere(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ensure("base")
		for n := range 2 {
			if err := r.Build("base", Order{}); err != nil {
				r.t.Fatal(err)
			}
			if err := r.Build("base", Order{}); err != nil { // joins the one under way
				r.t.Fatal(err)
			}
			time.Sleep(2 * buildTime)
			synctest.Wait()
			if got := len(r.engine.builds()); got != n+2 {
				r.t.Errorf("builds are %+v", r.engine.built)
			}
		}
		r.engine.set(func() { r.engine.fail["sandboxd/base"] = fault.New(fault.Invalid, "No.") })
		r.Build("base", Order{})
		time.Sleep(2 * buildTime)
		synctest.Wait()
		if s := r.state("base", ImageBuilt); s.Problem == "" {
			r.t.Error("the failed rebuild is not told")
		}
	})
}

func TestLog_IsBoundedUnderAFlood(t *testing.T) {
	bubble(t, func(r *rig) {
		lines := make([]string, 3*maxLogLines)
		for n := range lines {
			lines[n] = fmt.Sprintf("\x1b[32m%d\x1b[0m %s", n, repeat("y", n%3000))
		}
		r.engine.set(func() { r.engine.output = lines })
		sub := r.Subscribe() // nobody reads it
		defer sub.Close()
		if _, err := r.ensure("base"); err != nil {
			r.t.Fatal(err)
		}
		total := 0
		for _, line := range r.Log("base") {
			total += len(line)
		}
		if total > maxLogBytes || len(r.Log("base")) > maxLogLines {
			r.t.Errorf("%d lines and %d bytes are kept", len(r.Log("base")), total)
		}
	})
}

func TestHash_FollowsContentAndNothingElse(t *testing.T) {
	files := join(minimal("base", "", "FROM debian\nCOPY . /x\n"), minimal("top", "base: base\n", onBase), map[string]string{
		"base/.dockerignore": "notes\n*.log\n!keep.log\nREADME.md\n", "base/app/main": "1", "base/keep.log": "k",
	})
	dir := tree(t, files)
	ref := func(ca ...Certificate) string {
		i := NewImages(open(t, dir), newFakeEngine(), ImageOptions{CA: ca})
		r, err := i.recipeOf(Template{Name: "top"})
		if err != nil {
			t.Fatal(err)
		}
		return r.parent.ref + " " + r.ref
	}
	first := ref()
	same := func(what string) {
		t.Helper()
		if got := ref(); got != first {
			t.Errorf("%s: %s became %s", what, first, got)
		}
	}
	age(t, dir)
	same("other time stamps")
	write(t, filepath.Join(dir, "base/notes"), "ignored")
	write(t, filepath.Join(dir, "base/sub/a.log"), "also: no, only top-level logs are")
	if ref() == first {
		t.Error("a new file in a sub-folder made no difference")
	}
	first = ref()
	write(t, filepath.Join(dir, "base/README.md"), "ignored")
	write(t, filepath.Join(dir, "base/x.log"), "ignored")
	same("ignored files")
	for what, change := range map[string]func(){
		"content":           func() { write(t, filepath.Join(dir, "base/app/main"), "2") },
		"taken back in":     func() { write(t, filepath.Join(dir, "base/keep.log"), "other") },
		"right to run":      func() { chmod(t, filepath.Join(dir, "base/app/main"), 0o755) },
		"instructions":      func() { write(t, filepath.Join(dir, "base/Dockerfile"), "FROM debian\nCOPY . /y\n") },
		"an ignored file's": func() { write(t, filepath.Join(dir, "base/.dockerignore"), "notes\n") },
	} {
		before := strings.Fields(ref())
		change()
		for n, after := range strings.Fields(ref()) {
			if after == before[n] {
				t.Errorf("%s made no difference to %s", what, after)
			}
		}
	}
	if ref(Certificate{Name: "a.crt", PEM: []byte("x")}) == ref() {
		t.Error("a certificate made no difference")
	}
}

func TestTag_DoesNotDependOnHowUnusedSandboxesAreKept(t *testing.T) {
	const dockerfile = "FROM scratch\nCOPY . /\n"
	dir := t.TempDir()
	ref := func(more string) string {
		for name, text := range minimal("one", more, dockerfile) {
			write(t, filepath.Join(dir, name), text)
		}
		r, err := NewImages(open(t, dir), newFakeEngine(), ImageOptions{}).recipeOf(Template{Name: "one"})
		if err != nil {
			t.Fatal(err)
		}
		return r.ref
	}
	plain := ref("")
	for _, same := range []string{"freeze_after: 15m\n", "stop_after: \"never\"  # a comment\n", "pool: 3", "pool: 3\nfreeze_after:\r\nstop_after: '2h'\n"} {
		if got := ref(same); got != plain {
			t.Errorf("%q gives another image: %s became %s", same, plain, got)
		}
	}
	for _, other := range []string{"icon: rocket\n", "env:\n  pool: a\n", "size:\n  pids: 64\n"} {
		if got := ref(other + "pool: 2\n"); got == plain || got != ref(other) {
			t.Errorf("%q: %s became %s", other, plain, got)
		}
	}
}

// TestStatus_OfABuiltImageIsOneShortQuestion, since pages ask it of every template.
func TestStatus_OfABuiltImageIsOneShortQuestion(t *testing.T) {
	bubble(t, func(r *rig) {
		if _, err := r.ensure("top"); err != nil {
			t.Fatal(err)
		}
		r.engine.set(func() { r.engine.asked, r.engine.listed = 0, 0 })
		r.state("top", ImageBuilt)
		r.engine.set(func() {
			if r.engine.asked != 1 || r.engine.listed != 0 {
				t.Errorf("the engine was asked %d times and listed images %d times", r.engine.asked, r.engine.listed)
			}
		})
	})
}

package catalog

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"sandboxd/internal/fault"
)

func TestCheck_FindsWhatListWould(t *testing.T) {
	c := open(t, tree(t, join(minimal("base", "", "FROM scratch"), minimal("top", "base: base\n", onBase))))
	yaml := "name: new\ntitle: New\ndescription: Words.\n"
	for _, tc := range []struct {
		name, yaml, docker string
		want               []string
	}{
		{"new", yaml, "FROM scratch\n", nil},
		{"new", yaml + "base: base\n", onBase, nil},
		{"new", yaml + "prots: []\n", "FROM scratch\nRNU x\n", []string{"template.yaml:4", "Dockerfile:2"}},
		{"new", yaml + "base: nope\n", onBase, []string{"template.yaml:4"}},
		{"other", yaml, "FROM scratch\n", []string{"template.yaml:1"}},
		{"base", strings.Replace(yaml, "new", "base", 1) + "base: top\n", onBase, []string{"template.yaml:4"}}, // top builds on it
	} {
		problems := c.Check(tc.name, map[string][]byte{"template.yaml": []byte(tc.yaml), "Dockerfile": []byte(tc.docker)})
		var got []string
		for _, p := range problems {
			where, _, _ := strings.Cut(p.Error(), ": ")
			got = append(got, where)
		}
		if strings.Join(got, " ") != strings.Join(tc.want, " ") {
			t.Errorf("%+v: problems are %v", tc, problems)
		}
	}
	for ignore, want := range map[string]string{"*.log\n!x\n": "", "!x[\n": "pattern", strings.Repeat("x\n", maxManifest): "too large"} {
		files := map[string][]byte{"template.yaml": []byte(yaml), "Dockerfile": []byte("FROM scratch\n"), ".dockerignore": []byte(ignore)}
		p := c.Check("new", files)
		if want == "" && len(p) > 0 || want != "" && (len(p) != 1 || p[0].File != ".dockerignore" || !strings.Contains(p[0].Message, want)) {
			t.Errorf("%.10q: problems are %v, want %q", ignore, p, want)
		}
	}
	if p := c.Check("new", nil); len(p) != 2 || p[0].File != "template.yaml" || p[1].File != "Dockerfile" {
		t.Errorf("without files: %v", p)
	}
	if on := c.BuiltOn("base"); len(on) != 1 || on[0] != "top" {
		t.Errorf("on base build %v", on)
	}
}

func TestCheckFolder_FindsAllThatListWould(t *testing.T) {
	c := open(t, tree(t, minimal("base", "", "FROM scratch")))
	for bad, want := range map[string]string{"": "", ".sandboxd/x": ".sandboxd: ", ".dockerignore": ".dockerignore: ", "template.yaml": "template.yaml:1: "} {
		dir := tree(t, minimal("new", "base: base\n", onBase))
		if bad != "" {
			write(t, filepath.Join(dir, "new", bad), "!x[\n")
		}
		p := c.CheckFolder("new", filepath.Join(dir, "new"))
		if want == "" && len(p) > 0 || want != "" && (len(p) == 0 || !strings.HasPrefix(p[0].Error(), want)) {
			t.Errorf("with %q problems are %v", bad, p)
		}
	}
}

// A template's folder may be a link to a version that never changes: a build in line gets what it was ordered for.
func TestBuild_IsOfTheVersionThatItWasOrderedFor(t *testing.T) {
	versions := tree(t, map[string]string{
		"1/template.yaml": strings.ReplaceAll(plainYAML, "%NAME%", "own"), "1/Dockerfile": "FROM scratch\n",
		"2/template.yaml": strings.ReplaceAll(plainYAML, "%NAME%", "own"), "2/Dockerfile": "FROM scratch\nRUN two\n",
	})
	dir := t.TempDir()
	link := func(version string) {
		next := filepath.Join(dir, ".next")
		if err := os.Symlink(filepath.Join(versions, version), next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, filepath.Join(dir, "own")); err != nil {
			t.Fatal(err)
		}
	}
	link("1")
	i := NewImages(open(t, dir), newFakeEngine(), ImageOptions{})
	first, err := i.recipeOf(Template{Name: "own"})
	if err != nil {
		t.Fatal(err)
	}
	link("2")
	second, err := i.recipeOf(Template{Name: "own"})
	if err != nil || first.ref == second.ref || first.folder == second.folder || filepath.Base(first.folder) != "1" {
		t.Errorf("recipes are %+v and %+v, %v", first, second, err)
	}
	if e := i.catalog.List()[0]; e.Template.Folder != filepath.Join(dir, "own") {
		t.Errorf("the folder is shown as %s", e.Template.Folder)
	}
}

// keeper keeps records.
type keeper struct {
	mu   sync.Mutex
	list []Record
}

func (k *keeper) Begun(r Record) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = append(k.list, r)
	return int64(len(k.list) - 1)
}

func (k *keeper) Ended(id int64, r Record) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list[id] = r
}

func TestRecords_SayWhatWasBuiltWhyAndHowItEnded(t *testing.T) {
	bubble(t, func(r *rig) {
		k := &keeper{}
		r.records = k
		r.engine.set(func() { r.engine.fail["sandboxd/side"] = fault.New(fault.Invalid, "Step 2 has failed.") })
		if _, err := r.ensure("top"); err != nil {
			t.Fatal(err)
		}
		if _, err := r.ensure("top"); err != nil { // it is there: nothing is built
			t.Fatal(err)
		}
		if err := r.Build("side", Order{Why: WhyAsked, By: "ann", NoCache: true}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.settle(t)
		synctest.Wait()
		k.mu.Lock()
		defer k.mu.Unlock()
		var got []string
		for _, one := range k.list {
			got = append(got, strings.Join([]string{one.Template, one.Order.Why, one.Order.By, one.Problem[:min(len(one.Problem), 35)]}, "/"))
			if one.Ended.Sub(one.Began) < buildTime || one.CutOff || len(one.Log) == 0 {
				t.Errorf("%+v", one)
			}
		}
		want := "top///, base/base/top/, side/asked/ann/The template side could not be buil"
		if strings.Join(got, ", ") != want {
			t.Errorf("records are %s, want %s", strings.Join(got, ", "), want)
		}
		if last := r.engine.built[len(r.engine.built)-1]; !last.NoCache {
			t.Error("the cache was used")
		}
	})
}

// settle waits until nothing is being built.
func (r *rig) settle(t *testing.T) {
	t.Helper()
	for _, name := range []string{"side", "top", "base"} {
		if _, err := r.ensure(name); err != nil && !fault.Is(err, fault.Invalid) {
			t.Fatal(err)
		}
	}
}

func TestBuild_FetchesBaseImagesAgainAndUsesThemAsTheyAreElse(t *testing.T) {
	bubble(t, func(r *rig) {
		if _, err := r.ensure("base"); err != nil {
			t.Fatal(err)
		}
		for n, fail := range []error{nil, fault.New(fault.Unavailable, "No registry answers.")} {
			r.engine.set(func() { r.engine.fail["debian:trixie-slim"] = fail })
			if err := r.Build("base", Order{Pull: true}); err != nil {
				t.Fatal(err)
			}
			ref, err := r.Reference(r.template("base"))
			if err != nil {
				t.Fatal(err)
			}
			r.mu.Lock()
			f := r.jobs[ref]
			r.mu.Unlock()
			<-f.done
			synctest.Wait()
			if f.err != nil || len(r.engine.pulled) != n+1 || len(r.engine.builds()) != n+2 {
				t.Errorf("pull %d: %v, pulled %v, built %v", n, f.err, r.engine.pulled, r.engine.builds())
			}
		}
		if log := strings.Join(r.Log("base"), "\n"); !strings.Contains(log, "could not be fetched again") {
			t.Errorf("the log says nothing of it:\n%s", log)
		}
	})
}

package backup

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"testing"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// withRoot is a backup of a sandbox with its root file system.
func withRoot(t *testing.T, s *Service, box sandbox.Sandbox, repository string) Backup {
	t.Helper()
	b, _, err := s.Begin(box, Options{Root: true, Repository: repository})
	if err == nil {
		b, err = s.Wait(t.Context(), b.ID)
	}
	if err != nil || !b.Root || b.Comparing {
		t.Fatalf("%+v, %v", b, err)
	}
	return b
}

func TestBackup_HasTheRootFileSystemIfAsked(t *testing.T) {
	places, _ := nas(t)
	for _, place := range []string{"", "nas"} {
		s, boxes := open(t, func(c *Config) { c.Repositories = places })
		lab := box("lab")
		boxes.put(lab.ID, "file", "home")
		boxes.root[lab.ID] = "installed"
		b := withRoot(t, s, lab, place)
		if b.Stats.Files != 1 || b.Stats.Bytes != 4 || len(b.Stats.Lost) != 1 {
			t.Errorf("of the home: %+v", b.Stats)
		}
		for homeOnly, want := range map[bool]string{true: "since", false: "base:1: installed"} {
			boxes.root[lab.ID] = "since"
			boxes.put(lab.ID, "file", "since")
			a, err := s.Archive(b.ID)
			if err != nil {
				t.Fatal(err)
			}
			a.HomeOnly = homeOnly
			if err := s.Restore(t.Context(), lab, a, false); err != nil || boxes.root[lab.ID] != want || boxes.get(lab.ID, "file") != "home" {
				t.Errorf("%q, home only %t: %v; its root is %q, want %q", place, homeOnly, err, boxes.root[lab.ID], want)
			}
		}
		file := &bytes.Buffer{}
		if place != "" {
			if err := s.Export(t.Context(), b.ID, file); err != nil {
				t.Fatal(err)
			}
		} else if whole, err := os.ReadFile(s.fileOf(b.ID)); err != nil {
			t.Fatal(err)
		} else {
			file.Write(whole)
		}
		elsewhere, there := open(t, nil)
		a, err := elsewhere.Receive(t.Context(), "bob", file)
		if err != nil {
			t.Fatal(err)
		}
		made, err := elsewhere.RestoreNew(t.Context(), sandbox.Request{Name: "two", Owner: "bob"}, a)
		if err != nil || there.root[made.ID] != "base:1: installed" || there.get(made.ID, "file") != "home" {
			t.Errorf("%q, elsewhere: %v; its root is %q", place, err, there.root[made.ID])
		}
		left, err := os.ReadDir(s.Folder)
		if err != nil || len(left) > 1 || s.used["unnamed of ann"] != 0 || elsewhere.used["unnamed of bob"] != 0 {
			t.Errorf("left over: %v, %v, %d and %d bytes", left, err, s.used["unnamed of ann"], elsewhere.used["unnamed of bob"])
		}
		later, _ := open(t, func(c *Config) { c.Repositories, c.Folder = places, s.Folder })
		if found, err := later.Backup(b.ID); err != nil || !found.Root {
			t.Errorf("after a start: %+v, %v", found, err)
		}
	}
}

func TestBackup_WithItsRootIsTestedAndSavedFirst(t *testing.T) {
	s, boxes := open(t, nil)
	lab := box("lab")
	boxes.put(lab.ID, "file", "home")
	boxes.root[lab.ID] = "installed"
	b := withRoot(t, s, lab, "")
	if err := (Tester{s}).TestRestore(t.Context(), b.ID, "restore-test-1"); err != nil {
		t.Error(err)
	}
	if made := boxes.made[len(boxes.made)-1]; boxes.root[made.ID] != "base:1: installed" {
		t.Errorf("tested with the root %q", boxes.root[made.ID])
	}
	a, err := s.Archive(b.ID)
	if err == nil {
		err = s.Restore(t.Context(), lab, a, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	if list := s.List(func(b Backup) bool { return b.Root }); len(list) != 2 {
		t.Errorf("%d backups have a root file system: %+v", len(list), list)
	}
}

// TestRestore_ARootOfAnotherTemplateIsRefused has one that is a layer above an image which the other template does not have.
func TestRestore_ARootOfAnotherTemplateIsRefused(t *testing.T) {
	s, boxes := open(t, nil)
	lab := box("lab")
	boxes.put(lab.ID, "file", "home")
	b := withRoot(t, s, lab, "")
	for homeOnly, want := range map[bool]bool{false: false, true: true} {
		a, err := s.Archive(b.ID)
		if err != nil {
			t.Fatal(err)
		}
		a.HomeOnly = homeOnly
		_, err = s.RestoreNew(t.Context(), sandbox.Request{Name: "two", Owner: "ann", Template: "node"}, a)
		if (err == nil) != want || err != nil && fault.FieldOf(err) != "template" {
			t.Errorf("new, home only %t: %v", homeOnly, err)
		}
		if a, err = s.Archive(b.ID); err != nil {
			t.Fatal(err)
		}
		other := lab
		other.Spec.Template = "node"
		a.HomeOnly = homeOnly
		if err = s.Restore(t.Context(), other, a, false); (err == nil) != want {
			t.Errorf("in place, home only %t: %v", homeOnly, err)
		}
	}
}

func TestBegin_SaysWhatCannotBeHadWithTheRoot(t *testing.T) {
	s, boxes := open(t, nil)
	boxes.hold = make(chan struct{})
	_, _, err := s.Begin(box("lab"), Options{Root: true, Live: true})
	if !fault.Is(err, fault.Invalid) || fault.FieldOf(err) != "root" {
		t.Errorf("live: %v", err)
	}
	b, _, err := s.Begin(box("lab"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = s.Begin(box("lab"), Options{Root: true})
	wantKind(t, "while one without is made", err, fault.Conflict)
	close(boxes.hold)
	if _, err := s.Wait(t.Context(), b.ID); err != nil {
		t.Error(err)
	}
}

func TestReceive_RefusesARootThatIsNotAsTold(t *testing.T) {
	s, _ := open(t, nil)
	layer := tarOf(t, true, tar.Header{Name: "etc/file", Size: 4})
	leadsOut := tarOf(t, true, tar.Header{Name: "../file", Size: 4})
	for what, c := range map[string]struct {
		layers [][]byte
		tell   func(r *RootManifest)
		want   bool
	}{
		"as told":          {[][]byte{layer}, func(*RootManifest) {}, true},
		"none":             {nil, func(*RootManifest) {}, false},
		"two":              {[][]byte{layer, layer}, func(*RootManifest) {}, false},
		"another size":     {[][]byte{layer}, func(r *RootManifest) { r.Size++ }, false},
		"more files":       {[][]byte{layer}, func(r *RootManifest) { r.Stats.Files++ }, false},
		"leads out":        {[][]byte{leadsOut}, func(*RootManifest) {}, false},
		"cut off":          {[][]byte{layer[:513]}, func(r *RootManifest) { r.Size = 513 }, false},
		"larger than disk": {[][]byte{tarOf(t, true, tar.Header{Name: "etc/file", Size: 2 << 20})}, func(r *RootManifest) { r.Size, r.Stats.Bytes = 2<<20+2048, 2<<20 }, false},
	} {
		s.Disk = func() int64 { return 1 << 20 }
		b := told(t, func(m *Manifest) {
			m.Version = rootVersion
			m.Root = &RootManifest{Size: int64(len(layer))}
			m.Root.Stats.Files, m.Root.Stats.Bytes = 1, 4
			c.tell(m.Root)
		}, c.layers...)
		a, err := s.Receive(t.Context(), "ann", bytes.NewReader(b))
		if err == nil {
			a.Close()
		}
		if (err == nil) != c.want {
			t.Errorf("%s: %v", what, err)
		}
		if err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestBackup_WithoutARootIsAsBefore reads no root file system for it, and an older sandboxd knows its format.
func TestBackup_WithoutARootIsAsBefore(t *testing.T) {
	s, boxes := open(t, nil)
	lab := box("lab")
	boxes.root[lab.ID] = "installed"
	a, err := s.Archive(made(t, s, lab).ID)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if a.HasRoot() || a.Manifest.Version != formatVersion || len(a.Manifest.NotIncluded) != len(notIncluded) {
		t.Errorf("%+v", a.Manifest)
	}
	content, closeContent, err := a.content(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer closeContent()
	if whole, err := io.ReadAll(content); err != nil || bytes.Contains(whole, []byte(rootName)) {
		t.Errorf("%d bytes, %v", len(whole), err)
	}
}

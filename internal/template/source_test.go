package template_test

import (
	"strings"
	"testing"

	"sandboxd/internal/fault"
	"sandboxd/internal/git"
	"sandboxd/internal/template"
)

const token = "glpat-s3cret"

// fetchedWorld has the template rust from a repository.
func fetchedWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.git.files = map[string]string{"template.yaml": yaml("rust", "base: base\n"), "Dockerfile": onBase}
	w.git.at = git.Revision{Commit: "c0ffee", Date: epoch}
	src, err := w.SetSource(t.Context(), "rust", template.NewSource{URL: " https://h/t.git ", Ref: "main", Path: "/rust/", Token: token})
	if err != nil || src.Commit != "c0ffee" || src.Fetched.IsZero() {
		t.Fatalf("source is %+v, %v", src, err)
	}
	return w
}

func TestSetSource_SealsTheSecretAndKeepsItForTheSameAddressAlone(t *testing.T) {
	w := fetchedWorld(t)
	if o, err := w.Origin("rust"); err != nil || o != template.Git {
		t.Errorf("origin is %s, %v", o, err)
	}
	kept, err := w.store.Sources(t.Context())
	if err != nil || len(kept) != 1 || strings.Contains(string(kept[0].Secret), token) || len(kept[0].Secret) == 0 {
		t.Errorf("kept are %+v, %v", kept, err)
	}
	if _, err := w.SetSource(t.Context(), "rust", template.NewSource{URL: "https://h/t.git", Ref: "next"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.SetSource(t.Context(), "rust", template.NewSource{URL: "https://other/t.git"}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{token, token, ""} {
		if got := w.git.asked[i]; got.Token != want || got.Path != map[bool]string{true: "rust"}[i == 0] {
			t.Errorf("fetch %d was %+v, want the token %q", i, got, want)
		}
	}
}

func TestSetSource_WhatFailsChangesNothing(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		what  string
		files map[string]string
		err   error
		field string
	}{
		{"server away", nil, fault.New(fault.Unavailable, "The server is away."), ""},
		{"no template", map[string]string{"x": "x"}, nil, "path"},
		{"a folder of sandboxd's", map[string]string{"template.yaml": yaml("rust", ""), "Dockerfile": "FROM scratch\n", ".sandboxd/x": "x"}, nil, "path"},
		{"a bad pattern", map[string]string{"template.yaml": yaml("rust", ""), "Dockerfile": "FROM scratch\n", ".dockerignore": "!x[\n"}, nil, "path"},
		{"another's name", map[string]string{"template.yaml": yaml("go", ""), "Dockerfile": "FROM scratch\n"}, nil, "path"},
	} {
		w.git.files, w.git.err = c.files, c.err
		if _, err := w.SetSource(t.Context(), "rust", template.NewSource{URL: "https://h/t.git"}); err == nil || fault.FieldOf(err) != c.field {
			t.Errorf("%s: %v", c.what, err)
		}
		if left := w.left(); len(left) != 0 {
			t.Errorf("%s: left are %v", c.what, left)
		}
	}
	if _, err := w.SetSource(t.Context(), "rust", template.NewSource{URL: "HTTPS://h/t.git"}); !strings.Contains(fault.Message(err), "Call the template go") || w.git.asked[5].URL != "https://h/t.git" {
		t.Errorf("another's name gives %v of %+v", err, w.git.asked)
	}
	if _, err := w.SetSource(t.Context(), "rust", template.NewSource{URL: "file:///srv/t"}); fault.FieldOf(err) != "url" {
		t.Errorf("a local path gives %v", err)
	}
	w.put("mine", map[string]string{"template.yaml": yaml("mine", ""), "Dockerfile": "FROM scratch\n"})
	if _, err := w.SetSource(t.Context(), "mine", template.NewSource{URL: "https://h/t.git"}); !fault.Is(err, fault.Conflict) {
		t.Errorf("over one that was written: %v", err)
	}
	if kept, err := w.store.Sources(t.Context()); err != nil || len(kept) != 0 {
		t.Errorf("kept are %+v, %v", kept, err)
	}
}

func TestRefetch_ABadRevisionLeavesTheFormerAndSaysWhy(t *testing.T) {
	w := fetchedWorld(t)
	w.git.files, w.git.at.Commit = map[string]string{"template.yaml": "name: [", "Dockerfile": onBase}, "bad"
	if err := w.Refetch(t.Context(), "rust"); !fault.Is(err, fault.Invalid) {
		t.Errorf("it gives %v", err)
	}
	src, err := w.Source("rust")
	if err != nil || src.Commit != "c0ffee" || !strings.Contains(src.Problem, "template.yaml:1") || src.Tried.Before(src.Fetched) {
		t.Errorf("source is %+v, %v", src, err)
	}
	if w.text("rust", "template.yaml") != yaml("rust", "base: base\n") {
		t.Error("the bad files are there")
	}
	w.git.files["template.yaml"], w.git.at.Commit = yaml("rust", "base: base\nicon: star\n"), "good"
	if err := w.Refetch(t.Context(), "rust"); err != nil {
		t.Fatal(err)
	}
	if src, _ := w.Source("rust"); src.Commit != "good" || src.Problem != "" {
		t.Errorf("source is %+v", src)
	}
	w.open() // all is there after a restart
	if src, err := w.Source("rust"); err != nil || src.Commit != "good" {
		t.Errorf("source is %+v, %v", src, err)
	}
}

func TestSource_FilesCannotBeChangedHere(t *testing.T) {
	w := fetchedWorld(t)
	if _, err := w.Put(t.Context(), "rust", edit(map[string]string{"template.yaml": yaml("rust", ""), "Dockerfile": "FROM scratch\n"})); !fault.Is(err, fault.Conflict) {
		t.Errorf("a change gives %v", err)
	}
	if err := w.Delete(t.Context(), "rust"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Source("rust"); !fault.Is(err, fault.NotFound) {
		t.Errorf("its source gives %v", err)
	}
}

// A crash between the record of a new source and its files leaves a record alone.
func TestOpen_ForgetsASourceWithoutFiles(t *testing.T) {
	w := newWorld(t)
	if err := w.store.PutSource(t.Context(), template.Source{Template: "rust", URL: "https://h/t"}); err != nil {
		t.Fatal(err)
	}
	w.open()
	if kept, err := w.store.Sources(t.Context()); err != nil || len(kept) != 0 {
		t.Errorf("kept are %+v, %v", kept, err)
	}
}

package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/sandbox"
)

func TestPalette_LeadsToAllThatAPersonMaySee(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", func(b *sandbox.Sandbox) { b.Label = "My <b>tests</b>" })
	s.put("bob", "other", nil)
	page := s.get("ada", "/palette").is(http.StatusOK)
	body := page.Body.String()
	for _, want := range []string{`href="/sandboxes/mine"`, "My &lt;b&gt;tests&lt;/b&gt;", `href="/templates/base"`, `href="/settings/tokens"`, `href="/logs"`, `href="/new"`} {
		if !strings.Contains(body, want) {
			t.Errorf("there is no %s", want)
		}
	}
	for _, not := range []string{"/sandboxes/other", "/settings/users", `"/host"`} {
		if strings.Contains(body, not) {
			t.Errorf("there is %s", not)
		}
	}
	if admin := s.get("root", "/palette").Body.String(); !strings.Contains(admin, "/sandboxes/other") || !strings.Contains(admin, "/settings/users") {
		t.Error("an admin has not all")
	}
	s.get("", "/palette").is(http.StatusUnauthorized)
}

// TestPalette_HasTheMenusOfTheWorkspace: what a menu leads to is in an element whose links the palette takes.
func TestPalette_HasTheMenusOfTheWorkspace(t *testing.T) {
	s := newStage(t)
	s.furnish()
	for _, path := range []string{"/sandboxes/brave-otter", "/", "/templates", "/settings"} {
		page := s.get("root", path).is(http.StatusOK)
		page.need(".palette-button")
		for _, menu := range page.all(".menu-item") {
			has, inBar := false, false
			for at := menu; at != nil; at = at.Parent {
				has, inBar = has || hasAttr(at, "data-commands"), inBar || at.Data == "header"
			}
			if inBar && !has {
				t.Errorf("%s: the palette has not %q", path, textOf(menu))
			}
		}
	}
}

func TestFileNames_AreForThePageOfTheSandbox(t *testing.T) {
	s := newStage(t)
	s.put("ada", "mine", nil)
	s.get("bob", "/sandboxes/mine/files:names").is(http.StatusNotFound)
	s.get("", "/sandboxes/mine/files:names").is(http.StatusUnauthorized)
	const want = `{"folder":"/home/agent","names":["notes.txt"]}` + "\n" + `{"folder":"/home/agent/src","names":["main.go"]}` + "\n" + `{"end":true,"more":false}` + "\n"
	if got := s.get("ada", "/sandboxes/mine/files:names").is(http.StatusOK); got.Body.String() != want || got.Header().Get("Content-Security-Policy") != sandboxPolicy {
		t.Errorf("got %s, %v", got.Body, got.Header())
	}
	shape, err := json.Marshal(newNamesShape("/home/\xff", []string{"a", "b\xff"}))
	if want := `{"folder":"/home/\ufffd","folder_encoded":"/home/%FF","names":["a"],"encoded":["b%FF"]}`; err != nil || string(shape) != want && string(shape) != strings.ReplaceAll(want, `\ufffd`, "\ufffd") {
		t.Errorf("shape %s, %v", shape, err)
	}
}

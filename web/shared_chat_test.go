package web

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/chat"
)

// sharedBy asks for the conversation that a link's secret opens.
func (w *world) sharedBy(secret, query string) answer {
	w.t.Helper()
	return w.call("", http.MethodGet, apiPrefix+"/shared-conversation"+query, "", "Authorization", "Bearer "+secret)
}

func TestShared_ALinkShowsTheConversationAndNothingElse(t *testing.T) {
	w := newWorld(t)
	path, id := w.talk()
	w.call("ada", "POST", path+"/messages", `{"id":"m1","text":"change","files":[{"name":"a.txt","type":"text/plain","path":"/home/agent/a.txt"}]}`).is(http.StatusAccepted)
	w.becomes(id, chat.Idle, 1)
	w.call("ada", "POST", path+"/messages", `{"text":"ask"}`).is(http.StatusAccepted)
	w.becomes(id, chat.Asking, 2)
	w.call("ada", "POST", path+"/approvals/q1", `{"answer":"yes"}`).is(http.StatusNoContent)
	w.becomes(id, chat.Idle, 2)
	w.call("ada", "POST", path+"/messages", `{"text":"explain\n~~~sh\necho 1\n~~~"}`).is(http.StatusAccepted)
	w.becomes(id, chat.Idle, 3)
	var message int64
	v, err := w.server.cfg.Chat.View(t.Context(), id, chat.ItemQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range v.Items {
		if it.Kind == chat.Message {
			message = it.N
		}
	}
	w.call("ada", "POST", path+"/runs", fmt.Sprintf(`{"id":"secret-run","item":%d}`, message)).is(http.StatusAccepted)
	w.hasRun(id, "ok")
	w.call("bob", "POST", path+"/links", `{"ttl":"never"}`).is(http.StatusNotFound)
	var link chatLinkShape
	made := w.call("ada", "POST", path+"/links", `{"ttl":"never"}`).is(http.StatusCreated)
	made.into(&link)
	at, secret, _ := strings.Cut(link.URL, "#")
	if !strings.HasSuffix(at, sharedPath) || len(secret) != 43 || link.ExpiresAt != nil {
		t.Fatalf("made %+v", link)
	}
	got := w.sharedBy(secret, "").is(http.StatusOK)
	var seen sharedShape
	if got.into(&seen); seen.Title != "change" || seen.State != "idle" || len(seen.Items) < 8 || !bytes.Contains(got.Body.Bytes(), []byte("echo 1")) {
		t.Errorf("seen %s", got.Body)
	}
	for _, hidden := range []string{w.ids["ada"], "ada", `"lab"`, "snap", "not shown", "a.txt", id, `"by"`, "checkpoint", "secret-run", `"user"`} {
		if bytes.Contains(got.Body.Bytes(), []byte(hidden)) {
			t.Errorf("it shows %q: %s", hidden, got.Body)
		}
	}
	for name, want := range map[string]string{"X-Robots-Tag": "noindex, nofollow", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"} {
		if v := got.Header().Get(name); v != want {
			t.Errorf("%s is %q", name, v)
		}
	}
	if got.Header().Get("Set-Cookie") != "" {
		t.Error("it sets a cookie")
	}
	var since sharedShape
	if w.sharedBy(secret, "?since=1").is(http.StatusOK).into(&since); len(since.Items) == 0 || len(since.Items) > len(seen.Items) {
		t.Errorf("since change 1: %+v", since)
	}
	w.call("", http.MethodGet, labTalks, "", "Authorization", "Bearer "+secret).is(http.StatusUnauthorized)
}

func TestShared_WhatIsNoLongerSharedIsNotFound(t *testing.T) {
	w := newWorld(t)
	path, _ := w.talk()
	link := func() (id, secret string) {
		t.Helper()
		var l chatLinkShape
		w.call("ada", "POST", path+"/links", `{"ttl":"24h"}`).is(http.StatusCreated).into(&l)
		_, secret, _ = strings.Cut(l.URL, "#")
		w.sharedBy(secret, "").is(http.StatusOK)
		return l.ID, secret
	}
	gone := func(why, secret string) {
		t.Helper()
		got := w.sharedBy(secret, "")
		got.problem(http.StatusNotFound, "not_found", "")
		if got.Header().Get("X-Robots-Tag") == "" {
			t.Errorf("%s: it may be indexed", why)
		}
	}
	gone("none", "")
	gone("a wrong one", strings.Repeat("A", 43))
	id, secret := link()
	w.call("ada", "DELETE", path+"/links/"+id, "").is(http.StatusNoContent)
	gone("revoked", secret)
	w.call("ada", "DELETE", path+"/links/"+id, "").is(http.StatusNotFound)
	_, secret = link()
	w.call("ada", "POST", path+"/links", `{"ttl":"soon"}`).problem(http.StatusBadRequest, "invalid", "ttl")
	var list chatLinksShape
	if got := w.call("ada", "GET", path+"/links", "").is(http.StatusOK); strings.Contains(got.Body.String(), "url") {
		t.Errorf("the list has %s", got.Body)
	} else if got.into(&list); len(list.Links) != 1 || list.Links[0].ExpiresAt == nil {
		t.Errorf("the list is %+v", list)
	}
	w.call("ada", "DELETE", path, "").is(http.StatusNoContent)
	gone("of a deleted conversation", secret)
}

func TestShared_AReaderWhoWasAwayForLongBeginsAnew(t *testing.T) {
	w := newWorld(t)
	path, id := w.talk()
	var link chatLinkShape
	w.call("ada", "POST", path+"/links", `{"ttl":"24h"}`).is(http.StatusCreated).into(&link)
	_, secret, _ := strings.Cut(link.URL, "#")
	large := strings.Repeat("x", chat.MaxMessage-100)
	for n := range int64(6) {
		w.call("ada", "POST", path+"/messages", `{"text":"`+large+`"}`).is(http.StatusAccepted)
		w.becomes(id, chat.Idle, n+1)
	}
	var first, since, next sharedShape
	if w.sharedBy(secret, "").is(http.StatusOK).into(&first); first.Anew || len(first.Items) > 8 {
		t.Errorf("it begins with %d items, anew %v", len(first.Items), first.Anew)
	}
	if w.sharedBy(secret, "?since=1").is(http.StatusOK).into(&since); !since.Anew || len(since.Items) != len(first.Items) || since.First != first.First || first.First == 0 || first.First > first.Items[0].N {
		t.Errorf("after change 1 there are %d items, anew %v", len(since.Items), since.Anew)
	}
	if w.sharedBy(secret, fmt.Sprint("?since=", since.Rev-1)).is(http.StatusOK).into(&next); next.Anew {
		t.Errorf("after the change before the last there are %d items, anew", len(next.Items))
	}
}

func TestShared_IsBoundedByAddress(t *testing.T) {
	w := newWorld(t)
	for range sharedBurst {
		w.sharedBy("x", "").is(http.StatusNotFound)
	}
	w.sharedBy("x", "").is(http.StatusTooManyRequests)
}

func TestShared_ThePageIsTheSameForAllAndStrict(t *testing.T) {
	s := newStage(t)
	page := s.get("", sharedPath).is(http.StatusOK)
	if policy := page.Header().Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; script-src 'self';") {
		t.Errorf("the policy is %q", policy)
	}
	if page.Header().Get("Referrer-Policy") != "no-referrer" || page.Header().Get("X-Robots-Tag") == "" {
		t.Errorf("headers %v", page.Header())
	}
	if got := s.get("ada", sharedPath).Body.String(); got != page.Body.String() || strings.Contains(got, "ada") {
		t.Errorf("a signed-in person gets another page: %s", got)
	}
}

package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
)

// recordedFlow gives a flow and what has been written to it.
func recordedFlow() (f *flow, body func() string) {
	rec := httptest.NewRecorder()
	r := &request{w: rec, head: rec.Header()}
	return r.openFlow("text/event-stream"), func() string { return rec.Body.String() }
}

func TestFlow_KeepsDataWithinItsEvent(t *testing.T) {
	f, body := recordedFlow()
	if err := f.event("note", "one\r\ntwo\n\nevent: forged"); err != nil {
		t.Fatal(err)
	}
	if got, want := body(), "event: note\ndata: one\ndata: two\ndata: \ndata: event: forged\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// brokenWriter is a client that is gone.
type brokenWriter struct{ http.ResponseWriter }

var errGone = errors.New("gone")

func (brokenWriter) Write([]byte) (int, error) { return 0, errGone }

func TestFlow_StaysBroken(t *testing.T) {
	rec := httptest.NewRecorder()
	r := &request{w: brokenWriter{rec}, head: rec.Header()}
	f := r.openFlow(lineType)
	for range 2 {
		if err := f.line("x"); !errors.Is(err, errGone) {
			t.Errorf("got %v", err)
		}
	}
}

func TestCounter_TokensForOneSandboxHaveOneShareTogether(t *testing.T) {
	n := counter{most: maxOpen}
	enter := func(user, token, sandboxID string) (leave func(), err error) {
		return n.enter(auth.Principal{User: auth.User{ID: user}, Token: token, SandboxID: sandboxID}, streams)
	}
	var leaves []func()
	open := 0
	for token := range 2 * maxOpen / maxLimited {
		for range maxLimited + 1 {
			if leave, err := enter("ada", fmt.Sprint(token), "1"); err == nil {
				leaves, open = append(leaves, leave), open+1
			} else if !fault.Is(err, fault.Limited) {
				t.Fatal(err)
			}
		}
	}
	if open != maxOpen {
		t.Errorf("%d are open", open)
	}
	for what, who := range map[string][3]string{"ada": {"ada"}, "ada's token": {"ada", "all"}, "bob's token": {"bob", "one", "1"}} {
		if _, err := enter(who[0], who[1], who[2]); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, leave := range leaves {
		leave()
	}
	if _, err := enter("ada", "last", "1"); err != nil || n.users.Len() != 5 {
		t.Errorf("after they have left: %v, %d keys", err, n.users.Len())
	}
}

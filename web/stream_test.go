package web

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
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

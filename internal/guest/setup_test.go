package guest

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"sandboxd/internal/wire"
)

// says gives a guest a setup of one service on a connection.
func (g *Guest) says(t *testing.T, ctx context.Context, link *descriptorConn, service string, revision int64) {
	t.Helper()
	s := wire.Setup{Protocol: wire.Protocol, Revision: revision, Services: []wire.Service{{Name: service, Command: []string{"true"}}}}
	b, err := wire.Encode(wire.MaxSetup, &s)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	g.serveSetup(w, httptest.NewRequestWithContext(ctx, http.MethodPost, wire.PathSetup, bytes.NewReader(b)), link)
	if w.Code != http.StatusOK {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
}

func TestSetup_OneThatWasOvertakenCountsNoMore(t *testing.T) {
	g := New(Config{Home: t.TempDir()})
	check := func(want string) {
		t.Helper()
		if l := g.services.list(); len(l) != 1 || l[0].Name != want {
			t.Errorf("services %+v, want %s", l, want)
		}
	}
	first, second := &descriptorConn{}, &descriptorConn{}
	g.says(t, t.Context(), first, "one", 1)
	g.says(t, t.Context(), first, "three", 3)
	g.says(t, t.Context(), first, "two", 2) // it was on its way for longer
	check("three")
	g.says(t, t.Context(), second, "one", 1) // another sandboxd, which counts anew
	check("one")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	g.says(t, gone, first, "nine", 9) // of a connection that has ended
	check("one")
}

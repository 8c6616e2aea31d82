package web

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestHolds_ArePlacedListedRenewedAndRevoked(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	got := w.call("root", "POST", lab+"/holds", `{"reason":"nightly job","ttl":"30m"}`).is(http.StatusCreated)
	golden(t, "hold", got.Body.Bytes())
	var h holdShape
	got.into(&h)
	if h.By != "root" || h.ExpiresAt.Sub(h.CreatedAt) != 30*time.Minute || got.Header().Get("Location") != lab+"/holds/"+h.ID {
		t.Errorf("got %+v at %q", h, got.Header().Get("Location"))
	}
	golden(t, "holds", w.call("ada", "GET", lab+"/holds", "").is(http.StatusOK).Body.Bytes())
	var renewed holdShape
	w.call("ada", "PUT", lab+"/holds/"+h.ID, `{"ttl":7200}`).is(http.StatusOK).into(&renewed)
	if renewed.ID != h.ID || renewed.By != "root" || renewed.ExpiresAt.Before(h.ExpiresAt.Add(time.Hour)) {
		t.Errorf("renewed %+v", renewed)
	}
	w.call("ada", "DELETE", lab+"/holds/"+h.ID, "").is(http.StatusNoContent)
	w.call("ada", "DELETE", lab+"/holds/"+h.ID, "").problem(http.StatusNotFound, "not_found", "")
	w.call("ada", "PUT", lab+"/holds/"+h.ID, `{"ttl":"1m"}`).problem(http.StatusNotFound, "not_found", "")
	if body := w.call("ada", "GET", lab+"/holds", "").is(http.StatusOK).Body.String(); strings.TrimSpace(body) != `{"holds":[]}` {
		t.Errorf("left %s", body)
	}
}

func TestHolds_BadOnesNameTheField(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	for _, c := range []struct{ body, field string }{
		{`{"ttl":"30m"}`, "reason"}, {`{"reason":"  ","ttl":"30m"}`, "reason"}, {`{"reason":"x"}`, "ttl"},
		{`{"reason":"x","ttl":"1s"}`, "ttl"}, {`{"reason":"x","ttl":"30d"}`, "ttl"}, {`{"reason":"x","ttl":-5}`, "ttl"},
		{`{"reason":"` + strings.Repeat("x", 300) + `","ttl":"30m"}`, "reason"}, {`{"reason":"x","ttl":"30m","by":"bob"}`, "by"},
	} {
		w.call("ada", "POST", lab+"/holds", c.body).problem(http.StatusBadRequest, "invalid", c.field)
	}
}

func TestHolds_OfOthersAreAsIfNotThere(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	w.box("bob", "other")
	var h holdShape
	w.call("ada", "POST", lab+"/holds", `{"reason":"x","ttl":"30m"}`).is(http.StatusCreated).into(&h)
	for _, a := range [][3]string{
		{"GET", "/holds", ""}, {"POST", "/holds", `{"reason":"x","ttl":"30m"}`}, {"PUT", "/holds/" + h.ID, `{"ttl":"1h"}`},
		{"DELETE", "/holds/" + h.ID, ""}, {"POST", "/sleep", ""},
	} {
		w.call("bob", a[0], lab+a[1], a[2]).problem(http.StatusNotFound, "not_found", "")
	}
	w.call("bob", "DELETE", "/api/v1/sandboxes/other/holds/"+h.ID, "").problem(http.StatusNotFound, "not_found", "")
	w.call("bob", "PUT", "/api/v1/sandboxes/other/holds/"+h.ID, `{"ttl":"1h"}`).problem(http.StatusNotFound, "not_found", "")
}

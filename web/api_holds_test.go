package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/sandbox"
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
		{`{"reason":"x","ttl":"1s"}`, "ttl"}, {`{"reason":"x","ttl":"30d"}`, "ttl"}, {`{"reason":"x","ttl":"1y"}`, "ttl"}, {`{"reason":"x","ttl":-5}`, "ttl"},
		{`{"reason":"` + strings.Repeat("x", 300) + `","ttl":"30m"}`, "reason"}, {`{"reason":"x","ttl":"30m","by":"bob"}`, "by"},
	} {
		w.call("ada", "POST", lab+"/holds", c.body).problem(http.StatusBadRequest, "invalid", c.field)
	}
}

func TestHolds_ALengthThatIsNoneIsToldTheBounds(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	body := w.call("ada", "POST", lab+"/holds", `{"reason":"x","ttl":"1y"}`).is(http.StatusBadRequest).Body.String()
	if !strings.Contains(body, "between 10s and 7d") || strings.Contains(body, "30d") {
		t.Errorf("says %s", body)
	}
}

func TestHolds_AreForWhatMayBeAwake(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		state sandbox.State
		want  int
		word  string
	}{
		{sandbox.Running, 201, ""}, {sandbox.Frozen, 201, ""}, {sandbox.Asleep, 201, ""}, {sandbox.Starting, 201, ""},
		{sandbox.Stopped, 409, "is stopped"}, {sandbox.Stopping, 409, "is stopped"}, {sandbox.Failed, 409, "has failed"},
	} {
		name := "box-" + string(c.state)
		box := sandbox.Sandbox{
			ID: sandbox.NewID(), Name: name, Owner: w.ids["ada"], State: c.state, Spec: sandbox.Spec{Template: "base"},
			Created: stageTime, Changed: stageTime,
		}
		if err := w.store.Insert(t.Context(), box); err != nil {
			t.Fatal(err)
		}
		got := w.call("ada", "POST", "/api/v1/sandboxes/"+name+"/holds", `{"reason":"x","ttl":"30m"}`).is(c.want)
		if !strings.Contains(got.Body.String(), c.word) {
			t.Errorf("%s: says %s", c.state, got.Body)
		}
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

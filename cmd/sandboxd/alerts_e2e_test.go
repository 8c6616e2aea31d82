//go:build e2e

package main

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/alert"
	"sandboxd/internal/sqlite"
)

// firing gives the alerts of a kind that fire, as the server keeps them.
func firing(t *testing.T, s *sqlite.Alerts, k alert.Kind) (out []alert.Alert) {
	t.Helper()
	open, err := s.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range open {
		if a.Kind == k {
			out = append(out, a)
		}
	}
	return out
}

// hookFor gives a webhook of this test's, and what is sent to it.
func hookFor(t *testing.T) (alert.Channel, <-chan string) {
	got := make(chan string, 100)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // one that is cut off is not what is waited for
		got <- string(body)
	}))
	t.Cleanup(hook.Close)
	secret := "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 24))
	return alert.Channel{ID: "c1", Name: "hook", Kind: alert.Webhook, Address: hook.URL, Secret: secret}, got
}

// TestAlerts_FireOnWhatReallyHappensAndWakeNothing has a service that ends again and again, writes a line, and a process that takes too
// much memory; then the sandbox sleeps, and the server is killed.
func TestAlerts_FireOnWhatReallyHappensAndWakeNothing(t *testing.T) {
	t.Parallel()
	hook, got := hookFor(t)
	s := newServer(t, "--prebuild", "", "--alert-private-addresses")
	db, err := sqlite.Open(t.Context(), databasePath(&Config{Data: s.data}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	store := db.Alerts()
	s.until("the installation has rules", func() bool {
		rules, err := store.Rules(t.Context())
		return err == nil && len(rules) == len(alert.Defaults())
	})
	s.stop()
	err = errors.Join(store.PutChannel(t.Context(), hook), store.SetRules(t.Context(), "", []alert.Rule{
		{ID: "r1", Name: "down", Kind: alert.ServiceDown, Channels: []string{"c1"}}, {ID: "r2", Name: "oom", Kind: alert.OOMKill},
		{ID: "r3", Name: "line", Kind: alert.LogLine, Pattern: "kaboom", Threshold: 2}, {ID: "r4", Name: "disk", Kind: alert.HostDisk, Threshold: 10},
	}))
	if err != nil {
		t.Fatal(err)
	}
	s.start()
	s.create(map[string]any{"name": "lab", "image": "debian:trixie-slim", "memory": 64 << 20})
	s.declare("loop", map[string]any{"command": "echo kaboom; exit 1"})
	const limit = 2 * time.Minute // services are asked each half minute
	s.untilWithin(limit, "the service that is restarted again and again fires", func() bool {
		list := firing(t, store, alert.ServiceDown)
		return len(list) == 1 && list[0].Target.Part == "loop" && list[0].Target.Sandbox == "lab" && strings.Contains(list[0].Text, "was restarted")
	})
	s.untilWithin(limit, "a message tells of it", func() bool {
		select {
		case body := <-got:
			return strings.Contains(body, "lab, loop: service down") && strings.Contains(body, "was restarted")
		default:
			return false
		}
	})
	s.untilWithin(limit, "the line fires", func() bool {
		list := firing(t, store, alert.LogLine)
		return len(list) == 1 && strings.Contains(list[0].Text, "kaboom")
	})
	s.exec("lab", map[string]any{"command": "tail /dev/zero"})
	s.untilWithin(limit, "the kill for want of memory fires", func() bool { return len(firing(t, store, alert.OOMKill)) == 1 })
	s.sleeps("lab", "asleep")
	s.untilWithin(limit, "the service is not down while it sleeps", func() bool { return len(firing(t, store, alert.ServiceDown)) == 0 })
	before := firing(t, store, alert.OOMKill)
	s.kill()
	s.start()
	begun := time.Now()
	s.until("it has looked twice", func() bool { return time.Since(begun) > 25*time.Second })
	if after := firing(t, store, alert.OOMKill); len(after) != 1 || after[0].ID != before[0].ID {
		t.Errorf("before the crash %+v, after it %+v", before, after)
	}
	var lab struct{ State string }
	if status := s.call("GET", "/sandboxes/lab", nil, &lab); status != http.StatusOK || lab.State != "asleep" {
		t.Errorf("%d: it is %s", status, lab.State)
	}
}

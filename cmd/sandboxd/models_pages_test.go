package main

import (
	"context"
	"net/http/httptest"
	"testing"

	"sandboxd/internal/access/accesstest"
	"sandboxd/internal/fault"
)

func TestPrograms_PagesOfABrowserGetNoModels(t *testing.T) {
	p := programs{ownersOf{accesstest.New("lab", nil)}}
	for _, c := range []struct {
		host, origin string
		page         bool
	}{
		{"127.0.0.1:8199", "", false},
		{"localhost:8199", "", false},
		{"[::1]:8199", "", false},
		{"", "", false},
		{"127.0.0.1:8199", "http://localhost:3000", false}, // a server of the sandbox's own passes on what it got
		{"127.0.0.1:8199", "http://[::1]:3000", false},
		{"127.0.0.1:8199", "https://evil.example", true},
		{"127.0.0.1:8199", "https://localhost.evil.example", true},
		{"127.0.0.1:8199", "http://127.0.0.1.evil.example", true},
		{"127.0.0.1:8199", "http://localhost@evil.example", true},
		{"127.0.0.1:8199", "null", true},
		{"127.0.0.1:8199", "://", true},
		{"evil.example:8199", "", true}, // its name leads to 127.0.0.1
		{"evil.example:8199", "http://evil.example:8199", true},
		{"192.0.2.1", "", true},
	} {
		r := httptest.NewRequest("POST", "/v1/messages", nil)
		r = r.WithContext(context.WithValue(r.Context(), askingKey{}, "id-lab"))
		if r.Host = c.host; c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		caller, err := p.caller(r)
		if c.page != fault.Is(err, fault.Forbidden) || !c.page && (err != nil || caller.User != "ann" || caller.Sandbox != "id-lab") {
			t.Errorf("to %q from %q: %+v, %v", c.host, c.origin, caller, err)
		}
	}
}

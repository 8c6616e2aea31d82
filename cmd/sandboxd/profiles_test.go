package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sandboxd/internal/fault"
)

func TestProfiles_AreReadOnThisMachineOnly(t *testing.T) {
	for host, want := range map[string]int{"127.0.0.1:6060": 200, "localhost": 200, "[::1]:6060": 200, "evil.example:6060": 403, "evil.example": 403} {
		r := httptest.NewRequest("GET", "/debug/pprof/heap?debug=1", nil)
		r.Host = host
		w := httptest.NewRecorder()
		profiles().ServeHTTP(w, r)
		if w.Code != want || want == 200 && !strings.Contains(w.Body.String(), "heap profile") {
			t.Errorf("by %s: %d %.80s", host, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/", "/healthz", "/api/v1/sandboxes"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", path, nil)
		r.Host = "127.0.0.1"
		if profiles().ServeHTTP(w, r); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

func TestProfiles_OnlyALoopbackAddressIsTaken(t *testing.T) {
	for address, ok := range map[string]bool{
		"": true, "127.0.0.1:6060": true, "127.8.8.8:0": true, "[::1]:6060": true, "localhost:6060": true,
		":6060": false, "0.0.0.0:6060": false, "[::]:6060": false, "192.168.1.2:6060": false, "example.com:80": false, "127.0.0.1": false, "6060": false,
	} {
		err := (&Config{PprofAddress: address}).checkPprof()
		if ok != (err == nil) || err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", address, err)
		}
	}
}

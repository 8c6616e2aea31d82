package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
	"sandboxd/internal/gateway/gatewaytest"
)

func TestReach_AUsersOwnProviderHasNoPrivateAddress(t *testing.T) {
	c := newControl(t)
	for _, host := range []string{"127.0.0.1:8080", "127.0.0.1", "[::1]:11434", "localhost:8080", "a.localhost", "10.0.0.5", "192.168.1.20:11434", "100.64.0.1", "0.0.0.0:80", "[::]", "169.254.169.254", "[fe80::1]",
		"[fe80::1%25eth0]", "[::ffff:169.254.169.254]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "LOCALHOST.", "[fd12::1]"} {
		_, err := c.SetProvider(t.Context(), gateway.Provider{Owner: "u1", Name: "cloud", Kind: gateway.OpenAI, BaseURL: "http://" + host + "/v1"}, nil)
		wantField(t, host, err, "base_url")
		c.provide(t, gateway.Provider{Name: "cloud", Kind: gateway.OpenAI, BaseURL: "http://" + host + "/v1"}, key) // the server's may
	}
}

// TestReach_WhatANameLeadsToIsLookedAt has a name that is known to be private when it is connected to.
func TestReach_WhatANameLeadsToIsLookedAt(t *testing.T) {
	for private, want := range map[bool]int{false: http.StatusBadGateway, true: http.StatusOK} {
		p := gatewaytest.NewProvider(t, gateway.OpenAI)
		own := provider(strings.Replace(p.URL(), "127.0.0.1", "localhost", 1), gateway.OpenAI)
		own.Owner = "u1"
		g := serve(t, gateway.Setup{Providers: []gateway.Provider{own}, Keys: map[string]string{own.Name: p.Key()}, Private: private})
		res, answer := g.do("POST /v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`)
		if n := len(p.Requests()); res.StatusCode != want || n > 0 != private || strings.Contains(answer, "127.0.0.1") {
			t.Errorf("private addresses allowed %v: %d %s after %d requests", private, res.StatusCode, answer, n)
		}
		_, err := g.s.CheckProvider(t.Context(), "u1", "openai")
		if !private && fault.FieldOf(err) != "base_url" || private && err != nil {
			t.Errorf("private addresses allowed %v: check: %v", private, err)
		}
	}
}

func TestReach_AUsersOwnProviderTakesNoProxy(t *testing.T) {
	if gateway.NewUsersTransport(false).Proxy != nil {
		t.Error("a proxy connects to what is asked for, whatever its address")
	}
}

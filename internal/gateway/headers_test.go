package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"sandboxd/internal/gateway"
)

// TestHandler_AProviderTellsBrowsersNothing has a provider that would have an answer on the dashboard's origin taken for a page, or have
// that origin report to it.
func TestHandler_AProviderTellsBrowsersNothing(t *testing.T) {
	hostile := http.Header{"Content-Type": {"application/json", "text/html"}, "Access-Control-Allow-Origin": {"*"}, "Access-Control-Allow-Credentials": {"true"},
		"Cross-Origin-Resource-Policy": {"cross-origin"}, "Nel": {"{}"}, "Report-To": {"{}"}, "Content-Security-Policy": {"default-src *"}, "Set-Cookie": {"a=b"}, "Link": {"<https://x>; rel=preload"},
		"Request-Id": {"kept"}}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, values := range hostile {
			w.Header()[name] = values
		}
		if _, err := w.Write([]byte(`{"ok":"<script>"}`)); err != nil {
			t.Error(err)
		}
	}))
	defer upstream.Close()
	g := serve(t, gateway.Setup{Providers: []gateway.Provider{provider(upstream.URL, gateway.OpenAI)}})
	res, _ := g.do("POST /v1/chat/completions", `{"model":"m"}`)
	want := http.Header{"Content-Type": {"application/json"}, "Request-Id": {"kept"}}
	for name := range hostile {
		if got := res.Header.Values(name); len(got) != len(want[name]) || len(got) == 1 && got[0] != want[name][0] {
			t.Errorf("%s: %q, want %q", name, got, want[name])
		}
	}
}

package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/gateway"
	"sandboxd/internal/gateway/gatewaytest"
)

// TestBody_NoOtherModelIsAskedForByTheWay has fields that brokers of models take for models to ask in the place of the named one.
func TestBody_NoOtherModelIsAskedForByTheWay(t *testing.T) {
	for fields, want := range map[string]int{
		`"x":1`:                    http.StatusOK,
		`"models":["a","b"]`:       http.StatusOK,
		`"models":["a","dear"]`:    http.StatusBadRequest,
		`"Models":["dear"]`:        http.StatusBadRequest,
		`"mod\u0065ls":["dear"]`:   http.StatusBadRequest,
		`"models":"dear"`:          http.StatusBadRequest,
		`"models":[{"m":"dear"}]`:  http.StatusBadRequest,
		`"fallbacks":["dear"]`:     http.StatusBadRequest,
		`"models":[],"models":[1]`: http.StatusBadRequest,
	} {
		p := gatewaytest.NewProvider(t, gateway.OpenAI)
		p.Offer("a", "b", "dear")
		g := serveOne(t, p, gateway.OpenAI, "a", "b")
		res, answer := g.do("POST /v1/chat/completions", `{"model":"a",`+fields+`,"messages":[{"role":"user","content":"hi"}]}`)
		if n := len(p.Requests()); res.StatusCode != want || n > 0 != (want == http.StatusOK) || n == 0 && !strings.Contains(answer, "lists alone") {
			t.Errorf("%s: %d %s after %d requests", fields, res.StatusCode, answer, n)
		}
	}
	p := gatewaytest.NewProvider(t, gateway.OpenAI)
	g := serveOne(t, p, gateway.OpenAI)
	if res, answer := g.do("POST /v1/chat/completions", `{"model":"a","models":["dear"],"messages":[{"role":"user","content":"hi"}]}`); res.StatusCode != http.StatusOK {
		t.Errorf("without a list: %d %s", res.StatusCode, answer)
	}
}

package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"sandboxd/internal/gateway"
	"sandboxd/internal/sandbox"
)

func TestProviders_InASandboxAreOfOnesOwnUnlessTheServers(t *testing.T) {
	w := newWorld(t)
	w.box("ada", "lab")
	const body = `{"kind":"ollama","sandbox":"lab","port":11434}`
	var p providerShape
	w.call("ada", "PUT", "/api/v1/providers/local", body).is(http.StatusCreated).into(&p)
	if p.Sandbox != "lab" || p.Port != 11434 || p.BaseURL != "" || !p.Own {
		t.Errorf("its owner is told %+v", p)
	}
	w.call("bob", "PUT", "/api/v1/providers/local", body).problem(http.StatusBadRequest, "invalid", "sandbox")
	w.call("root", "PUT", "/api/v1/providers/local", strings.Replace(body, "{", `{"own":true,`, 1)).problem(http.StatusBadRequest, "invalid", "sandbox")
	w.call("root", "PUT", "/api/v1/providers/all", body).is(http.StatusCreated)
	w.call("bob", "GET", "/api/v1/providers/all?own=false", "").is(http.StatusOK).into(&p)
	if bob := w.call("bob", "GET", "/api/v1/providers", "").Body.String(); strings.Contains(bob, "lab") {
		t.Errorf("others are told %s", bob)
	}
	for field, wrong := range map[string]string{
		"sandbox":  `{"kind":"ollama","sandbox":"none","port":11434}`,
		"port":     `{"kind":"ollama","sandbox":"lab"}`,
		"kind":     `{"kind":"gemini","sandbox":"lab","port":11434}`,
		"base_url": `{"kind":"ollama","sandbox":"lab","port":11434,"base_url":"http://x.lan"}`,
	} {
		w.call("ada", "PUT", "/api/v1/providers/wrong", wrong).problem(http.StatusBadRequest, "invalid", field)
	}
	w.call("ada", "PUT", "/api/v1/providers/wrong", `{"kind":"ollama","port":11434}`).problem(http.StatusBadRequest, "invalid", "sandbox")
	w.call("ada", "PUT", "/api/v1/providers/wrong", `{"kind":"openai","sandbox":"lab","port":7465}`).problem(http.StatusBadRequest, "invalid", "port")
	if got := w.server.cfg.Models.Providers(w.ids["ada"]); len(got) != 1 || got[0].Inside.Sandbox != w.ref("lab").ID() {
		t.Errorf("kept are %+v", got)
	}
}

func TestProviderForm_OffersOnesSandboxes(t *testing.T) {
	s := newStage(t)
	at := providersPath + "/new?kind=sandbox"
	if got := textOf(s.get("ada", at).need("section.sheet")); !strings.Contains(got, "You have no sandboxes yet.") {
		t.Errorf("without a sandbox it says %q", got)
	}
	s.put("ada", "aaa", func(*sandbox.Sandbox) {})
	s.put("ada", "models", func(b *sandbox.Sandbox) { b.Spec.Template = "llm" })
	s.put("bob", "his", func(*sandbox.Sandbox) {})
	v := s.get("ada", at)
	if got := textOf(v.need("#provider-sandbox")); !strings.Contains(got, "aaa") || strings.Contains(got, "his") || v.chosen("#provider-sandbox") != "models" {
		t.Errorf("offered are %q, %q is chosen", got, v.chosen("#provider-sandbox"))
	}
	if attr(v.need("#provider-port"), "value") != "11434" || v.find("#provider-base_url") != nil {
		t.Error("the form is not as it should be")
	}
	entered := func(more ...string) url.Values {
		f := fields("preset", "sandbox", "name", "local", "sandbox", "models", "port", "8080", "kind", "openai")
		for i := 0; i < len(more); i += 2 {
			f.Set(more[i], more[i+1])
		}
		return f
	}
	for field, wrong := range map[string]string{"sandbox": "his", "port": "http", "kind": "gemini"} {
		v := s.post("ada", providersPath, entered(field, wrong)).is(http.StatusBadRequest)
		if v.find("#provider-"+field+"-fault") == nil || field != "port" && attr(v.need("#provider-port"), "value") != "8080" {
			t.Errorf("%s is not told of as it should be", field)
		}
	}
	s.post("ada", providersPath, entered()).leads(modelsPath + "?done=provider-unlisted")
	if got := textOf(s.get("ada", modelsPath).need("#provider-own-local")); !strings.Contains(got, "models, port 8080") || !strings.Contains(got, "A model in a sandbox") {
		t.Errorf("the list says %q", got)
	}
	at = providersPath + "/local?own=true"
	if v := s.get("ada", at); v.chosen("#provider-sandbox") != "models" || v.find("#provider-kind") != nil {
		t.Error("the form of one that there is is not as it should be")
	}
	s.post("ada", at, fields("sandbox", "aaa", "port", "8081", "models", "small")).leads(modelsPath + "?done=provider-saved")
	p, err := s.server.providers.provider(s.users["ada"].ID, "local")
	if err != nil || p.Inside.Name != "aaa" || p.Inside.Port != 8081 || p.Kind != gateway.OpenAI || len(p.Models) != 1 {
		t.Errorf("it is now %+v, %v", p, err)
	}
	s.post("ada", at, fields("sandbox", "his", "port", "8081")).is(http.StatusBadRequest)
}

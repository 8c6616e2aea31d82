package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
)

// lister is a provider that answers one question with a text.
type lister struct {
	*httptest.Server
	asked   chan *http.Request
	status  int
	answer  string
	headers http.Header
}

func newLister(t *testing.T, status int, answer string) *lister {
	t.Helper()
	l := &lister{asked: make(chan *http.Request, 10), status: status, answer: answer, headers: http.Header{}}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.asked <- r
		for name, values := range l.headers {
			w.Header()[name] = values
		}
		w.WriteHeader(l.status)
		_, _ = w.Write([]byte(l.answer)) // a client that is gone is what some tests want
	}))
	t.Cleanup(l.Close)
	return l
}

// at gives a service with the lister as its only provider.
func (l *lister) at(t *testing.T, kind gateway.Kind, path string) *control {
	t.Helper()
	c := newControl(t)
	c.provide(t, gateway.Provider{Name: "cloud", Kind: kind, BaseURL: l.URL + path}, key)
	return c
}

func TestCheckProvider_GivesItsModels(t *testing.T) {
	for name, v := range map[string]struct {
		kind                 gateway.Kind
		base, answer         string
		path, header, secret string
		want                 []string
	}{
		"openai":              {gateway.OpenAI, "/v1", `{"object": "list", "data": [{"id": "gpt-6"}, {"id": "gpt-5"}]}`, "/v1/models", "Authorization", "Bearer " + key, []string{"gpt-5", "gpt-6"}},
		"openai elsewhere":    {gateway.OpenAI, "/api/paas/v4", `{"data": []}`, "/api/paas/v4/models", "Authorization", "Bearer " + key, nil},
		"anthropic":           {gateway.Anthropic, "", `{"data": [{"type": "model", "id": "claude-x"}], "has_more": false}`, "/v1/models", "X-Api-Key", key, []string{"claude-x"}},
		"anthropic with /v1":  {gateway.Anthropic, "/v1", `{"data": [{"id": "claude-x"}, {"id": "claude-x"}]}`, "/v1/models", "X-Api-Key", key, []string{"claude-x"}},
		"gemini":              {gateway.Gemini, "", `{"models": [{"name": "models/gemini-x"}]}`, "/v1beta/models", "X-Goog-Api-Key", key, []string{"gemini-x"}},
		"ollama":              {gateway.Ollama, "", `{"models": [{"name": "llama3:8b", "model": "llama3:8b"}]}`, "/api/tags", "Authorization", "Bearer " + key, []string{"llama3:8b"}},
		"ollama with /v1":     {gateway.Ollama, "/v1", `{"models": [{"name": "b"}, {"name": "a"}]}`, "/api/tags", "Authorization", "Bearer " + key, []string{"a", "b"}},
		"names that are none": {gateway.OpenAI, "/v1", `{"data": [{"id": "a\u202e"}, {"id": ""}, {"id": "` + strings.Repeat("x", 300) + `"}, {"id": "ok"}]}`, "/v1/models", "Authorization", "Bearer " + key, []string{"ok"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLister(t, http.StatusOK, v.answer)
			got, err := l.at(t, v.kind, v.base).CheckProvider(t.Context(), "", "cloud")
			if err != nil || !slices.Equal(got, v.want) {
				t.Errorf("got %v, %v", got, err)
			}
			if r := <-l.asked; r.URL.Path != v.path || r.Header.Get(v.header) != v.secret || r.Method != http.MethodGet {
				t.Errorf("asked %s %s with %v", r.Method, r.URL, r.Header)
			}
		})
	}
}

func TestCheckProvider_SaysWhatIsWrong(t *testing.T) {
	for name, v := range map[string]struct {
		status       int
		answer       string
		kind         fault.Kind
		field, words string
	}{
		"a wrong key":        {401, `{"error": "wrong key ` + key + `"}`, fault.Invalid, "key", "does not accept the key"},
		"forbidden":          {403, key, fault.Invalid, "key", "does not accept the key"},
		"another path":       {404, key, fault.Invalid, "base_url", "no list of models"},
		"moved":              {301, "", fault.Invalid, "base_url", "no list of models"},
		"too many requests":  {429, key, fault.Unavailable, "", "429"},
		"broken":             {500, key, fault.Unavailable, "", "500"},
		"a page":             {200, "<html>" + key, fault.Unavailable, "", "no list of models"},
		"a list of nothing":  {200, `{"object": "` + key + `"}`, fault.Unavailable, "", "no list of models"},
		"half an answer":     {200, `{"data": [{"id": "` + key, fault.Unavailable, "", "no list of models"},
		"an endless answer":  {200, `{"data": [` + strings.Repeat(" ", 9<<20) + `]}`, fault.Unavailable, "", "no list of models"},
		"a list of another":  {200, `{"data": "x"}`, fault.Unavailable, "", "no list of models"},
		"an answer of bytes": {200, "\x00\xff", fault.Unavailable, "", "no list of models"},
	} {
		l := newLister(t, v.status, v.answer)
		l.headers.Set("Location", "/elsewhere")
		_, err := l.at(t, gateway.OpenAI, "/v1").CheckProvider(t.Context(), "", "cloud")
		if !fault.Is(err, v.kind) || fault.FieldOf(err) != v.field || !strings.Contains(fault.Message(err), v.words) {
			t.Errorf("%s: %v about %q", name, err, fault.FieldOf(err))
		}
		if err != nil && strings.Contains(err.Error(), key) {
			t.Errorf("%s: the key is in %q", name, err)
		}
		if n := len(l.asked); n != 1 {
			t.Errorf("%s: it was asked %d times", name, n)
		}
	}
}

func TestCheckProvider_OfOneThatCannotBeReached(t *testing.T) {
	l := newLister(t, http.StatusOK, "")
	c := l.at(t, gateway.OpenAI, "/v1")
	l.Close()
	_, err := c.CheckProvider(t.Context(), "", "cloud")
	wantFault(t, "closed", err, fault.Unavailable, "cannot be reached")
	if strings.Contains(err.Error(), "/v1") {
		t.Errorf("the address is in %q", err)
	}
	_, err = c.CheckProvider(t.Context(), "u1", "cloud")
	wantFault(t, "of another", err, fault.NotFound, "cloud")
}

func TestCheckProvider_OfOneThatDoesNotAnswer(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	c := newControl(t)
	c.provide(t, gateway.Provider{Name: "cloud", Kind: gateway.OpenAI, BaseURL: silent.URL + "/v1"}, key)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.CheckProvider(ctx, "", "cloud")
	wantFault(t, "silent", err, fault.Timeout, "did not answer")
}

func TestCheckProvider_GivesABoundedNumberOfModels(t *testing.T) {
	var list struct {
		Data []map[string]string `json:"data"`
	}
	for n := range 5000 {
		list.Data = append(list.Data, map[string]string{"id": fmt.Sprint("m", n)})
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	got, err := newLister(t, http.StatusOK, string(text)).at(t, gateway.OpenAI, "/v1").CheckProvider(t.Context(), "", "cloud")
	if err != nil || len(got) != 2000 {
		t.Errorf("%d models, %v", len(got), err)
	}
}

func TestCheckProvider_AListOfNothingsTakesLittleMemory(t *testing.T) {
	l := newLister(t, http.StatusOK, `{"data":[`+strings.Repeat("{},", 2<<20)+"{}]}")
	c := l.at(t, gateway.OpenAI, "/v1")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if got, err := c.CheckProvider(t.Context(), "", "cloud"); err != nil || len(got) != 0 {
		t.Errorf("%d models, %v", len(got), err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 { // what is read is 6 MiB
		t.Errorf("it took %d MiB", n>>20)
	}
}

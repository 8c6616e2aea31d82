// Package sdk runs programs that use the vendors' own libraries, unchanged, against the gateway.
package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/gateway"
	"sandboxd/internal/gateway/gatewaytest"
	"sandboxd/internal/seal"
)

// installed is written by the rule of the Makefile that installs the libraries.
const installed = "internal/gateway/sdk/node_modules/.package-lock.json"

// programLimit is for one program: long, for a machine that does much else.
const programLimit = 2 * time.Minute

// TestMain installs the libraries, unless they are.
func TestMain(m *testing.M) {
	install := exec.Command("make", "--no-print-directory", "-C", "../../..", installed)
	install.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MAKE") }) // it is no part of a make that runs the tests
	if text, err := install.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "make %s: %v\n%s", installed, err, text)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// library is one vendor's.
type library struct {
	program string
	kind    gateway.Kind
	env     func(url string) []string
	refusal map[int]string // names of its errors
}

var libraries = []library{
	{"anthropic.mjs", gateway.Anthropic, func(url string) []string {
		return []string{"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=sandbox"}
	}, map[int]string{400: "BadRequestError", 402: "PaymentRequiredError", 403: "PermissionDeniedError", 404: "NotFoundError", 429: "RateLimitError", 503: "InternalServerError"}},
	{"openai.mjs", gateway.OpenAI, func(url string) []string {
		return []string{"OPENAI_BASE_URL=" + url + "/v1", "OPENAI_API_KEY=sandbox"}
	}, map[int]string{400: "BadRequestError", 402: "APIError", 403: "PermissionDeniedError", 404: "NotFoundError", 429: "RateLimitError", 503: "InternalServerError"}},
	{"ollama.mjs", gateway.Ollama, func(url string) []string { return []string{"OLLAMA_HOST=" + url} },
		map[int]string{400: "ResponseError", 402: "ResponseError", 403: "ResponseError", 404: "ResponseError", 429: "ResponseError", 503: "ResponseError"}},
}

// bench is a gateway with one provider of the library's kind.
type bench struct {
	library
	provider *gatewaytest.Provider
	service  *gateway.Service
	url      string
}

func newBench(t *testing.T, l library) *bench {
	t.Helper()
	key, err := seal.Open(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	service, err := gateway.Open(t.Context(), gateway.Config{Store: gatewaytest.NewStore(), Sealer: key})
	if err != nil {
		t.Fatal(err)
	}
	provider := gatewaytest.NewProvider(t, l.kind)
	secret := provider.Key()
	p := gateway.Provider{Name: "scripted", Kind: l.kind, BaseURL: provider.BaseURL(l.kind), Models: []string{"scripted-1", "scripted-2"}}
	if _, err := service.SetProvider(t.Context(), p, &secret); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(service.Handler(func(*http.Request) (gateway.Caller, error) {
		return gateway.Caller{User: gatewaytest.Owners[0], Sandbox: gatewaytest.Sandboxes[0], Label: "box"}, nil
	}))
	t.Cleanup(server.Close)
	return &bench{l, provider, service, server.URL}
}

// result is what a program prints.
type result struct {
	Seen    json.RawMessage `json:"seen"`
	Error   string          `json:"error"`
	Status  int             `json:"status"`
	Message string          `json:"message"`
}

// turn is what a program has seen of a turn.
type turn struct {
	Text          string
	Calls         []string
	Input, Output int
}

// run runs one case of the library's program.
func (b *bench) run(t *testing.T, name, model string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), programLimit)
	defer cancel()
	program := exec.CommandContext(ctx, node(t), b.program, name, model)
	program.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, b.env(b.url)...)
	var problems strings.Builder
	program.Stderr = &problems
	text, err := program.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", b.program, name, err, problems.String())
	}
	var r result
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("%s %s printed %q: %v", b.program, name, text, err)
	}
	return r
}

// node is the Node that is installed with the libraries; on other machines than it is made for, the machine's.
func node(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob("node_modules/node-linux-*/bin/node")
	if err != nil || len(found) == 0 {
		return "node"
	}
	path, err := filepath.Abs(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// decode gives what a case has seen.
func decode[T any](t *testing.T, r result) T {
	t.Helper()
	if r.Error != "" {
		t.Fatalf("refused: %s %d %s", r.Error, r.Status, r.Message)
	}
	var seen T
	if err := json.Unmarshal(r.Seen, &seen); err != nil {
		t.Fatalf("%s: %v", r.Seen, err)
	}
	return seen
}

// each runs a test with every library.
func each(t *testing.T, test func(*testing.T, *bench)) {
	for _, l := range libraries {
		t.Run(strings.TrimSuffix(l.program, ".mjs"), func(t *testing.T) {
			t.Parallel()
			test(t, newBench(t, l))
		})
	}
}

func TestLibraries_FinishATurnWithACallOfATool(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		cases := []string{"whole", "streamed"}
		if b.kind == gateway.OpenAI {
			cases = append(cases, "responses", "responses-streamed")
		}
		for _, name := range cases {
			b.provider.Play(
				gatewaytest.Script{Text: "I add them. ", Calls: []gatewaytest.Call{{Name: "add", Args: map[string]int{"a": 17, "b": 25}}}, Usage: &gateway.Tokens{Input: 30, Output: 12}},
				gatewaytest.Script{Text: "It is 42.", For: gatewaytest.AfterResult, Usage: &gateway.Tokens{Input: 50, Output: 6}},
			)
			want := turn{Text: "I add them. It is 42.", Calls: []string{"add"}, Input: 80, Output: 18}
			if diff := cmp.Diff(want, decode[turn](t, b.run(t, name, "best"))); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			last := b.provider.Requests()[len(b.provider.Requests())-1]
			if !strings.Contains(string(last.Body), "42") || last.Model != "scripted-1" {
				t.Errorf("%s: the provider was asked %s: %s", name, last.Path, last.Body)
			}
		}
	})
}

func TestLibraries_ListModelsAndCount(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		models := decode[[]string](t, b.run(t, "models", ""))
		for _, want := range []string{"best", "fast", "scripted-1", "scripted-2"} {
			if !slices.Contains(models, want) {
				t.Errorf("no %s in %v", want, models)
			}
		}
		switch b.kind {
		case gateway.Anthropic:
			if !decode[bool](t, b.run(t, "count", "fast")) {
				t.Error("it has counted nothing")
			}
		case gateway.OpenAI, gateway.Ollama:
			if diff := cmp.Diff([]float64{0.25, -0.5, 1}, decode[[]float64](t, b.run(t, "embeddings", "fast"))); diff != "" {
				t.Error(diff)
			}
		}
		if b.kind == gateway.Ollama {
			b.provider.Play(gatewaytest.Script{Text: "Here it is."})
			if got := decode[string](t, b.run(t, "generate", "fast")); got != "Here it is." {
				t.Errorf("generated %q", got)
			}
		}
	})
}

func TestLibraries_EndTheProvidersAnswerByLeaving(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.provider.Play(gatewaytest.Script{Endless: true, Delay: time.Millisecond})
		if !decode[bool](t, b.run(t, "leave", "best")) {
			t.Error("it has seen nothing of the stream")
		}
		b.provider.AwaitLeft(1)
	})
}

func TestLibraries_TellRefusalsInTheirOwnErrors(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		refused := func(name, model, what string) {
			t.Helper()
			r := b.run(t, name, model)
			if want := b.refusal[r.Status]; r.Error == "" || r.Error != want || !strings.Contains(r.Message, what) {
				t.Errorf("%s: %s, want %s: status %d, %q", what, r.Error, want, r.Status, r.Message)
			}
		}
		refused("whole", "unheard-of", "unheard-of")
		refused("streamed", "unheard-of", "unheard-of")
		b.provider.Play(gatewaytest.Script{Status: 429, RetryAfter: time.Minute}, gatewaytest.Script{Text: "ok", Repeat: 100})
		refused("whole", "best", "the script says so")
		budget := gateway.Budget{Scope: gateway.PerSandbox, Subject: gatewaytest.Sandboxes[0], Period: gateway.Day, Requests: 1}
		if err := b.service.SetBudget(t.Context(), budget); err != nil {
			t.Fatal(err)
		}
		refused("streamed", "best", "budget")
		if err := b.service.SetSettings(t.Context(), gateway.Settings{Off: true}); err != nil {
			t.Fatal(err)
		}
		refused("whole", "best", "off")
		refused("streamed", "best", "off")
		for _, r := range b.provider.Requests() {
			for _, values := range r.Header {
				if slices.Contains(values, "sandbox") || slices.Contains(values, "Bearer sandbox") {
					t.Errorf("the provider was given what the client had for a key: %v", r.Header)
				}
			}
		}
	})
}

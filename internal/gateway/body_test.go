package gateway

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBody_OnlyTheNameOfTheModelChanges(t *testing.T) {
	for _, c := range []struct{ body, asked, want string }{
		{`{"model":"a","messages":[]}`, "a", `{"model":"b","messages":[]}`},
		{" {\n\t\"max_tokens\" : 1e2, \"model\" :  \"a\"  , \"x\":{\"model\":\"c\"}}\n", "a", " {\n\t\"max_tokens\" : 1e2, \"model\" :  \"b\"  , \"x\":{\"model\":\"c\"}}\n"},
		{`{"model":"first","model":"a"}`, "a", `{"model":"b","model":"b"}`},
		{`{"mod\u0065l":"a","Model":"c"}`, "a", `{"mod\u0065l":"b","Model":"b"}`}, // Go's servers ignore case
		{`{"model":"\u0061","s":"\"model\":\"x\"","n":12345678901234567890.123}`, "a", `{"model":"b","s":"\"model\":\"x\"","n":12345678901234567890.123}`},
	} {
		b, wrong := parseBody([]byte(c.body), []string{"model"})
		if wrong != nil || b.model != c.asked {
			t.Errorf("%s: asks for %q, %v", c.body, b.model, wrong)
			continue
		}
		if got := string(b.withModel("b", false)); got != c.want {
			t.Errorf("%s became\n%s, want\n%s", c.body, got, c.want)
		}
	}
}

func TestBody_TheSameModelChangesNothing(t *testing.T) {
	raw := []byte(`{ "model" : "\u0061" }`)
	b, wrong := parseBody(raw, []string{"model"})
	if got := b.withModel("a", false); wrong != nil || &got[0] != &raw[0] {
		t.Errorf("got %s, %v", got, wrong)
	}
}

func TestBody_OfShowNamesItsModelAsNameToo(t *testing.T) {
	for body, want := range map[string]string{`{"name":"a"}`: `{"name":"b"}`, `{"model":"a","name":"c"}`: `{"model":"b","name":"b"}`} {
		b, wrong := parseBody([]byte(body), fixed["POST /api/show"].named)
		if got := string(b.withModel("b", false)); wrong != nil || b.model != "a" || got != want {
			t.Errorf("%s asks for %q and became %s, %v", body, b.model, got, wrong)
		}
	}
}

func TestBody_UsageIsAskedFor(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"a","stream":true}`:                                                `{"stream_options":{"include_usage":true},"model":"a","stream":true}`,
		`{"model":"a","stream_options":null}`:                                        `{"model":"a","stream_options":{"include_usage":true}}`,
		`{"model":"a","stream_options":{"include_usage":false, "x" : [1, 2],"y":3}}`: `{"model":"a","stream_options":{"include_usage":true,"x":[1, 2],"y":3}}`,
		`{"model":"a","stream_options":{}}`:                                          `{"model":"a","stream_options":{"include_usage":true}}`,
	} {
		b, wrong := parseBody([]byte(body), []string{"model"})
		if got := string(b.withModel("a", true)); wrong != nil || got != want {
			t.Errorf("%s became\n%s, want\n%s", body, got, want)
		}
	}
	if b, _ := parseBody([]byte(`{"model":"a","stream_options":{"include_usage":true}}`), []string{"model"}); !b.usage {
		t.Error("a client's own wish is not seen")
	}
}

func TestBody_WhatIsNoObjectIsRefused(t *testing.T) {
	for _, body := range []string{"", "null", "[]", `"model"`, `{"model":"a"`, `{"model":'a'}`, `{"model":"a"} x`, `{"model":"a"}{}`, "{", strings.Repeat("[", 20000)} {
		if _, wrong := parseBody([]byte(body), []string{"model"}); wrong == nil || wrong.status != 400 {
			t.Errorf("%.40q: %v", body, wrong)
		}
	}
	for _, body := range []string{`{}`, `{"model":""}`, `{"model":1}`, `{"model":null}`, `{"Model":"a"}`, `{"model":"a\nb"}`, `{"model":"` + strings.Repeat("a", maxModel+1) + `"}`} {
		if b, wrong := parseBody([]byte(body), []string{"model"}); wrong != nil || b.check() == nil {
			t.Errorf("%.40q names a model", body)
		}
	}
}

// FuzzBody compares with encoding/json: the same model is read, the body stays valid, and nothing but the model changes.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{`{"model":"a","stream":true,"stream_options":{"x":[{}]},"messages":[{"role":"user","content":"\"}\\"}]}`, ` { } `,
		`{"a":1.5e3,"b":null,"model":"x","model":"é","c":[[],{}],"":""}`, `{"stream_options":{},"model":"\u00e9"}`, `[1]`, `{"MODEL":"a"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		b, wrong := parseBody(raw, []string{"model"})
		var want map[string]json.RawMessage
		if err := json.Unmarshal(raw, &want); (err != nil || want == nil) != (wrong != nil) {
			t.Fatalf("json says %v, we %v", err, wrong)
		}
		if wrong != nil {
			return
		}
		var model string
		last, has := want["model"]
		if has && json.Unmarshal(last, &model) == nil && b.model != model && string(last) != "null" {
			t.Fatalf("asks for %q, json reads %q", b.model, model)
		}
		for _, usage := range []bool{false, b.check() == nil} {
			out := b.withModel("new", usage)
			var got map[string]json.RawMessage
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatalf("%q became %q: %v", raw, out, err)
			}
			others := func(m map[string]json.RawMessage) map[string]json.RawMessage {
				m = maps.Clone(m)
				maps.DeleteFunc(m, func(k string, _ json.RawMessage) bool {
					return strings.EqualFold(k, "model") || usage && k == "stream_options"
				})
				return m
			}
			if diff := cmp.Diff(others(want), others(got)); diff != "" {
				t.Fatal(diff)
			}
		}
		if !bytes.Equal(before, raw) {
			t.Fatal("the body was changed in place")
		}
	})
}

package gateway_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
)

const key = "sk-0123456789-secret"

func TestSetProvider_SaysByTheFieldWhatIsWrong(t *testing.T) {
	c := newControl(t)
	for name, v := range map[string]struct {
		field string
		edit  func(*gateway.Provider)
	}{
		"no name":             {"name", func(p *gateway.Provider) { p.Name = "" }},
		"a name in capitals":  {"name", func(p *gateway.Provider) { p.Name = "Cloud" }},
		"a dash at the end":   {"name", func(p *gateway.Provider) { p.Name = "cloud-" }},
		"a path":              {"name", func(p *gateway.Provider) { p.Name = "../x" }},
		"a long name":         {"name", func(p *gateway.Provider) { p.Name = strings.Repeat("a", 64) }},
		"no kind":             {"kind", func(p *gateway.Provider) { p.Kind = "" }},
		"another kind":        {"kind", func(p *gateway.Provider) { p.Kind = "bedrock" }},
		"no address":          {"base_url", func(p *gateway.Provider) { p.BaseURL = " " }},
		"a host alone":        {"base_url", func(p *gateway.Provider) { p.BaseURL = "api.example.com" }},
		"a file":              {"base_url", func(p *gateway.Provider) { p.BaseURL = "file:///etc/passwd" }},
		"a scheme alone":      {"base_url", func(p *gateway.Provider) { p.BaseURL = "https://" }},
		"a port alone":        {"base_url", func(p *gateway.Provider) { p.BaseURL = "http://:80" }},
		"too large a port":    {"base_url", func(p *gateway.Provider) { p.BaseURL = "http://a:65536" }},
		"a password":          {"base_url", func(p *gateway.Provider) { p.BaseURL = "https://a:b@c" }},
		"a query":             {"base_url", func(p *gateway.Provider) { p.BaseURL = "https://a/v1?key=x" }},
		"an empty query":      {"base_url", func(p *gateway.Provider) { p.BaseURL = "https://a/v1?" }},
		"a fragment":          {"base_url", func(p *gateway.Provider) { p.BaseURL = "https://a/v1#" }},
		"a line break":        {"base_url", func(p *gateway.Provider) { p.BaseURL = "https://a/\n/v1" }},
		"steps up":            {"base_url", func(p *gateway.Provider) { p.BaseURL = "https://a/v1/../x" }},
		"a long address":      {"base_url", func(p *gateway.Provider) { p.BaseURL = "https://a/" + strings.Repeat("b", 2048) }},
		"an empty model":      {"models", func(p *gateway.Provider) { p.Models = []string{"a", ""} }},
		"a model twice":       {"models", func(p *gateway.Provider) { p.Models = []string{"a", " a"} }},
		"a model of two":      {"models", func(p *gateway.Provider) { p.Models = []string{"a b"} }},
		"a hidden character":  {"models", func(p *gateway.Provider) { p.Models = []string{"a\u202eb"} }},
		"a long model":        {"models", func(p *gateway.Provider) { p.Models = []string{strings.Repeat("a", 201)} }},
		"too many models":     {"models", func(p *gateway.Provider) { p.Models = slices.Repeat([]string{"a"}, gateway.MaxModels+1) }},
		"broken UTF-8 inside": {"models", func(p *gateway.Provider) { p.Models = []string{"a\xff"} }},
	} {
		p := cloud("")
		v.edit(&p)
		_, err := c.SetProvider(t.Context(), p, nil)
		wantField(t, name, err, v.field)
	}
	for name, bad := range map[string]string{"long": strings.Repeat("a", gateway.MaxKey+1), "a header's end": "a\r\nX: b", "ä": "ä", "a blank": "a b"} {
		_, err := c.SetProvider(t.Context(), cloud(""), &bad)
		wantField(t, name, err, "key")
	}
	if n := len(c.Providers("")); n != 0 {
		t.Errorf("there are %d providers", n)
	}
}

func TestSetProvider_KeepsWhatWasEnteredWithoutWhatAddsNothing(t *testing.T) {
	c := newControl(t)
	p := cloud("")
	p.BaseURL, p.Models = " https://API.example.com/v1// ", []string{" a ", "b/c:d"}
	got := c.provide(t, p, " "+key+"\n")
	if got.BaseURL != "https://api.example.com/v1" || !slices.Equal(got.Models, []string{"a", "b/c:d"}) || !got.HasKey || got.ID == "" || !got.Changed.Equal(saturday) {
		t.Errorf("got %+v", got)
	}
	p.Kind = gateway.Anthropic
	again := c.provide(t, p, "")
	if again.ID != got.ID || again.HasKey || !again.Changed.After(got.Changed) || again.Kind != gateway.Anthropic || len(c.Providers("")) != 1 {
		t.Errorf("changed to %+v", again)
	}
	again.Models[0] = "other"
	if c.Providers("")[0].Models[0] != "a" {
		t.Error("what is given out is not a copy")
	}
}

func TestSetProvider_AKeyIsKeptSealedAndNeverShown(t *testing.T) {
	c := newControl(t)
	p := c.provide(t, cloud("u1"), key)
	sealed, err := c.store.ProviderKey(t.Context(), p.ID)
	if err != nil || len(sealed) == 0 || bytes.Contains(sealed, []byte(key)) {
		t.Errorf("kept is %q, %v", sealed, err)
	}
	if _, err := c.SetProvider(t.Context(), cloud("u1"), nil); err != nil {
		t.Fatal(err)
	}
	after, err := c.store.ProviderKey(t.Context(), p.ID)
	if err != nil || !bytes.Equal(after, sealed) {
		t.Errorf("without a key the one before is to stay; kept is %q, %v", after, err)
	}
	_, refused := c.SetProvider(t.Context(), cloud("u1"), new(key+" "+key))
	c.reopen(t)
	shown := fmt.Sprintf("%+v %+v %v %v", c.Providers("u1"), c.Offered("u1"), refused, c.log)
	if strings.Contains(shown, key) || !c.Providers("u1")[0].HasKey {
		t.Errorf("shown is %s", shown)
	}
}

func TestSetProvider_AnotherAddressNeedsTheKeyAgain(t *testing.T) {
	c := newControl(t)
	for _, other := range []string{"https://evil.example.com/v1", "http://api.example.com/v1", "https://api.example.com:444/v1", "https://api.example.com/another-account"} {
		p := c.provide(t, cloud(""), key)
		p.BaseURL = other
		_, err := c.SetProvider(t.Context(), p, nil)
		wantField(t, other, err, "key")
		if got := c.Providers("")[0]; got.BaseURL != "https://api.example.com/v1" || !got.HasKey {
			t.Errorf("%s: it is %+v", other, got)
		}
		for _, given := range []string{key, ""} {
			if got, err := c.SetProvider(t.Context(), p, &given); err != nil || got.BaseURL != other || got.HasKey != (given != "") {
				t.Errorf("%s with the key %q: %+v, %v", other, given, got, err)
			}
		}
		if got, err := c.SetProvider(t.Context(), cloud(""), nil); err != nil || got.HasKey {
			t.Errorf("one without a key: %+v, %v", got, err)
		}
	}
}

func TestOpen_AKeyThatCannotBeReadIsTheProblemOfItsProvider(t *testing.T) {
	c := newControl(t)
	c.provide(t, cloud(""), key)
	other := cloud("")
	other.Name = "local"
	c.provide(t, other, "")
	c.config.Sealer = prefixSealer{"another key file"}
	c.reopen(t)
	list := c.Providers("")
	if len(list) != 2 || !strings.Contains(list[0].Problem, "Enter the key again") || !list[0].HasKey || list[1].Problem != "" {
		t.Errorf("providers are %+v", list)
	}
	_, err := c.CheckProvider(t.Context(), "", "cloud")
	wantFault(t, "check", err, fault.Unavailable, "Enter the key again")
	if log := c.log.String(); !strings.Contains(log, "cloud") || strings.Contains(log, key) {
		t.Errorf("the log says %s", log)
	}
	if got := c.provide(t, cloud(""), key); got.Problem != "" {
		t.Errorf("with its key again: %+v", got)
	}
}

func TestProviders_AreOfTheirOwner(t *testing.T) {
	c := newControl(t)
	own := cloud("u1")
	for _, p := range []gateway.Provider{cloud(""), own, cloud("u2")} {
		c.provide(t, p, "")
	}
	own.Name = "a"
	c.provide(t, own, "")
	names := func(list []gateway.Provider) (out []string) {
		for _, p := range list {
			out = append(out, p.Owner+"/"+p.Name)
		}
		return out
	}
	for what, got := range map[string][2][]string{
		"of the server": {names(c.Providers("")), {"/cloud"}}, "of u1": {names(c.Providers("u1")), {"u1/a", "u1/cloud"}}, "of none": {names(c.Providers("u3")), nil},
		"offered to u1": {names(c.Offered("u1")), {"u1/a", "u1/cloud", "/cloud"}}, "offered to u3": {names(c.Offered("u3")), {"/cloud"}}, "offered to the server": {names(c.Offered("")), {"/cloud"}},
	} {
		if !slices.Equal(got[0], got[1]) {
			t.Errorf("%s are %v, want %v", what, got[0], got[1])
		}
	}
}

func TestSetProvider_AnOwnerHasABoundedNumber(t *testing.T) {
	c := newControl(t)
	for n := range gateway.MaxProviders {
		p := cloud("u1")
		p.Name = fmt.Sprintf("p%d", n)
		c.provide(t, p, "")
	}
	_, err := c.SetProvider(t.Context(), cloud("u1"), nil)
	wantFault(t, "one more", err, fault.Conflict, "50 providers")
	c.provide(t, cloud("u2"), "")
	p := cloud("u1")
	p.Name = "p0"
	c.provide(t, p, key)
}

func TestRemoveProvider_NotWhileAnAliasNamesIt(t *testing.T) {
	c := newControl(t)
	c.provide(t, cloud(""), key)
	fast := gateway.Alias{Name: "fast", Targets: []gateway.Target{{Provider: "cloud", Model: "small"}}}
	mine := fast
	mine.Owner, mine.Name = "u1", "mine"
	for _, a := range []gateway.Alias{fast, mine} {
		if _, err := c.SetAlias(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	wantFault(t, "named by an alias", c.RemoveProvider(t.Context(), "", "cloud"), fault.Conflict, `"fast"`)
	wantFault(t, "of another", c.RemoveProvider(t.Context(), "u1", "cloud"), fault.NotFound, "cloud")
	if err := errors.Join(c.RemoveAlias(t.Context(), "", "fast"), c.RemoveProvider(t.Context(), "", "cloud")); err != nil {
		t.Error(err) // an alias of a user is no reason for the admin to wait
	}
	wantFault(t, "again", c.RemoveProvider(t.Context(), "", "cloud"), fault.NotFound, "cloud")
	if n := len(c.Providers("")); n != 0 {
		t.Errorf("%d providers are left", n)
	}
}

func TestRun_NoticesThatAUserIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl(t)
		c.provide(t, cloud("u1"), key)
		c.provide(t, cloud(""), key)
		defer c.running(t)()
		c.store.Forget("u1")
		time.Sleep(11 * time.Second)
		if own, servers := c.Providers("u1"), c.Providers(""); len(own) != 0 || len(servers) != 1 || !servers[0].HasKey {
			t.Errorf("left are %+v and %+v", own, servers)
		}
		_, err := c.SetProvider(t.Context(), cloud("u1"), nil)
		wantFault(t, "a new one", err, fault.NotFound, "deleted")
	})
}

func TestSetProvider_WhatIsNotKeptIsNotUsed(t *testing.T) {
	c := newControl(t)
	p := c.provide(t, cloud(""), key)
	c.store.Fail(fault.New(fault.Unavailable, "The disk is full."))
	changed := cloud("")
	changed.Models = nil
	_, err := c.SetProvider(t.Context(), changed, nil)
	wantFault(t, "on a full disk", err, fault.Unavailable, "The disk is full.")
	if got := c.Providers("")[0]; !slices.Equal(got.Models, p.Models) {
		t.Errorf("it is %+v", got)
	}
	if _, err := gateway.Open(t.Context(), c.config); !fault.Is(err, fault.Unavailable) {
		t.Errorf("open: %v", err)
	}
}

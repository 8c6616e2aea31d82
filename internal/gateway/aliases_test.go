package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
)

func alias(owner, name string, targets ...gateway.Target) gateway.Alias {
	return gateway.Alias{Owner: owner, Name: name, Targets: targets}
}

func TestSetAlias_SaysByTheFieldWhatIsWrong(t *testing.T) {
	c := newControl(t)
	c.provide(t, cloud(""), key)
	mine := cloud("u1")
	mine.Name, mine.Models = "mine", nil
	c.provide(t, mine, "")
	small := gateway.Target{Provider: "cloud", Model: "small"}
	for name, v := range map[string]struct {
		field string
		alias gateway.Alias
	}{
		"no name":                   {"name", alias("", "", small)},
		"a long name":               {"name", alias("", strings.Repeat("a", 201), small)},
		"two words":                 {"name", alias("", "a b", small)},
		"nothing to lead to":        {"targets", alias("", "fast")},
		"no model":                  {"targets", alias("", "fast", gateway.Target{Provider: "cloud"})},
		"no provider":               {"targets", alias("", "fast", gateway.Target{Model: "small"})},
		"a provider that is not":    {"targets", alias("", "fast", gateway.Target{Provider: "none", Model: "small"})},
		"another's provider":        {"targets", alias("u2", "fast", gateway.Target{Provider: "mine", Model: "x"})},
		"a user's for the server":   {"targets", alias("", "fast", gateway.Target{Provider: "mine", Model: "x"})},
		"a model that is not there": {"targets", alias("", "fast", gateway.Target{Provider: "cloud", Model: "other"})},
		"one twice":                 {"targets", alias("", "fast", small, small)},
		"too many":                  {"targets", alias("", "fast", slices.Repeat([]gateway.Target{small}, gateway.MaxTargets+1)...)},
	} {
		_, err := c.SetAlias(t.Context(), v.alias)
		wantField(t, name, err, v.field)
	}
	if n := len(c.Aliases("")) + len(c.Aliases("u1")) + len(c.Aliases("u2")); n != 0 {
		t.Errorf("there are %d aliases", n)
	}
}

func TestSetAlias_LeadsToTheOwnersProvidersAndTheServers(t *testing.T) {
	c := newControl(t)
	c.provide(t, cloud(""), key)
	mine := cloud("u1")
	mine.Name, mine.Models = "mine", nil
	c.provide(t, mine, "")
	given := alias("u1", " fast ", gateway.Target{Provider: " mine ", Model: " anything "}, gateway.Target{Provider: "cloud", Model: "small"})
	got, err := c.SetAlias(t.Context(), given)
	want := []gateway.Target{{Provider: "mine", Model: "anything"}, {Provider: "cloud", Model: "small"}}
	if err != nil || got.Name != "fast" || !slices.Equal(got.Targets, want) || !got.Changed.Equal(saturday) {
		t.Fatalf("got %+v, %v", got, err)
	}
	if given.Targets[0].Model != " anything " {
		t.Error("what the caller gave is changed")
	}
	c.reopen(t)
	list := c.Aliases("u1")
	if len(list) != 1 || !slices.Equal(list[0].Targets, want) {
		t.Fatalf("kept is %+v", list)
	}
	list[0].Targets[0].Model = "other"
	if c.Aliases("u1")[0].Targets[0].Model != "anything" {
		t.Error("what is given out is not a copy")
	}
	wantFault(t, "of another", c.RemoveAlias(t.Context(), "", "fast"), fault.NotFound, `"fast"`)
	if err := c.RemoveAlias(t.Context(), "u1", "fast"); err != nil || len(c.Aliases("u1")) != 0 {
		t.Errorf("removed: %v, left %+v", err, c.Aliases("u1"))
	}
}

func TestSetAlias_AnOwnerHasABoundedNumber(t *testing.T) {
	c := newControl(t)
	c.provide(t, cloud(""), key)
	small := gateway.Target{Provider: "cloud", Model: "small"}
	for n := range gateway.MaxAliases {
		if _, err := c.SetAlias(t.Context(), alias("", fmt.Sprint("a", n), small)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.SetAlias(t.Context(), alias("", "more", small))
	wantFault(t, "one more", err, fault.Conflict, "50 aliases")
	if _, err := c.SetAlias(t.Context(), alias("", "a0", gateway.Target{Provider: "cloud", Model: "big"})); err != nil {
		t.Error(err)
	}
}

package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/alert"
)

// rulesOf are an owner's rules.
func (s *stage) rulesOf(owner string) []alert.Rule {
	s.t.Helper()
	rules, err := s.alerts.Rules(s.t.Context(), owner)
	if err != nil {
		s.t.Fatal(err)
	}
	return rules
}

// channel adds a channel of a user's, or of the installation, by its form.
func (s *stage) channel(user, query, kind, name, address string) alert.Channel {
	s.t.Helper()
	s.post(user, "/settings/alerts/channels"+query, fields("kind", kind, "name", name, "address", address))
	owner := s.users[user].ID
	if query != "" {
		owner = ""
	}
	channels, err := s.alerts.Channels(s.t.Context(), owner)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, c := range channels {
		if c.Name == name {
			return c
		}
	}
	s.t.Fatalf("no channel %s", name)
	return alert.Channel{}
}

func TestAlertSettings_OneSeesOneselfAndAdminsTheInstallation(t *testing.T) {
	s := newAlertStage(t)
	v := s.get("ada", "/settings/alerts").is(http.StatusOK)
	if got := textOf(v.need("#rules")); !strings.Contains(got, "A log line matches, at least 2 times in five minutes") || !strings.Contains(got, "all my sandboxes") || strings.Contains(got, "Bob's") || strings.Contains(got, "Reset") {
		t.Errorf("ada's rules are %q", got)
	}
	if v.find("nav.owner-chips") != nil {
		t.Error("a member may choose the installation")
	}
	v = s.get("root", "/settings/alerts?owner=installation").is(http.StatusOK)
	if got := textOf(v.need("#rules")); !strings.Contains(got, "Uses at least 90 % of its memory limit, for 5 min") || !strings.Contains(got, "sends no messages") || strings.Contains(got, "reminds") || !strings.Contains(got, "the host") {
		t.Errorf("the installation's rules are %q", got)
	}
	s.get("root", "/settings/alerts").is(http.StatusOK)
	for _, path := range []string{"", "/rules/new", "/rules/all", "/channels/new"} {
		s.get("ada", "/settings/alerts"+path+"?owner=installation").is(http.StatusForbidden)
	}
	for _, path := range []string{"/reset", "/rules", "/rules/all", "/rules/all/switch", "/rules/all/delete", "/channels"} {
		s.post("ada", "/settings/alerts"+path+"?owner=installation", fields("kind", "memory", "name", "x", "threshold", "90")).is(http.StatusForbidden)
	}
	for _, path := range []string{"/rules/bobs", "/rules/bobs/switch", "/rules/bobs/mute", "/rules/bobs/delete"} {
		s.post("ada", "/settings/alerts"+path, fields("name", "x", "for", "1h")).is(http.StatusNotFound)
	}
	if got := s.rulesOf(s.users["bob"].ID); len(got) != 1 || got[0].Name != "Bob's" || got[0].Disabled {
		t.Errorf("bob's rules are now %+v", got)
	}
}

func TestAlertSettings_RulesAreAddedChangedAndDeletedWithoutScripts(t *testing.T) {
	s := newAlertStage(t)
	ada := s.users["ada"].ID
	mail := s.channel("ada", "", "email", "me", "ada@example.com")
	kinds := s.get("ada", "/settings/alerts/rules/new").is(http.StatusOK)
	var offered []string
	for _, n := range kinds.all("a.kind") {
		offered = append(offered, attr(n, "href"))
	}
	if got := strings.Join(offered, " "); len(offered) != 10 || strings.Contains(got, "host") || !strings.Contains(got, "kind=log-line") {
		t.Errorf("a member can choose %q", got)
	}
	form := s.get("ada", "/settings/alerts/rules/new?kind=memory").is(http.StatusOK)
	if attr(form.need("#rule-threshold"), "value") != "90" || attr(form.need("#rule-for"), "value") != "5m" || textOf(form.need("#rule-threshold-unit")) != "% of the limit" {
		t.Error("the form of a new rule suggests nothing")
	}
	if got := textOf(form.need("#rule-scope")); !strings.Contains(got, "Only lab") || strings.Contains(got, "den") || !strings.Contains(got, "Only template base") {
		t.Errorf("it can watch %q", got)
	}
	box := s.ref("lab").ID()
	s.post("ada", "/settings/alerts/rules", url.Values{
		"kind": {"memory"}, "name": {" Full "}, "scope": {"sandbox " + box}, "threshold": {"80.5"}, "for": {"90s"}, "remind": {""}, "channel": {mail.ID}, "on": {"on"},
	}).is(http.StatusSeeOther)
	rules := s.rulesOf(ada)
	got := rules[len(rules)-1]
	if len(rules) != 2 || got.Name != "Full" || got.SandboxID != box || got.Threshold != 80.5 || got.For.Seconds() != 90 || got.Remind != 0 || got.Disabled || len(got.Channels) != 1 {
		t.Fatalf("kept %+v", got)
	}
	one := "/settings/alerts/rules/" + got.ID
	form = s.get("ada", one).is(http.StatusOK)
	if attr(form.need("#rule-for"), "value") != "1m30s" || attr(form.need("#rule-threshold"), "value") != "80.5" {
		t.Error("the form shows other values")
	}
	s.post("ada", one+"/mute", fields("for", "8h")).is(http.StatusSeeOther)
	s.post("ada", one+"/switch", fields("on", "false")).is(http.StatusSeeOther)
	v := s.get("ada", "/settings/alerts")
	if got := textOf(v.need("#rules")); !strings.Contains(got, "Full off muted for 8 h more") || !strings.Contains(got, "only lab sends to me") {
		t.Errorf("the list says %q", got)
	}
	s.post("ada", one, url.Values{"name": {"Fuller"}, "scope": {"template base"}, "threshold": {"85"}, "on": {"on"}}).is(http.StatusSeeOther)
	if got = s.rulesOf(ada)[1]; got.Name != "Fuller" || got.Kind != alert.Memory || got.Template != "base" || got.SandboxID != "" || got.Muted.IsZero() || got.Disabled || got.Channels != nil {
		t.Errorf("kept %+v", got)
	}
	s.post("ada", one+"/delete", nil).is(http.StatusSeeOther)
	if len(s.rulesOf(ada)) != 1 {
		t.Error("it is still there")
	}
	s.post("root", "/settings/alerts/reset?owner=installation", nil).is(http.StatusSeeOther)
	if got := s.rulesOf(""); len(got) != len(alert.Defaults()) {
		t.Errorf("after the reset there are %d rules", len(got))
	}
	s.post("ada", "/settings/alerts/reset", nil).is(http.StatusBadRequest)
}

func TestAlertSettings_WhatIsWrongStandsBesideTheFieldAndNothingTypedIsLost(t *testing.T) {
	s := newAlertStage(t)
	mail := s.channel("ada", "", "email", "me", "ada@example.com")
	typed := url.Values{
		"kind": {"memory"}, "name": {"Mine <i>"}, "scope": {"template base"}, "threshold": {"85"}, "for": {"5m"}, "remind": {"4h"}, "channel": {mail.ID},
	}
	for field, bad := range map[string]string{"name": strings.Repeat("x", 100), "threshold": "many", "for": "soon", "remind": "1s", "scope": "sandbox nowhere"} {
		form := url.Values{}
		for name, values := range typed {
			form[name] = values
		}
		form.Set(field, bad)
		for _, path := range []string{"/settings/alerts/rules", "/settings/alerts/rules/adas"} {
			if form.Del("pattern"); strings.HasSuffix(path, "adas") {
				form.Set("pattern", "x")
			}
			for _, script := range []string{"", "true"} {
				v := s.post("ada", path, form, "HX-Request", script)
				if path != "/settings/alerts/rules" && field == "for" { // such a rule has none
					continue
				}
				v.is(http.StatusBadRequest)
				if textOf(v.find("#rule-"+field+"-fault")) == "" {
					t.Errorf("%s with %s %q: nothing beside the field", path, field, bad)
				}
				if isPart := v.find("nav.nav") == nil; isPart != (script != "") {
					t.Errorf("%s: a part: %t", path, isPart)
				}
				v.keeps(form, mail.ID)
			}
		}
	}
	v := s.post("ada", "/settings/alerts/rules", url.Values{"kind": {"log-line"}, "name": {"x"}, "threshold": {"1"}, "pattern": {" "}}).is(http.StatusBadRequest)
	if textOf(v.find("#rule-pattern-fault")) == "" {
		t.Error("no text to look for, and nothing is said")
	}
	s.post("ada", "/settings/alerts/rules", url.Values{"kind": {"odd"}, "name": {"x"}}).is(http.StatusBadRequest)
	if got := s.rulesOf(s.users["ada"].ID); len(got) != 1 {
		t.Errorf("kept %+v", got)
	}
}

// keeps fails the test unless a form of a rule has what was typed.
func (v view) keeps(typed url.Values, channel string) {
	v.t.Helper()
	for _, name := range []string{"name", "threshold", "remind"} {
		if got := attr(v.need("#rule-"+name), "value"); got != typed.Get(name) {
			v.t.Errorf("%s is %q, %q was typed", name, got, typed.Get(name))
		}
	}
	chosen := ""
	for n := range v.need("#rule-scope").Descendants() {
		if hasAttr(n, "selected") {
			chosen = attr(n, "value")
		}
	}
	if chosen != typed.Get("scope") {
		v.t.Errorf("the scope is %q, %q was chosen", chosen, typed.Get("scope"))
	}
	for _, n := range v.all("input") {
		switch {
		case attr(n, "name") == "channel" && attr(n, "value") == channel && !hasAttr(n, "checked"):
			v.t.Error("the channel is not chosen any more")
		case attr(n, "name") == "on" && hasAttr(n, "checked"):
			v.t.Error("the rule is on")
		}
	}
}

func TestAlertSettings_ChannelsShowSecretsOnceAndTestsTheirResult(t *testing.T) {
	s := newAlertStage(t)
	made := s.post("ada", "/settings/alerts/channels", fields("kind", "webhook", "name", "hook", "address", "https://down.example.com/x")).is(http.StatusOK)
	secret := attr(made.need("#secret"), "value")
	if !strings.HasPrefix(secret, "whsec_") {
		t.Fatalf("the secret is %q", secret)
	}
	sheet := s.post("ada", "/settings/alerts/channels", fields("kind", "webhook", "name", "two", "address", "https://example.com"), "HX-Request", "true").is(http.StatusOK)
	if sheet.find("nav.nav") != nil || attr(sheet.need("#secret"), "value") == "" {
		t.Error("a script gets no part with the secret")
	}
	hook := s.channel("ada", "", "email", "me", "ada@example.com")
	channels, _ := s.alerts.Channels(t.Context(), s.users["ada"].ID)
	hook = channels[0]
	one := "/settings/alerts/channels/" + hook.ID
	for _, path := range []string{"/settings/alerts", one} {
		if body := s.get("ada", path).is(http.StatusOK).Body.String(); strings.Contains(body, "whsec_") || !strings.Contains(body, "down.example.com") {
			t.Errorf("%s shows the secret, or no address", path)
		}
	}
	for _, script := range []string{"", "true"} {
		v := s.post("ada", one+"/test", nil, "HX-Request", script).is(http.StatusOK)
		if got := textOf(v.need("#tested-" + hook.ID)); got != "Not sent: The receiver <b>answered</b> 503." {
			t.Errorf("the test says %q", got)
		}
		if isPart := v.find("nav.nav") == nil; isPart != (script != "") {
			t.Errorf("a part: %t", isPart)
		}
		list, last := v.need("#sent-"+hook.ID), v.need("#last-sent-"+hook.ID)
		if got := textOf(list); !strings.Contains(got, "Not sent just now Test message") || textOf(last) != "Not sent" {
			t.Errorf("the last messages are %q, %q", textOf(last), got)
		}
		if hasAttr(list, "hx-swap-oob") != (script != "") || hasAttr(last, "hx-swap-oob") != (script != "") {
			t.Error("a script does not put the messages where they stand in the page, or the page is one for scripts")
		}
	}
	s.post("ada", one, fields("name", "hook", "address", "https://example.com/y")).is(http.StatusSeeOther)
	if v := s.post("ada", one+"/test", nil, "HX-Request", "true"); textOf(v.need("#tested-"+hook.ID)) != "Test message sent" {
		t.Error("no word of success")
	}
	item := textOf(s.get("ada", "/settings/alerts").need("#channels"))
	if strings.Count(item, "Not sent") != 2 || !strings.Contains(item, "Sent just now Test message") || !strings.Contains(item, "503") {
		t.Errorf("the last messages are %q", item)
	}
	v := s.post("ada", "/settings/alerts/channels", fields("kind", "email", "name", "typed", "address", "nobody")).is(http.StatusBadRequest)
	if textOf(v.find("#channel-address-fault")) == "" || attr(v.need("#channel-name"), "value") != "typed" || attr(v.need("#channel-address"), "value") != "nobody" {
		t.Error("nothing beside the address, or what was typed is lost")
	}
	for _, path := range []string{"", "/test", "/delete"} {
		s.post("bob", one+path, fields("name", "x")).is(http.StatusNotFound)
	}
	s.post("ada", one+"/delete", nil).is(http.StatusSeeOther)
	s.get("ada", one).is(http.StatusNotFound)
}

func TestAlertSettings_ChatServicesAreTheInstallationsAndTheirAddressIsASecret(t *testing.T) {
	s := newAlertStage(t)
	if got := textOf(s.get("ada", "/settings/alerts/channels/new").need("ul.kinds")); strings.Contains(got, "Chat service") {
		t.Error("a member is offered one")
	}
	s.post("ada", "/settings/alerts/channels", fields("kind", "shoutrrr", "name", "x", "address", "discord://t0ken@id")).is(http.StatusBadRequest)
	chat := s.channel("root", "?owner=installation", "shoutrrr", "ops", "discord://t0ken@id")
	one := "/settings/alerts/channels/" + chat.ID + "?owner=installation"
	for _, path := range []string{"/settings/alerts?owner=installation", one} {
		v := s.get("root", path).is(http.StatusOK)
		if strings.Contains(v.Body.String(), "t0ken") || !strings.Contains(v.Body.String(), "discord") {
			t.Errorf("%s shows the address, or no service", path)
		}
	}
	s.post("root", one, fields("name", "ops two", "address", "")).is(http.StatusSeeOther)
	if channels, _ := s.alerts.Channels(t.Context(), ""); channels[0].Address != "discord://t0ken@id" || channels[0].Name != "ops two" {
		t.Errorf("kept %+v", channels)
	}
	v := s.post("root", one, fields("name", "", "address", "")).is(http.StatusBadRequest)
	if strings.Contains(v.Body.String(), "t0ken") || textOf(v.find("#channel-name-fault")) == "" {
		t.Error("the form comes back with the address, or says nothing")
	}
	var addresses []string
	for _, n := range v.all("input") {
		if attr(n, "name") == "address" {
			addresses = append(addresses, attr(n, "value"))
		}
	}
	if len(addresses) != 1 || addresses[0] != "" {
		t.Errorf("the address is %q", addresses)
	}
}

func TestAlertSettings_EMailCannotBeChosenWithoutAServerForIt(t *testing.T) {
	s := newAlertStage(t)
	s.server.cfg.Alerts = alert.New(alert.Config{Store: s.alerts.store, Senders: map[alert.ChannelKind]alert.Sender{alert.Webhook: s.alerts.sent}})
	kinds := s.get("ada", "/settings/alerts/channels/new").is(http.StatusOK).all("a.kind")
	if len(kinds) != 2 || hasAttr(kinds[0], "href") || !strings.Contains(textOf(kinds[0]), "E-mail") || !strings.Contains(textOf(kinds[0]), "Needs --smtp on the server") {
		t.Errorf("%d are offered, the first is %q", len(kinds), textOf(kinds[0]))
	}
	if len(kinds) == 2 && (!hasAttr(kinds[1], "href") || strings.Contains(textOf(kinds[1]), "smtp")) {
		t.Error("a webhook cannot be chosen")
	}
	for _, v := range []view{
		s.get("ada", "/settings/alerts/channels/new?kind=email"),
		s.post("ada", "/settings/alerts/channels", fields("kind", "email", "name", "me", "address", "ada@example.com")).is(http.StatusBadRequest),
	} {
		if !strings.Contains(textOf(v.need(".notice")), "--smtp") {
			t.Errorf("the form says %q", textOf(v.need(".notice")))
		}
	}
}

func TestAlertSettings_AChangeLeadsBackToItsRuleAndNamesIt(t *testing.T) {
	s := newAlertStage(t)
	one := "/settings/alerts/rules/adas"
	for _, c := range []struct{ path, name, value, said string }{
		{one + "/mute", "for", "1h", "is muted."}, {one + "/mute", "for", "0", "is no longer muted."},
		{one + "/switch", "on", "false", "is off."}, {one + "/switch", "on", "true", "is on."},
	} {
		to := s.post("ada", c.path, fields(c.name, c.value)).is(http.StatusSeeOther).Header().Get("Location")
		page, mark, _ := strings.Cut(to, "#")
		v := s.get("ada", page).is(http.StatusOK)
		row := v.need("#" + mark)
		if attr(row, "data-rule") != "adas" || !strings.Contains(textOf(row), "Ada's <b>rule</b> "+c.said) {
			t.Errorf("%s %s leads to %s, which says %q", c.path, c.value, to, textOf(row))
		}
		if v.find(".notice") != nil {
			t.Errorf("%s: it is said twice", c.path)
		}
	}
	form := url.Values{"kind": {"memory"}, "name": {"New"}, "threshold": {"80"}, "on": {"on"}}
	to := s.post("ada", "/settings/alerts/rules", form).is(http.StatusSeeOther).Header().Get("Location")
	page, mark, _ := strings.Cut(to, "#")
	if got := textOf(s.get("ada", page).need("#" + mark)); !strings.Contains(got, "New was saved.") {
		t.Errorf("the new rule says %q", got)
	}
	to = s.post("root", "/settings/alerts/rules/all/mute?owner=installation", fields("for", "1h")).Header().Get("Location")
	if to != "/settings/alerts?owner=installation&done=rule-muted&rule=all#rule-all" {
		t.Errorf("the installation's leads to %s", to)
	}
	if got := s.get("ada", "/settings/alerts?done=rule-muted&rule=bobs").is(http.StatusOK).Body.String(); strings.Contains(got, "Bob") {
		t.Error("an address names another's rule")
	}
	// In a dialog, on the page that the answer leads to: the browser would only scroll there.
	v := s.post("ada", "/settings/alerts/rules/adas", url.Values{"name": {"A"}, "pattern": {"x"}, "threshold": {"2"}}, "HX-Request", "true",
		"HX-Current-URL", "http://localhost/settings/alerts?done=rule-saved&rule=adas#rule-adas").is(http.StatusNoContent)
	if v.Header().Get("HX-Redirect") != "/settings/alerts?done=rule-saved&rule=adas#rule-adas" || v.Header().Get("HX-Refresh") != "true" {
		t.Errorf("the script is told %v", v.Header())
	}
	v = s.post("ada", "/settings/alerts/rules/adas", url.Values{"name": {"A"}, "pattern": {"x"}, "threshold": {"2"}}, "HX-Request", "true",
		"HX-Current-URL", "http://localhost/settings/alerts").is(http.StatusNoContent)
	if v.Header().Get("HX-Redirect") == "" || v.Header().Get("HX-Refresh") != "" {
		t.Errorf("the script is told %v", v.Header())
	}
}

func TestAlertSettings_TheFirstFaultyFieldHasTheFocus(t *testing.T) {
	s := newAlertStage(t)
	focused := func(v view) string {
		var ids []string
		for n := range v.doc.Descendants() {
			if hasAttr(n, "autofocus") {
				ids = append(ids, attr(n, "id")+attr(n, "value"))
			}
		}
		return strings.Join(ids, " ")
	}
	rules, channels := "/settings/alerts/rules", "/settings/alerts/channels"
	hook := s.channel("ada", "", "email", "me", "ada@example.com")
	for _, c := range []struct {
		path, field, bad, want string
	}{
		{rules, "name", "", "rule-name"}, {rules, "threshold", "many", "rule-thresholdmany"}, {rules, "for", "soon", "rule-forsoon"},
		{rules, "remind", "1s", "rule-remind1s"}, {rules, "scope", "sandbox nowhere", "rule-scope"}, {rules, "channel", "nobody", hook.ID},
		{rules + "/adas", "pattern", " ", "rule-pattern "},
	} {
		form := url.Values{"kind": {"memory"}, "name": {"x"}, "threshold": {"90"}, "pattern": {"x"}}
		if c.path == rules {
			form.Del("pattern")
		}
		form.Set(c.field, c.bad)
		if got := focused(s.post("ada", c.path, form, "HX-Request", "true").is(http.StatusBadRequest)); got != c.want {
			t.Errorf("with %s %q the focus is at %q, want %q", c.field, c.bad, got, c.want)
		}
	}
	v := s.post("ada", channels, fields("kind", "email", "name", "x", "address", "nobody")).is(http.StatusBadRequest)
	if got := focused(v); got != "channel-addressnobody" {
		t.Errorf("the focus is at %q", got)
	}
	if got := focused(s.get("ada", rules+"/new?kind=memory")) + " " + focused(s.get("ada", rules+"/adas")) + focused(s.get("ada", channels+"/new?kind=email")); got != "rule-nameMemory nearly full channel-name" {
		t.Errorf("without a fault the focus is at %q", got)
	}
}

func TestRuleText_SaysOneAndMany(t *testing.T) {
	for want, rule := range map[string]alert.Rule{
		"A log line matches, at least once in five minutes: 1 times": {Kind: alert.LogLine, Threshold: 1, Pattern: "1 times"},
		"A log line matches, at least 21 times in five minutes: x":   {Kind: alert.LogLine, Threshold: 21, Pattern: "x"},
		"The dashboard's certificate expires within 1 day":           {Kind: alert.Certificate, Threshold: 1},
		"The dashboard's certificate expires within 14 days":         {Kind: alert.Certificate, Threshold: 14},
		"At least 90 % of the host's disk is used, for 5 min":        {Kind: alert.HostDisk, Threshold: 90, For: 5 * time.Minute},
		"The home is at least 1 GiB":                                 {Kind: alert.HomeSize, Threshold: 1},
	} {
		if got := ruleText(rule); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

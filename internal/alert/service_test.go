package alert_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/alert"
	"sandboxd/internal/fault"
)

func TestSetRules_RefusesWhatMakesNoSense(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.box("lab", "ann")
		w.box("den", "bob")
		mine := w.channel("ann")
		theirs := w.channel("bob")
		good := alert.Rule{Name: "Memory", Kind: alert.Memory, Threshold: 90}
		with := func(change func(*alert.Rule)) alert.Rule {
			r := good
			change(&r)
			return r
		}
		for field, r := range map[string]alert.Rule{
			"name":         with(func(r *alert.Rule) { r.Name = " " }),
			"name.":        with(func(r *alert.Rule) { r.Name = "a\nb" }),
			"name..":       with(func(r *alert.Rule) { r.Name = strings.Repeat("a", 65) }),
			"kind":         with(func(r *alert.Rule) { r.Kind = "odd" }),
			"kind.":        with(func(r *alert.Rule) { r.Kind = alert.HostDisk }),
			"kind..":       with(func(r *alert.Rule) { r.Kind = alert.Certificate }),
			"id":           with(func(r *alert.Rule) { r.ID = "0123" }),
			"sandbox":      with(func(r *alert.Rule) { r.SandboxID = "den-id" }),
			"sandbox.":     with(func(r *alert.Rule) { r.Kind, r.Threshold, r.SandboxID = alert.BuildFailed, 0, "lab-id" }),
			"template":     with(func(r *alert.Rule) { r.SandboxID, r.Template = "lab-id", "base" }),
			"threshold":    with(func(r *alert.Rule) { r.Threshold = 101 }),
			"threshold.":   with(func(r *alert.Rule) { r.Threshold = 0 }),
			"threshold..":  with(func(r *alert.Rule) { r.Kind = alert.OOMKill }),
			"threshold...": with(func(r *alert.Rule) { r.Kind, r.Pattern, r.Threshold = alert.LogLine, "error", 1.5 }),
			"pattern":      with(func(r *alert.Rule) { r.Kind, r.Threshold = alert.LogLine, 1 }),
			"pattern.":     with(func(r *alert.Rule) { r.Kind, r.Threshold, r.Pattern = alert.LogLine, 1, strings.Repeat("a ", 600) }),
			"pattern..":    with(func(r *alert.Rule) { r.Pattern = "error" }),
			"for":          with(func(r *alert.Rule) { r.For = 25 * time.Hour }),
			"for.":         with(func(r *alert.Rule) { r.Kind, r.Threshold, r.For = alert.Broken, 0, time.Minute }),
			"remind":       with(func(r *alert.Rule) { r.Remind = time.Minute }),
			"muted":        with(func(r *alert.Rule) { r.Muted = time.Now().Add(9000 * time.Hour) }),
			"channels":     with(func(r *alert.Rule) { r.Channels = []string{theirs.ID} }),
			"channels.":    with(func(r *alert.Rule) { r.Channels = []string{mine.ID, mine.ID} }),
		} {
			_, err := w.SetRules(t.Context(), "ann", []alert.Rule{good, r})
			if want := "rules[1]." + strings.TrimRight(field, "."); !fault.Is(err, fault.Invalid) || fault.FieldOf(err) != want {
				t.Errorf("%s: %v (field %q)", field, err, fault.FieldOf(err))
			}
		}
		if _, err := w.SetRules(t.Context(), "ann", make([]alert.Rule, 51)); fault.FieldOf(err) != "rules" {
			t.Errorf("51 rules: %v", err)
		}
		good.SandboxID, good.Channels = "lab-id", []string{mine.ID}
		kept, err := w.SetRules(t.Context(), "ann", []alert.Rule{good})
		if err != nil || len(kept) != 1 || kept[0].ID == "" || kept[0].Owner != "ann" {
			t.Fatalf("rules %+v, %v", kept, err)
		}
		w.gone("lab")
		if again, err := w.SetRules(t.Context(), "ann", kept); err != nil || again[0].ID != kept[0].ID {
			t.Errorf("a rule about a sandbox that is gone cannot be kept: %+v, %v", again, err)
		}
	})
}

func TestPutChannel_ChecksAndKeepsSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for field, c := range map[string]alert.Channel{
			"name":     {Kind: alert.Webhook, Address: "https://a"},
			"kind":     {Name: "a", Kind: "fax", Address: "b"},
			"kind.":    {Name: "a", Kind: alert.Shoutrrr, Address: "b", Owner: "ann"},
			"kind..":   {Name: "a", Kind: alert.Email, Address: "b"}, // there is no sender
			"address":  {Name: "a", Kind: alert.Webhook},
			"address.": {Name: "a", Kind: alert.Webhook, Address: "bad"},
			"secret":   {Name: "a", Kind: alert.Webhook, Address: "b", Secret: "\x00"},
		} {
			_, err := w.PutChannel(t.Context(), c)
			if field == "kind.." && !strings.Contains(fault.Message(err), "cannot send e-mail: it was started without --smtp") {
				t.Errorf("without a sender: %v", err)
			}
			if !fault.Is(err, fault.Invalid) || fault.FieldOf(err) != strings.TrimRight(field, ".") {
				t.Errorf("%s: %v (field %q)", field, err, fault.FieldOf(err))
			}
		}
		hook := w.channel("ann")
		if !strings.HasPrefix(hook.Secret, "whsec_") {
			t.Errorf("secret %q", hook.Secret)
		}
		changed := hook
		changed.Name, changed.Secret = "other", ""
		if now, err := w.PutChannel(t.Context(), changed); err != nil || now.Secret != hook.Secret || now.Name != "other" {
			t.Errorf("changed: %+v, %v", now, err)
		}
		changed.Owner = "bob"
		if _, err := w.PutChannel(t.Context(), changed); !fault.Is(err, fault.NotFound) {
			t.Errorf("a channel of another owner: %v", err)
		}
		chat, err := w.PutChannel(t.Context(), alert.Channel{Name: "chat", Kind: alert.Shoutrrr, Address: "secret://x"})
		if err != nil {
			t.Fatal(err)
		}
		chat.Address = ""
		if now, err := w.PutChannel(t.Context(), chat); err != nil || now.Address != "secret://x" {
			t.Errorf("an address that is left out: %+v, %v", now, err)
		}
		for i := range 19 {
			if _, err := w.PutChannel(t.Context(), alert.Channel{Owner: "ann", Name: fmt.Sprint(i), Kind: alert.Webhook, Address: "b"}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.PutChannel(t.Context(), alert.Channel{Owner: "ann", Name: "more", Kind: alert.Webhook, Address: "b"}); !fault.Is(err, fault.Invalid) {
			t.Errorf("21 channels: %v", err)
		}
	})
}

func TestDeleteChannel_TakesItOutOfRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.channel("ann"), w.channel("ann")
		w.rules("ann", alert.Rule{Name: "x", Kind: alert.OOMKill, Channels: []string{a.ID, b.ID}})
		if err := w.DeleteChannel(t.Context(), "bob", a.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("another owner's: %v", err)
		}
		if err := w.DeleteChannel(t.Context(), "ann", a.ID); err != nil {
			t.Fatal(err)
		}
		rules, err := w.Rules(t.Context(), "ann")
		if err != nil || len(rules) != 1 || len(rules[0].Channels) != 1 || rules[0].Channels[0] != b.ID {
			t.Errorf("rules %+v, %v", rules, err)
		}
		if _, err := w.Deliveries(t.Context(), "ann", a.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("deliveries of one that is gone: %v", err)
		}
	})
}

func TestTest_SaysHowItWentAndIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.channel("ann")
		if err := w.Test(t.Context(), "bob", c.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("another owner's: %v", err)
		}
		w.sender.answer(c.ID, fault.New(fault.Forbidden, "The receiver refuses it."))
		if err := w.Test(t.Context(), "ann", c.ID); !fault.Is(err, fault.Forbidden) {
			t.Errorf("refused: %v", err)
		}
		w.sender.answer(c.ID, nil)
		time.Sleep(time.Second)
		for range 29 {
			if err := w.Test(t.Context(), "ann", c.ID); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if err := w.Test(t.Context(), "ann", w.channel("ann").ID); !fault.Is(err, fault.Limited) {
			t.Errorf("by another channel of hers: %v", err)
		}
		if err := w.Test(t.Context(), "bob", w.channel("bob").ID); err != nil {
			t.Errorf("by another owner: %v", err)
		}
		other := w.channel("ann")
		other.Address = "https://example.com/other"
		if _, err := w.PutChannel(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		w.rules("ann", alert.Rule{Name: "x", Kind: alert.Memory, Threshold: 90, Channels: []string{other.ID}})
		if err := w.Test(t.Context(), "ann", other.ID); !fault.Is(err, fault.Limited) {
			t.Errorf("by a channel to another address: %v", err)
		}
		if err := w.Test(t.Context(), "ann", c.ID); !fault.Is(err, fault.Limited) || fault.RetryAfter(err) < 58*time.Minute {
			t.Errorf("the 31st within an hour: %v", err)
		}
		time.Sleep(time.Hour)
		if err := w.Test(t.Context(), "ann", c.ID); err != nil {
			t.Errorf("an hour later: %v", err)
		}
		list, err := w.Deliveries(t.Context(), "ann", c.ID)
		if err != nil || len(list) != 31 || list[0].Sent.IsZero() || !list[30].GivenUp || list[30].Problem != "The receiver refuses it." || list[0].Message.Event != alert.Test {
			t.Errorf("%d deliveries, %v: %+v", len(list), err, list)
		}
	})
}

func TestScope_ShowsWhatOneOwns(t *testing.T) {
	a := alert.Alert{Owner: "ann", Target: alert.Target{SandboxID: "1", Owner: "bob"}}
	for scope, want := range map[alert.Scope]bool{
		{}: false, {All: true}: true, {User: "ann"}: true, {User: "bob"}: true, {User: "eve"}: false, {SandboxID: "1"}: false,
		{User: "bob", SandboxID: "1"}: true, {User: "bob", SandboxID: "2"}: false, {All: true, SandboxID: "2"}: false,
	} {
		if scope.Has(a) != want {
			t.Errorf("%+v: %t", scope, !want)
		}
	}
	if (alert.Scope{}).Has(alert.Alert{}) {
		t.Error("the zero Scope sees an alert of the installation")
	}
}

func TestService_AnswersWhileTheStoreFails(t *testing.T) {
	w := newWorld(t)
	w.store.Fail(errors.New("gone"))
	if _, err := w.SetRules(t.Context(), "ann", nil); err == nil {
		t.Error("rules are kept in a store that fails")
	}
	if _, _, err := w.Find(context.Background(), alert.Query{}); err == nil {
		t.Error("a store that fails gives alerts")
	}
	w.store.Fail(nil)
	if _, err := w.SetRules(t.Context(), "ann", nil); err != nil {
		t.Error(err)
	}
}

func TestChangeRules_ManyAtOnceLoseNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var adding sync.WaitGroup
		for i := range 20 {
			adding.Go(func() {
				_, err := w.ChangeRules(t.Context(), "ann", func(rules []alert.Rule) ([]alert.Rule, error) {
					return append(rules, alert.Rule{Name: fmt.Sprint(i), Kind: alert.OOMKill}), nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		adding.Wait()
		if rules, err := w.Rules(t.Context(), "ann"); err != nil || len(rules) != 20 {
			t.Errorf("%d rules, %v", len(rules), err)
		}
	})
}

func TestRestart_DoesNotBringBackTheFirstRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rules("")
		w.again()
		w.run()
		w.pass(time.Minute)
		if rules, err := w.Rules(t.Context(), ""); err != nil || len(rules) != 0 {
			t.Errorf("%d rules, %v", len(rules), err)
		}
	})
}

func TestTest_ThatIsRefusedTakesNoMessageOfItsChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t)
		other, c := w.channel(""), w.channel("")
		c.Address = "https://example.com/other"
		if _, err := w.PutChannel(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		for range 30 {
			if err := w.Test(t.Context(), "", other.ID); err != nil {
				t.Fatal(err)
			}
		}
		for range 30 {
			if err := w.Test(t.Context(), "", c.ID); !fault.Is(err, fault.Limited) {
				t.Fatal(err)
			}
		}
		w.sender.take()
		w.rules("", alert.Rule{Name: "m", Kind: alert.Memory, Threshold: 90, Channels: []string{c.ID}})
		w.full("a")
		w.pass(2 * time.Minute)
		w.sent("all the same", "a: memory nearly full")
	})
}

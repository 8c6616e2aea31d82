package sqlite

import (
	"errors"
	"testing"
	"time"

	"sandboxd/internal/alert"
	"sandboxd/internal/alert/alerttest"
	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
)

// withOwners gives a database with the users of the contract.
func withOwners(t *testing.T) *DB {
	d := fresh(t)
	for i, id := range alerttest.Owners {
		a := account(id, auth.Member, i)
		a.ID = id
		if err := d.Auth().InsertUser(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func TestAlerts_KeepTheContract(t *testing.T) {
	alerttest.StoreContract(t, func(t *testing.T) alert.Store { return withOwners(t).Alerts() })
}

func TestAlerts_RulesAndChannelsGoWithTheirOwner(t *testing.T) {
	d := withOwners(t)
	s, owner := d.Alerts(), alerttest.Owners[0]
	channel := alert.Channel{ID: "c", Owner: owner, Name: "c", Kind: alert.Webhook, Address: "https://x"}
	delivery := alert.Delivery{ID: "d", Channel: "c", Created: time.Now(), Next: time.Now()}
	err := errors.Join(s.SetRules(t.Context(), owner, []alert.Rule{{ID: "r", Name: "r", Kind: alert.OOMKill}}), s.PutChannel(t.Context(), channel),
		s.SetRules(t.Context(), "", []alert.Rule{{ID: "i", Name: "i", Kind: alert.OOMKill}}), s.PutAlerts(t.Context(), nil, []alert.Delivery{delivery}),
		d.Auth().DeleteUser(t.Context(), owner, func(auth.Account, int) error { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	rules, err := s.Rules(t.Context())
	if err != nil || len(rules) != 1 || rules[0].ID != "i" {
		t.Errorf("rules %+v, %v", rules, err)
	}
	if list, err := s.Channels(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("channels %+v, %v", list, err)
	}
	if list, err := s.Due(t.Context(), 10); err != nil || len(list) != 0 {
		t.Errorf("deliveries %+v, %v", list, err)
	}
	if err := s.PutChannel(t.Context(), channel); !fault.Is(err, fault.NotFound) {
		t.Errorf("a channel of one who is gone: %v", err)
	}
	if err := s.SetRules(t.Context(), owner, []alert.Rule{{ID: "r", Name: "r", Kind: alert.OOMKill}}); !fault.Is(err, fault.NotFound) {
		t.Errorf("a rule of one who is gone: %v", err)
	}
}

func TestAlerts_OfADisabledUserAreLeftOut(t *testing.T) {
	d := withOwners(t)
	s, owner := d.Alerts(), alerttest.Owners[0]
	err := errors.Join(s.SetRules(t.Context(), owner, []alert.Rule{{ID: "r", Name: "r", Kind: alert.OOMKill}}),
		s.PutChannel(t.Context(), alert.Channel{ID: "c", Owner: owner, Name: "c", Kind: alert.Webhook, Address: "https://x"}))
	if err != nil {
		t.Fatal(err)
	}
	for _, disabled := range []bool{true, false} {
		if _, err := d.writer.ExecContext(t.Context(), `UPDATE users SET disabled = ? WHERE id = ?`, disabled, owner); err != nil {
			t.Fatal(err)
		}
		rules, err := s.Rules(t.Context())
		channels, channelsErr := s.Channels(t.Context())
		want := map[bool]int{true: 0, false: 1}[disabled]
		if err := errors.Join(err, channelsErr); err != nil || len(rules) != want || len(channels) != want {
			t.Errorf("disabled %t: %d rules and %d channels, %v", disabled, len(rules), len(channels), err)
		}
	}
}

package web

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/alert"
	"sandboxd/internal/alert/alerttest"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// fakeAlerts is a real alert.Service over a Store in memory. It sends to nobody.
type fakeAlerts struct {
	*alert.Service
	t     *testing.T
	store *alerttest.Store
	sent  *fakeSender
}

// newFakeAlerts makes one that watches the sandboxes that list gives, once it runs.
func newFakeAlerts(t *testing.T, list func(ctx context.Context, f sandbox.Filter) ([]sandbox.Sandbox, int, error)) *fakeAlerts {
	f := &fakeAlerts{t: t, store: alerttest.NewStore(), sent: &fakeSender{}}
	f.Service = alert.New(alert.Config{
		Store: f.store, Senders: map[alert.ChannelKind]alert.Sender{alert.Email: f.sent, alert.Webhook: f.sent, alert.Shoutrrr: f.sent},
		Sources: alert.Sources{Sandboxes: func(ctx context.Context) ([]sandbox.Sandbox, error) {
			boxes, _, err := list(ctx, sandbox.Filter{})
			return boxes, err
		}},
	})
	return f
}

// run makes it watch until the test ends. What is wrong fires at once.
func (f *fakeAlerts) run() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = f.Run(ctx) })
	f.t.Cleanup(func() { cancel(); running.Wait() })
}

// put keeps rules of an owner, and alerts.
func (f *fakeAlerts) put(owner string, rules []alert.Rule, alerts ...alert.Alert) {
	f.t.Helper()
	for i := range rules {
		rules[i].Owner = owner
	}
	if err := f.store.SetRules(f.t.Context(), owner, rules); err != nil {
		f.t.Fatal(err)
	}
	if err := f.store.PutAlerts(f.t.Context(), alerts, nil); err != nil {
		f.t.Fatal(err)
	}
}

// firing is an alert of a rule about a sandbox that has fired for a while.
func firing(id string, rule alert.Rule, box sandbox.Sandbox, text string) alert.Alert {
	begun := time.Now().Add(-20 * time.Minute)
	return alert.Alert{
		ID: id, RuleID: rule.ID, Rule: rule.Name, Owner: rule.Owner, Kind: rule.Kind, State: alert.Firing, Text: text, Since: begun, Fired: begun.Add(time.Minute),
		Target: alert.Target{SandboxID: box.ID, Sandbox: box.Name, Owner: box.Owner, Template: box.Spec.Template},
	}
}

// over is such an alert once it is resolved.
func over(a alert.Alert, ago time.Duration) alert.Alert {
	a.State, a.Resolved = alert.Resolved, time.Now().Add(-ago)
	a.Since, a.Fired = a.Resolved.Add(-12*time.Minute), a.Resolved.Add(-11*time.Minute)
	return a
}

// fakeSender takes messages, but for those to addresses that have "down" or "refused" in them.
type fakeSender struct {
	mu   sync.Mutex
	sent []alert.Message
}

func (s *fakeSender) Check(c alert.Channel) error {
	if !strings.ContainsAny(c.Address, "@:") {
		return fault.Field("address", "This is not an address.")
	}
	return nil
}

func (s *fakeSender) Send(_ context.Context, c alert.Channel, m alert.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.Contains(c.Address, "refused") {
		return fault.New(fault.Forbidden, "The receiver refuses it.")
	}
	if strings.Contains(c.Address, "down") {
		return fault.New(fault.Unavailable, "The receiver <b>answered</b> 503.")
	}
	s.sent = append(s.sent, m)
	return nil
}

package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"sandboxd/internal/alert"
)

// messageRow is a message as it is kept, in JSON.
type messageRow struct {
	ID       string    `json:"id"`
	Time     time.Time `json:"time"`
	Subject  string    `json:"subject"`
	Rule     string    `json:"rule,omitempty"`
	Kind     string    `json:"kind,omitempty"`
	Event    string    `json:"event"`
	Firing   []toldRow `json:"firing,omitempty"`
	Resolved []toldRow `json:"resolved,omitempty"`
	Link     string    `json:"link,omitempty"`
}

// toldRow is an alert in a message.
type toldRow struct {
	ID        string    `json:"id"`
	RuleID    string    `json:"rule_id"`
	Rule      string    `json:"rule"`
	Owner     string    `json:"owner,omitempty"`
	Kind      string    `json:"kind"`
	SandboxID string    `json:"sandbox_id,omitempty"`
	Sandbox   string    `json:"sandbox,omitempty"`
	Belongs   string    `json:"sandbox_owner,omitempty"`
	Template  string    `json:"template,omitempty"`
	Part      string    `json:"part,omitempty"`
	State     string    `json:"state"`
	Text      string    `json:"text,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	Fired     time.Time `json:"fired,omitzero"`
	Resolved  time.Time `json:"resolved,omitzero"`
	Reminded  time.Time `json:"reminded,omitzero"`
	Muted     time.Time `json:"muted,omitzero"`
}

func messageText(m alert.Message) (string, error) {
	text, err := json.Marshal(messageRow{m.ID, m.Time, m.Subject, m.Rule, string(m.Kind), string(m.Event), toldRows(m.Firing), toldRows(m.Resolved), m.Link})
	return string(text), err
}

func toldRows(list []alert.Alert) (out []toldRow) {
	for _, a := range list {
		t := a.Target
		out = append(out, toldRow{a.ID, a.RuleID, a.Rule, a.Owner, string(a.Kind), t.SandboxID, t.Sandbox, t.Owner, t.Template, t.Part,
			string(a.State), a.Text, a.Since, a.Fired, a.Resolved, a.Reminded, a.Muted})
	}
	return out
}

func messageOf(text []byte) (alert.Message, error) {
	var r messageRow
	if err := json.Unmarshal(text, &r); err != nil {
		return alert.Message{}, fmt.Errorf("read message: %w", errBadJSON)
	}
	return alert.Message{ID: r.ID, Time: r.Time, Subject: r.Subject, Rule: r.Rule, Kind: alert.Kind(r.Kind), Event: alert.Event(r.Event),
		Firing: toldAlerts(r.Firing), Resolved: toldAlerts(r.Resolved), Link: r.Link}, nil
}

func toldAlerts(rows []toldRow) (out []alert.Alert) {
	for _, r := range rows {
		out = append(out, alert.Alert{ID: r.ID, RuleID: r.RuleID, Rule: r.Rule, Owner: r.Owner, Kind: alert.Kind(r.Kind),
			Target: alert.Target{SandboxID: r.SandboxID, Sandbox: r.Sandbox, Owner: r.Belongs, Template: r.Template, Part: r.Part},
			State:  alert.State(r.State), Text: r.Text, Since: r.Since, Fired: r.Fired, Resolved: r.Resolved, Reminded: r.Reminded, Muted: r.Muted})
	}
	return out
}

const deliveryColumns = `id, channel, message, created, next, attempts, sent, given_up, problem`

// putQueued adds a delivery, or changes that with its id, unless its channel is gone.
func putQueued(ctx context.Context, tx *sql.Tx, d alert.Delivery) error {
	text, err := messageText(d.Message)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO alert_deliveries (`+deliveryColumns+`) SELECT ?,?,?,?,?,?,?,?,?
		WHERE EXISTS (SELECT 1 FROM alert_channels WHERE id = ?)`,
		d.ID, d.Channel, text, stamp(d.Created), stampOrNull(d.Next), d.Attempts, stampOrNull(d.Sent), d.GivenUp, d.Problem, d.Channel)
	return err
}

func scanDelivery(r row) (d alert.Delivery, err error) {
	var text []byte
	err = r.Scan(&d.ID, &d.Channel, &text, into{t: &d.Created}, into{&d.Next, true}, &d.Attempts, into{&d.Sent, true}, &d.GivenUp, &d.Problem)
	if err == nil {
		d.Message, err = messageOf(text)
	}
	return d, err
}

// Due gives the earliest of each channel that is due. See alert.Store.
func (s *Alerts) Due(ctx context.Context, limit int) ([]alert.Delivery, error) {
	now := time.Now()
	return s.deliveries(ctx, ` WHERE id IN (SELECT id FROM (SELECT id, min(next) AS first FROM alert_deliveries
		WHERE next IS NOT NULL AND (next <= ? OR next > ?) GROUP BY channel ORDER BY first, id LIMIT ?)) ORDER BY next, id`,
		stamp(now), stamp(now.Add(2*alert.MaxBackoff)), limit)
}

// Deliveries gives the newest of a channel, newest first.
func (s *Alerts) Deliveries(ctx context.Context, channel string, limit int) ([]alert.Delivery, error) {
	return s.deliveries(ctx, ` WHERE channel = ? ORDER BY created DESC, id DESC LIMIT ?`, channel, limit)
}

func (s *Alerts) deliveries(ctx context.Context, where string, args ...any) (list []alert.Delivery, err error) {
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT `+deliveryColumns+` FROM alert_deliveries`+where, args...)
		if err != nil {
			return err
		}
		list, err = collect(rows, scanDelivery)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list deliveries: %w", err)
	}
	return list, nil
}

// PutDelivery keeps what has become of one that is still there.
func (s *Alerts) PutDelivery(ctx context.Context, d alert.Delivery) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE alert_deliveries SET next = ?, attempts = ?, sent = ?, given_up = ?, problem = ? WHERE id = ?`,
			stampOrNull(d.Next), d.Attempts, stampOrNull(d.Sent), d.GivenUp, d.Problem, d.ID)
		return err
	})
	if err != nil {
		return fmt.Errorf("keep delivery %s: %w", d.ID, err)
	}
	return nil
}

package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"sandboxd/internal/alert"
	"sandboxd/internal/fault"
)

// ownerOrNull is for the column of an owner, where NULL stands for the installation.
func ownerOrNull(owner string) any {
	if owner == "" {
		return nil
	}
	return owner
}

// userGone says in words that an owner is not there; other errors it leaves alone.
func userGone(err error) error {
	if orphan(err) {
		return fault.Wrap(err, fault.NotFound, "The user has been deleted.")
	}
	return err
}

const ruleColumns = `id, owner, name, kind, sandbox, template, threshold, pattern, lasts, remind, disabled, muted, channels`

// ofTheEnabled leaves out what belongs to a user who is disabled: nothing is sent to them.
const ofTheEnabled = `(owner IS NULL OR owner IN (SELECT id FROM users WHERE disabled = 0))`

// Rules gives those of all owners but disabled ones, in the order in which their owners put them.
func (s *Alerts) Rules(ctx context.Context) (list []alert.Rule, err error) {
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT `+ruleColumns+` FROM alert_rules WHERE `+ofTheEnabled+` ORDER BY owner, position`)
		if err != nil {
			return err
		}
		list, err = collect(rows, scanAlertRule)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list alert rules: %w", err)
	}
	return list, nil
}

func scanAlertRule(r row) (a alert.Rule, err error) {
	var owner sql.NullString
	var channels []byte
	err = r.Scan(&a.ID, &owner, &a.Name, &a.Kind, &a.SandboxID, &a.Template, &a.Threshold, &a.Pattern, &a.For, &a.Remind, &a.Disabled,
		into{&a.Muted, true}, &channels)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(channels, &a.Channels); err != nil {
		return a, fmt.Errorf("read channels of rule %s: %w", a.ID, err)
	}
	a.Owner = owner.String
	return a, nil
}

// Begin implements alert.Store.
func (s *Alerts) Begin(ctx context.Context, first []alert.Rule) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		var done bool
		err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM alert_rules_begun)`).Scan(&done)
		if err != nil || done {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO alert_rules_begun VALUES (?)`, stamp(time.Now())); err != nil {
			return err
		}
		err = tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM alert_rules WHERE owner IS NULL)`).Scan(&done)
		if err != nil || done {
			return err
		}
		return insertRules(ctx, tx, "", first)
	})
	if err != nil {
		return fmt.Errorf("keep the first alert rules: %w", err)
	}
	return nil
}

// SetRules puts an owner's in the place of those before; NotFound when the owner is gone.
func (s *Alerts) SetRules(ctx context.Context, owner string, rules []alert.Rule) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM alert_rules WHERE owner IS ?`, ownerOrNull(owner)); err != nil {
			return err
		}
		return insertRules(ctx, tx, owner, rules)
	})
	if err != nil {
		return fmt.Errorf("keep alert rules: %w", err)
	}
	return nil
}

func insertRules(ctx context.Context, tx *sql.Tx, owner string, rules []alert.Rule) error {
	for i, r := range rules {
		channels, err := json.Marshal(r.Channels)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO alert_rules (`+ruleColumns+`, position) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)`,
			r.ID, ownerOrNull(owner), r.Name, string(r.Kind), r.SandboxID, r.Template, r.Threshold, r.Pattern, int64(r.For), int64(r.Remind), r.Disabled,
			stampOrNull(r.Muted), string(channels), i)
		if err != nil {
			return userGone(err)
		}
	}
	return nil
}

// Channels gives those of all owners but disabled ones, by name.
func (s *Alerts) Channels(ctx context.Context) (list []alert.Channel, err error) {
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT id, coalesce(owner, ''), name, kind, address, secret FROM alert_channels WHERE `+ofTheEnabled+` ORDER BY name, id`)
		if err != nil {
			return err
		}
		list, err = collect(rows, func(r row) (c alert.Channel, err error) {
			return c, r.Scan(&c.ID, &c.Owner, &c.Name, &c.Kind, &c.Address, &c.Secret)
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list alert channels: %w", err)
	}
	return list, nil
}

// PutChannel adds one, or changes that with its id; NotFound when the owner is gone.
func (s *Alerts) PutChannel(ctx context.Context, c alert.Channel) error {
	const put = `INSERT INTO alert_channels (id, owner, name, kind, address, secret) VALUES (?,?,?,?,?,?) ON CONFLICT (id)
		DO UPDATE SET (owner, name, kind, address, secret) = (excluded.owner, excluded.name, excluded.kind, excluded.address, excluded.secret)`
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, put, c.ID, ownerOrNull(c.Owner), c.Name, string(c.Kind), c.Address, c.Secret)
		return userGone(err)
	})
	if err != nil {
		return fmt.Errorf("keep alert channel %s: %w", c.ID, err)
	}
	return nil
}

// DeleteChannel deletes one with its deliveries; none is no error.
func (s *Alerts) DeleteChannel(ctx context.Context, id string) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM alert_channels WHERE id = ?`, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("delete alert channel %s: %w", id, err)
	}
	return nil
}

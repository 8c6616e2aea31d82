package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
)

// Gateway implements gateway.Store; its methods on calls and usage are in files of their own.
type Gateway struct {
	db                    *DB
	maxCalls, maxContents int64 // of gateway.Store, but for tests
}

var _ gateway.Store = (*Gateway)(nil)

// Gateway gives the store of the gateway to models in this database.
func (d *DB) Gateway() *Gateway { return &Gateway{d, gateway.MaxCalls, gateway.MaxContents} }

// Providers gives those of all owners, by owner and name.
func (s *Gateway) Providers(ctx context.Context) ([]gateway.Provider, error) {
	list, err := gatherGateway(ctx, s, scanProvider, `SELECT id, ifnull(owner, ''), name, kind, base_url, sandbox, sandbox_name, port, models, key IS NOT NULL, changed
		FROM gateway_providers ORDER BY ifnull(owner, ''), name`)
	if err != nil {
		return nil, fmt.Errorf("list providers of models: %w", err)
	}
	return list, nil
}

// gatherGateway reads a list.
func gatherGateway[T any](ctx context.Context, s *Gateway, scan func(row) (T, error), query string, values ...any) (list []T, err error) {
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, query, values...)
		if err != nil {
			return err
		}
		list, err = collect(rows, scan)
		return err
	})
	return list, err
}

func scanProvider(r row) (p gateway.Provider, err error) {
	var models []byte
	if err := r.Scan(&p.ID, &p.Owner, &p.Name, &p.Kind, &p.BaseURL, &p.Inside.Sandbox, &p.Inside.Name, &p.Inside.Port, &models, &p.HasKey, into{t: &p.Changed}); err != nil {
		return p, err
	}
	if err := json.Unmarshal(models, &p.Models); err != nil {
		return p, fmt.Errorf("read models of provider %s: %w", p.ID, errBadJSON)
	}
	return p, nil
}

// PutProvider implements gateway.Store.
func (s *Gateway) PutProvider(ctx context.Context, p gateway.Provider, sealed []byte) error {
	const put = `INSERT INTO gateway_providers (id, owner, name, kind, base_url, models, key, changed, sandbox, sandbox_name, port) VALUES (?, ?, ?, ?, ?, ?, nullif(?7, x''), ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET name = excluded.name, kind = excluded.kind, base_url = excluded.base_url, models = excluded.models,
		key = iif(?7 IS NULL, key, excluded.key), changed = excluded.changed, sandbox = excluded.sandbox, sandbox_name = excluded.sandbox_name, port = excluded.port`
	models, err := json.Marshal(p.Models)
	if err == nil {
		err = s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, put, p.ID, ownerOrNull(p.Owner), p.Name, string(p.Kind), p.BaseURL, string(models), sealed, stamp(p.Changed),
				p.Inside.Sandbox, p.Inside.Name, p.Inside.Port)
			if taken(err) {
				return fault.Wrap(err, fault.Conflict, "There is a provider named %q already.", p.Name)
			}
			return userGone(err)
		})
	}
	if err != nil {
		return fmt.Errorf("keep provider %s: %w", p.Name, err)
	}
	return nil
}

// ProviderKey gives the sealed key of a provider, nil for none; NotFound when there is no such provider.
func (s *Gateway) ProviderKey(ctx context.Context, id string) (sealed []byte, err error) {
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `SELECT key FROM gateway_providers WHERE id = ?`, id).Scan(&sealed)
		if errors.Is(err, sql.ErrNoRows) {
			return fault.New(fault.NotFound, "There is no such provider. It may have been removed.")
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read key of provider %s: %w", id, err)
	}
	return sealed, nil
}

// DeleteProvider deletes one; none is no error.
func (s *Gateway) DeleteProvider(ctx context.Context, id string) error {
	return s.run(ctx, "delete provider", `DELETE FROM gateway_providers WHERE id = ?`, id)
}

// run changes something by one statement.
func (s *Gateway) run(ctx context.Context, doing, query string, values ...any) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, query, values...)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// Aliases gives those of all owners, by owner and name.
func (s *Gateway) Aliases(ctx context.Context) ([]gateway.Alias, error) {
	list, err := gatherGateway(ctx, s, scanAlias, `SELECT ifnull(owner, ''), name, targets, changed FROM gateway_aliases ORDER BY ifnull(owner, ''), name`)
	if err != nil {
		return nil, fmt.Errorf("list aliases of models: %w", err)
	}
	return list, nil
}

func scanAlias(r row) (a gateway.Alias, err error) {
	var targets []byte
	if err := r.Scan(&a.Owner, &a.Name, &targets, into{t: &a.Changed}); err != nil {
		return a, err
	}
	if err := json.Unmarshal(targets, &a.Targets); err != nil {
		return a, fmt.Errorf("read targets of alias %s: %w", a.Name, errBadJSON)
	}
	return a, nil
}

// PutAlias implements gateway.Store.
func (s *Gateway) PutAlias(ctx context.Context, a gateway.Alias) error {
	const put = `INSERT INTO gateway_aliases (owner, name, targets, changed) VALUES (?, ?, ?, ?)
		ON CONFLICT (ifnull(owner, ''), name) DO UPDATE SET targets = excluded.targets, changed = excluded.changed`
	targets, err := json.Marshal(a.Targets)
	if err == nil {
		err = s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, put, ownerOrNull(a.Owner), a.Name, string(targets), stamp(a.Changed))
			return userGone(err)
		})
	}
	if err != nil {
		return fmt.Errorf("keep alias %s: %w", a.Name, err)
	}
	return nil
}

// DeleteAlias deletes one; none is no error.
func (s *Gateway) DeleteAlias(ctx context.Context, owner, name string) error {
	return s.run(ctx, "delete alias", `DELETE FROM gateway_aliases WHERE ifnull(owner, '') = ? AND name = ?`, owner, name)
}

// Budgets gives all, those without a subject first.
func (s *Gateway) Budgets(ctx context.Context) ([]gateway.Budget, error) {
	list, err := gatherGateway(ctx, s, func(r row) (b gateway.Budget, err error) {
		return b, r.Scan(&b.Scope, &b.Subject, &b.Period, &b.Requests, &b.Tokens, &b.Cost)
	}, `SELECT scope, coalesce(user, sandbox, '') AS subject, period, requests, tokens, cost FROM gateway_budgets ORDER BY subject, scope DESC, period`)
	if err != nil {
		return nil, fmt.Errorf("list budgets: %w", err)
	}
	return list, nil
}

// PutBudget implements gateway.Store.
func (s *Gateway) PutBudget(ctx context.Context, b gateway.Budget) error {
	const put = `INSERT INTO gateway_budgets (scope, user, sandbox, period, requests, tokens, cost) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (scope, coalesce(user, sandbox, ''), period) DO UPDATE SET requests = excluded.requests, tokens = excluded.tokens, cost = excluded.cost`
	var user, sandbox any
	if b.Scope == gateway.PerUser {
		user = ownerOrNull(b.Subject)
	} else {
		sandbox = ownerOrNull(b.Subject)
	}
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, put, string(b.Scope), user, sandbox, string(b.Period), b.Requests, b.Tokens, b.Cost)
		if orphan(err) {
			return fault.Wrap(err, fault.NotFound, "There is no such %s. It may have been deleted.", b.Scope)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("keep budget: %w", err)
	}
	return nil
}

// DeleteBudget deletes one; none is no error.
func (s *Gateway) DeleteBudget(ctx context.Context, scope gateway.Scope, subject string, period gateway.Period) error {
	return s.run(ctx, "delete budget", `DELETE FROM gateway_budgets WHERE scope = ? AND coalesce(user, sandbox, '') = ? AND period = ?`,
		string(scope), subject, string(period))
}

// Settings gives the settings; the zero ones at first.
func (s *Gateway) Settings(ctx context.Context) (to gateway.Settings, err error) {
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `SELECT off, log_content FROM gateway_settings`).Scan(&to.Off, &to.LogContent)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil {
		return to, fmt.Errorf("read settings of the gateway: %w", err)
	}
	return to, nil
}

// PutSettings keeps them.
func (s *Gateway) PutSettings(ctx context.Context, to gateway.Settings) error {
	return s.run(ctx, "keep settings of the gateway", `INSERT OR REPLACE INTO gateway_settings (id, off, log_content) VALUES (1, ?, ?)`, to.Off, to.LogContent)
}

package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"sandboxd/internal/gateway"
)

const usageColumns = `hour, user, sandbox, provider, model, user_name, label, requests, failed, input, output, cache_read, cache_write, cost`

// addUsage adds a call to the usage of its hour.
func addUsage(ctx context.Context, tx *sql.Tx, c gateway.Call) error {
	const put = `INSERT INTO gateway_usage (` + usageColumns + `) VALUES (?, ?, ?, ?, ?, coalesce((SELECT name FROM users WHERE id = ?2), ''), ?, 1, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET user_name = iif(excluded.user_name = '', user_name, excluded.user_name), label = excluded.label, requests = requests + 1,
		failed = failed + excluded.failed, input = input + excluded.input, output = output + excluded.output, cache_read = cache_read + excluded.cache_read,
		cache_write = cache_write + excluded.cache_write, cost = cost + excluded.cost`
	hour, failed := stamp(c.Time.Truncate(time.Hour)), c.Status >= 400
	provider, model, err := usageKey(ctx, tx, c)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, put, hour, c.User, c.Sandbox, provider, model, c.Label, failed,
		c.Tokens.Input, c.Tokens.Output, c.Tokens.CacheRead, c.Tokens.CacheWrite, c.Cost)
	return err
}

// usageKey gives what a call is counted for. A client makes up names of models, so those of calls that no provider answered are left out, and
// all when an hour has too many.
func usageKey(ctx context.Context, tx *sql.Tx, c gateway.Call) (provider, model string, err error) {
	if !c.Answered() {
		return c.Provider, "", nil
	}
	const look = `SELECT count(*), count(*) FILTER (WHERE provider = ?4 AND model = ?5) FROM gateway_usage WHERE hour = ?1 AND user = ?2 AND sandbox = ?3`
	var rows, known int
	err = tx.QueryRowContext(ctx, look, stamp(c.Time.Truncate(time.Hour)), c.User, c.Sandbox, c.Provider, c.Model).Scan(&rows, &known)
	if err != nil || known == 0 && rows >= gateway.MaxUsageRows {
		return c.Provider, "", err
	}
	return c.Provider, c.Model, nil
}

// usageGroups are the expressions for what usage is grouped by, and for its label: for users and sandboxes the name now, else then.
var usageGroups = map[string]struct{ key, label string }{
	"":         {`''`, `''`},
	"user":     {`user`, `coalesce((SELECT name FROM users WHERE id = user), max(user_name))`},
	"sandbox":  {`sandbox`, `iif(sandbox = '', '', coalesce((SELECT name FROM sandboxes WHERE id = sandbox), max(label)))`},
	"model":    {`model`, `model`},
	"provider": {`provider`, `provider`},
}

// Usage implements gateway.Store.
func (s *Gateway) Usage(ctx context.Context, q gateway.UsageQuery) ([]gateway.Usage, error) {
	query, values, err := findUsage(q)
	var list []gateway.Usage
	if err == nil {
		list, err = gatherGateway(ctx, s, func(r row) (u gateway.Usage, err error) {
			var part int64
			err = r.Scan(&part, &u.Key, &u.Label, &u.Requests, &u.Failed, &u.Tokens.Input, &u.Tokens.Output, &u.Tokens.CacheRead, &u.Tokens.CacheWrite, &u.Cost)
			if q.Step > 0 {
				u.From = q.From.Add(time.Duration(part) * q.Step).UTC()
			}
			return u, err
		}, query, values...)
	}
	if err != nil {
		return nil, fmt.Errorf("read what was used of models: %w", err)
	}
	return list, nil
}

// findUsage gives the statement for what was used.
func findUsage(q gateway.UsageQuery) (query string, values []any, err error) {
	group, ok := usageGroups[q.By]
	if !ok {
		return "", nil, fmt.Errorf("usage by %q", q.By)
	}
	part := `0`
	from := q.From.UnixMicro()
	if q.Step > 0 {
		part, values = `(hour - ?) / ?`, append(values, from, q.Step.Microseconds())
	}
	where := `hour >= ? AND hour < ?`
	values = append(values, from, q.To.UnixMicro())
	if q.User != "" {
		where, values = where+` AND user = ?`, append(values, q.User)
	}
	if q.Sandbox != "" {
		where, values = where+` AND sandbox = ?`, append(values, q.Sandbox)
	}
	if q.Served {
		where += ` AND provider <> ''`
	}
	query = `SELECT ` + part + ` AS part, ` + group.key + ` AS of, ` + group.label + `, sum(requests) AS requests, sum(failed), sum(input), sum(output), sum(cache_read), sum(cache_write), sum(cost)
		FROM gateway_usage WHERE ` + where + ` GROUP BY part, of ORDER BY part, sum(input) + sum(output) + sum(cache_read) + sum(cache_write) DESC, requests DESC, of`
	return query, values, nil
}

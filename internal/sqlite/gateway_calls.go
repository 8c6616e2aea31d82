package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
)

const callColumns = `id, time, user, sandbox, label, provider, protocol, asked, model, stream, status, first_byte, took,
	input, output, cache_read, cache_write, cost, priced, problem`

// AddCalls implements gateway.Store.
func (s *Gateway) AddCalls(ctx context.Context, calls []gateway.Call) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for _, c := range calls {
			fresh, err := addCall(ctx, tx, c)
			if err == nil && fresh {
				err = addUsage(ctx, tx, c)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("keep calls of models: %w", err)
	}
	return nil
}

// addCall puts a call to the log, if it has an ID. fresh is false for one that is there already.
func addCall(ctx context.Context, tx *sql.Tx, c gateway.Call) (fresh bool, err error) {
	if c.ID == "" {
		return true, nil
	}
	done, err := tx.ExecContext(ctx, `INSERT INTO gateway_calls (`+callColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
		c.ID, stamp(c.Time), c.User, c.Sandbox, c.Label, c.Provider, c.Protocol, c.Asked, c.Model, c.Stream, c.Status, int64(c.FirstByte), int64(c.Took),
		c.Tokens.Input, c.Tokens.Output, c.Tokens.CacheRead, c.Tokens.CacheWrite, c.Cost, c.Priced, c.Problem)
	if err != nil {
		return false, err
	}
	n, err := done.RowsAffected()
	if err != nil || n == 0 || c.Request == "" && c.Answer == "" {
		return n > 0, err
	}
	request, answer := packer().EncodeAll([]byte(c.Request), nil), packer().EncodeAll([]byte(c.Answer), nil)
	_, err = tx.ExecContext(ctx, `INSERT INTO gateway_contents (call, size, request, answer) VALUES (?, ?, ?, ?)`, c.ID, len(request)+len(answer), request, answer)
	return true, err
}

func scanCall(r row) (c gateway.Call, err error) {
	return c, r.Scan(callTargets(&c)...)
}

func callTargets(c *gateway.Call) []any {
	return []any{&c.ID, into{t: &c.Time}, &c.User, &c.Sandbox, &c.Label, &c.Provider, &c.Protocol, &c.Asked, &c.Model, &c.Stream, &c.Status, &c.FirstByte, &c.Took,
		&c.Tokens.Input, &c.Tokens.Output, &c.Tokens.CacheRead, &c.Tokens.CacheWrite, &c.Cost, &c.Priced, &c.Problem}
}

// Calls gives calls, newest first, without what was asked and answered.
func (s *Gateway) Calls(ctx context.Context, q gateway.CallQuery) ([]gateway.Call, error) {
	query, values := findCalls(q)
	list, err := gatherGateway(ctx, s, scanCall, query, values...)
	if err != nil {
		return nil, fmt.Errorf("list calls of models: %w", err)
	}
	return list, nil
}

// findCalls gives the statement for a page of calls. Each way to meet its conditions is a search by an index in the order of ids, which
// ends with the page.
func findCalls(q gateway.CallQuery) (query string, values []any) {
	limit := cmp.Or(q.Limit, 100)
	var shared []condition
	for _, c := range []struct {
		wanted bool
		condition
	}{
		{q.User != "", condition{text: `user = ?`, values: []any{q.User}}},
		{q.Failed, condition{text: `status >= 400`}},
		{q.Before != "", condition{text: `id < ?`, values: []any{q.Before}}},
	} {
		if c.wanted {
			shared = append(shared, c.condition)
		}
	}
	var ways []string
	for _, box := range either(q.Sandbox, "sandbox", "label") {
		for _, model := range either(q.Model, "asked", "model") {
			way, more := searchCalls(append([]condition{box, model}, shared...))
			ways, values = append(ways, way), append(append(values, more...), limit)
		}
	}
	query = `SELECT ` + callColumns + ` FROM gateway_calls WHERE id IN (` + strings.Join(ways, " UNION ") + `) ORDER BY id DESC LIMIT ?`
	return query, append(values, limit)
}

// either gives the ways in which one of two columns has a value; for "" one that asks nothing.
func either(value, first, second string) []condition {
	if value == "" {
		return []condition{{}}
	}
	var ways []condition
	for _, column := range []string{first, second} {
		ways = append(ways, condition{text: column + ` <> '' AND ` + column + ` = ?`, values: []any{value}})
	}
	return ways
}

// searchCalls gives the search for calls that meet all conditions.
func searchCalls(all []condition) (query string, values []any) {
	where := []string{"1"}
	for _, c := range all {
		if c.text != "" {
			where, values = append(where, c.text), append(values, c.values...)
		}
	}
	return `SELECT id FROM (SELECT id FROM gateway_calls WHERE ` + strings.Join(where, " AND ") + ` ORDER BY id DESC LIMIT ?)`, values
}

// Call gives one, whole. Kind: NotFound.
func (s *Gateway) Call(ctx context.Context, id string) (c gateway.Call, err error) {
	var request, answer []byte
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		r := tx.QueryRowContext(ctx, `SELECT `+callColumns+`, request, answer FROM gateway_calls LEFT JOIN gateway_contents ON call = id WHERE id = ?`, id)
		err := r.Scan(append(callTargets(&c), &request, &answer)...)
		if errors.Is(err, sql.ErrNoRows) {
			return fault.New(fault.NotFound, "There is no such call in the log. It may have been deleted by its age.")
		}
		return err
	})
	if err == nil {
		c.Request, err = unpackText(request)
	}
	if err == nil {
		c.Answer, err = unpackText(answer)
	}
	if err != nil {
		return gateway.Call{}, fmt.Errorf("read a call of a model: %w", err)
	}
	return c, nil
}

// unpackText gives a text that was packed; nil is "".
func unpackText(packed []byte) (string, error) {
	text, err := unpacker().DecodeAll(packed, nil)
	return string(text), err
}

// SweepCalls implements gateway.Store. It deletes a part at a time, so that nothing waits for it.
func (s *Gateway) SweepCalls(ctx context.Context, before, now time.Time) error {
	for _, old := range []struct {
		query string
		value any
	}{
		{`DELETE FROM gateway_calls WHERE id IN (SELECT id FROM gateway_calls WHERE time < ? ORDER BY time LIMIT ?)`, before.UnixMicro()},
		{`DELETE FROM gateway_calls WHERE id IN (SELECT id FROM gateway_calls
			WHERE id <= (SELECT id FROM gateway_calls ORDER BY id DESC LIMIT 1 OFFSET ?) ORDER BY id LIMIT ?)`, s.maxCalls},
		{`DELETE FROM gateway_contents WHERE call IN (SELECT call FROM (SELECT call, sum(size) OVER (ORDER BY call DESC) AS sum FROM gateway_contents)
			WHERE sum > ? LIMIT ?)`, s.maxContents},
		{`DELETE FROM gateway_usage WHERE (hour, user, sandbox, provider, model) IN (SELECT hour, user, sandbox, provider, model FROM gateway_usage
			WHERE hour < ? ORDER BY hour LIMIT ?)`, now.Add(-gateway.KeepUsage-time.Hour).UnixMicro() + 1},
	} {
		if err := s.sweep(ctx, old.query, old.value); err != nil {
			return fmt.Errorf("delete old calls of models: %w", err)
		}
	}
	return nil
}

// sweep deletes until nothing is left to.
func (s *Gateway) sweep(ctx context.Context, query string, value any) error {
	for n := int64(sweepRows); n == sweepRows; {
		err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
			done, err := tx.ExecContext(ctx, query, value, sweepRows)
			if err != nil {
				return err
			}
			n, err = done.RowsAffected()
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

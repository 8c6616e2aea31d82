package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"sandboxd/internal/chat"
)

const itemColumns = `n, turn, kind, rev, body, output, data, undone, open, at`

func scanItem(r row) (it chat.Item, err error) {
	var body, output []byte
	err = r.Scan(&it.N, &it.Turn, &it.Kind, &it.Rev, &body, &output, (*[]byte)(&it.Data), &it.Undone, &it.Open, into{&it.At, false})
	it.Text, it.Output = string(body), string(output)
	return it, err
}

func putItem(ctx context.Context, tx *sql.Tx, id string, it chat.Item) error {
	_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO conversation_items (conversation, `+itemColumns+`) VALUES (?,?,?,?,?,?,?,?,?,?,?)`,
		id, it.N, it.Turn, it.Kind, it.Rev, []byte(it.Text), []byte(it.Output), []byte(it.Data), it.Undone, it.Open, stamp(it.At))
	return err
}

// extendItem adds text at the end of an item. It is idempotent: text that is there already is replaced.
func extendItem(ctx context.Context, tx *sql.Tx, id string, rev int64, a chat.Append) error {
	column := "body"
	if a.Field == chat.InOutput {
		column = "output"
	}
	done, err := tx.ExecContext(ctx, `UPDATE conversation_items SET rev = ?, `+column+` = CAST(coalesce(substr(`+column+`, 1, ?), x'') || ? AS BLOB)
		WHERE conversation = ? AND n = ? AND length(`+column+`) >= ?`, rev, a.At, []byte(a.Text), id, a.N, a.At)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return fmt.Errorf("item %d has less than %d bytes, or is not there", a.N, a.At)
}

// Items implements chat.Store.
func (s *Chat) Items(ctx context.Context, id string, q chat.ItemQuery) (items []chat.Item, err error) {
	where, values := `conversation = ?`, []any{id}
	for _, part := range []struct {
		set   int64
		where string
	}{{q.Before, ` AND n < ?`}, {q.After, ` AND n > ?`}, {q.Since, ` AND rev > ?`}, {q.Turn, ` AND turn = ?`}} {
		if part.set > 0 {
			where, values = where+part.where, append(values, part.set)
		}
	}
	if q.Shown {
		where, values = where+` AND kind <> ?`, append(values, chat.Record)
	}
	last := (q.Limit > 0 || q.Bytes > 0) && q.After == 0
	order := ` ORDER BY n`
	if last {
		order += ` DESC`
	}
	if q.Limit > 0 {
		order += fmt.Sprintf(` LIMIT %d`, q.Limit)
	}
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT `+itemColumns+` FROM conversation_items WHERE `+where+order, values...)
		if err != nil {
			return err
		}
		if items, err = itemsOf(rows, q.Bytes); err != nil || len(items) > 0 {
			return err
		}
		var there int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM conversations WHERE id = ?`, id).Scan(&there); err != nil || there > 0 {
			return err
		}
		return chat.NotFound(id)
	})
	if err != nil {
		return nil, fmt.Errorf("read items of conversation %s: %w", id, err)
	}
	if last {
		slices.Reverse(items)
	}
	return items, nil
}

// itemsOf collects items until they take so many bytes; 0 for all.
func itemsOf(rows *sql.Rows, most int) (items []chat.Item, err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	for size := 0; (most == 0 || size < most) && rows.Next(); {
		it, err := scanItem(rows)
		if err != nil {
			return nil, err
		}
		size += it.Size()
		items = append(items, it)
	}
	return items, rows.Err()
}

// Copy implements chat.Store.
func (s *Chat) Copy(ctx context.Context, from string, upTo int64, c chat.Conversation) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if err := insertConversation(ctx, tx, c); err != nil {
			return err
		}
		var there int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM conversations WHERE id = ?`, from).Scan(&there); err != nil {
			return err
		} else if there == 0 {
			return chat.NotFound(from)
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO conversation_items (conversation, `+itemColumns+`)
			SELECT ?, n, turn, kind, 1, body, output, data, undone, 0, at FROM conversation_items WHERE conversation = ? AND n <= ?`, c.ID, from, upTo); err != nil {
			return err
		}
		return lapse(ctx, tx, c.ID)
	})
	if err != nil {
		return fmt.Errorf("copy conversation %s: %w", from, err)
	}
	return nil
}

// lapse has the questions of a conversation that nobody has answered lapse.
func lapse(ctx context.Context, tx *sql.Tx, id string) error {
	rows, err := tx.QueryContext(ctx, `SELECT `+itemColumns+` FROM conversation_items WHERE conversation = ? AND kind = ?`, id, chat.Question)
	if err != nil {
		return err
	}
	items, err := collect(rows, scanItem)
	if err != nil {
		return err
	}
	for _, it := range items {
		var a chat.Ask
		if err := json.Unmarshal(it.Data, &a); err != nil {
			return err
		}
		if a.Answer != "" || a.Lapsed {
			continue
		}
		a.Lapsed = true
		if it.Data, err = json.Marshal(a); err != nil {
			return err
		}
		if err := putItem(ctx, tx, id, it); err != nil {
			return err
		}
	}
	return nil
}

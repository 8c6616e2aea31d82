package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"sandboxd/internal/chat"
	"sandboxd/internal/fault"
)

// Chat implements chat.Store.
type Chat struct{ db *DB }

var _ chat.Store = (*Chat)(nil)

// Chat gives the store of conversations in this database.
func (d *DB) Chat() *Chat { return &Chat{d} }

const conversationColumns = `id, sandbox, owner, title, agent, model, mode, state, since, problem, held, rev, items, turn, used, source, created, changed, settings`

func scanConversation(r row) (c chat.Conversation, err error) {
	var used, settings []byte
	if err := r.Scan(&c.ID, &c.Sandbox, &c.Owner, &c.Title, &c.Agent, &c.Model, &c.Mode, &c.State, into{&c.Since, false}, &c.Problem, &c.Held, &c.Rev,
		&c.Items, &c.Turn, &used, &c.From, into{&c.Created, false}, into{&c.Changed, false}, &settings); err != nil {
		return c, err
	}
	if err := json.Unmarshal(used, &c.Used); err != nil {
		return c, fmt.Errorf("read what conversation %s has used: %w", c.ID, err)
	}
	if err := json.Unmarshal(settings, &c.Settings); err != nil {
		return c, fmt.Errorf("read the settings of conversation %s: %w", c.ID, err)
	}
	return c, nil
}

func conversationValues(c chat.Conversation) ([]any, error) {
	used, err := json.Marshal(c.Used)
	if err != nil {
		return nil, err
	}
	settings, err := json.Marshal(c.Settings)
	return []any{c.ID, c.Sandbox, c.Owner, c.Title, c.Agent, c.Model, c.Mode, c.State, stamp(c.Since), c.Problem, c.Held, c.Rev, c.Items, c.Turn,
		string(used), c.From, stamp(c.Created), stamp(c.Changed), string(settings)}, err
}

// Create implements chat.Store.
func (s *Chat) Create(ctx context.Context, c chat.Conversation) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error { return insertConversation(ctx, tx, c) })
	if err != nil {
		return fmt.Errorf("create conversation %s: %w", c.ID, err)
	}
	return nil
}

func insertConversation(ctx context.Context, tx *sql.Tx, c chat.Conversation) error {
	values, err := conversationValues(c)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO conversations (`+conversationColumns+`) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`, values...)
	if orphan(err) {
		return fault.Wrap(err, fault.NotFound, "The sandbox, or its owner, is not there any more.")
	}
	return err
}

// List implements chat.Store.
func (s *Chat) List(ctx context.Context, sandbox string) ([]chat.Conversation, error) {
	return s.find(ctx, `sandbox = ? ORDER BY changed DESC, id`, sandbox)
}

// Busy implements chat.Store.
func (s *Chat) Busy(ctx context.Context) ([]chat.Conversation, error) {
	return s.find(ctx, `state IN ('working', 'asking') OR queue <> '[]' ORDER BY id`)
}

// Stirring implements chat.Store.
func (s *Chat) Stirring(ctx context.Context) ([]chat.Conversation, error) {
	return s.find(ctx, `state <> 'idle' ORDER BY id`)
}

func (s *Chat) find(ctx context.Context, where string, values ...any) (list []chat.Conversation, err error) {
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT `+conversationColumns+` FROM conversations WHERE `+where, values...)
		if err != nil {
			return err
		}
		list, err = collect(rows, scanConversation)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list conversations: %w", err)
	}
	return list, nil
}

// Conversation implements chat.Store.
func (s *Chat) Conversation(ctx context.Context, id string) (chat.Conversation, error) {
	list, err := s.find(ctx, `id = ?`, id)
	if err == nil && len(list) == 0 {
		err = chat.NotFound(id)
	}
	if err != nil {
		return chat.Conversation{}, err
	}
	return list[0], nil
}

// Queue implements chat.Store.
func (s *Chat) Queue(ctx context.Context, id string) (queue []chat.Queued, err error) {
	var text []byte
	if err := s.column(ctx, id, "queue", &text); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &queue); err != nil {
		return nil, fmt.Errorf("read the queue of conversation %s: %w", id, err)
	}
	return queue, nil
}

// Memory implements chat.Store.
func (s *Chat) Memory(ctx context.Context, id string) (m json.RawMessage, err error) {
	return m, s.column(ctx, id, "memory", (*[]byte)(&m))
}

// column reads one column of a conversation.
func (s *Chat) column(ctx context.Context, id, name string, to *[]byte) error {
	err := s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `SELECT `+name+` FROM conversations WHERE id = ?`, id).Scan(to)
		if err == sql.ErrNoRows {
			return chat.NotFound(id)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("read the %s of conversation %s: %w", name, id, err)
	}
	return nil
}

// SetMemory implements chat.Store.
func (s *Chat) SetMemory(ctx context.Context, id string, m json.RawMessage) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		return changeConversation(ctx, tx, id, `UPDATE conversations SET memory = ? WHERE id = ?`, []byte(m), id)
	})
	if err != nil {
		return fmt.Errorf("keep the memory of conversation %s: %w", id, err)
	}
	return nil
}

func changeConversation(ctx context.Context, tx *sql.Tx, id, query string, values ...any) error {
	done, err := tx.ExecContext(ctx, query, values...)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return chat.NotFound(id)
}

// Delete implements chat.Store.
func (s *Chat) Delete(ctx context.Context, id string) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM conversations WHERE id = ?`, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("delete conversation %s: %w", id, err)
	}
	return nil
}

// Apply implements chat.Store.
func (s *Chat) Apply(ctx context.Context, id string, c chat.Change) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if err := changeConversation(ctx, tx, id, `UPDATE conversations SET rev = ? WHERE id = ?`, c.Rev, id); err != nil {
			return err
		}
		if c.Conversation != nil {
			if err := putConversation(ctx, tx, *c.Conversation); err != nil {
				return err
			}
		}
		if c.Memory != nil {
			if err := changeConversation(ctx, tx, id, `UPDATE conversations SET memory = ? WHERE id = ?`, []byte(c.Memory), id); err != nil {
				return err
			}
		}
		if c.Queue != nil {
			if err := putQueue(ctx, tx, id, *c.Queue); err != nil {
				return err
			}
		}
		for _, it := range c.Items {
			if err := putItem(ctx, tx, id, it); err != nil {
				return err
			}
		}
		for _, a := range c.Appends {
			if err := extendItem(ctx, tx, id, c.Rev, a); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("change conversation %s: %w", id, err)
	}
	return nil
}

func putConversation(ctx context.Context, tx *sql.Tx, c chat.Conversation) error {
	values, err := conversationValues(c)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE conversations SET (`+conversationColumns+`) = (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) WHERE id = ?`, append(values, c.ID)...)
	return err
}

func putQueue(ctx context.Context, tx *sql.Tx, id string, queue []chat.Queued) error {
	if queue == nil {
		queue = []chat.Queued{}
	}
	text, err := json.Marshal(queue)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE conversations SET queue = ? WHERE id = ?`, string(text), id)
	return err
}

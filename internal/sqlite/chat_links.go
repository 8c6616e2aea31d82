package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"time"

	"sandboxd/internal/chat"
	"sandboxd/internal/fault"
)

var _ chat.LinkStore = (*Chat)(nil)

var errNoLink = fault.New(fault.NotFound, "There is no such link. It may have expired.")

const linkColumns = `id, conversation, maker, created, expires`

func scanLink(r row) (l chat.Link, err error) {
	err = r.Scan(&l.ID, &l.Conversation, &l.By, into{&l.Created, false}, into{&l.Expires, true})
	return l, err
}

// PutLink implements chat.LinkStore.
func (s *Chat) PutLink(ctx context.Context, l chat.Link, hash [sha256.Size]byte, most int) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		var have int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM conversation_links WHERE conversation = ?`, l.Conversation).Scan(&have); err != nil {
			return err
		}
		if have >= most {
			return chat.ErrManyLinks(most)
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO conversation_links (`+linkColumns+`, hash) VALUES (?,?,?,?,?,?)`,
			l.ID, l.Conversation, l.By, stamp(l.Created), stampOrNull(l.Expires), hash[:])
		if orphan(err) {
			return fault.Wrap(err, fault.NotFound, "The conversation is not there any more.")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("keep link %s: %w", l.ID, err)
	}
	return nil
}

// Links implements chat.LinkStore.
func (s *Chat) Links(ctx context.Context, conversation string) ([]chat.Link, error) {
	return s.links(ctx, `conversation = ? ORDER BY created, id`, conversation)
}

// LinkBy implements chat.LinkStore.
func (s *Chat) LinkBy(ctx context.Context, hash [sha256.Size]byte) (chat.Link, error) {
	list, err := s.links(ctx, `hash = ?`, hash[:])
	if err == nil && len(list) == 0 {
		err = errNoLink
	}
	if err != nil {
		return chat.Link{}, err
	}
	return list[0], nil
}

func (s *Chat) links(ctx context.Context, where string, value any) (list []chat.Link, err error) {
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT `+linkColumns+` FROM conversation_links WHERE `+where, value)
		if err != nil {
			return err
		}
		list, err = collect(rows, scanLink)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read links of conversations: %w", err)
	}
	return list, nil
}

// DeleteLink implements chat.LinkStore.
func (s *Chat) DeleteLink(ctx context.Context, conversation, id string) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, `DELETE FROM conversation_links WHERE conversation = ? AND id = ?`, conversation, id)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return errNoLink
	})
	if err != nil {
		return fmt.Errorf("delete link %.20s: %w", id, err)
	}
	return nil
}

// DropLinks implements chat.LinkStore.
func (s *Chat) DropLinks(ctx context.Context, before time.Time) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM conversation_links WHERE expires < ?`, stamp(before))
		return err
	})
	if err != nil {
		return fmt.Errorf("drop links that have expired: %w", err)
	}
	return nil
}

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"sandboxd/internal/fault"
)

// OwnerOf gives the name of the sandbox with an id, and its owner's id. Kinds: NotFound when it is deleted or nobody's yet, Forbidden when
// its owner is disabled.
func (s *Sandboxes) OwnerOf(ctx context.Context, id string) (name, owner string, err error) {
	const find = `SELECT sandboxes.name, users.id, users.disabled FROM sandboxes JOIN users ON users.id = sandboxes.owner
		WHERE sandboxes.id = ? AND NOT sandboxes.pooled`
	var disabled bool
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, find, id).Scan(&name, &owner, &disabled)
		if errors.Is(err, sql.ErrNoRows) {
			return fault.New(fault.NotFound, "This sandbox has been deleted.")
		}
		return err
	})
	switch {
	case err != nil:
		return "", "", fmt.Errorf("find the owner of sandbox %s: %w", id, err)
	case disabled:
		return "", "", fault.New(fault.Forbidden, "The owner of this sandbox is disabled. An admin can change that.")
	}
	return name, owner, nil
}

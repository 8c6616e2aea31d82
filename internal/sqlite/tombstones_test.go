package sqlite

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandboxtest"
)

// insertTombstone stores one as of that time.
func insertTombstone(t *testing.T, d *DB, name string, at time.Time) {
	t.Helper()
	err := d.write(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO tombstones (name, owner, deleted) VALUES (?, 'owner', ?)`, name, stamp(at))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// tombstones counts all that the file holds.
func tombstones(t *testing.T, d *DB) (n int) {
	t.Helper()
	if err := d.reader.QueryRowContext(t.Context(), `SELECT count(*) FROM tombstones`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func deleteOne(t *testing.T, d *DB, name string) {
	t.Helper()
	b := sandboxtest.Sandbox(name, 0)
	if err := d.Sandboxes().Insert(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := d.Sandboxes().Delete(t.Context(), b.ID); err != nil {
		t.Fatal(err)
	}
}

func TestTombstone_IsKeptThirtyDays(t *testing.T) {
	d := fresh(t)
	insertTombstone(t, d, "old", time.Now().Add(-tombstoneLife-time.Hour))
	insertTombstone(t, d, "young", time.Now().Add(-tombstoneLife+time.Hour))
	if _, err := d.Sandboxes().Tombstone(t.Context(), "old"); !fault.Is(err, fault.NotFound) {
		t.Errorf("old: %v", err)
	}
	deleteOne(t, d, "fresh")
	if n := tombstones(t, d); n != 2 {
		t.Errorf("%d tombstones are kept, want the young and the fresh one", n)
	}
	for _, name := range []string{"young", "fresh"} {
		if _, err := d.Sandboxes().Tombstone(t.Context(), name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTombstone_OldestMakePlaceForTenThousand(t *testing.T) {
	d := fresh(t)
	err := d.write(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ? - 1)
			INSERT INTO tombstones (name, owner, deleted) SELECT 'g' || i, 'owner', ? + i FROM n`, maxTombstones, time.Now().Add(-24*time.Hour).UnixMicro())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	deleteOne(t, d, "one")
	deleteOne(t, d, "g1") // a name that is there does not need another place
	deleteOne(t, d, "two")
	if n := tombstones(t, d); n != maxTombstones {
		t.Errorf("%d tombstones are kept, want %d", n, maxTombstones)
	}
	for name, want := range map[string]bool{"g0": false, "g1": true, "g2": false, "g3": true, "one": true, "two": true} {
		if _, err := d.Sandboxes().Tombstone(t.Context(), name); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

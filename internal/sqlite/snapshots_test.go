package sqlite

import (
	"strings"
	"testing"

	"sandboxd/internal/snapshot"
	"sandboxd/internal/snapshot/snapshottest"
)

func TestSnapshots_KeepTheContract(t *testing.T) {
	snapshottest.StoreContract(t, func(t *testing.T) snapshot.Store { return fresh(t).Snapshots() })
}

func TestSnapshots_ABrokenRowSaysNoSecret(t *testing.T) {
	for _, column := range []string{"stats", "origin"} {
		d := fresh(t)
		must(t, d.Snapshots().Insert(t.Context(), snapshottest.Snapshot("a", 0)))
		if _, err := d.writer.ExecContext(t.Context(), `UPDATE snapshots SET `+column+` = '{"name":["s3cret"]}', problem = ''`); err != nil {
			t.Fatal(err)
		}
		if column == "stats" {
			if _, err := d.writer.ExecContext(t.Context(), `UPDATE snapshots SET stats = '{"files":"s3cret"}'`); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := d.Snapshots().List(t.Context()); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", column, err)
		}
	}
}

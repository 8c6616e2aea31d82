package snapshot_test

import (
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/archive"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/snapshot"
)

func TestCompare_TellsWhatHasChangedSince(t *testing.T) {
	within(t, nil, func(w *world, box sandbox.Sandbox) {
		t := w.t
		w.engine.PutHome(box.ID, map[string]string{"changed": "one\ntwo\n", "gone": "x\n", "same": "x", "blob": "\x00\x01", "long": strings.Repeat("é", 200_000)})
		b := w.take(box, snapshot.Ask{})
		w.engine.PutHome(box.ID, map[string]string{"changed": "one\n2\n", "new": "y\n", "same": "x", "blob": "\x00\x02", "long": strings.Repeat("é", 200_000) + "x"})
		c, err := w.Compare(t.Context(), box, b.ID)
		want := []archive.Difference{
			{Path: "blob", Change: archive.Changed, Kind: archive.KindFile, Size: 2}, {Path: "changed", Change: archive.Changed, Kind: archive.KindFile, Size: 6},
			{Path: "gone", Change: archive.Deleted, Kind: archive.KindFile, Size: 2}, {Path: "long", Change: archive.Changed, Kind: archive.KindFile, Size: 400_001}, {Path: "new", Change: archive.Added, Kind: archive.KindFile, Size: 2},
		}
		if err != nil || c.More || !slices.Equal(c.Found, want) {
			t.Errorf("%+v, %v", c, err)
		}
		for path, want := range map[string]snapshot.FileComparison{
			"changed": {Change: archive.Changed, Diff: "--- a/changed\n+++ b/changed\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"},
			"gone":    {Change: archive.Deleted, Diff: "--- a/gone\n+++ b/gone\n@@ -1 +0,0 @@\n-x\n"},
			"new":     {Change: archive.Added, Diff: "--- a/new\n+++ b/new\n@@ -0,0 +1 @@\n+y\n"},
			"same":    {}, "blob": {Change: archive.Changed, Binary: true}, "long": {Cut: true},
		} {
			if got, err := w.CompareFile(t.Context(), box, b.ID, path); err != nil || got != want {
				t.Errorf("%s: %+.300v, %v", path, got, err)
			}
		}
		if _, err := w.CompareFile(t.Context(), box, b.ID, "none"); !fault.Is(err, fault.NotFound) {
			t.Errorf("of a file that is nowhere: %v", err)
		}
		if _, err := w.CompareFile(t.Context(), box, b.ID, ""); fault.FieldOf(err) != "path" {
			t.Errorf("without a path: %v", err)
		}
		if _, err := w.Compare(t.Context(), w.create("two"), b.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("with another sandbox: %v", err)
		}
		w.ok(w.Delete(t.Context(), b.ID))
	})
}

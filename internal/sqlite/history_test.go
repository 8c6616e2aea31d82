package sqlite

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/fault"
	"sandboxd/internal/metrics"
	"sandboxd/internal/sandbox"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func openHistory(t *testing.T, path string) *History {
	t.Helper()
	h := OpenHistory(t.Context(), path, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { must(t, h.Close()) })
	return h
}

func historyRow(at time.Time, cpu time.Duration) metrics.Row {
	return metrics.Row{Time: at, Measured: 15 * time.Second, CPU: cpu, Throttled: time.Second, NetworkRx: 1, NetworkTx: 2, DiskRead: 3, DiskWrite: 4,
		Memory: 5, Cache: 6, MemoryLimit: 7, Processes: 8, OOMKills: 9}
}

func TestHistory_KeepsRowsAndAddsThoseOfTheSameTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.db")
	h := openHistory(t, path)
	other := historyRow(noon, 2*time.Second)
	other.Memory = 500
	batch := metrics.Batch{Seq: 1, Rows: []metrics.TierRow{
		{ID: "a", Tier: metrics.Medium, Row: historyRow(noon, time.Second)}, {ID: "a", Tier: metrics.Medium, Row: other},
		{ID: "a", Tier: metrics.Coarse, Row: historyRow(noon, 9*time.Second)}, {ID: "b", Tier: metrics.Medium, Row: historyRow(noon.Add(time.Minute), time.Second)},
	}}
	must(t, h.Add(t.Context(), batch))
	must(t, h.Add(t.Context(), batch)) // once more, as after a commit that was not heard of
	got, seq, err := h.Rows(t.Context(), "a", metrics.Medium, noon, noon.Add(time.Hour))
	must(t, err)
	want := metrics.Row{Time: noon, Measured: 30 * time.Second, CPU: 3 * time.Second, Throttled: 2 * time.Second, NetworkRx: 2, NetworkTx: 4, DiskRead: 6, DiskWrite: 8,
		Memory: 500, Cache: 6, MemoryLimit: 7, Processes: 8, OOMKills: 18}
	if diff := cmp.Diff([]metrics.Row{want}, got); diff != "" || seq != 1 {
		t.Errorf("seq %d\n%s", seq, diff)
	}
	if got, _, err := h.Rows(t.Context(), "a", metrics.Medium, noon.Add(time.Second), noon.Add(time.Hour)); err != nil || len(got) != 0 {
		t.Errorf("%v %v", got, err)
	}
	if n, err := h.Last(t.Context()); n != 1 || err != nil {
		t.Errorf("last batch %d %v", n, err)
	}
}

func TestHistory_ChangesBeginWithTheOneBefore(t *testing.T) {
	h := openHistory(t, filepath.Join(t.TempDir(), "history.db"))
	add := func(seq int64, at time.Time, state sandbox.State, mark metrics.Mark) {
		must(t, h.Add(t.Context(), metrics.Batch{Seq: seq, Changes: []metrics.SandboxChange{{ID: "a", Change: metrics.Change{Time: at, State: state, Mark: mark}}}}))
	}
	states := func(since time.Time) string {
		got, _, err := h.Changes(t.Context(), "a", since, noon.Add(time.Hour))
		must(t, err)
		var out []string
		for _, c := range got {
			out = append(out, string(c.State)+" "+string(c.Mark))
		}
		return strings.Join(out, ",")
	}
	add(1, noon, sandbox.Starting, "")
	add(2, noon.Add(time.Minute), sandbox.Running, metrics.Started)
	add(3, noon.Add(2*time.Minute), sandbox.Asleep, "")
	for since, want := range map[time.Time]string{
		noon: "starting ,running start,asleep ", noon.Add(90 * time.Second): "running start,asleep ", noon.Add(30 * time.Minute): "asleep ",
		noon.Add(-time.Hour): "starting ,running start,asleep ",
	} {
		if got := states(since); got != want {
			t.Errorf("since %s: %q, want %q", since.Format(time.TimeOnly), got, want)
		}
	}
	add(4, noon.Add(30*time.Second), sandbox.Stopped, "") // the clock was put back
	if got := states(noon); got != "starting ,stopped " {
		t.Errorf("after the clock was put back: %q", got)
	}
}

func TestHistory_SweepIsBoundedByEachTiersLife(t *testing.T) {
	h := openHistory(t, filepath.Join(t.TempDir(), "history.db"))
	batch := metrics.Batch{Seq: 1}
	for day := range 60 {
		at := noon.Add(-time.Duration(day) * 24 * time.Hour)
		for _, tier := range []metrics.Tier{metrics.Medium, metrics.Coarse} {
			batch.Rows = append(batch.Rows, metrics.TierRow{ID: "a", Tier: tier, Row: historyRow(at, 0)})
			if day > 40 {
				batch.Rows = append(batch.Rows, metrics.TierRow{ID: "gone", Tier: tier, Row: historyRow(at, 0)})
			}
		}
	}
	batch.Changes = []metrics.SandboxChange{
		{ID: "a", Change: metrics.Change{Time: noon.Add(-50 * 24 * time.Hour), State: sandbox.Starting}},
		{ID: "a", Change: metrics.Change{Time: noon.Add(-49 * 24 * time.Hour), State: sandbox.Running}},
		{ID: "gone", Change: metrics.Change{Time: noon.Add(-41 * 24 * time.Hour), State: sandbox.Deleting}},
	}
	must(t, h.Add(t.Context(), batch))
	must(t, h.Sweep(t.Context(), noon))
	count := func(id string, tier metrics.Tier) int {
		rows, _, err := h.Rows(t.Context(), id, tier, noon.Add(-100*24*time.Hour), noon.Add(time.Hour))
		must(t, err)
		return len(rows)
	}
	if m, c := count("a", metrics.Medium), count("a", metrics.Coarse); m != 2 || c != 31 {
		t.Errorf("%d of 15 seconds, %d of 2 minutes", m, c)
	}
	changes, _, err := h.Changes(t.Context(), "a", noon.Add(-100*24*time.Hour), noon)
	must(t, err)
	if len(changes) != 1 || changes[0].State != sandbox.Running {
		t.Errorf("changes %+v", changes)
	}
	if n, err := h.numbers(t.Context()); err != nil || len(n) != 1 {
		t.Errorf("%d series, %v", len(n), err)
	}
}

// spoil writes over the middle of a file.
func spoil(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt([]byte(strings.Repeat("nonsense", int(info.Size())/8)), 0)
	must(t, err)
	must(t, f.Close())
}

func wantAside(t *testing.T, path string) {
	t.Helper()
	if aside, _ := filepath.Glob(path + asideSuffix + "*"); len(aside) == 0 {
		t.Error("the damaged file is not kept")
	}
}

func TestHistory_ADamagedFileIsSetAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.db")
	h := OpenHistory(t.Context(), path, slog.New(slog.DiscardHandler))
	must(t, h.Add(t.Context(), metrics.Batch{Seq: 7, Rows: []metrics.TierRow{{ID: "a", Tier: metrics.Medium, Row: historyRow(noon, 0)}}}))
	must(t, h.Close())
	spoil(t, path)
	h = openHistory(t, path)
	wantAside(t, path)
	if n, err := h.Last(t.Context()); n != 0 || err != nil {
		t.Errorf("last batch of a new file: %d %v", n, err)
	}
}

func TestHistory_OneFoundDamagedWhileOpenIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.db")
	h := openHistory(t, path)
	for i := range 2000 {
		must(t, h.Add(t.Context(), metrics.Batch{Seq: int64(i + 1), Rows: []metrics.TierRow{{ID: fmt.Sprint("a", i), Tier: metrics.Medium, Row: historyRow(noon, 0)}}}))
	}
	_, err := h.file.db.writer.Exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
	must(t, err)
	spoil(t, path)
	_, _, err = h.Rows(t.Context(), "a500", metrics.Medium, noon, noon.Add(time.Hour))
	wantKind(t, "read of a damaged file", err, fault.Unavailable)
	must(t, h.Add(t.Context(), metrics.Batch{Seq: 3000, Rows: []metrics.TierRow{{ID: "b", Tier: metrics.Medium, Row: historyRow(noon, 0)}}}))
	if n, err := h.Last(t.Context()); n != 3000 || err != nil {
		t.Errorf("last batch %d %v", n, err)
	}
	wantAside(t, path)
}

func TestHistory_AFileOfAnotherVersionIsSetAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.db")
	h := OpenHistory(t.Context(), path, slog.New(slog.DiscardHandler))
	_, err := h.file.db.writer.Exec(`PRAGMA user_version = 99`)
	must(t, err)
	must(t, h.Close())
	openHistory(t, path)
	wantAside(t, path)
}

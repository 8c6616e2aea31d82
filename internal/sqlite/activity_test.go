package sqlite

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/activity"
	"sandboxd/internal/activity/activitytest"
	"sandboxd/internal/fault"
)

func openActivity(t testing.TB, path string) *Activity {
	t.Helper()
	a := OpenActivity(t.Context(), path, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

func TestActivity_KeepsTheContract(t *testing.T) {
	activitytest.StoreContract(t, func(t *testing.T) activity.Store {
		return openActivity(t, filepath.Join(t.TempDir(), "activity.db"))
	})
}

func TestActivity_ChangesNoEntry(t *testing.T) {
	a := openActivity(t, filepath.Join(t.TempDir(), "activity.db"))
	must(t, a.Add(t.Context(), []activity.Entry{{ID: 1, Time: noon, Action: "sandbox.create", User: "ada"}}))
	for _, change := range []string{`UPDATE entries SET user = 'eve'`, `UPDATE entries SET id = 2`} {
		err := a.file.write(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, change)
			return err
		})
		if err == nil {
			t.Errorf("%s is done", change)
		}
	}
	got, err := a.Find(t.Context(), activity.Query{Scope: activity.Scope{All: true}})
	if err != nil || len(got) != 1 || got[0].User != "ada" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestActivity_ADamagedFileIsSetAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "activity.db")
	a := openActivity(t, path)
	var many []activity.Entry
	for i := range 5000 {
		many = append(many, activity.Entry{ID: activity.ID(i + 1), Time: noon, Action: "sandbox.create", User: "ada"})
	}
	must(t, a.Add(t.Context(), many))
	must(t, a.Close())
	spoil(t, path)
	a = openActivity(t, path)
	_, err := a.Find(t.Context(), activity.Query{Scope: activity.Scope{All: true}}) // where it is found at the latest
	if err != nil {
		wantKind(t, "find in a damaged file", err, fault.Unavailable)
		if want := "The database activity.db was damaged. It was set aside, and a new one begun. Try again."; fault.Message(err) != want {
			t.Errorf("says %q, want %q", fault.Message(err), want)
		}
		if said := err.Error(); !strings.Contains(said, path) || strings.Contains(said, "Start sandboxd again") {
			t.Errorf("logs %q", said)
		}
	}
	wantAside(t, path)
	must(t, a.Add(t.Context(), many[:10]))
	if got, err := a.Find(t.Context(), activity.Query{Scope: activity.Scope{All: true}}); err != nil || len(got) != 10 {
		t.Errorf("%d entries, %v", len(got), err)
	}
}

const envActivity = "SANDBOXD_TEST_ACTIVITY"

// writeActivity adds entries for ever, and says of each when it was added.
func writeActivity(path string) error {
	store := OpenActivity(context.Background(), path, slog.New(slog.DiscardHandler))
	l := activity.New(activity.Config{Store: store})
	go func() { _ = l.Run(context.Background()) }() // until the process ends
	tick := time.NewTicker(2 * time.Millisecond)
	for n := 1; ; n++ {
		<-tick.C
		l.Add(activity.Entry{Via: activity.Itself, Action: "sandbox.create", SandboxID: strconv.Itoa(n), Outcome: activity.Done}) // which sums up nothing
		fmt.Println(n, time.Now().UnixMilli())
	}
}

// TestActivity_SIGKILLLosesTheLastSecondAtMost kills a process that adds entries.
func TestActivity_SIGKILLLosesTheLastSecondAtMost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "activity.db")
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env, c.Stderr = append(os.Environ(), envActivity+"="+path), os.Stderr
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	var times []int64 // by entry
	for scan := bufio.NewScanner(out); scan.Scan(); {
		var n int
		var at int64
		if _, err := fmt.Sscan(scan.Text(), &n, &at); err != nil {
			t.Fatal(err)
		}
		if times = append(times, at); n == 4000 { // after 8 s
			must(t, c.Process.Kill())
		}
	}
	_ = c.Wait() // it was killed
	a := openActivity(t, path)
	last, err := a.Last(t.Context())
	must(t, err)
	lost := times[last:]
	const most = 5 * time.Second // a second, and what a machine may take that is busy
	if len(lost) > 0 && time.Duration(times[len(times)-1]-lost[0])*time.Millisecond > most {
		t.Errorf("of %d entries, %d are lost", len(times), len(lost))
	}
	t.Logf("killed after %d entries; %d lost", len(times), len(lost))
	got, err := a.Find(t.Context(), activity.Query{Scope: activity.Scope{All: true}, Limit: activity.MaxLimit})
	want := min(int(last), activity.MaxLimit)
	if err != nil || want == 0 || len(got) != want || got[0].ID != last || got[want-1].ID != last-activity.ID(want)+1 {
		t.Errorf("%d entries before %d, %v", len(got), last, err)
	}
}

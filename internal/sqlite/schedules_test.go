package sqlite

import (
	"strings"
	"testing"
	"time"

	"sandboxd/internal/auth"
	"sandboxd/internal/schedule"
	"sandboxd/internal/schedule/scheduletest"
)

// scheduled gives an empty database with the owner of schedules.
func scheduled(t *testing.T) *DB {
	t.Helper()
	d := fresh(t)
	mustUser(t, d.Auth(), auth.Account{User: auth.User{ID: scheduletest.Owner, Name: "ann", Role: auth.Member, Created: accountsEpoch}})
	return d
}

func TestSchedules_KeepTheContract(t *testing.T) {
	scheduletest.StoreContract(t, func(t *testing.T) schedule.Store { return scheduled(t).Schedules() })
}

func TestSchedules_EndWithTheirOwner(t *testing.T) {
	d := scheduled(t)
	must(t, d.Schedules().Put(t.Context(), scheduletest.Schedule("a", 0)))
	must(t, d.Schedules().Begin(t.Context(), scheduletest.Run("r", "a", 0), time.Time{}))
	must(t, d.Auth().DeleteUser(t.Context(), scheduletest.Owner, func(auth.Account, int) error { return nil }))
	list, err := d.Schedules().Schedules(t.Context())
	runs, err2 := d.Schedules().Runs(t.Context(), "a", 10)
	if err != nil || err2 != nil || len(list)+len(runs) != 0 {
		t.Errorf("left are %v and %v (%v, %v)", list, runs, err, err2)
	}
}

func TestSchedules_ABrokenRowSaysNothingOfIt(t *testing.T) {
	d := scheduled(t)
	must(t, d.Schedules().Put(t.Context(), scheduletest.Schedule("a", 0)))
	must(t, d.Schedules().Begin(t.Context(), scheduletest.Run("r", "a", 0), time.Time{}))
	_, err := d.writer.ExecContext(t.Context(), `UPDATE schedule_runs SET items = '{"a": "s3cret"}'`)
	must(t, err)
	if _, err := d.Schedules().Runs(t.Context(), "a", 1); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("error is %v", err)
	}
}

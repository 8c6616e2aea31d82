package sqlite

import (
	"testing"
	"time"

	"sandboxd/internal/fault"
)

func TestReady_SaysWhetherItCanBeWritten(t *testing.T) {
	d := fresh(t)
	must(t, d.Ready(t.Context()))
	for _, c := range []struct {
		only string
		kind fault.Kind
	}{{"on", fault.Unavailable}, {"off", 0}} {
		_, err := d.writer.ExecContext(t.Context(), "PRAGMA query_only = "+c.only)
		must(t, err)
		before := d.Ready(t.Context())
		d.ready.asked = time.Now().Add(-readyEvery)
		after := d.Ready(t.Context())
		if (before == nil) == (after == nil) {
			t.Errorf("query_only %s: %v before it is asked again, %v after", c.only, before, after)
		}
		if again := d.Ready(t.Context()); (again == nil) != (after == nil) {
			t.Errorf("query_only %s: %v, then %v", c.only, after, again)
		}
	}
}

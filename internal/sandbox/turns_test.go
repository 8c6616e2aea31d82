package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestTurns_OneNameInOrderOtherNamesSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns turns
		got := map[string][]int{}
		start := time.Now()
		for i := range 3 {
			for _, name := range []string{"a", "b"} {
				turns.run(t.Context(), Ref{"1", name}, func(context.Context) {
					<-time.After(time.Second)
					if name == "a" {
						got[name] = append(got[name], i)
					}
				})
			}
		}
		turns.close()
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("took %s, want two lines of three seconds side by side", took)
		}
		if !slices.Equal(got["a"], []int{0, 1, 2}) {
			t.Errorf("order %v", got["a"])
		}
	})
}

func TestTurns_WaitCoversWhatIsInLineAndLeavesWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns turns
		start := time.Now()
		for range 2 {
			turns.run(t.Context(), Ref{"1", "a"}, func(context.Context) { <-time.After(time.Second) })
		}
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := turns.wait(short, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller in a hurry got %v", err)
		}
		if err := turns.wait(t.Context(), "a"); err != nil || time.Since(start) != 2*time.Second {
			t.Errorf("waited %s, %v", time.Since(start), err)
		}
		if err := turns.wait(t.Context(), "nobody"); err != nil {
			t.Error(err)
		}
		turns.close()
		if len(turns.queues) != 0 {
			t.Error("queues are left over")
		}
	})
}

func TestTurns_InterruptEndsOnlyTheOneThatHasItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns turns
		cause := errors.New("deleted")
		var causes []error
		for range 2 {
			turns.run(t.Context(), Ref{"1", "a"}, func(ctx context.Context) {
				select {
				case <-ctx.Done():
				case <-time.After(time.Second):
				}
				causes = append(causes, context.Cause(ctx))
			})
		}
		synctest.Wait()
		turns.interrupt(Ref{"2", "a"}, errors.New("of another sandbox that had the name"))
		turns.interrupt(Ref{"1", "a"}, cause)
		turns.interrupt(Ref{"1", "nobody"}, cause)
		turns.close()
		if len(causes) != 2 || causes[0] != cause || causes[1] != nil {
			t.Errorf("causes %v", causes)
		}
		if turns.run(t.Context(), Ref{"1", "a"}, func(context.Context) {}) {
			t.Error("closed turns take more")
		}
	})
}

func TestAutoName_IsAlwaysAName(t *testing.T) {
	for attempt := range 10 {
		for range 500 {
			if err := (Request{Name: autoName(attempt), Image: "x"}).check(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func FuzzCheckLabel(f *testing.F) {
	for _, s := range []string{"", "ML Experiments", "日本語", "a\nb", "\u202eevil", "\x1b[31m", "👩‍🔬"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, label string) {
		if CheckLabel(label) == nil && fmt.Sprintf("%q", label) != `"`+label+`"` && !slices.ContainsFunc([]rune(label), func(r rune) bool { return r == '"' || r == '\\' || r > 126 }) {
			t.Errorf("%q passes but does not print as it is", label)
		}
	})
}

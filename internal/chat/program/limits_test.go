package program_test

import (
	"fmt"
	"testing"
	"time"

	"sandboxd/internal/chat"
	"sandboxd/internal/chat/program"
)

// usage is a line of a prompt that has the agent tell what it has used.
func usage(tokens int, dollars float64) string {
	return fmt.Sprintf(`raw {"method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"usage_update","used":%d,"size":200000,"cost":{"amount":%v,"currency":"USD"}}}}`, tokens, dollars)
}

// limited is a conversation with an agent whose turns have limits.
func limited(t *testing.T, l program.Limits) *world {
	w := newWorld(t, chat.AskChanges)
	w.end()
	w.c.Limits = l
	w.start()
	return w
}

func TestLimits_EndATurnThatCanBeResumed(t *testing.T) {
	for name, c := range map[string]struct {
		limits program.Limits
		prompt string
		want   string
	}{
		"time":   {program.Limits{Time: 300 * time.Millisecond}, "hang", chat.AtTime},
		"deaf":   {program.Limits{Time: 300 * time.Millisecond}, "deaf", chat.AtTime},
		"money":  {program.Limits{Cost: 1_000_000}, usage(10, 0.5) + "\n" + usage(10, 1.5) + "\nhang", chat.AtMoney},
		"tokens": {program.Limits{Tokens: 5000}, usage(5000, 0) + "\nhang", chat.AtTokens},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := limited(t, c.limits)
			w.send("start\n" + c.prompt)
			v := w.ends(chat.Failed, 1)
			if v.c.Problem != c.want {
				t.Error(v)
			}
			if err := w.s.Resume(t.Context(), w.id); err != nil {
				t.Fatal(err)
			}
			if name != "deaf" { // where the agent is told the message again
				w.ends(chat.Idle, 1)
			}
		})
	}
}

func TestLimits_AreNotReachedByLess(t *testing.T) {
	t.Parallel()
	w := limited(t, program.Limits{Tokens: 5000, Cost: 1_000_000, Time: time.Hour})
	for turn := range int64(3) { // of each turn, not of all
		w.send(usage(4999, 0.9*float64(turn+1)) + "\nend")
		w.ends(chat.Idle, turn+1)
	}
}

func TestLimits_TheTimeOfAPersonDoesNotCount(t *testing.T) {
	t.Parallel()
	w := limited(t, program.Limits{Time: 2 * time.Second})
	w.send("run x")
	a := w.asks()
	<-time.After(2500 * time.Millisecond)
	w.answers(a, "Allow")
	w.ends(chat.Idle, 1)
}

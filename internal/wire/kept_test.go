package wire

import (
	"strings"
	"testing"
)

func TestKept_RefusesWhatIsOutOfBounds(t *testing.T) {
	ok := []string{"x"}
	for name, m := range map[string]Message{
		"no id":            &KeptStart{Command: ok},
		"id":               &KeptStart{ID: "../x", Command: ok},
		"long id":          &KeptStart{ID: strings.Repeat("x", 65), Command: ok},
		"no command":       &KeptStart{ID: "a"},
		"env":              &KeptStart{ID: "a", Command: ok, Env: map[string]string{"a=b": "x"}},
		"too many":         &Kepts{17: {}},
		"listed id":        &Kepts{{ID: "A"}},
		"twice":            &Kepts{{ID: "a"}, {ID: "a"}},
		"negative input":   &Kepts{{ID: "a", Input: -1}},
		"huge output":      &Kepts{{ID: "a", Last: 1<<60 + 1}},
		"forgets too much": &Kepts{{ID: "a", First: 2, Last: 1}},
		"exit code":        &Kepts{{ID: "a", Code: 256}},
		"signal":           &Kepts{{ID: "a", Signal: 65}},
		"negative offset":  &KeptInput{Next: -1},
	} {
		if m.Check() == nil {
			t.Errorf("%s is let through", name)
		}
	}
	l := Kepts{{ID: "a", Title: "x\x1b[31m\ny" + strings.Repeat("z", 5000)}}
	if err := l.Check(); err != nil || len(l[0].Title) > 300 || strings.ContainsAny(l[0].Title, "\x1b\n") {
		t.Errorf("got %q, %v", l[0].Title, err)
	}
}

package agent

import (
	"context"
	"errors"
	"testing"
)

// answers is a model that gives its words, then its error.
type answers struct {
	words []string
	err   error
}

func (a answers) Stream(_ context.Context, _ Request, emit func(Chunk) error) (Finish, error) {
	for _, w := range a.words {
		if err := emit(Chunk{Text: w}); err != nil {
			return Finish{}, err
		}
	}
	return Finish{}, a.err
}

func TestFallback_AsksTheNextOneBeforeAnythingHasCome(t *testing.T) {
	away, wrong := Failure(Overloaded, nil, "It is away."), Failure(Rejected, nil, "It does not take this.")
	for name, c := range map[string]struct {
		models []Model
		said   string
		last   int
		err    error
	}{
		"the first answers":           {[]Model{answers{words: []string{"a"}}, answers{words: []string{"b"}}}, "a", 0, nil},
		"the first is away":           {[]Model{answers{err: away}, answers{words: []string{"b"}}}, "b", 1, nil},
		"the first is cut off":        {[]Model{answers{words: []string{"a"}, err: away}, answers{words: []string{"b"}}}, "a", 0, away},
		"the first refuses":           {[]Model{answers{err: wrong}, answers{words: []string{"b"}}}, "", 0, wrong},
		"all are away, the last says": {[]Model{answers{err: Failure(Unreachable, nil, "It is not there.")}, answers{err: away}}, "", 1, away},
	} {
		said, last := "", -1
		_, err := Fallback{c.models, func(i int) { last = i }}.Stream(t.Context(), Request{}, func(c Chunk) error {
			said += c.Text
			return nil
		})
		if said != c.said || last != c.last || !errors.Is(err, c.err) {
			t.Errorf("%s: %q of %d, %v", name, said, last, err)
		}
	}
}

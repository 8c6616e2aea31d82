package fault

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestKindOf(t *testing.T) {
	plain := errors.New("boom")
	for name, c := range map[string]struct {
		err  error
		want Kind
	}{
		"unclassified":       {plain, Internal},
		"deadline":           {fmt.Errorf("list: %w", context.DeadlineExceeded), Timeout},
		"classified":         {New(NotFound, "no"), NotFound},
		"wrapped by text":    {fmt.Errorf("start: %w", New(Conflict, "no")), Conflict},
		"outermost wins":     {Wrap(New(NotFound, "inner"), Unavailable, "outer"), Unavailable},
		"joined":             {errors.Join(New(Invalid, "no"), plain), Invalid},
		"field":              {Field("name", "no"), Invalid},
		"classified timeout": {Wrap(context.DeadlineExceeded, Unavailable, "gone"), Unavailable},
	} {
		if got := KindOf(c.err); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestMessage_OnlyClassifiedTextReachesAUser(t *testing.T) {
	secret := errors.New("dial /secret/path")
	if got := Message(secret); got == secret.Error() || got == "" {
		t.Errorf("unclassified: %q", got)
	}
	if got := Message(Wrap(secret, Unavailable, "The engine is away.")); got != "The engine is away." {
		t.Errorf("classified: %q", got)
	}
	if got := Message(context.DeadlineExceeded); got == "" || got == context.DeadlineExceeded.Error() {
		t.Errorf("deadline: %q", got)
	}
}

func TestWrap_OfNilIsNil(t *testing.T) {
	if err := Wrap(nil, Internal, "no"); err != nil {
		t.Errorf("got %v", err)
	}
	if Is(nil, Internal) {
		t.Error("nil is of a kind")
	}
}

func TestFieldOf(t *testing.T) {
	if got := FieldOf(fmt.Errorf("create: %w", Field("limits.memory", "no"))); got != "limits.memory" {
		t.Errorf("got %q", got)
	}
	if got := FieldOf(errors.New("x")); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestKind_StringIsTheStableName(t *testing.T) {
	for kind, want := range map[Kind]string{Internal: "internal", NotFound: "not_found", Limited: "rate_limited", Timeout: "timeout", Kind(200): "internal"} {
		if got := kind.String(); got != want {
			t.Errorf("%d: %q, want %q", kind, got, want)
		}
	}
}

package catalog

import (
	"slices"
	"testing"
	"time"

	"sandboxd/internal/fault"
)

func TestMade_IsToldOfBuildsAndPullsOnly(t *testing.T) {
	bubble(t, func(r *rig) {
		var told []string
		r.made = func(pulled bool, _ time.Duration, err error) {
			what := "build"
			if pulled {
				what = "pull"
			}
			if err != nil {
				what += " " + fault.KindOf(err).String()
			}
			told = append(told, what)
		}
		for range 2 { // the second finds both images there
			if _, err := r.ensure("top"); err != nil {
				t.Fatal(err)
			}
		}
		r.engine.set(func() { r.engine.fail[repositoryPrefix+"side"] = fault.New(fault.Invalid, "A step failed.") })
		_, _ = r.ensure("side")
		if want := []string{"build", "build", "build invalid"}; !slices.Equal(told, want) {
			t.Errorf("told of %q, want %q", told, want)
		}
	})
}

package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"time"

	"sandboxd/internal/pace"
)

// What steps are guessed to take that were never done on this host.
const (
	pullGuess    = 20 * time.Second
	installGuess = 45 * time.Second // of a RUN that fetches or compiles
	runGuess     = 2 * time.Second
	copyGuess    = 500 * time.Millisecond
	noteGuess    = 200 * time.Millisecond // of an instruction that only notes something
)

// heavy finds the commands in a RUN that fetch or compile.
var heavy = regexp.MustCompile(`(^|[\s;&|(])(apt|apt-get|apk|dnf|yum|install[-\w]*|pip3?|npm|npx|yarn|pnpm|corepack|gem|cargo|go|make|cmake|curl|wget|git)\s`)

// guess is what an instruction takes, as far as its words tell.
func (i instruction) guess() time.Duration {
	switch i.Word {
	case "RUN":
		if heavy.MatchString(i.Rest) {
			return installGuess
		}
		return runGuess
	case "COPY", "ADD":
		return copyGuess
	}
	return noteGuess
}

// estimates say how long the steps of recipes take.
type estimates struct{ times *pace.Times }

// keyDigits is how much of the hash of an instruction names it among those of its template.
const keyDigits = 12

// stepKey names a step (from 1) among all that take time on this host: by its text, so that a change of one instruction leaves the
// others known. alike names the same words of any template: several have layers in common.
func (r *recipe) stepKey(n int) (key, alike string) {
	if r.docker == nil {
		return "pull/" + r.ref, ""
	}
	text := "labels"
	if n <= len(r.docker.Steps) {
		step := r.docker.Steps[n-1]
		text = step.Word + " " + step.Rest
	}
	sum := sha256.Sum256([]byte(text))
	hash := hex.EncodeToString(sum[:])[:keyDigits]
	return "build/" + r.name + "/" + hash, "build//" + hash
}

// lengths gives how long each step of a recipe takes that does not find its result there.
func (e estimates) lengths(r *recipe) []pace.Length {
	list := make([]pace.Length, r.steps())
	for n := range list {
		guess := noteGuess
		if r.docker == nil {
			guess = pullGuess
		} else if n < len(r.docker.Steps) {
			guess = r.docker.Steps[n].guess()
		}
		key, alike := r.stepKey(n + 1)
		if list[n] = e.times.Length(key, guess); list[n].Measured == 0 && alike != "" {
			list[n] = e.times.Length(alike, guess)
		}
	}
	return list
}

// noteStep notes how long the present step of f took until now, unless it only found its result.
func (e estimates) noteStep(f *job, now time.Time) {
	if f.at.cached {
		return
	}
	key, alike := f.recipe.stepKey(max(f.at.own, 1))
	e.times.Note(key, now.Sub(f.at.began))
	if alike != "" {
		e.times.Note(alike, now.Sub(f.at.began))
	}
}

// load is an amount of work.
type load struct {
	steps  int
	length pace.Length
}

func (l load) plus(o load) load { return load{l.steps + o.steps, l.length.Plus(o.length)} }

// loadOf is how much work it is to make a recipe's image.
func (e estimates) loadOf(r *recipe) load { return load{r.steps(), pace.Sum(e.lengths(r))} }

// expected gives how long it takes until r's image is there, with all below it that is missing. An engine that does not answer makes it
// seem shorter.
func (i *Images) expected(ctx context.Context, r *recipe) pace.Length {
	length := i.estimates.loadOf(r).length
	missing, _ := i.missing(ctx, r)
	for _, m := range missing {
		length = length.Plus(i.estimates.loadOf(m).length)
	}
	return length
}

// Pace gives how far the image of t is that is being made; ok is false when it is not. It asks nobody.
func (i *Images) Pace(t Template) (p pace.Pace, ok bool) {
	r, err := i.recipeOf(t)
	if err != nil {
		return pace.Pace{}, false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	f := i.jobs[r.ref]
	if f == nil {
		return pace.Pace{}, false
	}
	return f.at.pace(), true
}

package catalog

import (
	"context"
	"errors"
	"slices"
	"time"

	"sandboxd/internal/fault"
)

// Why an image is built.
const (
	WhyUse      = ""         // something needs it that is not there
	WhyBase     = "base"     // the template By builds on it
	WhyAsked    = "asked"    // the user By wants it
	WhySchedule = "schedule" // it was due
)

// Order is how an image is to be built, and for whom.
type Order struct {
	Pull    bool // fetch the images that the Dockerfile names again, so that they are the newest
	NoCache bool // run every step again
	Why     string
	By      string // name of a user or a template, or ""
}

// Record is one build, or pull, of a template's image.
type Record struct {
	Template  string
	Ref       string
	Order     Order
	Began     time.Time
	Ended     time.Time // zero until then
	Problem   string    // why it failed, for a person; ""
	CutOff    bool      // it did not end, because sandboxd did
	Cancelled bool      // a user has ended it, as Problem says
	Log       []string  // lines; the oldest are left out beyond 256 KiB
}

// Records keeps what was built. It is called from the goroutine that builds: first Begun, then Ended with what Begun has given.
// It bounds itself, and never fails a build.
type Records interface {
	Begun(r Record) (id int64)
	Ended(id int64, r Record)
}

// recorded is a record with its id.
type recorded struct {
	Record
	id int64
}

// recordBegin notes that f is built.
func (i *Images) recordBegin(f *job) {
	if i.records == nil || f.recipe.name == "" {
		return
	}
	r := Record{Template: f.recipe.name, Ref: f.recipe.ref, Order: f.order, Began: time.Now()}
	f.record = &recorded{r, i.records.Begun(r)}
}

// recordEnd notes how that has ended. A job that only found the image there has begun nothing.
func (i *Images) recordEnd(f *job, err error, log []string) {
	if f.record == nil {
		return
	}
	r := f.record.Record
	r.Ended, r.Log = time.Now(), log
	if err != nil {
		r.Problem, r.CutOff, r.Cancelled = fault.Message(err), errors.Is(err, errEnding), errors.Is(err, errCancelled)
	}
	i.records.Ended(f.record.id, r)
}

// recordUnbegun notes a job that failed in line, because what it builds on did.
func (i *Images) recordUnbegun(f *job) {
	i.mu.Lock()
	failed := f.ended && !f.claimed && f.err != nil
	i.mu.Unlock()
	if failed {
		i.recordBegin(f)
		i.recordEnd(f, f.err, nil)
	}
}

// logOf gives the lines of f so far.
func (i *Images) logOf(f *job) []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if h := i.past[f.recipe.name]; h != nil && h.ref == f.recipe.ref {
		return h.log.all()
	}
	return nil
}

// refreshed adds the images that a Dockerfile names to those that are missing.
func (r *recipe) refreshed(missing []*recipe) []*recipe {
	for _, ref := range r.external {
		ref = normalImage(ref)
		if !slices.ContainsFunc(missing, func(m *recipe) bool { return m.ref == ref }) {
			missing = append(missing, &recipe{ref: ref})
		}
	}
	return missing
}

// kept reports whether an image that could not be fetched again is there from before, and says so in the log of f.
func (i *Images) kept(ctx context.Context, f *job, r *recipe, why error) bool {
	present, err := i.has(ctx, r.ref)
	if err != nil || !present || ctx.Err() != nil {
		return false
	}
	i.emit(f, BuildEvent{Line: "The image " + r.ref + " could not be fetched again; the one that is there is used. " + fault.Message(why)}, load{})
	return true
}

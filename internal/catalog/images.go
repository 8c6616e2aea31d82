package catalog

import (
	"context"
	"time"

	"sandboxd/internal/pace"
)

// Engine is what building and fetching images asks of a container engine. Implemented by internal/docker.
//
// All calls are safe for concurrent use and end when ctx does. Kinds: NotFound (no such image anywhere), Unavailable
// (engine or registry does not answer), Invalid (the Dockerfile is broken or a step failed; the message's first
// line names the step and what it said, the lines after it are the step's last output).
type Engine interface {
	// HasImage says whether ref is present on the engine.
	HasImage(ctx context.Context, ref string) (bool, error)
	// BuildImage builds b and tags it b.Tag. It calls out for every line and step, from one goroutine.
	BuildImage(ctx context.Context, b Build, out func(BuildEvent)) error
	// PullImage makes ref present on the engine: from a registry, or, for the Debian base image where no registry
	// answers, bootstrapped from Debian's packages.
	PullImage(ctx context.Context, ref string, out func(BuildEvent)) error
	// ImageTags gives the references ("sandboxd/base:0123456789ab") of all images of a repository ("sandboxd/base") that
	// are present; none is no error.
	ImageTags(ctx context.Context, repository string) ([]string, error)
}

// Build is one image to build.
type Build struct {
	Tag    string            // reference that the image gets
	Folder string            // build context; its Dockerfile is at the top
	Args   map[string]string // build arguments, such as BASE_IMAGE
	Labels map[string]string
	Extra  map[string][]byte // files added to the context, by slash path, such as .sandboxd/ca/host.crt

	NoCache bool // every step is run again
}

// BuildEvent is a step or a line of output of a build or a pull.
type BuildEvent struct {
	Step  int    // the step under way, from 1; 0 while it is not known
	Steps int    // how many there are; 0 while it is not known
	Done  int64  // bytes or units done in this step; 0 when it cannot be told
	Total int64  // of how many; 0 when it cannot be told
	Line  string // a line of output without its line end, or ""

	Cached bool // the step only finds the result that it had before
}

// ImageState is how a template's image stands.
type ImageState string

// The states of an image.
const (
	ImageMissing  ImageState = "missing"  // never built; it is built on first use
	ImageBuilt    ImageState = "built"    // present and of the folder's present content
	ImageStale    ImageState = "stale"    // present, but the folder has changed since
	ImageBuilding ImageState = "building" // a build is under way
	ImageFailed   ImageState = "failed"   // the last build failed; Problem says why
)

// ImageEvent says that a template's image has changed: a line of its log, a step, or the end of a build.
type ImageEvent struct {
	Template string
	Status   ImageStatus
	Line     string // a new line of the log, or ""
}

// ImageStatus is an image's state with what a person wants to know of it.
type ImageStatus struct {
	State     ImageState
	Ref       string // the reference that sandboxes made now would use
	Problem   string
	Cancelled bool // with ImageFailed: a user wanted that
	Step      int  // while building
	Steps     int
	Progress  float64 // 0 to 1 while building
	Since     time.Time
	Expected  pace.Length // while it is not there: how long it takes to make it, with what it builds on
	Pace      pace.Pace   // while building
}

package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/pkg/jsonmessage"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// How long a registry may be silent. An engine itself tries for minutes to reach one that is not there.
const (
	registryLimit = 25 * time.Second // until its first word
	silenceLimit  = 2 * time.Minute  // between two words later; unpacking a large layer says nothing for a while
	pullLimit     = time.Hour        // altogether
)

// PullImage fetches ref. See catalog.Engine.
func (e imageStore) PullImage(ctx context.Context, ref string, out func(catalog.BuildEvent)) error {
	err := e.pull(ctx, ref, out)
	if ref != baseImage || !fault.Is(err, fault.Unavailable) || e.Ping(ctx) != nil {
		return err
	}
	out(catalog.BuildEvent{Line: fmt.Sprintf("No registry answers; making %s from Debian's packages instead.", ref)})
	return e.bootstrap(ctx, ref, out)
}

// offerLimit is how long Offered lets a registry think.
const offerLimit = 10 * time.Second

// Offered reports whether a registry would give ref now, without fetching it.
func (e imageStore) Offered(ctx context.Context, ref string) bool {
	ctx, cancel := context.WithTimeout(ctx, offerLimit)
	defer cancel()
	_, err := e.client.Load().DistributionInspect(ctx, ref, "")
	return err == nil
}

var errSilent = errors.New("the registry is silent")

// pull fetches ref from its registry, for as long as data arrives.
func (e imageStore) pull(ctx context.Context, ref string, out func(catalog.BuildEvent)) error {
	if _, err := reference.ParseNormalizedNamed(ref); err != nil {
		return fault.Wrap(err, fault.Invalid, "%.100q is not the name of an image: %v.", ref, err)
	}
	ctx, cancel := context.WithTimeout(ctx, pullLimit)
	defer cancel()
	err := unlessSilent(ctx, func(ctx context.Context, heard func()) error {
		return e.follow(ctx, ref, func(event catalog.BuildEvent) {
			heard()
			if event.Line != "" || event.Total > 0 {
				out(event)
			}
		})
	})
	if errors.Is(err, errSilent) {
		return fault.Wrap(err, fault.Unavailable, "No registry answers for the image %s. Look at this machine's network, or load the image into the engine by hand.", ref)
	}
	return err
}

// unlessSilent runs do and ends it with errSilent when it does not call heard often enough.
func unlessSilent(ctx context.Context, do func(ctx context.Context, heard func()) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(registryLimit, func() { cancel(errSilent) })
	defer watchdog.Stop()
	err := do(ctx, func() { watchdog.Reset(silenceLimit) })
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}

// follow asks the engine to fetch ref and tells of every message.
func (e imageStore) follow(ctx context.Context, ref string, tell func(catalog.BuildEvent)) error {
	answer, err := e.client.Load().ImagePull(ctx, ref, image.PullOptions{})
	if err != nil {
		return pullError(ref, err)
	}
	defer answer.Close()
	p := pullProgress{layers: map[string]*layer{}}
	err = readMessages(answer, func(m *jsonmessage.JSONMessage) error {
		if m.Error != nil {
			return unfetched(ref, m.Error, clean(m.Error.Message, longestWord))
		}
		tell(p.take(m))
		return nil
	})
	return classify(err, "fetch the image")
}

// pullError classifies an engine's refusal to fetch ref, made before it has answered.
func pullError(ref string, err error) error {
	switch {
	case errdefs.IsNotFound(err), errdefs.IsPermissionDenied(err), errdefs.IsUnauthorized(err):
		return noImage(ref, err, word(err))
	case errdefs.IsInvalidArgument(err):
		return fault.Wrap(err, fault.Invalid, "The engine does not take %.100q as an image's name: %s", ref, word(err))
	case errdefs.IsInternal(err), errdefs.IsUnavailable(err), errdefs.IsUnknown(err):
		return unfetched(ref, err, word(err))
	}
	return classify(err, "fetch the image")
}

func noImage(ref string, err error, text string) error {
	return fault.Wrap(err, fault.NotFound, "There is no image %s for this machine, or the registry does not give it to everybody: %s", ref, text)
}

// missingWords are how an engine says that there is no such image where it gives no status for it: within an answer
// that it has begun, and of some registries also before. Text decides nowhere else.
var missingWords = []string{"manifest unknown", "manifest for", "pull access denied", "repository does not exist", "no matching manifest"}

// unfetched is a failure to fetch ref of which only text tells more.
func unfetched(ref string, err error, text string) error {
	for _, w := range missingWords {
		if strings.Contains(strings.ToLower(text), w) {
			return noImage(ref, err, text)
		}
	}
	return fault.Wrap(err, fault.Unavailable, "The image %s cannot be fetched: %s", ref, text)
}

// maxLayers bounds the layers remembered of a hostile image.
const maxLayers = 1000

// pullProgress adds up what the engine tells of an image's layers.
type pullProgress struct {
	layers      map[string]*layer
	done, total int64
}

type layer struct {
	done, total int64
	status      string
}

// take notes one message and gives what it says: a line when something is new, and the bytes of all layers so far.
func (p *pullProgress) take(m *jsonmessage.JSONMessage) catalog.BuildEvent {
	line := m.Status
	if l := p.layer(m); l != nil {
		if line = m.ID + ": " + m.Status; m.Status == l.status {
			line = ""
		}
		l.status = m.Status
		p.count(l, m)
	}
	return catalog.BuildEvent{Done: p.done, Total: p.total, Line: text.Excerpt(line, longestLine)}
}

// count adds what m tells of l's download; unpacking counts nothing, since it begins at zero again.
func (p *pullProgress) count(l *layer, m *jsonmessage.JSONMessage) {
	done, total := l.done, l.total
	switch {
	case m.Status == "Download complete":
		done = total
	case m.Status == "Downloading" && m.Progress != nil:
		done, total = max(m.Progress.Current, 0), max(m.Progress.Total, 0)
	}
	p.done += done - l.done
	p.total += total - l.total
	l.done, l.total = done, total
}

// layer gives the layer that m is about, or nil when it is about the whole image.
func (p *pullProgress) layer(m *jsonmessage.JSONMessage) *layer {
	if m.ID == "" || strings.HasPrefix(m.Status, "Pulling from ") {
		return nil
	}
	l := p.layers[m.ID]
	if l == nil && len(p.layers) < maxLayers {
		l = &layer{}
		p.layers[m.ID] = l
	}
	return l
}

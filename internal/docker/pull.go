package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/pkg/jsonmessage"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
)

// How long a registry may be silent. An engine itself tries for minutes to reach one that is not there.
const (
	registryLimit = 25 * time.Second // until its first word
	silenceLimit  = 2 * time.Minute  // between two words later; unpacking a large layer says nothing for a while
	pullLimit     = time.Hour        // altogether
)

// PullImage fetches ref. See catalog.Engine.
func (e *Engine) PullImage(ctx context.Context, ref string, out func(catalog.BuildEvent)) error {
	err := e.pull(ctx, ref, out)
	if ref != baseImage || !fault.Is(err, fault.Unavailable) || e.Ping(ctx) != nil {
		return err
	}
	out(catalog.BuildEvent{Line: fmt.Sprintf("No registry answers; making %s from Debian's packages instead.", ref)})
	return e.bootstrap(ctx, ref, out)
}

var errSilent = errors.New("the registry is silent")

// pull fetches ref from its registry, as long as that goes on talking.
func (e *Engine) pull(ctx context.Context, ref string, out func(catalog.BuildEvent)) error {
	ctx, cancel := context.WithTimeout(ctx, pullLimit)
	defer cancel()
	ctx, hush := context.WithCancelCause(ctx)
	defer hush(nil)
	watchdog := time.AfterFunc(registryLimit, func() { hush(errSilent) })
	defer watchdog.Stop()
	err := e.follow(ctx, ref, func(event catalog.BuildEvent) {
		watchdog.Reset(silenceLimit)
		if event.Line != "" || event.Total > 0 {
			out(event)
		}
	})
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		return fault.Wrap(errSilent, fault.Unavailable, "No registry answers for the image %s. Look at this machine's network, or load the image into the engine by hand.", ref)
	}
	return err
}

// follow asks the engine to fetch ref and tells of every message.
func (e *Engine) follow(ctx context.Context, ref string, tell func(catalog.BuildEvent)) error {
	answer, err := e.client.Load().ImagePull(ctx, ref, image.PullOptions{})
	if err != nil {
		return pullError(ref, err)
	}
	defer answer.Close()
	p := pullProgress{layers: map[string]*layer{}}
	err = readMessages(answer, func(m *jsonmessage.JSONMessage) error {
		if m.Error != nil {
			return pullFailure(ref, m.Error)
		}
		tell(p.take(m))
		return nil
	})
	return classify(err, "fetch the image")
}

// pullError classifies an engine's refusal to fetch ref. The engine tells a missing image by its status; when the
// registry cannot be reached it only says that something failed inside.
func pullError(ref string, err error) error {
	switch {
	case errdefs.IsNotFound(err), errdefs.IsPermissionDenied(err), errdefs.IsUnauthorized(err):
		return fault.Wrap(err, fault.NotFound, "There is no image %s, or the registry does not give it to everybody: %s", ref, word(err))
	case errdefs.IsInvalidArgument(err):
		return fault.Wrap(err, fault.Invalid, "The engine does not take %.100q as an image's name: %s", ref, word(err))
	case errdefs.IsInternal(err), errdefs.IsUnavailable(err), errdefs.IsUnknown(err):
		return fault.Wrap(err, fault.Unavailable, "The image %s cannot be fetched: %s", ref, word(err))
	}
	return classify(err, "fetch the image")
}

// missingWords are how engines say within a pull's answer, after they have begun it, that there is no such image.
// There is no status then, only this text: the one place where text decides.
var missingWords = []string{"manifest unknown", "not found", "pull access denied", "repository does not exist", "no matching manifest"}

func pullFailure(ref string, cause *jsonmessage.JSONError) error {
	text := clean(cause.Message, longestWord)
	for _, w := range missingWords {
		if strings.Contains(strings.ToLower(text), w) {
			return fault.Wrap(cause, fault.NotFound, "There is no image %s for this machine, or the registry does not give it to everybody: %s", ref, text)
		}
	}
	return fault.Wrap(cause, fault.Unavailable, "The image %s cannot be fetched: %s", ref, text)
}

// maxLayers bounds what is remembered of an image that is made to be a nuisance.
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
	return catalog.BuildEvent{Done: p.done, Total: p.total, Line: oneLine(line, longestLine)}
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

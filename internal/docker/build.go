package docker

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/pkg/jsonmessage"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// buildLimit bounds one build; callers usually have a shorter one.
const buildLimit = 2 * time.Hour

// buildMemoryPart is the part of the host's memory that a step of a build may use, without swap: a half.
const buildMemoryPart = 2

// tailLines is how many of a failed step's last lines of output are told with its failure.
const tailLines = 12

// HasImage says whether ref is present. See catalog.Engine.
func (e imageStore) HasImage(ctx context.Context, ref string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	_, err := e.client.Load().ImageInspect(ctx, ref)
	if errdefs.IsNotFound(err) {
		return false, nil
	}
	return err == nil, classify(err, "look for the image")
}

// BuildImage builds b with the engine's classic builder. See catalog.Engine.
func (e imageStore) BuildImage(ctx context.Context, b catalog.Build, out func(catalog.BuildEvent)) error {
	ctx, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	sent, writer := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := writeContext(writer, b)
		writer.CloseWithError(err)
		written <- err
	}()
	err := e.build(ctx, sent, b, out)
	sent.CloseWithError(errAnswered)
	if contextErr := <-written; contextErr != nil && !errors.Is(contextErr, errAnswered) && !errors.Is(contextErr, io.ErrClosedPipe) {
		err = contextErr // the engine has only seen a broken archive
	}
	return classify(err, "build the image")
}

var errAnswered = errors.New("the engine has answered")

func (e imageStore) build(ctx context.Context, context io.Reader, b catalog.Build, out func(catalog.BuildEvent)) error {
	args := make(map[string]*string, len(b.Args))
	for k, v := range b.Args {
		args[k] = &v
	}
	memory := e.Info().Memory / buildMemoryPart
	answer, err := e.client.Load().ImageBuild(ctx, context, build.ImageBuildOptions{
		Tags: []string{b.Tag}, Dockerfile: dockerfile, BuildArgs: args, Labels: b.Labels,
		NoCache: b.NoCache, NetworkMode: "host", Memory: memory, MemorySwap: memory, Remove: true, ForceRemove: true, Version: build.BuilderV1,
	})
	if errdefs.IsNotImplemented(err) || errdefs.IsNotFound(err) {
		return fault.Wrap(err, fault.Invalid, "This engine cannot build images with its classic builder, which sandboxd needs: %s", word(err))
	}
	if err != nil {
		return refused(err, "build the image")
	}
	defer answer.Body.Close()
	return newBuildReader(out).read(answer.Body)
}

// stepLine is what the classic builder says at the start of a step.
var stepLine = regexp.MustCompile(`^Step (\d+)/(\d+) : (.*)$`)

// cachedLine is what it says in a step whose result it finds there from before.
const cachedLine = " ---> Using cache"

// buildReader follows the answer to a build.
type buildReader struct {
	out         func(catalog.BuildEvent)
	lines       lineSplitter
	event       catalog.BuildEvent // step and steps so far
	instruction string             // of the step under way
	tail        []string           // last lines of its output
	built       bool               // the engine has named the image
}

func newBuildReader(out func(catalog.BuildEvent)) *buildReader {
	r := &buildReader{out: out}
	r.lines.emit = r.line
	return r
}

func (r *buildReader) read(answer io.Reader) error {
	err := readMessages(answer, func(m *jsonmessage.JSONMessage) error {
		r.lines.write(m.Stream)
		if m.Status != "" {
			r.line(m.Status) // a FROM that the engine fetches
		}
		if m.Aux != nil {
			r.built = true
		}
		if m.Error != nil {
			r.lines.flush()
			return r.failure(m.Error)
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.lines.flush()
	if !r.built {
		return fault.New(fault.Unavailable, "The container engine broke off the build. Try again; the engine's log may say why.")
	}
	return nil
}

func (r *buildReader) line(line string) {
	line = catalog.CleanLine(line)
	if m := stepLine.FindStringSubmatch(line); m != nil {
		step, err1 := strconv.Atoi(m[1])
		steps, err2 := strconv.Atoi(m[2])
		if err1 == nil && err2 == nil {
			r.event = catalog.BuildEvent{Step: step, Steps: steps}
			r.instruction, r.tail = m[3], nil
		}
	} else if !strings.HasPrefix(line, " ---> ") && !strings.HasPrefix(line, "Removing intermediate container ") {
		if r.tail = append(r.tail, text.Excerpt(line, longestLine)); len(r.tail) > tailLines {
			r.tail = r.tail[1:]
		}
	}
	event := r.event
	event.Line, event.Cached = line, line == cachedLine
	r.out(event)
}

// failure says which step has failed, how, and what it said last.
func (r *buildReader) failure(cause *jsonmessage.JSONError) error {
	reason := clean(cause.Message, longestWord)
	if r.event.Step == 0 {
		return fault.Wrap(cause, fault.Invalid, "The image cannot be built: %s", reason)
	}
	said := ""
	if len(r.tail) > 0 {
		said = "\n" + strings.Join(r.tail, "\n")
	}
	return fault.Wrap(cause, fault.Invalid, "Step %d of %d has failed (%s): %s%s", r.event.Step, r.event.Steps,
		text.Excerpt(r.instruction, longestWord), reason, said)
}

// readMessages reads the engine's stream of messages to its end, or to the first error that handle gives.
func readMessages(stream io.Reader, handle func(*jsonmessage.JSONMessage) error) error {
	decoder := json.NewDecoder(stream)
	for {
		var m jsonmessage.JSONMessage
		if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := handle(&m); err != nil {
			return err
		}
	}
}

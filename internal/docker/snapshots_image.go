package docker

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/pkg/jsonmessage"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// register makes an image of layers that the engine has, but for the last of them when that is given, with all else as base has it. It
// gives the engine an archive of images as "docker save" writes it, without the other layers: the engine opens only those that it lacks. The
// comment makes each an image of its own: were two names of one image, the engine could remove it with the one while it is given the other.
func (e *snapshots) register(ctx context.Context, base image.InspectResponse, layers []string, ref string, last *sandbox.Layer) error {
	config, err := json.Marshal(map[string]any{
		"architecture": base.Architecture, "variant": base.Variant, "os": base.Os, "created": base.Created, "config": base.Config, "comment": ref,
		"rootfs": map[string]any{"type": "layers", "diff_ids": layers},
	})
	if err != nil {
		return fmt.Errorf("describe the image: %w", err)
	}
	sum := sha256.Sum256(config)
	name := hex.EncodeToString(sum[:]) + ".json"
	files := make([]string, len(layers))
	for i := range files {
		files[i] = fmt.Sprintf("%d/layer.tar", i)
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": name, "RepoTags": []string{ref}, "Layers": files}})
	if err != nil {
		return fmt.Errorf("describe the image: %w", err)
	}
	from, to := io.Pipe()
	defer from.Close()
	e.running.Go(func() {
		out := imageArchive{tar.NewWriter(to)}
		err := errors.Join(out.addText(name, config), out.addText("manifest.json", manifest))
		if err == nil && last != nil {
			if _, err = last.Content.Seek(0, io.SeekStart); err == nil {
				err = out.add(files[len(files)-1], last.Size, last.Content)
			}
		}
		to.CloseWithError(errors.Join(err, out.Close()))
	})
	answer, err := e.client.Load().ImageLoad(ctx, from)
	if err != nil {
		return refused(err, "make the image")
	}
	defer answer.Body.Close()
	if err := heard(answer.Body, "make the image"); err != nil {
		return err
	}
	made, err := e.client.Load().ImageInspect(ctx, ref)
	if err == nil && !slices.Equal(made.RootFS.Layers, layers) {
		return fault.New(fault.Unavailable, "The container engine has made another image than it was told to.")
	}
	return classify(err, "make the image")
}

// flatten makes an image of one layer of all the files of a container. Of extended attributes it has the capabilities of files only:
// the engine writes no others. Of the image before it has the variables; all else the containers of sandboxes have of their own.
func (e *snapshots) flatten(ctx context.Context, containerID string, base image.InspectResponse, ref string) error {
	files, err := e.client.Load().ContainerExport(ctx, containerID)
	if err != nil {
		return classify(err, "read the container's files")
	}
	defer files.Close()
	return e.importFiles(ctx, files, base, ref)
}

// importFiles makes an image of one layer of files, with the variables of another one.
func (e *snapshots) importFiles(ctx context.Context, files io.Reader, base image.InspectResponse, ref string) error {
	var changes []string
	if base.Config != nil {
		changes = environment(base.Config.Env)
	}
	answer, err := e.client.Load().ImageImport(ctx, image.ImportSource{Source: files, SourceName: "-"}, ref, image.ImportOptions{Changes: changes})
	if err != nil {
		return classify(err, "make the image")
	}
	defer answer.Close()
	return heard(answer, "make the image")
}

// escapeEnv makes a value one of an ENV instruction in double quotes.
var escapeEnv = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`)

// environment gives variables as the instructions that set them. An instruction is one line: one that has more is left out.
func environment(variables []string) (changes []string) {
	for _, v := range variables {
		if name, value, ok := strings.Cut(v, "="); ok && !strings.ContainsAny(v, "\r\n") {
			changes = append(changes, fmt.Sprintf(`ENV %s="%s"`, name, escapeEnv.Replace(value)))
		}
	}
	return changes
}

// heard reads what the engine tells of something until it is done.
func heard(answer io.Reader, what string) error {
	return classify(readMessages(answer, func(m *jsonmessage.JSONMessage) error {
		if m.Error != nil {
			return fault.Wrap(m.Error, fault.Unavailable, "The container engine could not %s: %s", what, clean(m.Error.Message, longestWord))
		}
		return nil
	}), what)
}

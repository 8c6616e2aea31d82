package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/pkg/jsonmessage"

	"sandboxd/internal/fault"
)

// register makes an image of layers that the engine has, with all else as base has it. It gives the engine an archive of images as
// "docker save" writes it, without the layers: the engine opens only those that it lacks. The comment makes each an image of its own: were
// two names of one image, the engine could remove it with the one while it is given the other.
func (e *snapshots) register(ctx context.Context, base image.InspectResponse, layers []string, ref string) error {
	config, err := json.Marshal(map[string]any{
		"architecture": base.Architecture, "variant": base.Variant, "os": base.Os, "created": base.Created, "config": base.Config, "comment": ref,
		"rootfs": map[string]any{"type": "layers", "diff_ids": layers},
	})
	if err != nil {
		return fmt.Errorf("describe the image: %w", err)
	}
	sum := sha256.Sum256(config)
	name := hex.EncodeToString(sum[:]) + ".json"
	absent := make([]string, len(layers))
	for i := range absent {
		absent[i] = fmt.Sprintf("%d/layer.tar", i)
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": name, "RepoTags": []string{ref}, "Layers": absent}})
	if err != nil {
		return fmt.Errorf("describe the image: %w", err)
	}
	var b bytes.Buffer
	out := tar.NewWriter(&b)
	for _, f := range []struct {
		name    string
		content []byte
	}{{name, config}, {"manifest.json", manifest}} {
		err := out.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.content))})
		if err == nil {
			_, err = out.Write(f.content)
		}
		if err != nil {
			return fmt.Errorf("describe the image: %w", err)
		}
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("describe the image: %w", err)
	}
	answer, err := e.client.Load().ImageLoad(ctx, &b)
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
	cli := e.client.Load()
	files, err := cli.ContainerExport(ctx, containerID)
	if err != nil {
		return classify(err, "read the container's files")
	}
	defer files.Close()
	var changes []string
	if base.Config != nil {
		changes = environment(base.Config.Env)
	}
	answer, err := cli.ImageImport(ctx, image.ImportSource{Source: files, SourceName: "-"}, ref, image.ImportOptions{Changes: changes})
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

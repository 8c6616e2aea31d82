package docker

import (
	"context"
	"io"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"sandboxd/internal/fault"
)

// Raw does through the same client library what sandboxd does, with nothing of sandboxd's: the measure for benchmarks.
// Nothing that it makes carries sandboxd's labels.
type Raw struct {
	cli *client.Client
}

// RawContainer is a container that a Raw has made. The caller must Remove it.
type RawContainer struct {
	cli *client.Client
	id  string
}

// OpenRaw connects to the engine that the environment names. The caller must Close it.
func OpenRaw(ctx context.Context) (*Raw, error) {
	cli, err := dial()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	cli.NegotiateAPIVersion(ctx)
	if _, err := cli.Ping(ctx); err != nil {
		cli.Close()
		return nil, classify(err, "answer")
	}
	return &Raw{cli: cli}, nil
}

// Close ends the connection.
func (r *Raw) Close() error { return r.cli.Close() }

// CreateStart makes and starts a container of image that does nothing, with the engine's defaults for everything but
// the network: "" is the engine's own. When it fails nothing is left.
func (r *Raw) CreateStart(ctx context.Context, image, network string) (*RawContainer, error) {
	ctx, cancel := context.WithTimeout(ctx, createLimit)
	defer cancel()
	host := &container.HostConfig{NetworkMode: container.NetworkMode(network)}
	made, err := r.cli.ContainerCreate(ctx, &container.Config{Image: image, Entrypoint: []string{"sleep", "infinity"}}, host, nil, nil, "")
	if err != nil {
		return nil, refused(err, "make the container")
	}
	c := &RawContainer{cli: r.cli, id: made.ID}
	if err := r.cli.ContainerStart(ctx, c.id, container.StartOptions{}); err != nil {
		if removeErr := c.Remove(context.WithoutCancel(ctx)); removeErr != nil {
			return nil, removeErr
		}
		return nil, refused(err, "start the container")
	}
	return c, nil
}

// Container is the container of that name or id, whoever made it. It need not be removed.
func (r *Raw) Container(id string) *RawContainer { return &RawContainer{cli: r.cli, id: id} }

// Pause freezes the container's processes.
func (c *RawContainer) Pause(ctx context.Context) error {
	return classify(c.cli.ContainerPause(ctx, c.id), "freeze the container")
}

// Unpause lets them go on.
func (c *RawContainer) Unpause(ctx context.Context) error {
	return classify(c.cli.ContainerUnpause(ctx, c.id), "thaw the container")
}

// Stop ends the container's processes at once.
func (c *RawContainer) Stop(ctx context.Context) error {
	now := 0
	return classify(c.cli.ContainerStop(ctx, c.id, container.StopOptions{Timeout: &now}), "stop the container")
}

// Start starts the container again.
func (c *RawContainer) Start(ctx context.Context) error {
	return classify(c.cli.ContainerStart(ctx, c.id, container.StartOptions{}), "start the container")
}

// Exec runs a command in the container to its end, reads its output and its exit code as a caller would, and fails
// when that is not 0.
func (c *RawContainer) Exec(ctx context.Context, command ...string) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	made, err := c.cli.ContainerExecCreate(ctx, c.id, container.ExecOptions{Cmd: command, AttachStdout: true, AttachStderr: true})
	if err != nil {
		return classify(err, "prepare a command")
	}
	attached, err := c.cli.ContainerExecAttach(ctx, made.ID, container.ExecAttachOptions{})
	if err != nil {
		return classify(err, "run a command")
	}
	defer attached.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := attached.Conn.SetDeadline(deadline); err != nil {
			return classify(err, "run a command")
		}
	}
	if _, err := io.Copy(io.Discard, attached.Reader); err != nil {
		return classify(err, "read a command's output")
	}
	end, err := c.cli.ContainerExecInspect(ctx, made.ID)
	if err == nil && end.ExitCode != 0 {
		return fault.New(fault.Internal, "%v ended with exit code %d", command, end.ExitCode)
	}
	return classify(err, "look at a command")
}

// Remove ends and deletes the container.
func (c *RawContainer) Remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	err := c.cli.ContainerRemove(ctx, c.id, container.RemoveOptions{Force: true, RemoveVolumes: true})
	return classify(err, "remove the container")
}

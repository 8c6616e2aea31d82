//go:build bench

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
)

const rawLimit = 80 * time.Second // of a call

// rawEngine does through the same client library what sandboxd does, with nothing of sandboxd's: the measure for benchmarks.
// Nothing that it makes carries sandboxd's labels.
type rawEngine struct {
	cli *client.Client
}

// rawContainer is a container that a rawEngine has made. The caller must Remove it.
type rawContainer struct {
	cli *client.Client
	id  string
}

// openRaw connects to the engine that the environment names. The caller must Close it.
func openRaw(ctx context.Context) (*rawEngine, error) {
	transport := &http.Transport{MaxIdleConns: 32, MaxIdleConnsPerHost: 32, IdleConnTimeout: 30 * time.Second} // as sandboxd's
	hc := &http.Client{Transport: transport, CheckRedirect: client.CheckRedirect}
	cli, err := client.NewClientWithOpts(client.WithHTTPClient(hc), client.WithHost(client.DefaultDockerHost),
		client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, err
	}
	if _, err := cli.Ping(ctx); err != nil {
		cli.Close()
		return nil, err
	}
	return &rawEngine{cli: cli}, nil
}

// Close ends the connection.
func (r *rawEngine) Close() error { return r.cli.Close() }

// CreateStart makes and starts a container of image that does nothing, with the engine's defaults for everything but
// the network: "" is the engine's own. When it fails nothing is left.
func (r *rawEngine) CreateStart(ctx context.Context, image, network string) (*rawContainer, error) {
	ctx, cancel := context.WithTimeout(ctx, rawLimit)
	defer cancel()
	host := &container.HostConfig{NetworkMode: container.NetworkMode(network)}
	made, err := r.cli.ContainerCreate(ctx, &container.Config{Image: image, Entrypoint: []string{"sleep", "infinity"}}, host, nil, nil, "")
	if err != nil {
		return nil, err
	}
	c := &rawContainer{cli: r.cli, id: made.ID}
	if err := r.cli.ContainerStart(ctx, c.id, container.StartOptions{}); err != nil {
		if removeErr := c.Remove(context.WithoutCancel(ctx)); removeErr != nil {
			return nil, removeErr
		}
		return nil, err
	}
	return c, nil
}

// Container is the container of that name or id, of any origin. It need not be removed.
func (r *rawEngine) Container(id string) *rawContainer { return &rawContainer{cli: r.cli, id: id} }

// Pause freezes the container's processes.
func (c *rawContainer) Pause(ctx context.Context) error {
	return c.cli.ContainerPause(ctx, c.id)
}

// Unpause resumes them.
func (c *rawContainer) Unpause(ctx context.Context) error {
	return c.cli.ContainerUnpause(ctx, c.id)
}

// Stop ends the container's processes at once.
func (c *rawContainer) Stop(ctx context.Context) error {
	now := 0
	return c.cli.ContainerStop(ctx, c.id, container.StopOptions{Timeout: &now})
}

// Start starts the container again.
func (c *rawContainer) Start(ctx context.Context) error {
	return c.cli.ContainerStart(ctx, c.id, container.StartOptions{})
}

// Exec runs a command in the container to its end, reads its output and its exit code as a caller would, and fails
// when that is not 0.
func (c *rawContainer) Exec(ctx context.Context, command ...string) error {
	ctx, cancel := context.WithTimeout(ctx, rawLimit)
	defer cancel()
	made, err := c.cli.ContainerExecCreate(ctx, c.id, container.ExecOptions{Cmd: command, AttachStdout: true, AttachStderr: true})
	if err != nil {
		return err
	}
	attached, err := c.cli.ContainerExecAttach(ctx, made.ID, container.ExecAttachOptions{})
	if err != nil {
		return err
	}
	defer attached.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := attached.Conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if _, err := io.Copy(io.Discard, attached.Reader); err != nil {
		return err
	}
	end, err := c.cli.ContainerExecInspect(ctx, made.ID)
	if err == nil && end.ExitCode != 0 {
		return fmt.Errorf("%v ended with exit code %d", command, end.ExitCode)
	}
	return err
}

// Remove ends and deletes the container.
func (c *rawContainer) Remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, rawLimit)
	defer cancel()
	err := c.cli.ContainerRemove(ctx, c.id, container.RemoveOptions{Force: true, RemoveVolumes: true})
	return err
}

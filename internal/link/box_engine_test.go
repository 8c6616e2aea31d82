//go:build engine

package link_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/client"

	"sandboxd/internal/link"
	"sandboxd/internal/sandboxtest"
	"sandboxd/internal/wire"
)

const (
	testImage  = "debian:trixie-slim"
	testPrefix = "sbxguest-"
)

func TestMain(m *testing.M) { sandboxtest.Main(m) }

// box is a container with a guest, and a hub that expects it.
type engineBox struct {
	docker *client.Client
	id     string
	name   string
	root   string
	hub    *link.Hub
	stop   func() // of the hub
}

// startBox starts a container of the image; change may alter it before.
func startBox(t testing.TB, s wire.Setup, change func(*container.Config, *container.HostConfig)) *engineBox {
	t.Helper()
	docker, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("%s%d-%d", testPrefix, os.Getpid(), time.Now().UnixNano()%1e9)
	b := &engineBox{docker: docker, name: name, root: filepath.Join(t.TempDir(), "link")}
	b.openHub(t, s)
	yes := true
	config := &container.Config{Image: testImage, Entrypoint: []string{wire.GuestPath}, User: "0:0", WorkingDir: "/"}
	host := &container.HostConfig{Init: &yes, NetworkMode: "none", Mounts: []mount.Mount{
		{Type: mount.TypeBind, Source: sandboxtest.GuestBinary(t), Target: wire.GuestPath, ReadOnly: true},
		{Type: mount.TypeBind, Source: filepath.Join(b.root, name), Target: filepath.Dir(wire.SocketPath), ReadOnly: true},
		{Type: mount.TypeTmpfs, Target: wire.HomePath}}}
	if change != nil {
		change(config, host)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	made, err := docker.ContainerCreate(ctx, config, host, nil, nil, name)
	if err != nil {
		t.Fatal(err)
	}
	b.id = made.ID
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		docker.ContainerRemove(ctx, b.id, container.RemoveOptions{Force: true, RemoveVolumes: true})
		docker.Close()
	})
	if err := docker.ContainerStart(ctx, b.id, container.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *engineBox) openHub(t testing.TB, s wire.Setup) {
	t.Helper()
	b.hub = link.NewHub(b.root, nil)
	if _, err := b.hub.Expect(b.name, s); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.hub.Run(ctx)
	}()
	b.stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(b.stop)
}

func (b *engineBox) session(t testing.TB) *link.Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := b.hub.Session(ctx, b.name)
	if err != nil {
		logs, lerr := b.docker.ContainerLogs(ctx, b.id, container.LogsOptions{ShowStderr: true, ShowStdout: true})
		if lerr == nil {
			text, _ := io.ReadAll(logs)
			t.Logf("container: %s", text)
		}
		t.Fatal(err)
	}
	return s
}

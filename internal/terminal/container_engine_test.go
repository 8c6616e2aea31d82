//go:build engine

package terminal_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/client"

	"sandboxd/internal/access"
	"sandboxd/internal/access/accesstest"
	"sandboxd/internal/link"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
	"sandboxd/internal/terminal"
	"sandboxd/internal/wire"
)

const (
	plainImage = "debian:trixie-slim"
	prefix     = "sbxterm-"
	patience   = time.Minute
)

// ttydImage is the image of the template base, which has ttyd and tmux; it is built before these tests.
func ttydImage(t testing.TB) string {
	t.Helper()
	docker, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	defer docker.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	images, err := docker.ImageList(ctx, image.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range images {
		for _, tag := range i.RepoTags {
			if strings.HasPrefix(tag, "sandboxd/base:") {
				return tag
			}
		}
	}
	t.Fatal("the image of the template base is not there: run 'make test-engine', which builds it")
	return ""
}

func TestMain(m *testing.M) { sandboxtest.Main(m) }

// box is a sandbox of one image, with a real guest on a real link, as access knows it.
type box struct {
	docker  *client.Client
	id      string
	name    string
	hub     *link.Hub
	sandbox *accesstest.Sandbox
}

// startBox starts a box; change, which may be nil, alters it before.
func startBox(t testing.TB, ref string, change func(*container.HostConfig)) *box {
	t.Helper()
	docker, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	b := &box{docker: docker, name: fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), time.Now().UnixNano()%1e9)}
	folder := b.openHub(t)
	b.sandbox = accesstest.Linked(b.name, b.name, access.FromHub(b.hub))
	b.sandbox.OnAwake(b.thaw)
	yes := true
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	host := &container.HostConfig{Init: &yes, Mounts: []mount.Mount{
		{Type: mount.TypeBind, Source: sandboxtest.GuestBinary(t), Target: wire.GuestPath, ReadOnly: true},
		{Type: mount.TypeBind, Source: folder, Target: filepath.Dir(wire.SocketPath), ReadOnly: true},
		{Type: mount.TypeTmpfs, Target: wire.HomePath, TmpfsOptions: &mount.TmpfsOptions{Mode: 0o777}}}}
	if change != nil {
		change(host)
	}
	config := &container.Config{Image: ref, Entrypoint: []string{wire.GuestPath}, User: "0:0", WorkingDir: "/"}
	made, err := docker.ContainerCreate(ctx, config, host, nil, nil, b.name)
	if err != nil {
		t.Fatal(err)
	}
	b.id = made.ID
	t.Cleanup(func() { b.remove() })
	if err := docker.ContainerStart(ctx, b.id, container.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := b.hub.Ready(ctx, b.name); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *box) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = b.docker.ContainerRemove(ctx, b.id, container.RemoveOptions{Force: true, RemoveVolumes: true})
	_ = b.docker.Close()
}

func (b *box) openHub(t testing.TB) (folder string) {
	t.Helper()
	root := filepath.Join(t.TempDir(), "link")
	b.hub = link.NewHub(root, nil)
	folder, err := b.hub.Expect(b.name, wire.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = b.hub.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return folder
}

// thaw resumes the box when a person types.
func (b *box) thaw(ctx context.Context) error {
	if b.sandbox.Row().State != sandbox.Frozen {
		return nil
	}
	return b.docker.ContainerUnpause(ctx, b.id)
}

// freeze makes everything in the box stand still.
func (b *box) freeze(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := b.docker.ContainerPause(ctx, b.id)
	for errdefs.IsConflict(err) && ctx.Err() == nil { // the engine still has it for frozen, which it was before
		err = b.docker.ContainerPause(ctx, b.id)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.sandbox.Becomes(sandbox.Frozen)
}

// stands says how the box is said to stand.
func (b *box) stands() sandbox.State { return b.sandbox.Row().State }

func (b *box) service() *terminal.Service {
	return terminal.New(b.sandbox, slog.New(slog.DiscardHandler))
}

func (b *box) session(t testing.TB) *link.Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := b.hub.Session(ctx, b.name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs a command in the box and gives its output.
func (b *box) run(t testing.TB, user string, command ...string) string {
	t.Helper()
	args := append([]string{"exec", "--user", user, b.id}, command...)
	out, err := exec.Command("docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v: %s", command, err, out)
	}
	return string(out)
}

// floodGuest is a guest whose only terminal is the tab "flood".
type floodGuest struct{ *link.Session }

func (f floodGuest) DialTerminal(ctx context.Context, _ string) (net.Conn, error) {
	return f.Session.DialTerminal(ctx, "flood")
}

// flood makes the tab "flood" a ttyd without tmux that writes what a viewer can check, and gives the ways to it: through
// the guest link, and from outside of the box directly to its socket. It must come before the first tab.
func (b *box) flood(t testing.TB, bytes int) (linked access.Handle, direct func(context.Context) (net.Conn, error)) {
	t.Helper()
	script := "#!/bin/sh\ncase \"$*\" in *\"-s flood\") exec sh -c '" + terminal.FloodScript(bytes) + "';; esac\nexec /usr/bin/tmux.real \"$@\"\n"
	b.run(t, "0", "sh", "-c", "mv /usr/bin/tmux /usr/bin/tmux.real; cat > /usr/bin/tmux <<'END'\n"+script+"END\nchmod 755 /usr/bin/tmux")
	s := b.session(t)
	flood := floodGuest{s}
	socket := filepath.Join("/proc", strconv.Itoa(b.pid(t)), "root/run/sandboxd/flood.sock")
	direct = func(ctx context.Context) (net.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "unix", socket) }
	conn, err := flood.DialTerminal(t.Context(), "") // starts it
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	return accesstest.New("flood", flood).Handle(t), direct
}

// pid is the box's first process, as the host sees it.
func (b *box) pid(t testing.TB) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := b.docker.ContainerInspect(ctx, b.id)
	if err != nil {
		t.Fatal(err)
	}
	return c.State.Pid
}

func names(tabs []wire.Terminal) []string {
	var all []string
	for _, t := range tabs {
		all = append(all, t.Name)
	}
	slices.Sort(all)
	return all
}

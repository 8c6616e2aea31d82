//go:build engine

package link_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/link"
	"sandboxd/internal/wire"
)

// A container without a network, whose user has no more than a shell's own TCP.
func TestContainer_ProgramsReachModelsWithoutANetwork(t *testing.T) {
	for name, change := range map[string]func(*engineBox){"passed": nil, "through the link": func(b *engineBox) { b.session(t).TakeNothing() }} {
		t.Run(name, func(t *testing.T) {
			b := startBox(t, wire.Setup{Name: "box", Models: true}, asAgent(t))
			server := &http.Server{
				Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					fmt.Fprintf(w, "%s %s for %v", body, r.URL.Path, r.Context().Value(sandboxKey{}) == b.name)
				}),
				ConnContext: func(ctx context.Context, c net.Conn) context.Context {
					return context.WithValue(ctx, sandboxKey{}, c.(*link.ModelConn).Sandbox())
				},
			}
			var serving sync.WaitGroup
			serving.Go(func() { server.Serve(b.hub.Models()) })
			t.Cleanup(func() { server.Close(); serving.Wait() })
			s := b.session(t)
			if change != nil {
				change(b)
			}
			for range 3 {
				r := run(t, s, wire.ExecStart{Command: []string{"/bin/bash", "-c", `exec 3<>/dev/tcp/127.0.0.1/7465
printf 'POST /v1/messages HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 8\r\n\r\nquestion' >&3; cat <&3`}})
				if !strings.HasSuffix(r.stdout.String(), "question /v1/messages for true") {
					t.Fatalf("got %q, %q", r.stdout.String(), r.stderr.String())
				}
			}
			if ports, err := s.Ports(testContext(t)); err != nil || len(ports) > 0 {
				t.Errorf("listed: %+v, %v", ports, err)
			}
			r := run(t, s, sh(`echo $ANTHROPIC_BASE_URL $OPENAI_API_KEY; cd; stat -c %a.%u .codex/config.toml .config/opencode/opencode.json .gemini/settings.json .qwen/settings.json`))
			if want := "http://127.0.0.1:7465 sandbox\n" + strings.Repeat("600.1000\n", 4); r.stdout.String() != want {
				t.Errorf("got %q, %q", r.stdout.String(), r.stderr.String())
			}
			b.awaitSmall(t)
		})
	}
}

func TestContainer_ModelsOfferCostsAnIdleGuestNothing(t *testing.T) {
	var with, without []int
	for range 3 {
		for _, models := range []bool{true, false} {
			b := startBox(t, wire.Setup{Models: models}, nil)
			s := b.session(t)
			run(t, s, sh("true"))
			least := b.resident(t)
			for settled := time.After(8 * time.Second); least > 0; {
				select {
				case <-time.After(500 * time.Millisecond):
					least = min(least, b.resident(t))
					continue
				case <-settled:
				}
				break
			}
			if models {
				with = append(with, least)
			} else {
				without = append(without, least)
			}
		}
	}
	slices.Sort(with)
	slices.Sort(without)
	t.Logf("idle guests with models: %v KiB; without: %v KiB", with, without)
	if with[1] > without[1]+512 {
		t.Errorf("%d KiB more", with[1]-without[1])
	}
}

//go:build e2e

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// The crash test's size: 200 operations on eight names, sandboxd killed at random moments in between.
const (
	crashOperations = 200
	crashNames      = 8
	crashEvery      = 12 // operations between two kills, on average
)

// TestCrash_KilledAtRandomTheListStaysTrue kills sandboxd with SIGKILL at random moments during random operations on
// a real engine. After each restart everything settles; at the end the list, the engine and the disk agree.
func TestCrash_KilledAtRandomTheListStaysTrue(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var ops sync.WaitGroup
	busy := make(chan struct{}, 4)
	for n := range crashOperations {
		method, path, body := crashOperation(random)
		busy <- struct{}{}
		ops.Go(func() {
			defer func() { <-busy }()
			s.try(method, path, body) // may die under us: only what is left over counts
		})
		if n%crashEvery == crashEvery-1 {
			pause := time.NewTimer(time.Duration(random.IntN(400)) * time.Millisecond)
			<-pause.C
			s.kill()
			ops.Wait()
			s.start()
		}
	}
	ops.Wait()
	s.kill()
	s.start()
	list := s.settle()
	s.checkTrue(list)
	for _, sb := range list {
		if status, body := s.raw("DELETE", "/sandboxes/"+sb.Name+"?wait=gone", nil); status != http.StatusNoContent {
			t.Errorf("delete %s: %d %s", sb.Name, status, body)
		}
	}
	s.checkNothingLeft()
}

func crashOperation(random *rand.Rand) (method, path string, body any) {
	name := fmt.Sprintf("crash%d", random.IntN(crashNames))
	switch random.IntN(10) {
	case 0, 1, 2, 3:
		return "POST", "/sandboxes", map[string]any{"name": name, "image": "debian:trixie-slim", "memory": "128MiB", "cpus": 1}
	case 4, 5:
		return "DELETE", "/sandboxes/" + name, nil
	case 6:
		return "POST", "/sandboxes/" + name + "/stop", nil
	case 7:
		return "POST", "/sandboxes/" + name + "/start", nil
	case 8:
		return "POST", "/sandboxes/" + name + "/restart", nil
	default:
		return "POST", "/sandboxes/" + name + "/exec", map[string]any{"command": "true"}
	}
}

// checkTrue compares the list with the engine: same sandboxes, same state, and those that run answer.
func (s *server) checkTrue(list []sandboxBody) {
	s.t.Helper()
	have := map[string]string{}
	for line := range strings.Lines(engine(s.t, "ps", "-a", "--filter", "label=sandboxd.instance="+s.instance(), "--format", `{{.Label "sandboxd.name"}} {{.State}}`)) {
		name, state, _ := strings.Cut(strings.TrimSpace(line), " ")
		if old, twice := have[name]; twice {
			s.t.Errorf("%s has two containers: %s and %s", name, old, state)
		}
		have[name] = state
	}
	counts := map[string]int{}
	for _, sb := range list {
		counts[sb.State]++
		switch running := have[sb.Name] == "running"; {
		case sb.State == "running" && !running, sb.State != "running" && running:
			s.t.Errorf("%s is listed as %s (%s), the engine says %q", sb.Name, sb.State, sb.Problem, have[sb.Name])
		case sb.State == "running":
			if out := s.exec(sb.Name, map[string]any{"command": "echo here"}); out.Stdout != "here\n" {
				s.t.Errorf("%s is running but answers %q", sb.Name, out.Stdout)
			}
		case sb.State == "failed":
			s.t.Errorf("%s failed: %s", sb.Name, sb.Problem)
		}
		delete(have, sb.Name)
	}
	for name, state := range have {
		s.t.Errorf("the engine has %s (%s), the list has not", name, state)
	}
	s.t.Logf("after the crashes: %v", counts)
}

// checkNothingLeft looks for containers, volumes, networks and sockets of this server's.
func (s *server) checkNothingLeft() {
	s.t.Helper()
	filter := "label=sandboxd.instance=" + s.instance()
	patience := time.Now().Add(eventLimit / 2)
	for _, b := range belongings {
		s.until("there are no "+b.what+" left over", func() bool {
			left := strings.Fields(engine(s.t, append(b.list, "--filter", filter)...))
			if b.what != "networks" || len(left) != 1 || time.Now().Before(patience) {
				return len(left) == 0
			}
			if stuck := s.removeNetwork(left[0]); !stuck {
				s.t.Errorf("the network %s was left over", left[0])
			}
			return true
		})
	}
	links, err := os.ReadDir(filepath.Join(s.data, "link"))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	for _, l := range links {
		s.t.Errorf("link folder left over: %s", l.Name())
	}
}

// TestRestart_RunningSandboxesStayReachable ends sandboxd in the polite way and in the rude way; what ran keeps running.
func TestRestart_RunningSandboxesStayReachable(t *testing.T) {
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "steady", "image": "debian:trixie-slim"})
	s.exec("steady", map[string]any{"command": "echo kept > /tmp/mark; (sleep 1000 & echo $! > /tmp/pid)"})
	for _, end := range []func(){s.stop, s.kill} {
		end()
		s.start()
		out := s.exec("steady", map[string]any{"command": "cat /tmp/mark; kill -0 $(cat /tmp/pid) && echo alive"})
		if out.Stdout != "kept\nalive\n" {
			text, _ := json.Marshal(out)
			t.Errorf("after a restart: %s", text)
		}
	}
}

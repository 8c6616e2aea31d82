package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docker/docker/client"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// playEngine serves an engine that greets, and then answers as answer does.
func playEngine(t *testing.T, answer http.HandlerFunc) *Engine {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/_ping"):
		case strings.HasSuffix(r.URL.Path, "/info"):
			io.WriteString(w, `{"ServerVersion":"20.10.24","NCPU":2,"MemTotal":1024,"SystemTime":"2026-11-21T10:00:00.5Z","InitBinary":"docker-init","SecurityOptions":["name=seccomp,profile=default"]}`)
		case strings.HasSuffix(r.URL.Path, "/networks") && r.Method == http.MethodGet:
			io.WriteString(w, `[{"Name":"sandboxd-i","Labels":{"sandboxd.instance":"i"},"Options":{"com.docker.network.bridge.enable_icc":"false"},"IPAM":{"Config":[{"Subnet":"10.213.0.0/16"}]}}]`)
		case strings.HasSuffix(r.URL.Path, "/containers/json") && r.Method == http.MethodGet:
			io.WriteString(w, `[]`)
		default:
			answer(w, r)
		}
	}))
	t.Cleanup(s.Close)
	t.Setenv(client.EnvOverrideHost, "tcp://"+s.Listener.Addr().String())
	e, err := Open(t.Context(), Config{Instance: "i", GuestBinary: "/guest"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func says(status int, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(map[string]string{"message": message})
	}
}

func TestClassify_EnginesAnswersHaveKinds(t *testing.T) {
	box := sandbox.ContainerSpec{ID: "1", Name: "one", Profile: catalog.Strict}
	for _, c := range []struct {
		status int
		word   string
		create fault.Kind
		stop   fault.Kind
	}{
		{400, "invalid mount config", fault.Invalid, fault.Invalid},
		{403, "forbidden thing", fault.Invalid, fault.Invalid},
		{404, "No such image: x", fault.NotFound, fault.Internal},
		{500, "no space left on device", fault.Invalid, fault.Unavailable},
		{503, "shutting down", fault.Unavailable, fault.Unavailable},
	} {
		e := playEngine(t, says(c.status, c.word))
		err := e.Create(t.Context(), box)
		if !fault.Is(err, c.create) || !strings.Contains(fault.Message(err), c.word) || strings.Contains(fault.Message(err), "daemon") {
			t.Errorf("%d: create gives %v (%v)", c.status, err, fault.KindOf(err))
		}
		err = e.Stop(t.Context(), "1", time.Second)
		if c.status == 404 {
			if err != nil {
				t.Errorf("stop of the absent: %v", err)
			}
		} else if !fault.Is(err, c.stop) {
			t.Errorf("%d: stop gives %v (%v)", c.status, err, fault.KindOf(err))
		}
	}
}

func TestClassify_ErrorsWithoutAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want fault.Kind
	}{
		"deadline":     {context.DeadlineExceeded, fault.Timeout},
		"caller left":  {context.Canceled, fault.Internal},
		"torn answer":  {fmt.Errorf("read: %w", io.ErrUnexpectedEOF), fault.Unavailable},
		"known before": {fault.New(fault.Conflict, "x"), fault.Conflict},
	} {
		if err := classify(c.err, "do it"); !fault.Is(err, c.want) {
			t.Errorf("%s: got %v (%v)", name, err, fault.KindOf(err))
		}
	}
	if !errors.Is(classify(context.Canceled, "do it"), context.Canceled) || classify(nil, "x") != nil || refused(nil, "x") != nil {
		t.Error("the cause is lost, or nil is an error")
	}
}

func TestClean_ForeignTextIsOneBoundedLine(t *testing.T) {
	got := clean("a\nb\x1b[31m\x00 \u202ec\xff"+strings.Repeat("é", 400), 100)
	if strings.ContainsAny(got, "\n\x1b\x00") || len(got) > 110 || !strings.HasPrefix(got, "a b[31m c?é") {
		t.Errorf("got %q", got)
	}
	if got := clean("no", 10); got != "no." {
		t.Errorf("got %q", got)
	}
}

func TestPull_MissingIsNotUnreachable(t *testing.T) {
	for _, c := range []struct {
		answer http.HandlerFunc
		want   fault.Kind
	}{
		{says(404, "pull access denied for x"), fault.NotFound},
		{says(401, "unauthorized"), fault.NotFound},
		{says(500, "dial tcp: lookup nowhere: no such host"), fault.Unavailable},
		{says(400, "invalid reference format"), fault.Invalid},
		{says(200, "x"), fault.Internal}, // no error
		{streams(`{"status":"Pulling from x"}{"errorDetail":{"message":"manifest unknown"},"error":"x"}`), fault.NotFound},
		{streams(`{"status":"Pulling from x"}{"errorDetail":{"message":"connection reset by peer"},"error":"x"}`), fault.Unavailable},
		{streams(`{"status":"Pulling`), fault.Unavailable},
	} {
		err := playEngine(t, c.answer).PullImage(t.Context(), "nowhere.test/x:1", func(catalog.BuildEvent) {})
		if fault.KindOf(err) != c.want {
			t.Errorf("got %v (%v), want %v", err, fault.KindOf(err), c.want)
		}
	}
}

func streams(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }
}

func TestPull_EndsWithASilentRegistry(t *testing.T) {
	e := playEngine(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := e.PullImage(ctx, "nowhere.test/x:1", func(catalog.BuildEvent) {}); !fault.Is(err, fault.Timeout) {
		t.Errorf("got %v", err)
	}
}

func TestUnlessSilent_EndsAfterASilenceAndNotBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := unlessSilent(t.Context(), func(ctx context.Context, heard func()) error {
			for range 3 {
				time.Sleep(registryLimit - time.Second)
				heard()
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if want := 3*(registryLimit-time.Second) + silenceLimit; !errors.Is(err, errSilent) || time.Since(began) != want {
			t.Errorf("got %v after %s, want a silence of %s", err, time.Since(began), want)
		}
		began = time.Now()
		err = unlessSilent(t.Context(), func(ctx context.Context, _ func()) error { <-ctx.Done(); return ctx.Err() })
		if !errors.Is(err, errSilent) || time.Since(began) != registryLimit {
			t.Errorf("got %v after %s", err, time.Since(began))
		}
		if err := unlessSilent(t.Context(), func(context.Context, func()) error { return nil }); err != nil {
			t.Errorf("got %v", err)
		}
	})
}

func TestBuild_EngineWithoutTheClassicBuilder(t *testing.T) {
	e := playEngine(t, says(501, "only BuildKit is supported"))
	err := e.BuildImage(t.Context(), catalog.Build{Tag: "x:1", Folder: folder(t, map[string]string{"Dockerfile": "FROM x"})}, func(catalog.BuildEvent) {})
	if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Message(err), "classic builder") {
		t.Errorf("got %v", err)
	}
}

func TestBuild_HasHalfOfTheMemoryOfTheHost(t *testing.T) {
	var asked url.Values
	e := playEngine(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Query()
		says(500, "no")(w, r)
	})
	_ = e.BuildImage(t.Context(), catalog.Build{Tag: "x:1", Folder: folder(t, map[string]string{"Dockerfile": "FROM x"})}, func(catalog.BuildEvent) {}) // refused by the engine; what it was asked counts
	if asked.Get("memory") != "512" || asked.Get("memswap") != "512" {
		t.Errorf("asked for %v", asked)
	}
}

func TestBuild_BrokenFolderIsSaidRatherThanTheBrokenArchive(t *testing.T) {
	e := playEngine(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		says(500, "unexpected EOF")(w, r)
	})
	err := e.BuildImage(t.Context(), catalog.Build{Tag: "x:1", Folder: "/no/such/folder"}, func(catalog.BuildEvent) {})
	if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Message(err), "/no/such/folder") {
		t.Errorf("got %v", err)
	}
}

func TestOpen_WithoutAnEngine(t *testing.T) {
	for host, want := range map[string]fault.Kind{
		"unix:///no/such/socket": fault.Unavailable, "tcp://127.0.0.1:1": fault.Unavailable,
		"ssh://somewhere": fault.Invalid, "nonsense": fault.Invalid,
	} {
		t.Setenv(client.EnvOverrideHost, host)
		if _, err := Open(t.Context(), Config{}); !fault.Is(err, want) {
			t.Errorf("%s: got %v (%v)", host, err, fault.KindOf(err))
		}
	}
	if _, err := Open(t.Context(), Config{Subnet: "x"}); fault.FieldOf(err) != "subnet" {
		t.Errorf("got %v", err)
	}
}

// At boot sandboxd waits for an engine that is not there yet, and only for that.
func TestOpen_TellsTheAbsentFromTheUnusable(t *testing.T) {
	closed := classify(&net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.EACCES)}, "say what it is")
	if err := denied(closed); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Message(err), "may not use") {
		t.Errorf("a socket that is closed to this user: %v (%v)", err, fault.KindOf(err))
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.39")
		io.WriteString(w, `{"ServerVersion":"18.09"}`)
	}))
	defer s.Close()
	t.Setenv(client.EnvOverrideHost, "tcp://"+s.Listener.Addr().String())
	if _, err := Open(t.Context(), Config{}); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Message(err), "18.09 is too old") {
		t.Errorf("an old engine: %v (%v)", err, fault.KindOf(err))
	}
	began := time.Now()
	t.Setenv(client.EnvOverrideHost, "unix://"+t.TempDir()+"/docker.sock")
	if _, err := Open(t.Context(), Config{}); !fault.Is(err, fault.Unavailable) || time.Since(began) > time.Minute {
		t.Errorf("no engine: %v (%v) after %s", err, fault.KindOf(err), time.Since(began))
	}
}

// Create asks the engine once: a sandbox's way to readiness has nothing to spare.
func TestCreate_IsOneCall(t *testing.T) {
	var calls atomic.Int64
	e := playEngine(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, `{"Id":"1"}`)
	})
	for _, p := range []catalog.Profile{catalog.Dev, catalog.Strict} {
		calls.Store(0)
		if err := e.Create(t.Context(), sandbox.ContainerSpec{ID: sandbox.NewID(), Profile: p}); err != nil || calls.Load() != 1 {
			t.Errorf("%s: %d calls, %v", p, calls.Load(), err)
		}
	}
	if err := e.Start(t.Context(), "1"); err != nil {
		t.Error(err)
	}
}

// The look that finds a container off its network may be older than a create or a remove of the same sandbox.
func TestPutBack_LeavesASandboxThatIsBeingCreatedOrRemovedAlone(t *testing.T) {
	for what, change := range map[string]func(*Engine) error{
		"create": func(e *Engine) error { return e.Create(t.Context(), sandbox.ContainerSpec{ID: "1"}) },
		"remove": func(e *Engine) error { return e.Remove(t.Context(), "1") },
	} {
		t.Run(what, func(t *testing.T) {
			begun, resume := make(chan struct{}, 100), make(chan struct{})
			var inspected atomic.Int64
			e := playEngine(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/containers/seen/json") {
					inspected.Add(1)
				} else {
					begun <- struct{}{}
					<-resume
				}
				says(404, "No such container")(w, r)
			})
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = change(e)
			}()
			<-begun
			e.putBack(t.Context(), "1", "seen")
			if inspected.Load() != 0 {
				t.Error("it is not left alone")
			}
			close(resume)
			<-ended
			e.putBack(t.Context(), "1", "seen")
			if inspected.Load() != 1 {
				t.Error("it is not looked at afterwards")
			}
		})
	}
}

func TestCreate_NeedsAnInstance(t *testing.T) {
	e := playEngine(t, says(500, "not to be asked"))
	e.c.Instance = ""
	if err := e.Create(t.Context(), sandbox.ContainerSpec{ID: "1"}); !fault.Is(err, fault.Internal) {
		t.Errorf("got %v", err)
	}
}

func TestCreate_AForeignContainerIsLeftAlone(t *testing.T) {
	e := playEngine(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			io.WriteString(w, `{"Id":"1","Name":"/sandboxd-i-1","State":{"Status":"dead"},"Config":{"Labels":{}}}`)
			return
		}
		if r.Method == http.MethodDelete {
			t.Error("it was removed")
		}
		says(409, "the name is in use")(w, r)
	})
	if err := e.Create(t.Context(), sandbox.ContainerSpec{ID: "1"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v (%v)", err, fault.KindOf(err))
	}
}

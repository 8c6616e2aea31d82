package proxy

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// stepLog notes steps in the order in which they end.
type stepLog struct {
	mu   sync.Mutex
	seen []string
}

func (l *stepLog) step(ctx context.Context, name string) (context.Context, func(error)) {
	var once sync.Once
	return ctx, func(err error) {
		once.Do(func() {
			if err != nil {
				name += " " + fault.KindOf(err).String()
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.seen = append(l.seen, name)
		})
	}
}

func (l *stepLog) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.seen
	l.seen = nil
	return out
}

func TestStep_TellsWhatARequestWaitsFor(t *testing.T) {
	for what, c := range map[string]struct {
		state sandbox.State
		err   error
		h     header
		want  []string
	}{
		"running":     {sandbox.Running, nil, asProgram, []string{"resolve", "proxy"}},
		"frozen":      {sandbox.Frozen, nil, asProgram, []string{"resolve", "wake", "proxy"}},
		"asleep":      {sandbox.Asleep, nil, asProgram, []string{"resolve", "wake", "proxy"}},
		"a full host": {sandbox.Asleep, fault.New(fault.Unavailable, "The host is full."), asProgram, []string{"resolve", "wake unavailable"}},
		"stopped":     {sandbox.Stopped, nil, asProgram, []string{"resolve"}},
		"an outsider": {sandbox.Running, nil, nil, []string{"resolve unauthenticated"}},
	} {
		w, log := newWorld(t), &stepLog{}
		w.proxy.cfg.Step = log.step
		w.serve(portHost(3000), answersAs)
		w.boxes.wakeErr = c.err
		w.boxes.set("ml", c.state, "")
		w.ask("GET", port3000+"/", c.h)
		if got := log.take(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

func TestStep_TheProxyStepEndsWithTheHeadOfAnAnswer(t *testing.T) {
	w, log := newWorld(t), &stepLog{}
	w.proxy.cfg.Step = log.step
	release := make(chan struct{})
	w.serve(portHost(3000), func(rw http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(rw).Flush()
		select {
		case <-release:
		case <-time.After(time.Minute):
		}
	})
	resp, err := w.client.Do(w.request("GET", port3000+"/", nil, asProgram))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := log.take(); !slices.Equal(got, []string{"resolve", "proxy"}) { // the body is still to come
		t.Errorf("at the head: %q", got)
	}
	close(release)
	_, _ = io.Copy(io.Discard, resp.Body)
}

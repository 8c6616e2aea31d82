package alert_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/alert"
	"sandboxd/internal/alert/alerttest"
	"sandboxd/internal/fault"
	"sandboxd/internal/logs"
	"sandboxd/internal/metrics"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// world is a Service and all that it watches. It works in a synctest bubble.
type world struct {
	*alert.Service
	t      *testing.T
	store  *alerttest.Store
	sender *sender
	said   *said
	end    func() // of the Service that runs

	mu       sync.Mutex
	boxes    map[string]sandbox.Sandbox // by name
	services map[string][]wire.ServiceStatus
	used     map[string]int64 // bytes of a memory limit of 100
	kills    map[string]int64
	homes    map[string]int64
	failures []alert.Failure
	builds   map[string]alert.Build
	troubles []alert.BackupTrouble
	host     metrics.Host
	pool     alert.Pool
	ends     time.Time // the certificate
	lines    []logs.Line
	slow     string           // a search for what begins so takes its whole budget, and sees the newest line only
	asked    []time.Duration  // how far searches looked back
	fails    map[string]error // by source
	hangs    map[string]bool
}

// said is what was logged.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// newWorld makes one whose Service does not run. The installation has no rules but the first ones.
func newWorld(t *testing.T) *world {
	w := &world{
		t: t, store: alerttest.NewStore(), sender: &sender{answers: map[string]error{}, hangs: map[string]bool{}}, said: &said{},
		boxes: map[string]sandbox.Sandbox{}, services: map[string][]wire.ServiceStatus{}, used: map[string]int64{}, kills: map[string]int64{},
		homes: map[string]int64{}, builds: map[string]alert.Build{}, fails: map[string]error{}, hangs: map[string]bool{}, end: func() {},
	}
	w.host, w.pool = metrics.Host{MemoryTotal: 100, DiskFree: 100}, alert.Pool{Size: 100}
	w.ends = time.Now().Add(60 * 24 * time.Hour)
	w.again()
	return w
}

// again makes the Service anew on what is kept, as a restart of sandboxd does.
func (w *world) again() {
	w.end()
	w.end = func() {}
	w.Service = alert.New(alert.Config{
		Store: w.store, Senders: map[alert.ChannelKind]alert.Sender{alert.Webhook: w.sender, alert.Shoutrrr: w.sender}, Sources: w.sources(),
		Link: "https://box.example.com/alerts", Log: slog.New(slog.NewTextHandler(w.said, nil)),
	})
}

// run lets the Service run until the test, or again, ends it.
func (w *world) run() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	s := w.Service
	go func() {
		defer close(done)
		_ = s.Run(ctx)
	}()
	w.end = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	w.t.Cleanup(w.end)
	synctest.Wait()
}

// pass lets the bubble's time pass, and a moment more, so that a look that falls on its end is over.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) wrongBackups() (out []alert.BackupTrouble) {
	_ = w.source(context.Background(), "backups", func() { out = slices.Clone(w.troubles) })
	return out
}

func (w *world) sources() alert.Sources {
	return alert.Sources{
		Sandboxes: func(ctx context.Context) (out []sandbox.Sandbox, err error) {
			err = w.source(ctx, "sandboxes", func() {
				for _, name := range slices.Sorted(maps.Keys(w.boxes)) {
					out = append(out, w.boxes[name])
				}
			})
			return out, err
		},
		Services: func(ctx context.Context, all []sandbox.Sandbox) (map[string][]wire.ServiceStatus, error) {
			out := map[string][]wire.ServiceStatus{}
			err := w.source(ctx, "services", func() {
				for _, b := range all {
					if b.State == sandbox.Running && w.fails[b.Name] == nil {
						out[b.ID] = slices.Clone(w.services[b.Name])
					}
				}
			})
			return out, err
		},
		Usage: func(id string) (p metrics.Point, ok bool) {
			err := w.source(context.Background(), "usage", func() {
				p = metrics.Point{Time: time.Now().Round(0), Memory: w.used[strings.TrimSuffix(id, "-id")], MemoryLimit: 100}
			})
			return p, err == nil
		},
		OOMKills: func(id string) (n int64) {
			_ = w.source(context.Background(), "kills", func() { n = w.kills[strings.TrimSuffix(id, "-id")] })
			return n
		},
		HomeSize: func(id string) (n int64, at time.Time, ok bool) {
			err := w.source(context.Background(), "homes", func() { n = w.homes[strings.TrimSuffix(id, "-id")] })
			return n, time.Now(), err == nil
		},
		Failures: func() (out []alert.Failure) {
			_ = w.source(context.Background(), "failures", func() { out, w.failures = w.failures, nil })
			return out
		},
		Builds: func() (out map[string]alert.Build) {
			_ = w.source(context.Background(), "builds", func() { out = maps.Clone(w.builds) })
			return out
		},
		Backups: w.wrongBackups,
		Pool: func() (p alert.Pool, err error) {
			err = w.source(context.Background(), "pool", func() { p = w.pool })
			return p, err
		},
		Host: func(ctx context.Context) (h metrics.Host, err error) {
			err = w.source(ctx, "host", func() { h = w.host })
			return h, err
		},
		Certificate: func(ctx context.Context) (end time.Time, err error) {
			err = w.source(ctx, "certificate", func() { end = w.ends })
			return end, err
		},
		Lines: w.search,
	}
}

// source answers for one, unless it is to fail or to hang.
func (w *world) source(ctx context.Context, name string, answer func()) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hangs[name] {
		w.mu.Unlock()
		<-ctx.Done()
		w.mu.Lock()
		return ctx.Err()
	}
	if err := w.fails[name]; err != nil {
		return err
	}
	answer()
	return nil
}

// search looks for the lines that have all of a text, as logs.Keeper does.
func (w *world) search(ctx context.Context, q logs.Query) (out logs.Result, err error) {
	slow := false
	w.set(func() {
		slow = w.slow != "" && strings.HasPrefix(q.Text, w.slow)
		w.asked = append(w.asked, time.Since(q.Since))
	})
	if slow {
		<-time.After(q.Budget)
	}
	err = w.source(ctx, "lines", func() {
		for i, l := range slices.Backward(w.lines) {
			if slow && i < len(w.lines)-1 {
				out.Next = l.ID + 1
				return
			}
			if !q.Scope.Has(l.Sandbox) || q.Before != 0 && l.ID >= q.Before || l.Time.Before(q.Since) || !strings.Contains(l.Text, q.Text) {
				continue
			}
			if out.Lines = append(out.Lines, l); len(out.Lines) == q.Limit {
				out.Next = l.ID
				return
			}
		}
	})
	return out, err
}

// set changes what is watched.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// box makes a sandbox that runs, whose id is its name and "-id".
func (w *world) box(name, owner string) {
	w.set(func() {
		w.boxes[name] = sandbox.Sandbox{ID: name + "-id", Name: name, Owner: owner, State: sandbox.Running,
			Spec: sandbox.Spec{Template: "base", Limits: sandbox.Limits{Memory: 100}}}
	})
}

func (w *world) gone(name string) { w.set(func() { delete(w.boxes, name) }) }

func (w *world) becomes(name string, state sandbox.State, problem string) {
	w.set(func() {
		b := w.boxes[name]
		b.State, b.Problem = state, problem
		w.boxes[name] = b
	})
}

func (w *world) line(name, text string) {
	w.set(func() {
		w.lines = append(w.lines, logs.Line{ID: logs.ID(time.Now().UnixMicro()) + logs.ID(len(w.lines)), Time: time.Now(), Sandbox: name + "-id", Text: text})
	})
}

// channel makes a webhook.
func (w *world) channel(owner string) alert.Channel {
	w.t.Helper()
	c, err := w.PutChannel(w.t.Context(), alert.Channel{Owner: owner, Name: "hook", Kind: alert.Webhook, Address: "https://example.com"})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) rules(owner string, rules ...alert.Rule) []alert.Rule {
	w.t.Helper()
	kept, err := w.SetRules(w.t.Context(), owner, rules)
	if err != nil {
		w.t.Fatal(err)
	}
	return kept
}

// alerts gives those that an admin sees, as "state target: text".
func (w *world) alerts() (out []string) {
	w.t.Helper()
	found, _, err := w.Find(w.t.Context(), alert.Query{Scope: alert.Scope{All: true}})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, a := range found {
		who := strings.TrimRight(a.Target.Sandbox+"/"+a.Target.Part, "/")
		if a.Target.SandboxID == "" {
			who = "/" + a.Target.Template
		}
		out = append(out, fmt.Sprintf("%s %s: %s", a.State, who, a.Text))
	}
	return out
}

// want checks the alerts, in any order.
func (w *world) want(when string, want ...string) {
	w.t.Helper()
	slices.Sort(want)
	if got := slices.Sorted(slices.Values(w.alerts())); !slices.Equal(got, want) {
		w.t.Errorf("%s: %q, want %q", when, got, want)
	}
}

// sent checks the subjects of what was sent since it was asked before.
func (w *world) sent(when string, want ...string) []alert.Message {
	w.t.Helper()
	got := w.sender.take()
	var subjects []string
	for _, m := range got {
		subjects = append(subjects, m.Subject)
	}
	if !slices.Equal(subjects, want) {
		w.t.Errorf("%s: sent %q, want %q", when, subjects, want)
	}
	return got
}

// sender is an alert.Sender that answers as it is told.
type sender struct {
	mu      sync.Mutex
	answers map[string]error // by channel
	hangs   map[string]bool
	got     []alert.Message
	tries   []time.Time
}

func (s *sender) answer(channel string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[channel] = err
}

func (s *sender) Check(c alert.Channel) error {
	if c.Address == "bad" {
		return fault.Field("address", "This is no address.")
	}
	return nil
}

func (s *sender) Send(ctx context.Context, c alert.Channel, m alert.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries = append(s.tries, time.Now())
	if s.hangs[c.ID] {
		s.mu.Unlock()
		<-ctx.Done()
		s.mu.Lock()
		return ctx.Err()
	}
	if err := s.answers[c.ID]; err != nil {
		return err
	}
	s.got = append(s.got, m)
	return nil
}

func (s *sender) take() []alert.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.got
	s.got = nil
	return got
}

// tried gives how long after each other it was tried to send.
func (s *sender) tried() (gaps []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := 1; i < len(s.tries); i++ {
		gaps = append(gaps, s.tries[i].Sub(s.tries[i-1]))
	}
	return gaps
}

var errOut = errors.New("out of order")

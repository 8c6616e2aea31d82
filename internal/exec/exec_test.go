package exec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/access"
	"sandboxd/internal/access/accesstest"
	"sandboxd/internal/fault"
)

func out(kind Kind, text string) Event { return Event{Kind: kind, Data: []byte(text)} }

func TestRun_GivesExitCodeAndBothStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeProcess(out(Stdout, "a"), out(Stderr, "oops"), out(Stdout, "b"), Event{Kind: Exited, Exit: 3})
		f := &fakeStarter{process: p}
		r := Request{Command: []string{"x", "-y"}, Cwd: "/workspace", User: "agent", Env: map[string]string{"A": "1"}, Stdin: []byte("in")}
		got, err := New(Config{Starter: f}).Run(t.Context(), access.Handle{}, r)
		if err != nil {
			t.Fatal(err)
		}
		want := Result{ExitCode: 3, Stdout: []byte("ab"), Stderr: []byte("oops")}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		ask := []Start{{Command: r.Command, Cwd: r.Cwd, User: r.User, Env: r.Env}}
		if d := cmp.Diff(ask, f.asked); d != "" {
			t.Error(d)
		}
		if string(p.input) != "in" || !p.noInput {
			t.Errorf("input %q, closed %v", p.input, p.noInput)
		}
		if !p.isClosed() {
			t.Error("process was left open")
		}
	})
}

func TestRun_KeepsTheFirstBytesAndReadsTheRest(t *testing.T) {
	const chunk, chunks = 64 << 10, 16 << 10 // 1 GiB
	p := newFakeProcess()
	data := bytes.Repeat([]byte("x"), chunk)
	go func() {
		for range chunks {
			p.script <- Event{Kind: Stdout, Data: data}
		}
		p.script <- Event{Kind: Exited}
	}()
	got, err := New(Config{Starter: &fakeStarter{process: p}}).Run(t.Context(), access.Handle{}, Request{Command: []string{"yes"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Stdout) != DefaultOutput || !got.Truncated || got.ExitCode != 0 {
		t.Errorf("kept %d bytes, truncated %v, exit code %d", len(got.Stdout), got.Truncated, got.ExitCode)
	}
}

func TestRun_OutputOfExactlyTheBoundIsNotTruncated(t *testing.T) {
	p := newFakeProcess(out(Stdout, "12345"), Event{Kind: Exited})
	got, err := New(Config{Starter: &fakeStarter{process: p}}).Run(t.Context(), access.Handle{}, Request{Command: []string{"x"}, MaxOutput: 5})
	if err != nil || got.Truncated || string(got.Stdout) != "12345" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestRun_TimeoutKillsAndKeepsWhatWasWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeProcess(out(Stdout, "so far"))
		got, err := New(Config{Starter: &fakeStarter{process: p}}).Run(t.Context(), access.Handle{}, Request{Command: []string{"sleep"}, Timeout: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		want := Result{ExitCode: -1, Stdout: []byte("so far"), TimedOut: true, Duration: 3 * time.Second}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		if !p.isClosed() {
			t.Error("process was not killed")
		}
	})
}

func TestRun_DefaultTimeoutApplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, err := New(Config{Starter: &fakeStarter{process: newFakeProcess()}}).Run(t.Context(), access.Handle{}, Request{Command: []string{"sleep"}})
		if err != nil || !got.TimedOut || got.Duration != DefaultTimeout {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

func TestRun_CallerWhoLeavesKillsTheCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeProcess()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := New(Config{Starter: &fakeStarter{process: p}}).Run(ctx, access.Handle{}, Request{Command: []string{"sleep"}})
		if !errors.Is(err, context.Canceled) || !p.isClosed() {
			t.Errorf("error %v, closed %v", err, p.isClosed())
		}
	})
}

func TestRun_CommandThatReadsNoInputDoesNotHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeProcess(Event{Kind: Exited})
		p.deaf = true
		_, err := New(Config{Starter: &fakeStarter{process: p}}).Run(t.Context(), access.Handle{}, Request{Command: []string{"true"}, Stdin: []byte("unread")})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestRun_LostLinkIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeProcess(out(Stdout, "half"))
		time.AfterFunc(time.Second, p.Close) // the guest is gone
		_, err := New(Config{Starter: &fakeStarter{process: p}}).Run(t.Context(), access.Handle{}, Request{Command: []string{"x"}})
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("got %v", err)
		}
	})
}

func TestRun_SandboxThatNeverAnswersIsATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := New(Config{Starter: &fakeStarter{hang: true}}).Run(t.Context(), access.Handle{}, Request{Command: []string{"x"}})
		if !fault.Is(err, fault.Timeout) || time.Since(began) != openLimit {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestRun_StartersErrorComesThrough(t *testing.T) {
	stopped := fault.New(fault.Conflict, "box is stopped. Start it first.")
	_, err := New(Config{Starter: &fakeStarter{err: stopped}}).Run(t.Context(), access.Handle{}, Request{Command: []string{"x"}})
	if !errors.Is(err, stopped) {
		t.Errorf("got %v", err)
	}
}

func TestRun_TooManyAtOnceAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Starter: &fakeStarter{process: newFakeProcess()}})
		var sessions []*Session
		for range maxAtOnce {
			session, err := s.Open(t.Context(), access.Handle{}, Request{Command: []string{"x"}}, Size{})
			if err != nil {
				t.Fatal(err)
			}
			sessions = append(sessions, session)
		}
		if _, err := s.Run(t.Context(), access.Handle{}, Request{Command: []string{"x"}}); !fault.Is(err, fault.Limited) {
			t.Errorf("one too many: %v", err)
		}
		other, err := s.Open(t.Context(), accesstest.New("other", nil).Handle(t), Request{Command: []string{"x"}}, Size{})
		if err != nil {
			t.Fatalf("another sandbox: %v", err)
		}
		for _, session := range append(sessions, other) {
			session.Close()
		}
		if s.now.Len() != 0 {
			t.Errorf("%d sandboxes are still counted", s.now.Len())
		}
	})
}

func TestStream_TellsWhatHappensInOrder(t *testing.T) {
	p := newFakeProcess(out(Stdout, "a"), out(Stderr, "b"), Event{Kind: Exited, Exit: 1})
	var got []string
	_, err := New(Config{Starter: &fakeStarter{process: p}}).Stream(t.Context(), access.Handle{}, Request{Command: []string{"x"}}, func(e Event) error {
		got = append(got, fmt.Sprintf("%d %q %d", e.Kind, e.Data, e.Exit))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`1 "" 0`, `2 "a" 0`, `3 "b" 0`, `4 "" 1`}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestStream_ReceiverWhoFailsKillsTheCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, gone := newFakeProcess(out(Stdout, "a")), errors.New("gone")
		_, err := New(Config{Starter: &fakeStarter{process: p}}).Stream(t.Context(), access.Handle{}, Request{Command: []string{"x"}}, func(e Event) error {
			if e.Kind == Stdout {
				return gone
			}
			return nil
		})
		if !errors.Is(err, gone) || !p.isClosed() {
			t.Errorf("error %v, closed %v", err, p.isClosed())
		}
	})
}

func TestStream_TimeoutKillsWhileTheReceiverIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeProcess(out(Stdout, "a"))
		_, _ = New(Config{Starter: &fakeStarter{process: p}}).Stream(t.Context(), access.Handle{}, Request{Command: []string{"x"}, Timeout: time.Second},
			func(e Event) error {
				if e.Kind == Stdout {
					<-p.closed // a client that takes nothing
				}
				return nil
			})
		if !p.isClosed() {
			t.Error("process was not killed")
		}
	})
}

func TestOpen_CarriesInputSignalsAndSizes(t *testing.T) {
	p := newFakeProcess(Event{Kind: Exited})
	f := &fakeStarter{process: p}
	s, err := New(Config{Starter: f}).Open(t.Context(), access.Handle{}, Request{Command: []string{"sh"}}, Size{80, 24})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Write([]byte("ls\n")); err != nil {
		t.Error(err)
	}
	if err := errors.Join(s.Resize(Size{100, 30}), s.Signal("INT"), s.CloseInput()); err != nil {
		t.Error(err)
	}
	if !f.asked[0].TTY || f.asked[0].Cols != 80 || string(p.input) != "ls\n" || !p.noInput ||
		!cmp.Equal(p.sizes, []Size{{100, 30}}) || !cmp.Equal(p.signals, []string{"INT"}) {
		t.Errorf("asked %+v, process %+v", f.asked, p)
	}
	if err := s.Signal("SEGV"); !fault.Is(err, fault.Invalid) {
		t.Errorf("signal SEGV: %v", err)
	}
	if err := s.Resize(Size{0, 30}); !fault.Is(err, fault.Invalid) {
		t.Errorf("no columns: %v", err)
	}
}

func TestRun_BadRequestsNameTheField(t *testing.T) {
	long := strings.Repeat("x", maxCommand)
	cases := []struct {
		field string
		r     Request
	}{
		{"command", Request{}},
		{"command", Request{Command: []string{""}}},
		{"command", Request{Command: []string{"a\x00b"}}},
		{"command", Request{Command: []string{long}}},
		{"command", Request{Command: make([]string, 5000)}},
		{"cwd", Request{Cwd: "relative"}},
		{"cwd", Request{Cwd: "/a\x00"}},
		{"user", Request{User: "Robert'); --"}},
		{"user", Request{User: "-1"}},
		{"log", Request{Log: "-x"}},
		{"log", Request{Log: "A b"}},
		{"log", Request{Log: strings.Repeat("x", 64)}},
		{"env", Request{Env: map[string]string{"1A": ""}}},
		{"env", Request{Env: map[string]string{"A=B": ""}}},
		{"env", Request{Env: map[string]string{"A": "\x00"}}},
		{"env", Request{Env: map[string]string{"A": strings.Repeat("x", 64<<10)}}},
		{"stdin", Request{Stdin: make([]byte, maxStdin+1)}},
		{"timeout", Request{Timeout: -1}},
		{"timeout", Request{Timeout: MaxTimeout + 1}},
		{"max_output", Request{MaxOutput: MaxOutput + 1}},
	}
	for _, c := range cases {
		if c.field != "command" {
			c.r.Command = []string{"x"}
		}
		f := &fakeStarter{process: newFakeProcess(Event{Kind: Exited})}
		_, err := New(Config{Starter: f}).Run(t.Context(), access.Handle{}, c.r)
		if !fault.Is(err, fault.Invalid) || fault.FieldOf(err) != c.field {
			t.Errorf("%s: got %v about %q", c.field, err, fault.FieldOf(err))
		}
		if len(f.asked) != 0 {
			t.Errorf("%s: the guest was asked", c.field)
		}
	}
}

func TestShell_PassesTheLineUnchanged(t *testing.T) {
	line := `echo "$HOME" 'it''s' ` + "`x`"
	got := Shell(line)
	if got[len(got)-1] != line {
		t.Errorf("got %q", got)
	}
	if err := (Request{Command: got}).check(); err != nil {
		t.Error(err)
	}
}

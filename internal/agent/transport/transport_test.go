package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/agent"
	"sandboxd/internal/fault"
)

// tripper is a round tripper of a function.
type tripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answering answers with a body of that type.
func answering(kind string, body io.Reader) tripper {
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(body)}, nil
	}
}

// slow gives a piece each time that it is asked, after a pause, and ends when ctx does.
type slow struct {
	ctx    context.Context
	pauses []time.Duration
}

func (s *slow) Read(p []byte) (int, error) {
	if len(s.pauses) == 0 {
		return 0, io.EOF
	}
	pause := s.pauses[0]
	s.pauses = s.pauses[1:]
	select {
	case <-time.After(pause):
		return copy(p, "x\n"), nil
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
}

// fetch sends a request over a call and reads its answer.
func fetch(ctx context.Context, c *Call) ([]byte, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://model.invalid/", nil)
	if err != nil {
		return nil, err
	}
	res, err := c.Client().Do(q)
	if err != nil {
		return nil, c.Outcome(ctx, err, false)
	}
	defer func() { _ = res.Body.Close() }() // it was read
	data, err := io.ReadAll(res.Body)
	return data, c.Outcome(ctx, err, err == nil)
}

func TestCall_TheDefaultsAreTenAndFiveMinutes(t *testing.T) {
	for name, c := range map[string]struct {
		pauses []time.Duration
		code   agent.Code
		took   time.Duration
	}{
		"steady":              {[]time.Duration{9 * time.Minute, 4 * time.Minute, 4 * time.Minute}, "", 17 * time.Minute},
		"never begins":        {[]time.Duration{time.Hour}, agent.NoAnswer, 10 * time.Minute},
		"stops in the middle": {[]time.Duration{time.Minute, time.Hour}, agent.Silent, 6 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			call := New(tripper(func(q *http.Request) (*http.Response, error) {
				return answering("text/plain", &slow{q.Context(), c.pauses})(q)
			}), Timeouts{}, "text/plain")
			if _, err := fetch(t.Context(), call); agent.CodeOf(err) != c.code || c.code == "" && err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(start); took != c.took {
				t.Errorf("%s: it took %v", name, took)
			}
		})
	}
}

func TestCall_AServerThatTakesTheRequestAndSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call := New(tripper(func(q *http.Request) (*http.Response, error) {
			<-q.Context().Done()
			return nil, q.Context().Err()
		}), Timeouts{FirstByte: time.Minute}, "text/plain")
		if _, err := fetch(t.Context(), call); agent.CodeOf(err) != agent.NoAnswer || fault.KindOf(err) != fault.Timeout {
			t.Errorf("error %v", err)
		}
	})
}

// endless gives the same line again and again.
type endless struct{ line string }

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for n+len(e.line) <= len(p) {
		n += copy(p[n:], e.line)
	}
	return n, nil
}

func TestCall_AnswersAreBounded(t *testing.T) {
	for name, body := range map[string]io.Reader{"endless": endless{strings.Repeat("x", 999) + "\n"}, "one line": endless{"x"}} {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://model.invalid/", nil)
		if err != nil {
			t.Fatal(err)
		}
		call := New(answering("text/plain", body), Timeouts{}, "text/plain")
		res, err := call.Client().Do(q)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, res.Body)
		_ = res.Body.Close() // it was read
		if agent.CodeOf(err) != agent.TooLarge || n > MaxBody || name == "one line" && n > MaxLine {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
		if again := call.Outcome(t.Context(), nil, false); agent.CodeOf(again) != agent.TooLarge {
			t.Errorf("%s: an SDK that loses the error makes it %v", name, again)
		}
	}
}

func TestCall_TheCauseOfACancellationIsGiven(t *testing.T) {
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	call := New(tripper(func(q *http.Request) (*http.Response, error) {
		cancel(stop)
		<-q.Context().Done()
		return nil, q.Context().Err()
	}), Timeouts{}, "text/plain")
	if _, err := fetch(ctx, call); err != stop {
		t.Errorf("error %v", err)
	}
}

func TestRetryAfter_TakesAllFormsAndNoNonsense(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "0.5": 500 * time.Millisecond, "-3": 0, "soon": 0, "NaN": 0, "1e300": maxWait, "Inf": maxWait,
		"Wed, 21 Oct 2015 07:28:00 GMT": 0, "Wed, 21 Oct 2999 07:28:00 GMT": maxWait,
	} {
		if got := retryAfter(http.Header{"Retry-After": {value}}); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
	if got := retryAfter(http.Header{"Retry-After": {"7"}, "Retry-After-Ms": {"1500"}}); got != 1500*time.Millisecond {
		t.Errorf("milliseconds: %v", got)
	}
}

func TestRefusal_ReadsAllFormsOfErrors(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"Too much.","type":"x","code":null}}`:                  "Too many requests (429): Too much.",
		`{"type":"error","error":{"type":"rate_limit_error","message":"Too much"}}`: "Too many requests (429): Too much.",
		`{"error":"too much"}`:                 "Too many requests (429): too much.",
		`{"message":"too much"}`:               "Too many requests (429): too much.",
		`{"detail":"too much"}`:                "Too many requests (429): too much.",
		`{"detail":[{"loc":["body"]}]}`:        "Too many requests (429).",
		"slow down":                            "Too many requests (429): slow down.",
		"<html><body>Sign in</body></html>":    "Too many requests (429).",
		"":                                     "Too many requests (429).",
		`{"error":{"message":"half`:            "Too many requests (429).",
		`{"error":["a"]}`:                      "Too many requests (429).",
		`null`:                                 "Too many requests (429).",
		"\x00\x1b[2J\u202eevil\nlines\r\n  \t": "Too many requests (429): [2Jevil lines.",
	} {
		if got := fault.Message(Refusal(429, []byte(body), 0)); got != want {
			t.Errorf("%q: %q, want %q", body, got, want)
		}
	}
	for wait, want := range map[time.Duration]string{time.Second: "(429): busy.", 5 * time.Minute: "(429): busy. It can be asked again in 5 min.", 24 * time.Hour: "(429): busy. It can be asked again in 24 h."} {
		if got := fault.Message(Refusal(429, []byte("busy"), wait)); got != "Too many requests "+want {
			t.Errorf("after %s: %q", wait, got)
		}
	}
	if got := fault.Message(refusal(403, []byte(`{"error":"It refused its key (status 401). Check the key."}`), 0, true)); got != "It refused its key (status 401). Check the key." {
		t.Errorf("a refused key is told as %q", got)
	}
}

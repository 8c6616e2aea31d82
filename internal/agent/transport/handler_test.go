package transport

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/agent"
)

// ask sends a body to a handler in this process.
func ask(ctx context.Context, h http.HandlerFunc, body string) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://model.invalid/v1?x=1", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	return Handler(h).RoundTrip(q)
}

func TestHandler_AnswersAreStreamed(t *testing.T) {
	read := make(chan struct{})
	res, err := ask(t.Context(), func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("X-Seen", r.Method+" "+r.RequestURI+" "+string(body))
		w.WriteHeader(http.StatusAccepted)
		w.Header().Set("X-Late", "yes")
		fmt.Fprint(w, "one")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-read
		fmt.Fprint(w, "two")
	}, "hello")
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 3)
	if _, err := io.ReadFull(res.Body, first); err != nil || string(first) != "one" {
		t.Errorf("%q, %v", first, err)
	}
	close(read)
	rest, err := io.ReadAll(res.Body)
	if string(rest) != "two" || err != nil || res.StatusCode != http.StatusAccepted || res.Header.Get("X-Seen") != "POST /v1?x=1 hello" || res.Header.Get("X-Late") != "" {
		t.Errorf("%q, %v, %d %v", rest, err, res.StatusCode, res.Header)
	}
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
}

func TestHandler_EndsWhenTheClientHasEnough(t *testing.T) {
	left := false
	res, err := ask(t.Context(), func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			fmt.Fprint(w, "more ")
		}
		_, err := w.Write([]byte("x"))
		left = err != nil
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := res.Body.Read(make([]byte, 5)); err != nil {
		t.Error(err)
	}
	_ = res.Body.Close() // it waits for the handler
	if !left {
		t.Error("the handler was not told")
	}
}

func TestHandler_CancelEndsAReadAndARequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	waiting := func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "x")
		<-r.Context().Done()
	}
	res, err := ask(ctx, waiting, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := res.Body.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	cancel()
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("a cancelled answer looks complete")
	}
	_ = res.Body.Close() // it was read
	if _, err := ask(ctx, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, ""); err != context.Canceled {
		t.Errorf("error %v", err)
	}
}

func TestHandler_PanicsBreakTheAnswer(t *testing.T) {
	if _, err := ask(t.Context(), func(http.ResponseWriter, *http.Request) { panic("oh no") }, ""); err == nil || !strings.Contains(err.Error(), "oh no") {
		t.Errorf("error %v", err)
	}
	res, err := ask(t.Context(), func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "half")
		panic(http.ErrAbortHandler)
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(res.Body); string(data) != "half" || err != io.ErrUnexpectedEOF {
		t.Errorf("%q, %v", data, err)
	}
	_ = res.Body.Close() // it was read
	call := New(Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })), Timeouts{}, "text/plain")
	if _, err := fetch(t.Context(), call); agent.CodeOf(err) != agent.Unreachable {
		t.Errorf("a turn gets %v", err)
	}
}

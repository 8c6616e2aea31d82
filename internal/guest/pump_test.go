package guest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"
	"time"
)

// pieces is what a pump passed on, each piece as it came.
type pieces chan string

func (p pieces) Write(b []byte) (int, error) {
	p <- string(b)
	return len(b), nil
}

// pumped starts a pump and gives the pipe's other end, what it passes on, and its end.
func pumped(t *testing.T, ctx context.Context) (*os.File, pieces, <-chan error) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	out, ended := make(pieces, 10_000), make(chan error, 1)
	go func() { ended <- pump(ctx, out, r, nil) }()
	return w, out, ended
}

// next is what comes of a channel in time.
func next[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		t.Fatal("nothing comes")
		panic("unreachable")
	}
}

func TestPump_PassesOnTheFirstLinesAtOnceAndLaterOnesTogether(t *testing.T) {
	w, out, ended := pumped(t, t.Context())
	for i := range promptReads {
		line := fmt.Sprintln("line", i)
		w.WriteString(line)
		if got := next(t, out); got != line {
			t.Fatalf("got %q, want %q", got, line)
		}
	}
	const many = 1000
	var want bytes.Buffer
	for i := range many {
		fmt.Fprintln(&want, "more", i)
		fmt.Fprintln(w, "more", i)
	}
	w.Close()
	if err := next(t, ended); err != nil {
		t.Fatal(err)
	}
	n, got := len(out), ""
	for range n {
		got += <-out
	}
	if got != want.String() {
		t.Errorf("it passed on %d bytes of %d", len(got), want.Len())
	}
	if n > many/5 {
		t.Errorf("%d lines came in %d pieces", many, n)
	}
}

func TestPump_PassesOnAllOfAFastProgram(t *testing.T) {
	w, out, ended := pumped(t, t.Context())
	text := bytes.Repeat([]byte("0123456789abcde\n"), 1<<20) // 16 MiB
	go func() {
		w.Write(text)
		w.Close()
	}()
	at := 0
	for at < len(text) {
		piece := next(t, out)
		if piece != string(text[at:at+len(piece)]) {
			t.Fatalf("something else comes at %d", at)
		}
		at += len(piece)
	}
	if err := next(t, ended); err != nil {
		t.Fatal(err)
	}
}

func TestPump_EndsWithItsContextWhenThePipeStaysOpen(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w, out, ended := pumped(t, ctx)
	w.WriteString("before\n")
	next(t, out)
	cancel()
	next(t, ended)
	if _, err := w.WriteString("after\n"); err == nil {
		t.Error("the pipe is still open")
	}
}

package guest

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"sandboxd/internal/wire"
)

// keptPatience is how long a write waits for a program that does not read; then sandboxd asks again.
const keptPatience = time.Second

// keptInput is the input of a kept process. It counts the bytes, so that those that come twice are taken once. Safe for concurrent
// use; writes take turns.
type keptInput struct {
	turn chan struct{}
	pipe *os.File

	mu     sync.Mutex
	at     int64 // bytes that the program was given
	closed bool
}

func newKeptInput(pipe *os.File) *keptInput {
	return &keptInput{turn: make(chan struct{}, 1), pipe: pipe}
}

// now gives where the next byte begins, and whether there will be none.
func (in *keptInput) now() (int64, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.at, in.closed
}

// write gives the program those of p, which begin at an offset, that it does not have, as many as it takes within a moment, and says
// where the next one begins. With end, that is the end of its input, once it has all.
func (in *keptInput) write(ctx context.Context, at int64, p []byte, end bool) (int64, error) {
	select {
	case in.turn <- struct{}{}:
		defer func() { <-in.turn }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	has, closed := in.now()
	if at > has {
		return 0, problem(wire.CodeConflict, "Bytes of the input are missing before these.")
	}
	p = p[min(has-at, int64(len(p))):]
	if closed && len(p) > 0 {
		return 0, problem(wire.CodeConflict, "The program's input has ended.")
	}
	n, err := in.pour(ctx, p)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.at += int64(n)
	if err != nil {
		return 0, problem(wire.CodeConflict, "The program does not read its input any more.")
	}
	if end && n == len(p) && !in.closed {
		in.closed = true
		in.pipe.Close()
	}
	return in.at, nil
}

// pour writes some of p.
func (in *keptInput) pour(ctx context.Context, p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	in.pipe.SetWriteDeadline(time.Now().Add(keptPatience))
	defer context.AfterFunc(ctx, func() { in.pipe.SetWriteDeadline(time.Now()) })()
	n, err := in.pipe.Write(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	return n, err
}

package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/term"
)

// screen is this process's terminal, if it has one.
type screen struct{ in, out int }

func newScreen() screen { return screen{int(os.Stdin.Fd()), int(os.Stdout.Fd())} }

// attended reports whether a person types here.
func (s screen) attended() bool { return term.IsTerminal(s.in) }

// size is the screen's in characters; 80 by 24 where there is none.
func (s screen) size() (cols, rows int) {
	for _, fd := range []int{s.out, s.in} {
		if cols, rows, err := term.GetSize(fd); err == nil && cols > 0 && rows > 0 {
			return cols, rows
		}
	}
	return 80, 24
}

// raw hands every key on as it is typed. The caller must call restore, which may be called more than once.
func (s screen) raw() (restore func(), err error) {
	if !s.attended() {
		return func() {}, nil
	}
	old, err := term.MakeRaw(s.in)
	if err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { _ = term.Restore(s.in, old) }), nil // a terminal that is gone needs nothing
}

// sizes gives the size whenever it has changed, until ctx ends.
func (s screen) sizes(ctx context.Context) <-chan [2]int {
	changed, out := make(chan os.Signal, 1), make(chan [2]int)
	signal.Notify(changed, syscall.SIGWINCH)
	go func() {
		defer signal.Stop(changed)
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
			cols, rows := s.size()
			select {
			case out <- [2]int{cols, rows}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// escapes finds "~." at the beginning of a line in the input, which leaves the session as in ssh.
type escapes struct {
	io.Reader
	leave func()
	state int
}

// The states of escapes: what the last key was.
const (
	lineBegins = iota
	tilde
	inLine
)

// Read implements io.Reader.
func (e *escapes) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	for i, key := range p[:n] {
		switch {
		case key == '\r' || key == '\n':
			e.state = lineBegins
		case key == '~' && e.state == lineBegins:
			e.state = tilde
		case key == '.' && e.state == tilde:
			e.leave()
			return i, io.EOF
		default:
			e.state = inLine
		}
	}
	return n, err
}

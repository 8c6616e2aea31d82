// Package kopia keeps backups in repositories of kopia: each thing that is to be done with one is done by a child process, which is this
// program again (see package child).
//
// It is the part that does not know kopia: it starts the child, gives it its request and the stream, hears how far it is, and ends it when
// it does not move. Which repositories there are is internal/repository's.
//
// Invariant: a child gets its secrets through a pipe, never as an argument or in its environment, and does not outlive this process.
package kopia

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/fault"
	"sandboxd/internal/repository"
)

// pipeSize is how much of a stream is between us and a child, in bytes: with less the two would change places all the time.
const pipeSize = 1 << 20

// quietLimit is how long a child may do nothing that can be seen.
const quietLimit = 5 * time.Minute

// Engine implements repository.Engine. Safe for concurrent use.
type Engine struct {
	Program  []string // that becomes a child: its path, and arguments
	Folder   string   // for what kopia keeps on this machine, a folder for each repository; it can be deleted at any time
	Instance string   // of this sandboxd
	Log      *slog.Logger
	Quiet    time.Duration // how long a child may do nothing; 0 for five minutes
}

var _ repository.Engine = (*Engine)(nil)

func (e *Engine) folder(name string) string { return filepath.Join(e.Folder, name) }

// ask has a child do something that has no stream, and gives its last answer.
func (e *Engine) ask(ctx context.Context, r Request, progress func(repository.Progress)) (Answer, error) {
	p, err := e.start(ctx, r, nil)
	if err != nil {
		return Answer{}, err
	}
	defer p.end()
	p.moves()
	return p.last(func(now repository.Progress) error {
		if progress != nil {
			progress(now)
		}
		return nil
	})
}

// Connect implements repository.Engine.
func (e *Engine) Connect(ctx context.Context, a repository.Access, o repository.ConnectOptions) (repository.Connected, error) {
	answer, err := e.ask(ctx, Request{Do: DoConnect, Access: a, TakeOver: o.TakeOver, Known: o.Known}, nil)
	return answer.Connected, err
}

// List implements repository.Engine.
func (e *Engine) List(ctx context.Context, a repository.Access) (repository.Contents, error) {
	answer, err := e.ask(ctx, Request{Do: DoList, Access: a}, nil)
	if err != nil || answer.Contents == nil {
		return repository.Contents{}, errors.Join(err, missing(err))
	}
	return *answer.Contents, nil
}

// missing is an error when there is none, but no answer either.
func missing(err error) error {
	if err == nil {
		return errors.New("the child has not answered as it should")
	}
	return nil
}

// Delete implements repository.Engine.
func (e *Engine) Delete(ctx context.Context, a repository.Access, ids []string) error {
	_, err := e.ask(ctx, Request{Do: DoDelete, Access: a, IDs: ids}, nil)
	return err
}

// Check implements repository.Engine.
func (e *Engine) Check(ctx context.Context, a repository.Access, contents bool, progress func(repository.Progress)) (repository.Checked, error) {
	answer, err := e.ask(ctx, Request{Do: DoCheck, Access: a, Contents: contents}, progress)
	if err != nil || answer.Checked == nil {
		return repository.Checked{}, errors.Join(err, missing(err))
	}
	return *answer.Checked, nil
}

// Maintain implements repository.Engine.
func (e *Engine) Maintain(ctx context.Context, a repository.Access) error {
	_, err := e.ask(ctx, Request{Do: DoMaintain, Access: a}, nil)
	return err
}

// Forget implements repository.Engine.
func (e *Engine) Forget(name string) error {
	err := os.RemoveAll(e.folder(name))
	return fault.Wrap(err, fault.Unavailable, "The cache of the repository cannot be removed: %v.", err)
}

// Save implements repository.Engine.
func (e *Engine) Save(ctx context.Context, a repository.Access, d repository.Draft) (item repository.Item, err error) {
	from, to, err := os.Pipe()
	if err != nil {
		return item, fmt.Errorf("make a pipe: %w", err)
	}
	defer to.Close()
	_, _ = unix.FcntlInt(to.Fd(), unix.F_SETPIPE_SZ, pipeSize) // where it cannot be so large it stays small
	p, err := e.start(ctx, Request{Do: DoSave, Access: a, ID: d.ID, Title: d.Title, Contents: d.Whole}, from)
	if err = errors.Join(err, from.Close()); err != nil {
		return item, err
	}
	defer p.end()
	p.moves()
	if err := p.opened(); err != nil {
		return item, err
	}
	p.rests()
	written := make(chan error, 1)
	go func() {
		err := p.write(to, d)
		if err != nil {
			p.cancel(err) // the child does not answer then
		}
		written <- err
	}()
	answer, err := p.last(d.Progress)
	p.cancel(err)
	to.Close()
	err = errors.Join(<-written, err) // the first is why
	if err != nil || answer.Item == nil {
		return item, errors.Join(err, missing(err))
	}
	return *answer.Item, nil
}

// write has the stream written, and says that it is complete.
func (p *process) write(to *os.File, d repository.Draft) error {
	w := &movingWriter{to: to, p: p}
	about, err := d.Write(p.ctx, w)
	p.moves()
	if w.err != nil { // why is in the child's answer
		return nil
	}
	if err != nil {
		return err
	}
	if err := to.Close(); err != nil {
		return err
	}
	line, err := json.Marshal(End{Size: w.n, About: about})
	if err == nil {
		_, err = p.in.Write(append(line, '\n'))
	}
	return err
}

// movingWriter is a stream's pipe. While the child takes nothing, it need not move unless something was offered.
type movingWriter struct {
	to  *os.File
	p   *process
	n   int64
	err error
}

// Write implements io.Writer.
func (w *movingWriter) Write(b []byte) (int, error) {
	w.p.moves()
	n, err := w.to.Write(b)
	w.n, w.err = w.n+int64(n), errors.Join(w.err, err)
	w.p.rests()
	return n, err
}

// Read implements repository.Engine.
func (e *Engine) Read(ctx context.Context, a repository.Access, id string) (repository.Stream, error) {
	from, to, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	p, err := e.start(ctx, Request{Do: DoRead, Access: a, ID: id}, to)
	if err = errors.Join(err, to.Close()); err != nil {
		return nil, errors.Join(err, from.Close())
	}
	p.moves()
	if err := p.opened(); err != nil {
		p.end()
		return nil, errors.Join(err, from.Close())
	}
	p.rests()
	s := &stream{from: from, p: p, last: make(chan error, 1)}
	go func() {
		_, err := p.last(nil)
		s.last <- err
	}()
	return s, nil
}

// stream is what a child reads of a repository. One goroutine uses it.
type stream struct {
	from *os.File
	p    *process
	last chan error // has whether the child has read all
	err  error      // at the end
}

// Read implements repository.Stream. All of the stream was read only if the error is io.EOF.
func (s *stream) Read(b []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	s.p.moves()
	n, err := s.from.Read(b)
	s.p.rests()
	if err != nil {
		s.err = err
		if errors.Is(err, io.EOF) {
			s.p.moves()
			if err := <-s.last; err != nil {
				s.err = err
			}
		}
		if n > 0 {
			return n, nil
		}
	}
	return n, s.err
}

// Close implements repository.Stream.
func (s *stream) Close() error {
	s.p.end()
	return s.from.Close()
}

// Package mover reads, copies and replaces the home of a sandbox that does not run, or is frozen, from a container of its own.
//
// It is not part of a sandbox: sandboxd starts it beside one, with that sandbox's volume, that of a snapshot if need be, and nothing
// else, because sandboxd itself may not be allowed to touch volumes, and because whatever a hostile tree does to it stays in there. It
// knows nothing of compression, manifests or where archives are kept.
//
// Invariant: a replace that is cut off at any point leaves the old home or, once all of the new one is on the disk, is finished by
// the next job. A copy that was cut off is never taken for a whole one.
package mover

import (
	"archive/tar"
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/archive"
	"sandboxd/internal/wire"
)

const (
	dialLimit   = 10 * time.Second
	buffered    = 256 << 10
	reportEvery = 200 * time.Millisecond
	aliveEvery  = 15 * time.Second // well below the silence that sandboxd takes for the mover's end
	maxCause    = 4 << 10          // bytes of an error's text
)

// Main dials sandboxd, does one job and gives the exit code.
func Main() int {
	conn, err := net.DialTimeout("unix", wire.SocketPath, dialLimit)
	if err == nil {
		defer conn.Close()
		err = Serve(conn, wire.HomePath, wire.SnapshotPath)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mover:", err)
		return 1
	}
	return 0
}

// Serve does the job that it is told over a connection, with a home, and a folder for a snapshot's copy of it, which need not be there
// for other jobs. The error is that of the connection; one of the job is told there. It blocks until the job is done.
func Serve(conn io.ReadWriter, home, snapshot string) error {
	in := wire.NewFrameReader(bufio.NewReaderSize(conn, buffered))
	t, b, err := in.Next()
	if err != nil {
		return err
	}
	var job wire.MoverJob
	if err := json.Unmarshal(b, &job); err != nil || t != wire.FrameStart {
		return errors.Join(wire.ErrFrame, err)
	}
	m := &mover{in: in, out: bufio.NewWriterSize(conn, buffered), home: home, snapshot: snapshot}
	stop := m.keepAlive()
	stats, err := m.do(job)
	stop()
	return m.report(stats, true, err)
}

type mover struct {
	in       *wire.FrameReader
	home     string
	snapshot string
	told     time.Time // the last report of progress

	mu       sync.Mutex
	out      *bufio.Writer
	stats    archive.Stats // last reported
	finished bool          // what was cut off
}

// keepAlive reports now and then until stop: to write a home to the disk, or to remove one, may take minutes without progress.
func (m *mover) keepAlive() (stop func()) {
	over := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(aliveEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				m.mu.Lock()
				m.tell(m.stats, false, nil)
				m.mu.Unlock()
			case <-over:
				return
			}
		}
	})
	return func() {
		close(over)
		running.Wait()
	}
}

func (m *mover) do(job wire.MoverJob) (archive.Stats, error) {
	dir, err := os.Open(m.home)
	if err != nil {
		return archive.Stats{}, err
	}
	defer dir.Close()
	o := archive.Options{Prefix: job.Prefix, Skip: staging, Progress: m.progress}
	switch job.Do {
	case wire.MoverRead:
		if err := settleWhole(dir); err != nil {
			return archive.Stats{}, err
		}
		return archive.Write(context.Background(), dir, tar.NewWriter(frames{m}), o)
	case wire.MoverReplace:
		if job.Own {
			if o.Owner, err = archive.OwnerOf(dir); err != nil {
				return archive.Stats{}, err
			}
		}
		return replace(dir, func(to *os.File) (archive.Stats, error) { return unpack(dir, to, &data{in: m.in}, o) })
	case wire.MoverCopyOut:
		return copyOut(dir, m.snapshot, o)
	case wire.MoverCopyIn:
		return copyIn(dir, m.snapshot, o)
	case wire.MoverCompare:
		return archive.Stats{}, m.compare(dir, job.Most)
	case wire.MoverVersions:
		return archive.Stats{}, m.versions(dir, job.Path, job.Most)
	case wire.MoverSettle:
		finished, err := settle(dir)
		m.mu.Lock()
		m.finished = finished
		m.mu.Unlock()
		return archive.Stats{}, err
	}
	return archive.Stats{}, fmt.Errorf("there is no job %q", job.Do)
}

// progress reports now and then. A connection that is lost is seen elsewhere.
func (m *mover) progress(s archive.Stats) {
	if time.Since(m.told) >= reportEvery {
		m.told = time.Now()
		s.Lost, s.MoreLost = nil, 0 // told at the end
		m.report(s, false, nil)
	}
}

func (m *mover) report(s archive.Stats, done bool, err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats = s
	return m.tell(s, done, err)
}

// tell sends a report that keeps to its bound. The caller holds mu.
func (m *mover) tell(s archive.Stats, done bool, err error) error {
	for {
		b, encoding := m.encode(s, done, err)
		if encoding != nil {
			return encoding
		}
		if len(b) > wire.MaxReport {
			half := len(s.Lost) / 2
			s.Lost, s.MoreLost = s.Lost[:half], s.MoreLost+int64(len(s.Lost)-half)
			continue
		}
		if _, err := m.out.Write(wire.AppendFrame(nil, wire.FrameReport, b)); err != nil {
			return err
		}
		return m.out.Flush()
	}
}

func (m *mover) encode(s archive.Stats, done bool, err error) ([]byte, error) {
	stats, encoding := json.Marshal(s)
	if encoding != nil {
		return nil, encoding
	}
	r := wire.MoverReport{Stats: stats, Done: done, Finished: m.finished}
	if err != nil {
		cause := err.Error()
		r.Kind, r.Error = kindOf(err), strings.ToValidUTF8(cause[:min(len(cause), maxCause)], "\uFFFD")
	}
	return json.Marshal(r)
}

func kindOf(err error) string {
	var entry *archive.EntryError
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return wire.MoverFull
	case err == errNoCopy:
		return wire.MoverAbsent
	case errors.As(err, &entry), errors.Is(err, tar.ErrHeader), errors.Is(err, tar.ErrFieldTooLong), errors.Is(err, io.ErrUnexpectedEOF):
		return wire.MoverInvalid
	}
	return wire.MoverInternal
}

// frames writes what it gets as FrameData.
type frames struct{ m *mover }

// Write implements io.Writer.
func (f frames) Write(b []byte) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	for rest := b; len(rest) > 0; {
		n := min(len(rest), wire.MaxFrame)
		var head [wire.FrameHead]byte
		wire.PutHead(head[:], wire.FrameData, n)
		if _, err := f.m.out.Write(head[:]); err != nil {
			return 0, err
		}
		if _, err := f.m.out.Write(rest[:n]); err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	return len(b), nil
}

// data reads what comes as FrameData, until FrameDataDone. A connection that ends before is no end of the archive.
type data struct {
	in   *wire.FrameReader
	rest []byte
	done bool
}

// Read implements io.Reader.
func (d *data) Read(b []byte) (int, error) {
	for len(d.rest) == 0 {
		if d.done {
			return 0, io.EOF
		}
		t, payload, err := d.in.Next()
		switch {
		case err == io.EOF:
			return 0, errLost
		case err != nil:
			return 0, err
		case t == wire.FrameDataDone:
			d.done = true
		case t != wire.FrameData:
			return 0, wire.ErrFrame
		}
		d.rest = payload
	}
	n := copy(b, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

var errLost = errors.New("sandboxd has gone")

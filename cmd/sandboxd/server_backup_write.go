package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"slices"

	"sandboxd/internal/fault"
	"sandboxd/internal/serverbackup"
)

// writeServerBackup writes what is in staging, and reads all of it again: from the file, or, for standard output, as it is written. It gives the size.
func writeServerBackup(ctx context.Context, to *saveFile, secret string, m serverbackup.Manifest, staging string) (int64, serverbackup.Manifest, error) {
	if to.part == nil {
		return writeRead(ctx, to, secret, m, staging)
	}
	out := bufio.NewWriterSize(to, 1<<20)
	m, err := sealer.Write(ctx, out, secret, m, staging)
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return 0, m, err
	}
	size, err := readBack(ctx, to, secret, m)
	return size, m, err
}

// writeRead writes to what cannot be read again, and has the reader of backups read the same bytes beside.
func writeRead(ctx context.Context, to io.Writer, secret string, m serverbackup.Manifest, staging string) (int64, serverbackup.Manifest, error) {
	from, beside := io.Pipe()
	var got serverbackup.Manifest
	checked := make(chan error, 1)
	go func() {
		var err error
		got, err = serverbackup.Check(ctx, bufio.NewReaderSize(from, 1<<20), secret)
		from.CloseWithError(errNotRead) // so that a write does not wait for it
		checked <- err
	}()
	count := &countedWriter{to: to}
	out := bufio.NewWriterSize(io.MultiWriter(count, beside), 1<<20)
	m, err := sealer.Write(ctx, out, secret, m, staging)
	if err == nil {
		err = out.Flush()
	}
	beside.CloseWithError(err)
	readErr := <-checked
	if err != nil && !errors.Is(err, errNotRead) {
		return count.n, m, err
	}
	if readErr == nil && !slices.Equal(got.Files, m.Files) {
		readErr = errors.New("it has other files")
	}
	if readErr != nil && ctx.Err() == nil {
		readErr = fault.Wrap(readErr, fault.Unavailable, "What was written to standard output is no whole backup: %v. Do not keep it, and try again.", readErr)
	}
	return count.n, m, readErr
}

var errNotRead = errors.New("the reader has ended")

// countedWriter counts the bytes that are written.
type countedWriter struct {
	to io.Writer
	n  int64
}

// Write implements io.Writer.
func (c *countedWriter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.n += int64(n)
	return n, err
}

// readBack reads what was written, and gives its size.
func readBack(ctx context.Context, to *saveFile, secret string, m serverbackup.Manifest) (size int64, err error) {
	f, err := os.Open(to.part.Name())
	if err != nil {
		return 0, unwritable(to.path, err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return 0, unwritable(to.path, err)
	}
	got, err := serverbackup.Check(ctx, bufio.NewReaderSize(f, 1<<20), secret)
	if err == nil && !slices.Equal(got.Files, m.Files) {
		err = errors.New("it has other files")
	}
	if err != nil && ctx.Err() == nil {
		err = fault.Wrap(err, fault.Unavailable, "What was written to %q is not what is read from there: %v. Try another disk.", to.path, err)
	}
	return st.Size(), err
}

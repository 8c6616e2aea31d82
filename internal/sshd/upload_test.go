package sshd

import (
	"context"
	"io"
	"testing"

	"sandboxd/internal/access"
	"sandboxd/internal/files"
	"sandboxd/internal/wire"
)

// hasty is a sandbox that says of each file that it has all of it, whatever was sent.
type hasty struct{ Files }

func (hasty) Write(context.Context, access.Handle, wire.FilePut, io.Reader) (files.Written, error) {
	return files.Written{}, nil
}

func TestUpload_WhatASandboxDoesNotTakeIsGivenBack(t *testing.T) {
	s := &Server{cfg: Config{Files: hasty{}}, memory: newMemory()}
	c := &connection{server: s, memory: share{of: &s.memory}}
	for range 50 {
		u := newUpload(&folder{connection: c, ctx: t.Context()}, "/file")
		for at := range int64(3) {
			_, _ = u.WriteAt(make([]byte, 1000), at*1000)
			<-u.out.done
		}
		_ = u.Close()
		if n := s.Held(); n != 0 {
			t.Fatalf("%d bytes are held for nobody", n)
		}
	}
}

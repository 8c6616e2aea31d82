// Package sftp is the SFTP server that runs inside a sandbox, as a process of its own for each session.
//
// It judges nothing: it is started as the sandbox's user, in the user's folder, and may do with files what that user may.
//
// Invariant: it speaks SFTP on stdin and stdout and nothing else, keeps nothing from one session to the next, and ends with its
// stdin.
package sftp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/pkg/sftp"
)

// inputSize is how much of stdin is read at once: all that is in a pipe.
const inputSize = 64 << 10

// Main serves SFTP on stdin and stdout until stdin ends, and gives the exit code.
func Main() int {
	server, err := sftp.NewServer(&stdio{Reader: bufio.NewReaderSize(os.Stdin, inputSize)})
	if err == nil {
		err = server.Serve()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sftp:", err)
		return 1
	}
	return 0
}

// stdio is stdin and stdout as one connection.
type stdio struct {
	io.Reader
	out []byte // of the packet that is being written
}

// Write writes packets whole: the library writes each in two pieces, which would each take its own way to the client.
func (s *stdio) Write(p []byte) (int, error) {
	s.out = append(s.out, p...)
	if len(s.out) < 4 || uint64(len(s.out)) < 4+uint64(binary.BigEndian.Uint32(s.out)) {
		return len(p), nil
	}
	_, err := os.Stdout.Write(s.out)
	s.out = s.out[:0]
	return len(p), err
}

func (s *stdio) Close() error { return errors.Join(os.Stdin.Close(), os.Stdout.Close()) }

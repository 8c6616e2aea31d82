// Package sftp is the SFTP server that runs inside a sandbox, as a process of its own for each session.
//
// It judges nothing: it is started as the sandbox's user, in the user's folder, and may do with files what that user may.
//
// Invariant: it speaks SFTP on stdin and stdout and nothing else, keeps nothing from one session to the next, and ends with its
// stdin.
package sftp

import (
	"errors"
	"fmt"
	"os"

	"github.com/pkg/sftp"
)

// Main serves SFTP on stdin and stdout until stdin ends, and gives the exit code.
func Main() int {
	server, err := sftp.NewServer(stdio{})
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
type stdio struct{}

func (stdio) Read(p []byte) (int, error)  { return os.Stdin.Read(p) }
func (stdio) Write(p []byte) (int, error) { return os.Stdout.Write(p) }
func (stdio) Close() error                { return errors.Join(os.Stdin.Close(), os.Stdout.Close()) }

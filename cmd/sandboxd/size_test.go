package main

import (
	"errors"
	"io/fs"
	"os"
	"testing"
)

// builtBinary is what 'make build' makes, stripped, and mostBinary the bytes that it may have.
const (
	builtBinary = "../../bin/sandboxd"
	mostBinary  = 75_000_000
)

// TestBinary_IsSmall looks at the program as it is built: 'make check' builds it first.
func TestBinary_IsSmall(t *testing.T) {
	info, err := os.Stat(builtBinary)
	if errors.Is(err, fs.ErrNotExist) {
		return // it is not built
	}
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > mostBinary {
		t.Errorf("bin/sandboxd has %d bytes, at most %d", info.Size(), mostBinary)
	}
}

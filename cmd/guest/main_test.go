package main

import (
	"os"
	"testing"
)

// On a developer's machine a sweep would end everything that runs.
func TestInSandbox_IsFalseOutsideOne(t *testing.T) {
	if inSandbox() {
		t.Fatal("the test believes that it is a sandbox's guest")
	}
}

func TestRuntimeFolder_IsFreshAndClosedToOthers(t *testing.T) {
	old := runtimeFolders
	defer func() { runtimeFolders = old }()
	runtimeFolders = []string{"/proc/no/such", t.TempDir() + "/run"}
	os.MkdirAll(runtimeFolders[1]+"/left", 0o777)
	folder := runtimeFolder()
	if folder != runtimeFolders[1] {
		t.Fatalf("got %q", folder)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) > 0 {
		t.Errorf("got %v, %v", entries, err)
	}
}

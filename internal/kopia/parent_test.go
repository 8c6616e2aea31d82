package kopia_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"sandboxd/internal/kopia"
	"sandboxd/internal/repository/repositorytest"
)

// TestChild_EndsWithItsParent has the pipe that a parent holds close in the middle of a save, as when it is killed.
func TestChild_EndsWithItsParent(t *testing.T) {
	a := inFolder(t)
	e := connected(t, a)
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", childArg)
	cmd.ExtraFiles = []*os.File{from}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	request, err := json.Marshal(kopia.Request{Do: kopia.DoSave, Access: a, Folder: t.TempDir(), Instance: e.Instance, ID: "half"})
	if err == nil {
		_, err = in.Write(append(request, '\n'))
	}
	if err == nil {
		_, err = to.Write(repositorytest.Noise(7, 8<<20))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("it has ended well")
		}
	case <-time.After(20 * time.Second):
		t.Error("it lives on")
		_ = cmd.Process.Kill()
	}
	to.Close()
	if got := repositorytest.IDs(t, e, a); len(got) > 0 {
		t.Errorf("listed: %v", got)
	}
}

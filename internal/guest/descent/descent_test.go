package descent

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// announce starts a script that says a pid and then waits for the end of its input, and gives the pid.
func announce(t *testing.T, start func(func() error) error, script string) int {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script+"; read x")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := start(cmd.Start); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		io.Copy(io.Discard, out)
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func marked(m Mark) func(func() error) error {
	return func(start func() error) error { return Start(m, start) }
}

func TestStart_TheMarkGoesWhereEnvironmentAndSessionDoNot(t *testing.T) {
	m := NewMark(1<<64 - 1)
	if got := Of(announce(t, marked(m), "echo $$")); got != m {
		t.Errorf("the process itself carries %d", got)
	}
	away := announce(t, marked(m), "exec 3<&0; setsid -f env -i /bin/sh -c 'echo $$; read x <&3'")
	if got := Of(away); got != m {
		t.Errorf("one that went away carries %d", got)
	}
}

func TestStartPlain_NeverCarriesAMark(t *testing.T) {
	own := Of(os.Getpid())
	var all sync.WaitGroup
	defer all.Wait()
	for i := range 4 {
		all.Go(func() {
			for n := range 20 {
				err := Start(NewMark(uint64(100*i+n+2)), func() error { return exec.Command("/bin/true").Run() })
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 10 {
		if got := Of(announce(t, StartPlain, "echo $$")); got != own {
			t.Fatalf("got %d", got)
		}
	}
}

func TestOf_IsNoneWithoutAProcess(t *testing.T) {
	if got := Of(1 << 30); got != 0 {
		t.Errorf("got %d", got)
	}
}

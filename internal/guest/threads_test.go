package guest

import (
	"os"
	"sync"
	"testing"

	"sandboxd/internal/wire"
)

func threads(t *testing.T) int {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(tasks)
}

func TestReserveThreads_TheyAreThere(t *testing.T) {
	reserveThreads()
	if n := threads(t); n < spareThreads {
		t.Errorf("%d threads", n)
	}
}

func TestWait_TakesNoThreadForEachCommand(t *testing.T) {
	const commands = 100
	g := New(Config{Home: t.TempDir()})
	var waits sync.WaitGroup
	var all []*process
	for range commands {
		p, err := g.spawn(wire.ExecStart{Command: []string{"cat"}})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
		waits.Go(func() {
			if code := p.wait().code; code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
	late, err := g.spawn(wire.ExecStart{Command: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	late.wait()
	late.close()
	if n := threads(t); n > commands/2 {
		t.Errorf("%d threads", n)
	}
	for _, p := range all {
		p.stdin.Close()
	}
	waits.Wait()
	for _, p := range all {
		p.close()
	}
}

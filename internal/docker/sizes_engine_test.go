//go:build engine

package docker

import (
	"testing"
	"time"

	"sandboxd/internal/wire"
)

func TestSizes_TellHomeAndLayerAlsoOfOneThatIsStopped(t *testing.T) {
	e := openTest(t)
	box, other := running(t, e, "serve"), running(t, e, "serve")
	const home, layer = 50 << 20, 20 << 20
	if code, out := inside(t, e, box.ID, "", "dd if=/dev/zero of="+wire.HomePath+"/big bs=1M count=50 && dd if=/dev/zero of=/opt/big bs=1M count=20"); code != 0 {
		t.Fatal(out)
	}
	check := func() {
		t.Helper()
		all, err := NewSizes(e).Measure(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		const more = 2 << 20 // that a sandbox has anyway
		if got := all[box.ID]; got.Home < home || got.Home > home+more || got.Layer < layer || got.Layer > layer+more {
			t.Errorf("home %d, layer %d", got.Home, got.Layer)
		}
		if got, ok := all[other.ID]; !ok || got.Home > more || got.Layer > more {
			t.Errorf("of another one: home %d, layer %d, %v", got.Home, got.Layer, ok)
		}
		if len(all) != 2 {
			t.Errorf("%d sandboxes", len(all))
		}
	}
	check()
	if err := e.Stop(t.Context(), box.ID, time.Second); err != nil {
		t.Fatal(err)
	}
	check()
	if state, err := e.client.Load().ContainerInspect(t.Context(), e.resource(box.ID)); err != nil || state.State.Running {
		t.Errorf("it was woken, or %v", err)
	}
}

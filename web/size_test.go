package web

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/metrics"
	"sandboxd/internal/sandbox"
)

const gib = 1 << 30

// anyHome is a storage pool that every home is in.
type anyHome struct{}

func (anyHome) LimitHome(context.Context, string, int64) error { return nil }

// newPoolStage is newStage with a storage pool.
func newPoolStage(t *testing.T) *stage {
	t.Helper()
	s := newStage(t)
	s.keepPool()
	return s
}

// keepPool puts a storage pool on the stage.
func (s *stage) keepPool() {
	s.server.cfg.Pool = func(context.Context) (used, size int64, err error) { return 95 * gib, 100 * gib, nil }
}

func TestDisk_APILimitsAndChangesIt(t *testing.T) {
	w := newWorldWith(t, anyHome{})
	if s := w.call("ada", "POST", "/api/v1/sandboxes?wait=ready", `{"template":"base","name":"lab","disk":"5GiB"}`).is(201).sandbox(); s.Limits.Disk != 5*gib {
		t.Errorf("created with %+v", s.Limits)
	}
	const lab = "/api/v1/sandboxes/lab"
	if s := w.call("ada", "PATCH", lab, `{"disk":21474836480,"label":"Big"}`).is(200).sandbox(); s.Limits.Disk != 20*gib || s.Label != "Big" {
		t.Errorf("changed to %+v", s)
	}
	if s := w.call("ada", "PATCH", lab, `{"label":"Same"}`).is(200).sandbox(); s.Limits.Disk != 20*gib {
		t.Errorf("another change left %+v", s.Limits)
	}
	w.call("ada", "PATCH", lab, `{"disk":1,"label":"No"}`).problem(400, "invalid", "disk")
	w.call("ada", "PATCH", lab, `{"disk":"lots"}`).problem(400, "invalid", "disk")
	w.call("ada", "PATCH", lab, `{"disk":"9GiB","label":"a\nb"}`).problem(400, "invalid", "label")
	w.call("ada", "POST", "/api/v1/sandboxes", `{"template":"base","disk":"-5"}`).problem(400, "invalid", "disk")
	w.call("bob", "PATCH", lab, `{"disk":0}`).problem(404, "not_found", "")
	w.tokens["inside"] = w.token("ada", auth.NewToken{Name: "inside", Sandbox: "lab"})
	w.call("inside", "PATCH", lab, `{"disk":0}`).problem(403, "forbidden", "")
	if s := w.call("ada", "GET", lab, "").is(200).sandbox(); s.Limits.Disk != 20*gib || s.Label != "Same" {
		t.Errorf("a refused change left %+v", s)
	}
	if s := w.call("ada", "PATCH", lab, `{"disk":0}`).is(200).sandbox(); s.Limits.Disk != 0 {
		t.Errorf("lifted: %+v", s.Limits)
	}
}

func TestDisk_APIRefusesALimitWithoutAStoragePool(t *testing.T) {
	w := newWorld(t)
	p := w.call("ada", "POST", "/api/v1/sandboxes", `{"template":"base","name":"lab","disk":"5GiB"}`).problem(400, "invalid", "disk")
	if !strings.Contains(p.Detail, "no storage pool") {
		t.Errorf("it says %q", p.Detail)
	}
	w.call("ada", "POST", "/api/v1/sandboxes?wait=ready", `{"template":"base","name":"lab"}`).is(201)
	w.call("ada", "PATCH", "/api/v1/sandboxes/lab", `{"disk":"5GiB"}`).problem(400, "invalid", "disk")
}

func TestSize_APIChangesIt(t *testing.T) {
	w := newWorld(t)
	w.call("ada", "POST", "/api/v1/sandboxes?wait=ready", `{"template":"base","name":"lab"}`).is(201)
	const lab = "/api/v1/sandboxes/lab"
	was := w.call("ada", "GET", lab, "").is(200).sandbox().Limits
	if got := w.call("ada", "PATCH", lab, `{"cpus":0.5,"memory":"1GiB"}`).is(200).sandbox().Limits; got.CPUs != 0.5 || got.Memory != gib || got.Pids != was.Pids {
		t.Errorf("changed to %+v", got)
	}
	if got := w.call("ada", "PATCH", lab, `{"cpus":1}`).is(200).sandbox().Limits; got.CPUs != 1 || got.Memory != gib {
		t.Errorf("one of them changed to %+v", got)
	}
	w.call("ada", "PATCH", lab, `{"cpus":0}`).problem(400, "invalid", "cpus")
	w.call("ada", "PATCH", lab, `{"memory":"1KiB"}`).problem(400, "invalid", "memory")
	w.call("bob", "PATCH", lab, `{"cpus":0.5}`).problem(404, "not_found", "")
	w.tokens["inside"] = w.token("ada", auth.NewToken{Name: "inside", Sandbox: "lab"})
	w.call("inside", "PATCH", lab, `{"memory":"2GiB"}`).problem(403, "forbidden", "")
	if got := w.call("ada", "GET", lab, "").is(200).sandbox().Limits; got.CPUs != 1 || got.Memory != gib {
		t.Errorf("refused changes left %+v", got)
	}
}

func TestDisk_NewAsksForItOnlyWithAStoragePool(t *testing.T) {
	s := newStage(t)
	if s.get("ada", "/new").is(http.StatusOK).find("#new-disk") != nil {
		t.Error("it is asked for without a storage pool")
	}
	s = newPoolStage(t)
	s.get("ada", "/new").is(http.StatusOK).need("#new-disk")
	page := s.post("ada", "/sandboxes", fields("template", "base", "disk", "lots")).is(http.StatusBadRequest)
	if got := textOf(page.need("#new-disk-fault")); !strings.Contains(got, "must be a size") || attr(page.need("#new-disk"), "value") != "lots" {
		t.Errorf("it says %q", got)
	}
	s.post("ada", "/sandboxes", fields("template", "base", "name", "ml", "disk", "20 GiB")).leads("/sandboxes/ml")
	if got := s.boxes.asked().Limits; got != (sandbox.Limits{Disk: 20 * gib}) {
		t.Errorf("asked for %+v", got)
	}
}

func TestSize_FormChangesWhatIsEntered(t *testing.T) {
	s := newPoolStage(t)
	box := s.put("ada", "lab", func(b *sandbox.Sandbox) {
		b.Spec.Limits = sandbox.Limits{CPUs: 1.5, Memory: 2 * gib, Pids: 100, Disk: 1536 << 20}
	})
	s.metrics.sizes = map[string]metrics.Sized{box.ID: {Size: metrics.Size{Home: gib}, Time: stageTime}}
	path := "/sandboxes/lab/size?sandbox_id=" + box.ID
	page := s.get("ada", "/sandboxes/lab/size").is(http.StatusOK)
	for id, want := range map[string]string{"#size-cpus": "1.5", "#size-memory": "2 GiB", "#size-disk": "1536 MiB"} {
		if got := attr(page.need(id), "value"); got != want {
			t.Errorf("%s has %q", id, got)
		}
	}
	if !strings.Contains(textOf(page.need(".sheet")), "The home has 1 GiB") {
		t.Errorf("the form: %s", textOf(page.need(".sheet")))
	}
	limits := func() sandbox.Limits { return s.handle("lab").Sandbox().Spec.Limits }
	s.post("ada", path, fields("cpus", "2", "memory", "4 GiB", "disk", "10 GiB")).leads("/sandboxes/lab")
	if got := limits(); got != (sandbox.Limits{CPUs: 2, Memory: 4 * gib, Pids: 100, Disk: 10 * gib}) {
		t.Errorf("the limits are %+v", got)
	}
	again := s.post("ada", path, fields("cpus", "2", "memory", "4 GiB", "disk", "-1")).is(http.StatusBadRequest)
	if got := textOf(again.need("#size-disk-fault")); !strings.Contains(got, "must be a size") || attr(again.need("#size-disk"), "value") != "-1" || attr(again.need("#size-memory"), "value") != "4 GiB" {
		t.Errorf("it says %q", got)
	}
	again = s.post("ada", path, fields("memory", "0.5", "disk", "10")).is(http.StatusBadRequest)
	if got := textOf(again.need("#size-memory-fault")); !strings.Contains(got, `Memory "0.5" has no unit: write 0.5 GiB or 512 MiB.`) {
		t.Errorf("it says %q", got)
	}
	s.boxes.refuse(&fault.Error{Kind: fault.Conflict, Field: "memory", Message: "Its programs hold 3 GiB now."})
	if got := textOf(s.post("ada", path, fields("memory", "1 GiB")).is(http.StatusConflict).need("#size-memory-fault")); !strings.Contains(got, "hold 3 GiB") {
		t.Errorf("it says %q", got)
	}
	s.boxes.refuse(nil)
	s.post("ada", path, fields("cpus", "", "memory", "", "disk", "")).leads("/sandboxes/lab")
	if got := limits(); got != (sandbox.Limits{CPUs: 2, Memory: 4 * gib, Pids: 100}) {
		t.Errorf("with empty fields the limits are %+v", got)
	}
	s.post("bob", path, fields("memory", "1 GiB")).is(http.StatusNotFound)
}

func TestSize_HasADiskOnlyWithAStoragePool(t *testing.T) {
	for want, s := range map[bool]*stage{false: newStage(t), true: newPoolStage(t)} {
		box := s.put("ada", "lab", func(b *sandbox.Sandbox) { b.Spec.Limits = sandbox.Limits{CPUs: 1, Memory: gib, Pids: 100} })
		if got := s.get("ada", "/sandboxes/lab/size").is(http.StatusOK).find("#size-disk") != nil; got != want {
			t.Errorf("the form has a disk: %v, want %v", got, want)
		}
		s.post("ada", "/sandboxes/lab/size?sandbox_id="+box.ID, fields("memory", "2 GiB")).leads("/sandboxes/lab")
		for _, path := range []string{"/", "/sandboxes/lab"} {
			if !strings.Contains(s.get("ada", path).is(http.StatusOK).Body.String(), "Size…") {
				t.Errorf("%s does not have the action", path)
			}
		}
	}
}

func TestDisk_IsShownBesideItsLimit(t *testing.T) {
	s := newPoolStage(t)
	limited := s.put("ada", "lab", func(b *sandbox.Sandbox) { b.Spec.Limits.Disk = 10 * gib })
	free := s.put("ada", "free", nil)
	s.metrics.sizes = map[string]metrics.Sized{}
	for _, box := range []sandbox.Sandbox{limited, free} {
		s.metrics.uses(box.ID, steadily(0.5), steadily(gib))
		s.metrics.sizes[box.ID] = metrics.Sized{Size: metrics.Size{Home: 9.5 * gib, Layer: 1 << 20}, Time: stageTime}
	}
	if got := textOf(s.get("ada", "/sandboxes/lab").need("#ws-meters")); !strings.Contains(got, "Disk 9.5 / 10 GiB") {
		t.Errorf("the menu has %q", got)
	}
	if got := textOf(s.get("ada", "/sandboxes/free").need("#ws-meters")); strings.Contains(got, "Disk") || !strings.Contains(got, "Mem") {
		t.Errorf("without a limit the menu has %q", got)
	}
	if got := textOf(s.get("ada", "/sandboxes/lab/metrics").need("#metrics-size")); !strings.Contains(got, "Home 9.5 GiB of 10 GiB, writable layer") {
		t.Errorf("its metrics have %q", got)
	}
	if use := workspaceMeters(s.metrics, limited).Disk; use.Tone != "bad" || use.Part != "95" || !strings.Contains(use.Label, "near its limit") {
		t.Errorf("%+v", use)
	}
}

func TestHost_ShowsTheStoragePool(t *testing.T) {
	s := newPoolStage(t)
	s.metrics.host = metrics.Host{Cores: 4}
	for _, c := range []struct {
		used int64
		err  error
		want string
	}{
		{50 * gib, nil, "Storage pool 50 GiB of 100 GiB 50 GiB free"},
		{90 * gib, nil, "Storage pool nearly full 90 GiB of 100 GiB 10 GiB free"},
		{99.5 * gib, nil, "Storage pool full 99.5 GiB of 100 GiB 512 MiB free"},
		{0, errors.New("hung"), "Storage pool unknown"},
	} {
		s.server.cfg.Pool = func(context.Context) (used, size int64, err error) { return c.used, 100 * gib, c.err }
		page := s.get("root", "/host").is(http.StatusOK)
		if got := textOf(page.need("#host-now")); !strings.Contains(got, c.want) {
			t.Errorf("%d used: it says %q", c.used, got)
		}
	}
	s.server.cfg.Pool = nil
	if got := textOf(s.get("root", "/host").need("#host-now")); strings.Contains(got, "Storage pool") {
		t.Errorf("without one it says %q", got)
	}
}

func TestMetrics_HostHasTheStoragePool(t *testing.T) {
	w := newWorld(t)
	w.server.cfg.Pool = func(context.Context) (used, size int64, err error) { return 3, 5, nil }
	var got hostMetricsShape
	w.call("root", "GET", "/api/v1/host/metrics", "").is(http.StatusOK).into(&got)
	if got.Now.Pool == nil || *got.Now.Pool != (poolShape{3, 5}) {
		t.Errorf("%+v", got.Now.Pool)
	}
}

func TestExactSize_IsReadBackAsItWas(t *testing.T) {
	for n, want := range map[int64]string{0: "", 1: "1 B", 64 << 20: "64 MiB", 1536 << 20: "1536 MiB", 10 * gib: "10 GiB", gib + 1: "1073741825 B", 1 << 50: "1 PiB"} {
		got := exactSize(n)
		if back, err := readSizeOf("disk", "Disk", got); got != want || n > 0 && (err != nil || back != n) {
			t.Errorf("%d is %q, read back as %d (%v)", n, got, back, err)
		}
	}
}

package web

import (
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/metrics"
	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

// uses puts figures of the last 15 minutes on the stage: cores and bytes by the number of the point.
func (f *fakeMetrics) uses(id string, cpu, memory func(i int) float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var points []metrics.Point
	for i := range int(metrics.FineLife / recentStep) {
		points = append(points, metrics.Point{
			Time:  stageTime.Add(-metrics.FineLife + time.Duration(i)*recentStep),
			State: sandbox.Running, Measured: recentStep, CPU: cpu(i), Memory: int64(memory(i)),
		})
	}
	f.recent[id] = points
}

// steadily is a figure that does not change.
func steadily(n float64) func(int) float64 { return func(int) float64 { return n } }

// keepFigures says what the furnished sandboxes use.
func (s *stage) keepFigures() {
	wave := func(low, high float64) func(int) float64 {
		return func(i int) float64 { return low + (high-low)*(1+math.Sin(float64(i)/3))/2 }
	}
	s.metrics.uses(s.ref("brave-otter").ID(), wave(1.2, 1.96), wave(1.7*(1<<30), 1.9*(1<<30)))
	s.metrics.uses(s.ref("checkout-api").ID(), wave(0, 0.4), wave(2e8, 6e8))
	s.metrics.uses(s.ref("quick-lynx").ID(), steadily(0.002), steadily(4<<20))
	s.metrics.mu.Lock()
	s.metrics.host = metrics.Host{
		Cores: 8, CPU: 3.42, Memory: 11 << 30, MemoryTotal: 16 << 30, SwapUsed: 1 << 28, SwapTotal: 4 << 30, DiskUsed: 187 << 30, DiskFree: 13 << 30,
		Load: [3]float64{3.5, 2.25, 1}, Pressure: &metrics.Pressure{CPU: 0.042, IO: 0.31},
	}
	history := metrics.Series{Step: 15 * time.Second}
	for i := range 240 {
		p := metrics.Point{Time: stageTime.Add(time.Duration(i-240) * 15 * time.Second), Measured: 15 * time.Second}
		p.CPU, p.Memory, p.MemoryLimit, p.Cache = wave(2, 6)(i/5), int64(wave(8, 12)(i/9)*(1<<30)), 16<<30, 5<<30
		p.NetworkRx, p.NetworkTx, p.DiskRead, p.DiskWrite = int64(wave(0, 4e7)(i)), int64(wave(0, 1e7)(i/2)), 3e6, int64(wave(0, 2e7)(i/3))
		history.Points = append(history.Points, p)
	}
	s.metrics.series[metrics.HostID] = history
	for i := range 8 { // it started late
		s.metrics.recent[s.ref("quick-lynx").ID()][i].Measured = 0
	}
	s.metrics.mu.Unlock()
}

func TestList_ShowsWhatRunningSandboxesUse(t *testing.T) {
	s := newStage(t)
	up := s.put("ada", "up", nil)
	down := s.put("ada", "down", func(b *sandbox.Sandbox) { b.State = sandbox.Frozen })
	fresh := s.put("ada", "fresh", nil)
	for _, box := range []sandbox.Sandbox{up, down} {
		s.metrics.uses(box.ID, steadily(0.5), steadily(1.9*(1<<30)))
	}
	page := s.get("ada", "/").is(http.StatusOK)
	if got := textOf(page.need("#" + views.MetersID(up.ID))); got != "CPU 0.5 / 2 Mem 1.9 / 2 GiB" {
		t.Errorf("it says %q", got)
	}
	for _, box := range []sandbox.Sandbox{down, fresh} {
		if n := page.need("#" + views.MetersID(box.ID)); n.FirstChild != nil {
			t.Errorf("%s shows %s", box.Name, textOf(n))
		}
	}
	var labels []string
	for _, n := range page.all(".use") {
		labels = append(labels, attr(n, "aria-label"))
	}
	want := []string{
		"CPU: 0.5 of 2 cores, 25 %. Most in the last 15 minutes: 0.5.",
		"Memory: 1.9 GiB of 2 GiB, 95 %, near its limit. Most in the last 15 minutes: 1.9 GiB.",
	}
	if !slices.Equal(labels, want) {
		t.Errorf("labels %q", labels)
	}
}

func TestWorkspace_ShowsWhatItUsesBelowItsState(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", nil)
	s.metrics.uses(box.ID, steadily(1.25), steadily(3.7*(1<<20)))
	page := s.get("ada", "/sandboxes/mine").is(http.StatusOK)
	if got := textOf(page.need("#ws-meters")); got != "CPU 1.25 / 2 Mem 4 MiB / 2 GiB" {
		t.Errorf("it says %q", got)
	}
}

// tick says that there are new figures, some time after the page was drawn.
func (f *fakeMetrics) tick(after time.Duration) {
	f.ticks.Publish(metrics.Tick{Time: stageTime.Add(after)})
}

// ticked ticks until words come, which may be before the page listens.
func (s *stage) ticked(f *feed, words string) string {
	s.t.Helper()
	all := ""
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for after := metersEvery; !strings.Contains(all, words); after += metersEvery {
		select {
		case e := <-f.events:
			all += e.Data
		case <-tick.C:
			s.metrics.tick(after)
		case <-time.After(time.Minute):
			s.t.Fatal("no figures come")
		}
	}
	return all
}

func TestLiveList_RefreshesTheMetersOfRowsThatChanged(t *testing.T) {
	s := newStage(t)
	busy, calm := s.put("ada", "busy", nil), s.put("ada", "calm", nil)
	down := s.put("ada", "down", func(b *sandbox.Sandbox) { b.State = sandbox.Asleep })
	for _, box := range []sandbox.Sandbox{busy, calm, down} {
		s.metrics.uses(box.ID, steadily(0.5), steadily(1<<30))
	}
	f, _ := s.follow("ada", s.topicOf("ada", "/"))
	s.metrics.uses(busy.ID, steadily(1.75), steadily(1<<30))
	if got := targets(s.ticked(f, "1.75")); !slices.Equal(got, []string{views.MetersID(busy.ID) + " outerHTML"}) {
		t.Errorf("refreshed %v", got)
	}
}

func TestLiveWorkspace_RefreshesItsMeters(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", nil)
	s.metrics.uses(box.ID, steadily(0.5), steadily(1<<30))
	f, _ := s.follow("ada", s.topicOf("ada", "/sandboxes/mine"))
	s.metrics.uses(box.ID, steadily(1.75), steadily(1<<30))
	if got := s.ticked(f, "1.75"); has(got, "ws-state outerHTML") || !has(got, "ws-meters outerHTML") {
		t.Errorf("refreshed %v", targets(got))
	}
}

func TestFigures_ComeNoMoreOftenThanTheyAreLookedAt(t *testing.T) {
	ticks := make(chan *metrics.Tick, 100)
	for i := range 31 { // two seconds apart, for a minute
		ticks <- &metrics.Tick{Time: stageTime.Add(time.Duration(i) * 2 * time.Second)}
	}
	ticks <- &metrics.Tick{Time: stageTime.Add(-time.Hour)} // the clock was put back
	close(ticks)
	told := 0
	last := handTicks(t.Context(), ticks, stageTime, func() bool { told++; return true })
	if told != 7 || !last.Equal(stageTime.Add(-time.Hour)) {
		t.Errorf("told %d times, last at %s", told, last)
	}
}

func TestFigures_OfAHiddenPageWaitUntilItIsShown(t *testing.T) {
	ticks := make(chan *metrics.Tick, 4)
	for i := range 4 {
		ticks <- &metrics.Tick{Time: stageTime.Add(metersEvery + time.Duration(i)*2*time.Second)}
	}
	close(ticks)
	asked := 0
	last := handTicks(t.Context(), ticks, stageTime, func() bool { asked++; return asked == 3 })
	if asked != 3 || !last.Equal(stageTime.Add(metersEvery+4*time.Second)) {
		t.Errorf("asked %d times, told at %s", asked, last)
	}
}

func TestLive_AHiddenPageGetsNoFigures(t *testing.T) {
	s := newStage(t)
	box := s.put("ada", "mine", nil)
	s.metrics.uses(box.ID, steadily(0.5), steadily(1<<30))
	p := s.page("ada")
	hidden, shown := true, false
	p.asks(channelAsk{Hidden: &hidden})
	f := p.opens(1, s.topicOf("ada", "/"))
	f.next()
	s.metrics.uses(box.ID, steadily(1.25), steadily(1<<30))
	for i := range 3 {
		s.metrics.tick(metersEvery * time.Duration(i+1))
	}
	if _, err := s.boxes.Rename(t.Context(), s.ref("mine"), "Mine"); err != nil { // still comes, with what is true now
		t.Fatal(err)
	}
	if got := f.until("Mine"); has(got, views.MetersID(box.ID)+" outerHTML") {
		t.Error("figures come to a page that is hidden")
	}
	p.asks(channelAsk{Hidden: &shown})
	s.metrics.uses(box.ID, steadily(1.75), steadily(1<<30))
	s.ticked(f, "1.75")
}

func TestSparkline_LeavesGapsAndStaysInItsBox(t *testing.T) {
	point := func(i int, cpu float64, measured bool) metrics.Point {
		p := metrics.Point{Time: stageTime.Add(time.Duration(i) * recentStep), CPU: cpu}
		if measured {
			p.Measured = recentStep
		}
		return p
	}
	cpu := func(p metrics.Point) float64 { return p.CPU }
	for _, c := range []struct {
		points []metrics.Point
		limit  float64
		want   string
	}{
		{nil, 2, ""},
		{[]metrics.Point{point(0, 0, true)}, 0, ""}, // nothing to compare with
		{[]metrics.Point{point(0, 1, true), point(1, 1, true), point(2, 0.5, true)}, 0, "M54 24V0H56H58V12H60V24Z"},
		{[]metrics.Point{point(0, 1, true), point(1, 9, false), point(2, 0, true)}, 36, "M54 24V21H56V24ZM58 24V23H60V24Z"},
		{[]metrics.Point{point(0, 9, true), point(40, 9, true)}, 1, "M58 24V0H60V24Z"}, // one is too old
	} {
		if got, _ := sparkline(c.points, c.limit, cpu); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestFigures_AreShort(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 0.004: "0", 0.5: "0.5", 1.999: "2", 12.34: "12.3", 100: "100"} {
		if got := cores(n); got != want {
			t.Errorf("%v: %q, want %q", n, got, want)
		}
	}
}

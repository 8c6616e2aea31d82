//go:build e2e

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The chaos test's size. The variable is for those who work on it and want it shorter.
const (
	chaosTime    = 5 * time.Minute
	chaosTimeEnv = "SANDBOXD_TEST_CHAOS_TIME"
	killSoonest  = 8 * time.Second
	killLatest   = 15 * time.Second
	downLongest  = 2 * time.Second  // between a kill and the start
	aftershocks  = 3                // one in so many kills is followed by another
	shockLatest  = 2 * time.Second  // after the start
	backLimit    = 45 * time.Second // from the start until everything answers again
	remainsLimit = 25 * time.Second // that an engine may take to get rid of what is left of a start that it was killed in
	quietLimit   = 2 * time.Minute  // from the end of the traffic until all is as it stays
	lookEvery    = 500 * time.Millisecond
)

// The sandboxes, each with what it is there for.
var chaosSandboxes = []string{
	"pages",    // asked for pages all the time, by both ways
	"sockets",  // echoes over WebSockets all the time, by both ways
	"loads",    // long downloads, and pauses in which it rests
	"commands", // commands over the API, and pauses in which it rests
	"held",     // nothing but a hold
	"busy",     // nothing but work of its own
	"unused",   // nothing at all
	"stopped",  // stopped by its owner, and asked for pages
}

// chaos is one run: a private engine, sandboxd and Traefik on it, and what happens to them.
type chaos struct {
	*record
	t      *testing.T
	e      *privateEngine
	s      *server
	k      *traefikProcess
	random *rand.Rand // for the test's own goroutine
	socket *exec.Cmd  // sandboxd's socket proxy, through which Traefik sees the engine
	traefik,
	straight way
}

// TestChaos_FiveMinutesOfKillsAndEverySandboxIsInATrueState kills, at random, Traefik, sandboxd, the engine, guests and
// the whole machine under traffic of all sorts, and starts them again. Nothing is answered wrongly meanwhile, nothing
// waits without end, and what is in use is not put to rest; afterwards what the list says is so.
func TestChaos_FiveMinutesOfKillsAndEverySandboxIsInATrueState(t *testing.T) {
	c := newChaos(t)
	long := chaosTime
	if d, err := time.ParseDuration(os.Getenv(chaosTimeEnv)); err == nil {
		long = d
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var traffic, person sync.WaitGroup
	using, stop := context.WithTimeout(ctx, long)
	defer stop()
	c.everybody(using, &traffic)
	person.Go(func() { c.owner(ctx) })
	c.disasters(using)
	traffic.Wait()
	c.ended = time.Now()
	t.Logf("%s: the traffic has ended", c.at(c.ended))
	c.settles()
	cancel()
	person.Wait()
	c.judge()
	c.wakesAll(t.Context())
	for _, name := range chaosSandboxes {
		if status, body := c.s.raw("DELETE", "/sandboxes/"+name+"?wait=gone", nil); status != http.StatusNoContent {
			t.Errorf("delete %s: %d %s", name, status, body)
		}
	}
	c.s.checkNothingLeft()
	c.report()
}

// newChaos starts everything and makes the sandboxes.
func newChaos(t *testing.T) *chaos {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	survive := random.IntN(2) == 0 // with live-restore, containers outlive their engine
	t.Logf("seed %d; sandboxes survive the end of the engine: %t", seed, survive)
	engine := newPrivateEngine(t, fmt.Sprintf(`{"live-restore": %t}`, survive))
	c := &chaos{record: newRecord(), t: t, e: engine, random: random}
	c.k = newTraefik(t)
	c.s = c.newServer(echoTemplates(t, "freeze_after: 3s", "stop_after: 10s"))
	socket := filepath.Join(c.e.dir, "traefik.sock")
	// The Host that sandboxd answers to has Traefik's port, so both serve at the same one, each at an address of its own.
	c.k.place, c.k.websecure = c.e.place(), strings.Replace(c.s.addr, "127.0.0.1", "127.0.0.2", 1)
	c.k.env = append(c.k.env, "WEBSECURE_ADDRESS="+c.k.websecure, "DOCKER_ENDPOINT=unix://"+socket)
	c.startAll()
	c.s.token = strings.TrimSpace(c.s.cli("token", "create", "chaos"))
	c.traefik, c.straight = c.ways()
	c.makeAll()
	c.record = newRecord()
	return c
}

// newServer prepares a sandboxd on the private engine.
func (c *chaos) newServer(templates string) *server {
	c.t.Helper()
	data, err := os.MkdirTemp("", "sbx-e2e-")
	if err != nil {
		c.t.Fatal(err)
	}
	place := c.e.place()
	s := &server{t: c.t, data: data, addr: c.k.websecure, place: place, log: &bytes.Buffer{},
		http: &http.Client{Transport: &http.Transport{DialContext: place.dial}},
		extra: []string{"--public-url", c.k.publicURL(), "--log-format", "json", "--settle", "1s",
			"--memory-reserve", "0", "--prebuild", "", "--templates", templates}}
	c.t.Cleanup(func() {
		for _, fault := range c.found() {
			c.t.Error(fault)
		}
		if c.t.Failed() {
			c.keepLog()
		}
		if s.cmd != nil && s.cmd.Process.Signal(syscall.Signal(0)) == nil {
			s.kill()
		}
		if err := os.RemoveAll(data); err != nil {
			c.t.Error(err)
		}
	})
	return s
}

// keepLog leaves the whole log of sandboxd for people to look at.
func (c *chaos) keepLog() {
	path := artefact(c.t, "chaos-sandboxd.log")
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if err := os.WriteFile(path, c.s.log.Bytes(), 0o644); err != nil {
		c.t.Error(err)
	}
	c.t.Logf("the log of sandboxd is in %s", path)
}

func (c *chaos) killServer() {
	c.s.kill()
}

func (c *chaos) startServer() {
	c.s.start()
}

func (c *chaos) startAll() {
	c.startServer()
	c.startSocket()
	c.k.start(c.s.addr)
}

// startSocket runs the socket proxy, as a program of its own.
func (c *chaos) startSocket() {
	c.t.Helper()
	c.socket = exec.Command(binary, "socket-proxy", "--socket", filepath.Join(c.e.dir, "traefik.sock"), "--engine-socket", strings.TrimPrefix(c.e.host, "unix://"))
	c.socket.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := c.socket.Start(); err != nil {
		c.t.Fatal(err)
	}
}

func (c *chaos) killSocket() {
	_ = c.socket.Process.Kill()
	_ = c.socket.Wait()
}

// makeAll makes the sandboxes and puts the service, and the name that it tells, into each.
func (c *chaos) makeAll() {
	c.t.Helper()
	dir := c.t.TempDir()
	program := filepath.Join(dir, "echo")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "./testdata/chaos")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		c.t.Fatalf("build the service: %v\n%s", err, out)
	}
	for _, name := range chaosSandboxes {
		file := filepath.Join(dir, "name")
		if err := os.WriteFile(file, []byte(name+"\n"), 0o644); err != nil {
			c.t.Fatal(err)
		}
		c.s.create(map[string]any{"name": name, "template": "echo"})
		if name == "held" { // before it can be put to rest: a hold wakes nothing
			if status := c.s.call("POST", "/sandboxes/held/holds", map[string]any{"reason": "the chaos test", "ttl": "1h"}, nil); status != http.StatusCreated {
				c.t.Fatalf("hold: %d", status)
			}
		}
		for _, path := range []string{file, program} {
			engine(c.t, "cp", path, c.s.container(name)+":/home/agent/")
		}
		c.s.until(name+" answers", func() bool { return c.page(c.t.Context(), c.straight, name) })
	}
	if status := c.s.call("POST", "/sandboxes/stopped/stop?wait=stopped", nil, nil); status != http.StatusOK {
		c.t.Fatalf("stop: %d", status)
	}
}

// everybody uses the sandboxes until ctx ends.
func (c *chaos) everybody(ctx context.Context, traffic *sync.WaitGroup) {
	for range 2 {
		traffic.Go(func() { c.pages(ctx, c.traefik, "pages") })
		traffic.Go(func() { c.pages(ctx, c.straight, "pages") })
	}
	traffic.Go(func() { c.sockets(ctx, c.traefik, "sockets") })
	traffic.Go(func() { c.sockets(ctx, c.straight, "sockets") })
	traffic.Go(func() { c.downloads(ctx, "loads", c.traefik, c.straight) })
	traffic.Go(func() { c.commands(ctx, "commands") })
	traffic.Go(func() { c.askStopped(ctx, c.traefik, "stopped") })
	traffic.Go(func() { c.askStopped(ctx, c.straight, "stopped") })
}

// owner looks at the list all the time, which uses nothing, and starts what has failed.
func (c *chaos) owner(ctx context.Context) {
	for pause(ctx, lookEvery, lookEvery) {
		begun := time.Now()
		var list struct {
			Items []seenBody `json:"sandboxes"`
		}
		status, body, err := c.api(ctx, "GET", "/sandboxes?limit=100", nil)
		switch {
		case err != nil:
			if ctx.Err() == nil {
				c.failed("list", "all", begun, err)
			}
			continue
		case status != http.StatusOK:
			c.excused("list", "all", status, body)
			continue
		}
		if err := json.Unmarshal(body, &list); err != nil || len(list.Items) != len(chaosSandboxes) {
			c.wrong("the list has %d sandboxes, %v", len(list.Items), err)
		}
		for _, name := range c.sees(begun, list.Items) {
			status, body, err := c.api(ctx, "POST", "/sandboxes/"+name+"/start", nil)
			c.count("start of a failed one", fmt.Sprint(status))
			if err == nil && status != http.StatusOK && status != http.StatusAccepted && status != http.StatusServiceUnavailable {
				c.wrong("start of %s, which had failed: %d %s", name, status, body)
			}
		}
	}
}

// disaster is one kind of kill.
type disaster struct {
	name  string
	kill  func()
	start func()
}

// disasters kills and starts until ctx ends. All kinds come in turn, in an order of chance.
func (c *chaos) disasters(ctx context.Context) {
	engineBack := func() { c.mends(); c.e.start() }
	all := []disaster{
		{"Traefik", func() { c.k.end(syscall.SIGKILL) }, func() { c.k.start(c.s.addr) }},
		{"sandboxd", c.killServer, c.startServer},
		{"the engine", func() { c.e.kill(false) }, engineBack},
		{"a guest", c.killGuest, func() {}},
		{"sandboxd", c.killServer, c.startServer},
		{"a guest", c.killGuest, func() {}},
		{"the engine with its containerd", func() { c.e.kill(true) }, engineBack},
		{"Traefik and its socket proxy", func() { c.k.end(syscall.SIGKILL); c.killSocket() }, func() { c.startSocket(); c.k.start(c.s.addr) }},
		{"sandboxd and the engine", func() { c.killServer(); c.e.kill(false) }, func() { engineBack(); c.startServer() }},
		{"the machine", c.cut, c.boot},
	}
	again := []disaster{all[1], all[2]} // while all is on its way up
	var deck []disaster
	for next := time.Now(); ; {
		next = next.Add(killSoonest + time.Duration(c.random.Int64N(int64(killLatest-killSoonest))))
		wait := max(time.Until(next), 0)
		if !pause(ctx, wait, wait) {
			return
		}
		if len(deck) == 0 {
			deck = slices.Clone(all)
			c.random.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		begun := time.Now()
		c.strike(deck[0])
		if c.random.IntN(aftershocks) == 0 {
			c.random.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
			c.strike(again[0])
		}
		c.recovers(deck[0].name)
		c.down = append(c.down, span{what: deck[0].name, from: begun, to: time.Now()})
		deck = deck[1:]
	}
}

// strike kills, and starts what is not there any more.
func (c *chaos) strike(d disaster) {
	c.t.Helper()
	c.count("killed", d.name)
	c.t.Logf("%s: kill %s", c.at(time.Now()), d.name)
	d.kill()
	down := time.Duration(c.random.Int64N(int64(downLongest)))
	pause(context.Background(), down, down)
	d.start()
	soon := time.Duration(c.random.Int64N(int64(shockLatest)))
	pause(context.Background(), soon, soon)
}

// recovers waits until everything answers.
func (c *chaos) recovers(from string) {
	c.t.Helper()
	begun := time.Now()
	c.e.await()
	restarted := false
	for missing := c.missing(begun); missing != ""; missing = c.missing(begun) {
		took := time.Since(begun)
		if took > backLimit {
			c.t.Fatalf("%s after the end of %s: %s", backLimit, from, missing)
		}
		if took > remainsLimit && c.remains() && !restarted {
			c.restartEngine()
			restarted, begun = true, time.Now()
		}
		pause(c.t.Context(), lookEvery, lookEvery)
	}
	c.t.Logf("%s: back after %s", c.at(time.Now()), time.Since(begun).Round(time.Millisecond))
}

// missing says what does not answer yet, or "".
func (c *chaos) missing(begun time.Time) string {
	for _, f := range []way{c.traefik, c.straight} {
		if !c.page(c.t.Context(), f, "pages") {
			return "no pages come by way of " + f.name
		}
	}
	if !c.settled(begun) {
		return "sandboxes are on their way: " + c.listed()
	}
	return ""
}

// restartEngine does what an administrator does with an engine that keeps remains of a start: it and its containerd are
// started anew.
func (c *chaos) restartEngine() {
	c.t.Helper()
	c.count("restarted", "the engine, because it kept remains of a start")
	c.t.Logf("%s: the engine keeps remains of a start: restart it", c.at(time.Now()))
	c.e.kill(true)
	c.mends()
	c.e.start()
	c.e.await()
}

// killGuest kills the guest of a sandbox that runs.
func (c *chaos) killGuest() {
	c.t.Helper()
	names := strings.Fields(engine(c.t, "ps", "--filter", "status=running", "--format", `{{.Label "sandboxd.name"}}`))
	if len(names) == 0 {
		return
	}
	name := names[c.random.IntN(len(names))]
	c.kills(name)
	c.t.Logf("the guest of %s: %t", name, c.e.killGuest(c.s.container(name)))
}

// cut switches the machine off.
func (c *chaos) cut() {
	c.k.end(syscall.SIGKILL)
	c.killServer()
	c.killSocket()
	c.e.cut()
}

// boot switches it on; the engine comes up while sandboxd waits for it.
func (c *chaos) boot() {
	c.mends()
	c.e.boot()
	c.startAll()
}

// settles waits until no sandbox is on its way, what has failed is up again, and what nobody uses is asleep.
func (c *chaos) settles() {
	c.t.Helper()
	c.e.await()
	begun, restarted := time.Now(), false
	for !c.all(begun, func(name, state string) bool { return state == chaosEnd(name) }) {
		if time.Since(begun) > remainsLimit && c.remains() && !restarted {
			c.restartEngine()
			restarted, begun = true, time.Now()
		}
		if time.Since(begun) > quietLimit {
			c.wrong("%s after the traffic not all are as they should be: %s", quietLimit, c.listed())
			return
		}
		pause(c.t.Context(), lookEvery, lookEvery)
	}
}

// judge compares what the engine has, and what was logged, with what was done and seen.
func (c *chaos) judge() {
	c.t.Helper()
	have := map[string]string{}
	for line := range strings.Lines(engine(c.t, "ps", "-a", "--format", `{{.Label "sandboxd.name"}} {{.State}}`)) {
		name, state, _ := strings.Cut(strings.TrimSpace(line), " ")
		have[name] = state
	}
	for _, name := range chaosSandboxes {
		state := c.list.states[name]
		if want := map[string]string{"running": "running", "asleep": "exited", "stopped": "exited"}[state]; have[name] != want {
			c.t.Errorf("%s is listed as %s, the engine says %s", name, state, have[name])
		}
	}
	c.judgeRests()
}

// judgeRests holds sandboxd's log against the test's record of use.
func (c *chaos) judgeRests() {
	c.t.Helper()
	c.s.mu.Lock()
	lines := restLines(c.s.log.String())
	c.s.mu.Unlock()
	rested := map[string]int{}
	for _, l := range lines {
		if l.Time.Before(c.begun) {
			if l.Sandbox == "unused" { // which may sleep before the traffic begins, and nobody wakes it
				rested[l.Sandbox]++
			}
			continue
		}
		rested[l.State]++
		rested[l.Sandbox]++
		if use, found := c.during(l); found {
			c.t.Errorf("%s: %s became %s as unused for %s, but there was a %s from %s to %s",
				c.at(l.Time), l.Sandbox, l.State, l.Idle, use.what, c.at(use.from), c.at(use.to))
		}
		if (l.Sandbox == "pages" || l.Sandbox == "sockets") && c.calm(l) {
			c.t.Errorf("%s: %s became %s as unused for %s, although it is used all the time", c.at(l.Time), l.Sandbox, l.State, l.Idle)
		}
	}
	for _, name := range []string{"held", "busy", "stopped"} {
		if rested[name] != 0 {
			c.t.Errorf("%s was put to rest %d times", name, rested[name])
		}
	}
	for _, what := range []string{"frozen", "sleeping", "unused", "loads", "commands"} {
		if rested[what] == 0 {
			c.t.Errorf("%s: none was put to rest", what)
		}
	}
	for _, kind := range []string{"web", "stream", "exec", "hold", "work"} {
		if c.list.because[kind] == 0 {
			c.t.Errorf("nothing was ever said to be awake because of %s", kind)
		}
	}
	c.t.Logf("put to rest: %v; seen awake because of: %v", rested, c.list.because)
}

// wakesAll uses every sandbox once more.
func (c *chaos) wakesAll(ctx context.Context) {
	c.t.Helper()
	for n, name := range chaosSandboxes {
		f := []way{c.traefik, c.straight}[n%2]
		if answers := c.page(ctx, f, name); answers != (name != "stopped") {
			c.t.Errorf("after everything %s, by way of %s, answers with its page: %t", name, f.name, answers)
		}
	}
	if state := c.s.rest("stopped").State; state != "stopped" {
		c.t.Errorf("the one that its owner has stopped is %s", state)
	}
}

// report tells what was done.
func (c *chaos) report() {
	for _, what := range slices.Sorted(maps.Keys(c.counts)) {
		c.t.Logf("%6d  %s", c.counts[what], what)
	}
	c.t.Logf("%6d  wakes seen", c.list.wakes)
}

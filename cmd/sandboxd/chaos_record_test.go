//go:build e2e

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// record is what the test knows of what it did and saw itself. Safe for concurrent use.
type record struct {
	mu     sync.Mutex
	begun  time.Time
	ended  time.Time // the traffic
	uses   map[string][]span
	counts map[string]int
	faults []string
	list   sight
	outages
}

// span is a use that was answered rightly, as the one who asked saw it.
type span struct {
	what     string
	from, to time.Time
	slack    time.Duration // by how much the end may differ from what sandboxd knows
}

// sight is what the API was seen to say.
type sight struct {
	states  map[string]string
	looked  time.Time            // when it was asked last
	killed  map[string]time.Time // when guests were killed that have not been seen failed since
	because map[string]int       // how often what kept something awake
	wakes   int
}

// seenBody is a sandbox in the API's list.
type seenBody struct {
	sandboxBody
	Because []struct{ Kind string } `json:"awake_because"`
}

// outages are the times at which not all answers can be right ones.
type outages struct {
	mended  time.Time      // when the engine was last started
	refused map[string]int // how often it has refused to start a sandbox since
	down    []span         // from a kill until all answered again
}

func newRecord() *record {
	return &record{begun: time.Now(), uses: map[string][]span{}, counts: map[string]int{},
		list: sight{states: map[string]string{}, killed: map[string]time.Time{}, because: map[string]int{}}, outages: outages{refused: map[string]int{}}}
}

// at says when something was, as the test's log does.
func (r *record) at(t time.Time) string { return t.Sub(r.begun).Round(time.Millisecond).String() }

// used notes a use that was answered rightly.
func (r *record) used(sandbox, what string, from, to time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uses[sandbox] = append(r.uses[sandbox], span{what, from, to, restSlack})
	r.counts[what+": ok"]++
}

// flowed notes a stream, which counts once in ten seconds.
func (r *record) flowed(sandbox string, from, to time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uses[sandbox] = append(r.uses[sandbox], span{"download", from, to, restSlack + 10*time.Second})
}

func (r *record) count(what, outcome string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[what+": "+outcome]++
}

// wrong notes a fault.
func (r *record) wrong(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, r.at(time.Now())+": "+fmt.Sprintf(format, args...))
}

// mends notes that the engine is started.
func (r *record) mends() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mended = time.Now()
	clear(r.refused)
}

// remains reports whether the engine has refused to start a sandbox more than once since it was started.
func (r *record) remains() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.refused {
		if n > 1 {
			return true
		}
	}
	return false
}

// kills notes that a guest is about to be killed.
func (r *record) kills(sandbox string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list.killed[sandbox] = time.Now()
}

// What a sandbox says that has failed for a reason of the test's making.
const (
	endedByKill = "It was killed (exit code 137)"
	// An engine that is killed while it starts a container comes back with remains of it, which it needs some seconds to
	// get rid of; until then it starts that container for nobody. Some it keeps until its containerd is started anew.
	refusedStart = "The container engine could not start the container: "
)

// sees takes in a list that was asked for at some time, and what must not be in it. It gives those that have failed.
func (r *record) sees(asked time.Time, list []seenBody) (failed []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list.looked = asked
	for _, sb := range list {
		if fault := r.seesOne(sb); fault != "" {
			r.faults = append(r.faults, r.at(asked)+": "+sb.Name+" "+fault)
		}
		if sb.State == "failed" {
			failed = append(failed, sb.Name)
		}
	}
	return failed
}

func (r *record) seesOne(sb seenBody) (fault string) {
	before := r.list.states[sb.Name]
	r.list.states[sb.Name] = sb.State
	for _, reason := range sb.Because {
		r.list.because[reason.Kind]++
	}
	if resting(before) && !resting(sb.State) {
		r.list.wakes++
	}
	switch {
	case sb.State == before:
	case sb.State == "failed" && time.Since(r.list.killed[sb.Name]) < backLimit && strings.HasPrefix(sb.Problem, endedByKill):
		delete(r.list.killed, sb.Name)
	case sb.State == "failed" && time.Since(r.mended) < backLimit && strings.HasPrefix(sb.Problem, refusedStart):
		r.counts["failed: the engine had remains"]++
		r.refused[sb.Name]++
	case sb.State == "failed":
		return "has failed, and nobody has killed it: " + sb.Problem
	case sb.Name == "stopped" && before != "":
		return "was stopped by its owner, and is " + sb.State
	case resting(sb.State) && (sb.Name == "held" || sb.Name == "busy"):
		return "is " + sb.State + ", although it is in use"
	}
	return ""
}

func resting(state string) bool { return state == "frozen" || state == "sleeping" || state == "asleep" }

// settled says whether a list has been seen that is younger than that time, with no sandbox on its way but to sleep.
func (r *record) settled(since time.Time) bool {
	return r.all(since, func(_, state string) bool { return state == "running" || state == "stopped" || resting(state) })
}

// all says whether something is so of all in a list that is younger than that time.
func (r *record) all(since time.Time, cond func(name, state string) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, state := range r.list.states {
		if !cond(name, state) {
			return false
		}
	}
	return r.list.looked.After(since)
}

// listed tells what the list said last.
func (r *record) listed() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprint(r.list.states)
}

// found gives the faults.
func (r *record) found() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.faults)
}

// restLine is what sandboxd logs when it puts a sandbox to rest.
type restLine struct {
	Time    time.Time
	Msg     string
	Sandbox string
	State   string
	Idle    time.Duration
}

// restLines finds in sandboxd's log, of all its lives, what it has put to rest.
func restLines(log string) []restLine {
	var out []restLine
	lines := bufio.NewScanner(strings.NewReader(log))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l restLine
		if json.Unmarshal(lines.Bytes(), &l) == nil && l.Msg == "put a sandbox to rest" {
			out = append(out, l)
		}
	}
	return out
}

// restSlack is by how much the two records may differ: the log's idle time is in whole seconds, and a caller that waits for an
// answer on a busy machine sees it late.
const restSlack = time.Second

// during gives a use that falls into the time for which sandboxd says that there was none, or outlasts it.
func (r *record) during(l restLine) (span, bool) {
	to := l.Time.Add(-restSlack)
	for _, u := range r.uses[l.Sandbox] {
		from := l.Time.Add(restSlack/2 - l.Idle).Add(u.slack)
		if from.After(to) {
			from = to
		}
		if u.from.Before(to) && u.to.After(from) {
			return u, true
		}
	}
	return span{}, false
}

// calm reports whether the whole time for which sandboxd says that there was no use is inside that of the traffic, and nothing was
// down in it: what is asked for all the time must be seen in it then. Otherwise all that was asked for may have failed.
func (r *record) calm(l restLine) bool {
	from := l.Time.Add(-l.Idle - restSlack)
	for _, d := range r.down {
		if from.Before(d.to) && l.Time.After(d.from) {
			return false
		}
	}
	return from.After(r.begun) && l.Time.Before(r.ended)
}

// chaosEnd is the state that a sandbox has when nobody asks for anything any more.
func chaosEnd(name string) string {
	switch name {
	case "held", "busy":
		return "running"
	case "stopped":
		return "stopped"
	}
	return "asleep"
}

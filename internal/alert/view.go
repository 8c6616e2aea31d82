package alert

import (
	"fmt"
	"math"
	"time"

	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
	"sandboxd/internal/wire"
)

// verdict is what a look says of one target.
type verdict int

const (
	bad    verdict = iota
	near           // well, but so little that what fires is not resolved
	unsure         // it cannot be told
	cured          // well, without waiting for more
)

// Hysteresis: what fires is resolved when it is that far below its threshold.
const (
	nearPoints = 5    // of percent
	nearShare  = 0.95 // of another threshold
	fullHome   = 0.9  // of its limit
	usageAge   = time.Minute
	sizeAge    = 24 * time.Hour // they are measured each hour, or less often where that takes long
)

// reading is what a look says of one target.
type reading struct {
	target  Target
	verdict verdict
	text    string
}

// findings is what a look says of all targets of a rule. What is in neither told nor unsure is well, or gone.
type findings struct {
	known  bool // otherwise it says nothing
	told   []reading
	unsure map[string]bool           // sandboxes
	cured  func(sandbox string) bool // whether it is well, or gone, without waiting for more; nil for none
}

// view is what is known at one look.
type view struct {
	now    time.Time
	looks  *looks
	from   *Sources
	builds map[string]Build

	known   bool // boxes is
	boxes   []sandbox.Sandbox
	byOwner map[string][]int
	states  map[string]sandbox.State // by sandbox
	kills   map[string]int64
}

// index takes the sandboxes.
func (v *view) index(boxes []sandbox.Sandbox) {
	v.known, v.boxes = true, boxes
	v.byOwner, v.kills, v.states = map[string][]int{}, map[string]int64{}, make(map[string]sandbox.State, len(boxes))
	for i := range boxes {
		v.states[boxes[i].ID] = boxes[i].State
		v.byOwner[boxes[i].Owner] = append(v.byOwner[boxes[i].Owner], i)
		if v.from.OOMKills != nil {
			if n := v.from.OOMKills(boxes[i].ID); n > 0 {
				v.kills[boxes[i].ID] = n
			}
		}
	}
}

// each calls see with the sandboxes that a rule watches.
func (v *view) each(r *Rule, see func(b *sandbox.Sandbox)) {
	one := func(b *sandbox.Sandbox) {
		if !b.Pooled && b.State != sandbox.Deleting && (r.SandboxID == "" || r.SandboxID == b.ID) && (r.Template == "" || r.Template == b.Spec.Template) {
			see(b)
		}
	}
	if r.Owner != "" {
		for _, i := range v.byOwner[r.Owner] {
			one(&v.boxes[i])
		}
		return
	}
	for i := range v.boxes {
		one(&v.boxes[i])
	}
}

// targetOf is a sandbox, or a part of it.
func targetOf(b *sandbox.Sandbox, part string) Target {
	return Target{SandboxID: b.ID, Sandbox: b.Name, Owner: b.Owner, Template: b.Spec.Template, Part: part}
}

// of gives what is found for a rule.
func (v *view) of(r *Rule) findings {
	switch r.Kind {
	case HostDisk, HostMemory:
		return v.host(r)
	case Certificate:
		return v.certificate(r)
	case BuildFailed:
		return v.build(r)
	case BackupFailed, BackupMissed, BackupTest:
		return v.backups(r)
	}
	f := &findings{known: v.known, unsure: map[string]bool{}, cured: v.gone}
	if !v.known {
		return *f
	}
	var see func(b *sandbox.Sandbox)
	switch r.Kind {
	case ServiceDown:
		f.known = v.looks.services.fresh || v.from.Services == nil
		see = func(b *sandbox.Sandbox) { v.service(f, b) }
	case Memory:
		see = func(b *sandbox.Sandbox) { v.memory(f, r, b) }
	case OOMKill:
		see = func(b *sandbox.Sandbox) { v.oom(f, b) }
	case HomeSize:
		see = func(b *sandbox.Sandbox) { v.home(f, r, b) }
	case Broken:
		see = func(b *sandbox.Sandbox) { v.broken(f, b) }
		f.cured = func(id string) bool { return v.runs(id) || v.gone(id) }
	case LogLine:
		f.known = v.looks.lines.fresh || v.from.Lines == nil
		found := lineFinding{hits: v.looks.hits[r.ID], whole: v.looks.lines.value[r.ID].whole || v.from.Lines == nil}
		see = func(b *sandbox.Sandbox) { v.line(f, r, b, found) }
	default:
		return *f
	}
	if f.known {
		v.each(r, see)
	}
	return *f
}

// say adds a reading.
func (f *findings) say(t Target, v verdict, text string) {
	f.told = append(f.told, reading{t, v, text})
}

// service: one is down when its checks say so, or when it is started again and again. Those of a frozen sandbox cannot be told; those
// of one that is not up are not down.
func (v *view) service(f *findings, b *sandbox.Sandbox) {
	if v.from.Services == nil {
		return
	}
	list, told := v.looks.services.value[b.ID]
	switch {
	case b.State != sandbox.Running && b.State != sandbox.Frozen && b.State.Settled():
		return
	case b.State != sandbox.Running || !told:
		f.unsure[b.ID] = true
		return
	}
	for _, one := range list {
		target := targetOf(b, text.OneLine(one.Name, MaxName))
		again, sure := v.looks.restarts[service{b.ID, one.Name}].recent(v.now)
		say := ""
		switch {
		case one.Health == wire.HealthUnhealthy:
			say = "is unhealthy"
		case again >= restartsMany:
			say = fmt.Sprintf("was restarted %s%s within 10 minutes", times(again), orMore(again))
		case !sure: // sandboxd was restarted less than ten minutes ago
			f.say(target, unsure, "")
			continue
		default:
			continue
		}
		if one.Problem != "" {
			say += ": " + text.Excerpt(one.Problem, textLimit)
		}
		f.say(target, bad, say)
	}
}

func times(n int) string { return counted(n, "time", "times") }

func (v *view) memory(f *findings, r *Rule, b *sandbox.Sandbox) {
	switch {
	case v.from.Usage == nil || b.State.Settled() && b.State != sandbox.Running && b.State != sandbox.Frozen:
		return
	case b.State != sandbox.Running:
		f.unsure[b.ID] = true
		return
	}
	p, ok := v.from.Usage(b.ID)
	limit := p.MemoryLimit
	if limit <= 0 {
		limit = b.Spec.Limits.Memory
	}
	if age := v.now.Round(0).Sub(p.Time); !ok || limit <= 0 || age > usageAge || age < -usageAge {
		f.unsure[b.ID] = true
		return
	}
	f.percent(r, targetOf(b, ""), p.Memory, limit, func(percent int) string { return fmt.Sprintf("uses %d %% of its %s", percent, text.Size(limit)) })
}

// percent compares a share with a threshold in percent.
func (f *findings) percent(r *Rule, t Target, used, of int64, say func(percent int) string) {
	percent := 100 * float64(used) / float64(of)
	switch {
	case percent >= r.Threshold:
		f.say(t, bad, say(int(math.Floor(percent))))
	case percent >= r.Threshold-nearPoints:
		f.say(t, near, "")
	}
}

func (v *view) oom(f *findings, b *sandbox.Sandbox) {
	if v.kills[b.ID] <= v.looks.kills[b.ID] {
		return
	}
	n, _ := v.looks.killed[b.ID].recent(v.now) // there may have been more before a restart of sandboxd, which changes only the text
	say := "1 process was killed for lack of memory"
	if n > 1 {
		say = fmt.Sprintf("%d processes%s were killed for lack of memory within 10 minutes", n, orMore(n))
	}
	f.say(targetOf(b, ""), bad, say)
}

func (v *view) home(f *findings, r *Rule, b *sandbox.Sandbox) {
	if v.from.HomeSize == nil {
		return
	}
	size, at, ok := v.from.HomeSize(b.ID)
	most, of := r.Threshold*(1<<30), ""
	if limit := b.Spec.Limits.Disk; limit > 0 {
		most, of = min(most, fullHome*float64(limit)), " of the "+text.Size(limit)+" that it may take"
	}
	switch {
	case !ok || v.now.Sub(at) > sizeAge:
		f.unsure[b.ID] = true
	case float64(size) >= most:
		f.say(targetOf(b, ""), bad, "its home has "+text.Size(size)+of)
	case float64(size) >= most*nearShare:
		f.say(targetOf(b, ""), near, "")
	}
}

// broken: a sandbox is while it has failed; a wake that failed and left it asleep counts too. It is over when it runs, else ten minutes
// after the last failure.
func (v *view) broken(f *findings, b *sandbox.Sandbox) {
	failure, failed := v.looks.failures[b.ID]
	switch {
	case b.State == sandbox.Failed:
		f.say(targetOf(b, ""), bad, text.Excerpt(b.Problem, textLimit))
	case b.State == sandbox.Running:
	case failed:
		f.say(targetOf(b, ""), bad, text.Excerpt(failure.Problem, textLimit))
	case !b.State.Settled():
		f.unsure[b.ID] = true
	}
}

// runs reports whether a sandbox runs.
func (v *view) runs(id string) bool { return v.states[id] == sandbox.Running }

// gone reports whether a sandbox was deleted, or is about to be.
func (v *view) gone(id string) bool {
	state, there := v.states[id]
	return !there || state == sandbox.Deleting
}

// build: an image is not built from when its build failed until one succeeds.
func (v *view) build(r *Rule) findings {
	f := findings{known: v.builds != nil || v.from.Builds == nil}
	for name, b := range v.builds {
		t := Target{Template: name}
		switch {
		case r.Template != "" && r.Template != name:
		case !b.Known:
			f.say(t, unsure, "")
		case b.Problem != "":
			f.say(t, bad, text.Excerpt(b.Problem, textLimit))
		}
	}
	return f
}

// backups: what is wrong with schedules is told for as long as it is so. A sandbox that is deleted needs none.
func (v *view) backups(r *Rule) findings {
	f := findings{known: v.known, cured: v.gone}
	if !v.known || v.from.Backups == nil {
		return f
	}
	for _, b := range v.from.Backups() {
		t := b.Target
		if b.Kind != r.Kind || r.Owner != "" && r.Owner != t.Owner || r.SandboxID != "" && r.SandboxID != t.SandboxID ||
			r.Template != "" && r.Template != t.Template || t.SandboxID != "" && v.gone(t.SandboxID) {
			continue
		}
		f.say(t, bad, text.Excerpt(b.Text, textLimit))
	}
	return f
}

func (v *view) host(r *Rule) findings {
	f := findings{known: v.looks.host.fresh || v.from.Host == nil}
	if v.from.Host == nil || !f.known {
		return f
	}
	h := v.looks.host.value
	used, of, what := h.Memory, h.MemoryTotal, "memory"
	if r.Kind == HostDisk {
		used, of, what = h.DiskUsed, h.DiskUsed+h.DiskFree, "disk"
		v.pool(&f, r)
	}
	f.space(r, Target{}, used, of, what)
	return f
}

// pool is about the storage pool, which is a disk beside the host's. One that is read-only is as bad as a full one.
func (v *view) pool(f *findings, r *Rule) {
	if v.from.Pool == nil {
		return
	}
	t := Target{Part: "storage pool"}
	p, err := v.from.Pool()
	switch {
	case err != nil:
		f.say(t, unsure, "")
	case p.ReadOnly:
		f.say(t, bad, "the storage pool is read-only: the kernel's log (dmesg) says why")
	default:
		f.space(r, t, p.Used, p.Size, "storage pool")
	}
}

// space is about something that fills up; of is 0 when the host does not tell.
func (f *findings) space(r *Rule, t Target, used, of int64, what string) {
	if of <= 0 {
		f.say(t, unsure, "")
		return
	}
	f.percent(r, t, used, of, func(percent int) string {
		return fmt.Sprintf("%d %% of the %s are used, %s are free", percent, what, text.Size(of-used))
	})
}

func (v *view) certificate(r *Rule) findings {
	f := findings{known: v.looks.certificate.fresh || v.from.Certificate == nil}
	if v.from.Certificate == nil || !f.known {
		return f
	}
	end := v.looks.certificate.value
	left := end.Sub(v.now.Round(0))
	if days := left.Hours() / 24; days > r.Threshold {
		return f
	}
	say := fmt.Sprintf("expires on %s, in %s", end.UTC().Format("2 January 2006"), roughly(left))
	if left <= 0 {
		say = "expired on " + end.UTC().Format("2 January 2006")
	}
	f.say(Target{}, bad, say)
	return f
}

func (v *view) line(f *findings, r *Rule, b *sandbox.Sandbox, found lineFinding) {
	h, ok := found.hits[b.ID]
	if !ok || float64(h.count) < r.Threshold {
		if !found.whole {
			f.unsure[b.ID] = true
		}
		return
	}
	say := text.Excerpt(h.last, textLimit)
	if h.count > 1 {
		say = fmt.Sprintf("%s within 5 minutes, the last one: %s", times(h.count), say)
	}
	f.say(targetOf(b, ""), bad, say)
}

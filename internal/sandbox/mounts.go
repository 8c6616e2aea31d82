package sandbox

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"sandboxd/internal/fault"
)

// Mount is a volume as a sandbox has it, beside its home.
type Mount struct {
	Volume   string // its id
	Target   string // absolute path in the sandbox
	ReadOnly bool
}

// SortMounts sorts by target, as containers have them.
func SortMounts(list []Mount) {
	slices.SortFunc(list, func(a, b Mount) int { return cmp.Compare(a.Target, b.Target) })
}

// How a mount is written: target=volume:ro, with commas between several.
const (
	textReadOnly = ":ro"
	textWritable = ":rw"
)

// MountText writes what ParseMounts reads. Ids and targets have none of its signs.
func MountText(list []Mount) string {
	words := make([]string, 0, len(list))
	for _, m := range list {
		mode := textWritable
		if m.ReadOnly {
			mode = textReadOnly
		}
		words = append(words, m.Target+"="+m.Volume+mode)
	}
	return strings.Join(words, ",")
}

// ParseMounts reads what MountText has written. What is none it leaves out.
func ParseMounts(text string) (list []Mount) {
	for word := range strings.SplitSeq(text, ",") {
		target, rest, ok := strings.Cut(word, "=")
		id, readOnly := strings.CutSuffix(rest, textReadOnly)
		if id = strings.TrimSuffix(id, textWritable); ok && id != "" {
			list = append(list, Mount{Volume: id, Target: target, ReadOnly: readOnly})
		}
	}
	return list
}

// mounts knows which volumes the containers of sandboxes have. Where that is not known, the engine is asked.
type mounts struct {
	want func(s Sandbox) []Mount // nil for none

	mu   sync.Mutex
	have map[string][]Mount // by the sandbox's id
}

// Mounted gives the volumes that a sandbox has now, by target; ok is false when that is not known yet, or it has no container.
func (m *mounts) Mounted(id string) (list []Mount, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list, ok = m.have[id]
	return slices.Clone(list), ok
}

// wanted gives the volumes that a sandbox is to have.
func (m *mounts) wanted(s Sandbox) []Mount {
	if m.want == nil {
		return nil
	}
	return m.want(s)
}

func (m *mounts) note(id string, list []Mount) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.have[id] = slices.Clone(list)
}

func (m *mounts) drop(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.have, id)
}

// remount gives s, which does not run, the volumes that it is to have. When that fails, it is started with those that it has, unless it
// is to lose one.
func (c *containers) remount(ctx context.Context, s Sandbox) error {
	if c.want == nil {
		return nil
	}
	have, known := c.Mounted(s.ID)
	want := c.wanted(s)
	if known && slices.Equal(have, want) {
		return nil
	}
	err := c.remountTo(ctx, s)
	if err == nil || fault.Is(err, fault.NotFound) { // the start makes one that is missing
		return nil
	}
	loses := slices.ContainsFunc(have, func(m Mount) bool { return !slices.Contains(want, m) })
	if loses || ctx.Err() != nil || fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Timeout) {
		return err
	}
	c.log.Warn("sandbox starts without volumes that it was given", "sandbox", s.Name, "error", err)
	return nil
}

func (c *containers) remountTo(ctx context.Context, s Sandbox) error {
	t, err := c.template(s)
	if err != nil {
		return fault.Wrap(err, fault.Conflict, "Its volumes have changed. %s", fault.Message(err))
	}
	folder, err := c.guests.Expect(s.ID, setup(s, t))
	if err != nil {
		return err
	}
	c.report(s, Progress{Phase: PhaseVolume})
	ctx, cancel := context.WithTimeout(ctx, commitLimit+engineLimit)
	defer cancel()
	spec := c.spec(s, t, "", folder)
	if err := c.runtime.Remount(ctx, spec); err != nil {
		return err
	}
	c.mounts.note(s.ID, spec.Volumes)
	return nil
}

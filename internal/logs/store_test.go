package logs

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// memory is a Store in memory, in blocks of blockLines lines, which can fail, hang and be slow.
type memory struct {
	mu     sync.Mutex
	lines  []Line
	fail   error         // of Add
	hang   chan struct{} // Add waits for it, if it is set
	slow   time.Duration // for each block
	sweeps []Limits
	kept   []Kept
	adds   int
	most   int // lines that Add takes at once; 0 is any
}

const blockLines = 10

func (m *memory) Last() ID {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.lines) == 0 {
		return 0
	}
	return m.lines[len(m.lines)-1].ID
}

func (m *memory) Add(ctx context.Context, lines []Line) error {
	m.mu.Lock()
	hang := m.hang
	m.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.adds++
	if m.fail != nil {
		return m.fail
	}
	if m.most > 0 && len(lines) > m.most {
		return context.DeadlineExceeded
	}
	m.lines = append(m.lines, lines...)
	return nil
}

func (m *memory) set(fail error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = fail
}

func (m *memory) all() []Line {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.lines)
}

func (m *memory) Walk(ctx context.Context, look Look, see func(Block) bool) error {
	for blocks := slices.Collect(slices.Chunk(m.all(), blockLines)); len(blocks) > 0; blocks = blocks[:len(blocks)-1] {
		block := blocks[len(blocks)-1]
		last := block[len(block)-1].ID
		if look.Before != 0 && block[0].ID >= look.Before {
			continue
		}
		if !see(Block{Bound: last, Last: last, Lines: func() ([]Line, error) { return block, nil }}) {
			return nil
		}
		if m.slow > 0 {
			select {
			case <-time.After(m.slow):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

func (m *memory) of(sandbox string) []Line {
	return slices.DeleteFunc(m.all(), func(l Line) bool { return l.Sandbox != sandbox })
}

func (m *memory) Before(_ context.Context, sandbox string, id ID, page Page) ([]Line, error) {
	lines := slices.DeleteFunc(m.of(sandbox), func(l Line) bool { return l.ID >= id })
	slices.Reverse(lines)
	n, _ := page.fill(lines)
	slices.Reverse(lines[:n])
	return lines[:n], nil
}

func (m *memory) From(_ context.Context, sandbox string, id ID, page Page) ([]Line, error) {
	lines := slices.DeleteFunc(m.of(sandbox), func(l Line) bool { return l.ID < id })
	n, _ := page.fill(lines)
	return lines[:n], nil
}

func (m *memory) Line(_ context.Context, id ID) (Line, error) {
	all := m.all()
	if i, ok := slices.BinarySearchFunc(all, id, func(l Line, id ID) int { return cmp.Compare(l.ID, id) }); ok {
		return all[i], nil
	}
	return Line{}, errNoLine
}

func (m *memory) Delete(_ context.Context, sandbox string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lines = slices.DeleteFunc(m.lines, func(l Line) bool { return l.Sandbox == sandbox })
	return nil
}

func (m *memory) Sweep(_ context.Context, l Limits, _ time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweeps = append(m.sweeps, l)
	return nil
}

func (m *memory) Keep(_ context.Context, k Kept) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = append(m.kept, k)
	return nil
}

func (m *memory) Unkeep(_ context.Context, sandbox string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = slices.DeleteFunc(m.kept, func(k Kept) bool { return k.Sandbox == sandbox })
	return nil
}

func (m *memory) Kept(context.Context) ([]Kept, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.kept), nil
}

func (m *memory) Usage(context.Context) (each []Use, disk int64, err error) {
	return []Use{{Sandbox: "a", Lines: 1}, {Sandbox: "b", Lines: 2}}, 3, nil
}

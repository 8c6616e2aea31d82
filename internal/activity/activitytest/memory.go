// Package activitytest has a Store of the activity log in memory, and what every Store must do.
//
// It records nothing itself.
//
// Invariant: what StoreContract asks holds for every Store of production as well.
package activitytest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/activity"
)

// Memory is an activity.Store in memory, which can fail. The zero Memory is empty. Safe for concurrent use.
type Memory struct {
	mu      sync.Mutex
	entries []activity.Entry
	last    activity.ID
	fail    error
}

var _ activity.Store = (*Memory)(nil)

// Fail lets every call fail with err, until it is called with nil.
func (m *Memory) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = err
}

// Entries gives all entries, oldest first.
func (m *Memory) Entries() []activity.Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.entries)
}

// Last implements activity.Store.
func (m *Memory) Last(context.Context) (activity.ID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last, m.fail
}

// Add implements activity.Store.
func (m *Memory) Add(_ context.Context, entries []activity.Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	before := m.last
	for _, e := range entries {
		if e.ID > before {
			m.entries = append(m.entries, e)
			m.last = max(m.last, e.ID)
		}
	}
	return nil
}

// Find implements activity.Store.
func (m *Memory) Find(_ context.Context, q activity.Query) (out []activity.Entry, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return nil, m.fail
	}
	for _, e := range slices.Backward(m.entries) {
		if len(out) < cmp.Or(q.Limit, activity.DefaultLimit) && matches(q, e) {
			out = append(out, e)
		}
	}
	return out, nil
}

func matches(q activity.Query, e activity.Entry) bool {
	is := func(want, have string) bool { return want == "" || want == have }
	action := is(q.Action, string(e.Action)) || strings.HasSuffix(q.Action, ".") && strings.HasPrefix(string(e.Action), q.Action)
	text := strings.ToLower(strings.Join([]string{e.Sandbox, e.User, e.Object, e.Problem}, "\n"))
	return q.Scope.Has(e) && action && strings.Contains(text, strings.ToLower(q.Text)) &&
		(is(q.Sandbox, e.Sandbox) || is(q.Sandbox, e.SandboxID)) && is(q.User, e.User) && is(string(q.Via), string(e.Via)) && is(string(q.Outcome), string(e.Outcome)) &&
		(q.Since.IsZero() || !e.Time.Before(q.Since)) && (q.Until.IsZero() || e.Time.Before(q.Until)) && (q.Before == 0 || e.ID < q.Before)
}

// Sweep implements activity.Store.
func (m *Memory) Sweep(_ context.Context, before time.Time, most int) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	had := len(m.entries)
	m.entries = slices.DeleteFunc(m.entries, func(e activity.Entry) bool { return e.Time.Before(before) })
	m.entries = slices.Clone(m.entries[max(0, len(m.entries)-most):])
	return had - len(m.entries), m.fail
}

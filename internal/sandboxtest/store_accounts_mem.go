package sandboxtest

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
)

// MemAccounts is an auth.Store in memory. It passes RunAccounts. Make it with NewMemAccounts.
type MemAccounts struct {
	mu       sync.Mutex
	fails    []error
	users    map[string]auth.Account // by id
	sessions map[string]keyed[auth.Session]
	tokens   map[string]keyed[auth.Token]
}

// keyed is a credential with the hash of its secret.
type keyed[T any] struct {
	key auth.Key
	row T
}

// NewMemAccounts makes an empty store.
func NewMemAccounts() *MemAccounts {
	return &MemAccounts{users: map[string]auth.Account{}, sessions: map[string]keyed[auth.Session]{}, tokens: map[string]keyed[auth.Token]{}}
}

// FailNext makes the next call of any method give err and do nothing else. Several are given one after the other.
func (m *MemAccounts) FailNext(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fails = append(m.fails, err)
}

// within runs f while holding mu, unless ctx has ended or a failure was asked for.
func (m *MemAccounts) within(ctx context.Context, f func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(m.fails) > 0 {
		err := m.fails[0]
		m.fails = m.fails[1:]
		return err
	}
	return f()
}

func noAccount(what string) error { return fault.New(fault.NotFound, "There is no such %s.", what) }

// InsertUser implements auth.UserStore.
func (m *MemAccounts) InsertUser(ctx context.Context, a auth.Account) error {
	return m.within(ctx, func() error {
		if _, ok := m.users[a.ID]; ok {
			return fault.New(fault.Conflict, "There is a user with the id %q already.", a.ID)
		}
		if err := keepable(a.Created); err != nil {
			return err
		}
		return m.putUser(a)
	})
}

func (m *MemAccounts) putUser(a auth.Account) error {
	for _, other := range m.users {
		if other.Name == a.Name && other.ID != a.ID {
			return fault.New(fault.Conflict, "There is a user %q already.", a.Name)
		}
	}
	a.Claimed, a.Created = a.Password != "", kept(a.Created)
	m.users[a.ID] = a
	return nil
}

// ChangeUser implements auth.UserStore.
func (m *MemAccounts) ChangeUser(ctx context.Context, id string, change func(a *auth.Account, admins int) error) error {
	return m.within(ctx, func() error {
		a, ok := m.users[id]
		if !ok {
			return noAccount("user")
		}
		if err := change(&a, m.otherAdmins(id)); err != nil {
			return err
		}
		a.ID, a.Created = id, m.users[id].Created
		return m.putUser(a)
	})
}

// DeleteUser implements auth.UserStore.
func (m *MemAccounts) DeleteUser(ctx context.Context, id string, allow func(a auth.Account, admins int) error) error {
	return m.within(ctx, func() error {
		a, ok := m.users[id]
		if !ok {
			return nil
		}
		if err := allow(a, m.otherAdmins(id)); err != nil {
			return err
		}
		delete(m.users, id)
		for k, s := range m.sessions {
			if s.row.User == id {
				delete(m.sessions, k)
			}
		}
		for k, t := range m.tokens {
			if t.row.User == id {
				delete(m.tokens, k)
			}
		}
		return nil
	})
}

func (m *MemAccounts) otherAdmins(id string) (n int) {
	for _, a := range m.users {
		if a.ID != id && a.Role == auth.Admin && a.Password != "" && !a.Disabled {
			n++
		}
	}
	return n
}

// User implements auth.UserStore.
func (m *MemAccounts) User(ctx context.Context, id string) (a auth.Account, err error) {
	return m.findUser(ctx, func(a auth.Account) bool { return a.ID == id })
}

// UserByName implements auth.UserStore.
func (m *MemAccounts) UserByName(ctx context.Context, name string) (auth.Account, error) {
	return m.findUser(ctx, func(a auth.Account) bool { return a.Name == name })
}

func (m *MemAccounts) findUser(ctx context.Context, match func(auth.Account) bool) (found auth.Account, err error) {
	err = m.within(ctx, func() error {
		for _, a := range m.users {
			if match(a) {
				found = a
				return nil
			}
		}
		return noAccount("user")
	})
	return found, err
}

// Users implements auth.UserStore.
func (m *MemAccounts) Users(ctx context.Context) (all []auth.Account, err error) {
	err = m.within(ctx, func() error {
		for _, a := range m.users {
			all = append(all, a)
		}
		slices.SortFunc(all, func(a, b auth.Account) int {
			return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
		})
		return nil
	})
	return all, err
}

// InsertSession implements auth.SessionStore.
func (m *MemAccounts) InsertSession(ctx context.Context, key auth.Key, n auth.Session, keep int) error {
	return m.within(ctx, func() error {
		_, user := m.users[n.User]
		_, parent := m.sessions[n.Parent]
		if !user || n.Parent != "" && !parent {
			return noAccount("user or session that this one belongs to")
		}
		n.Created, n.Seen, n.Expires = kept(n.Created), kept(n.Seen), kept(n.Expires)
		m.sessions[n.ID] = keyed[auth.Session]{key, n}
		m.trimSessions(n, keep)
		return nil
	})
}

func (m *MemAccounts) trimSessions(n auth.Session, keep int) {
	var same []auth.Session
	for _, s := range m.sessions {
		if s.row.ID != n.ID && s.row.User == n.User && s.row.Parent == n.Parent && s.row.Host == n.Host {
			same = append(same, s.row)
		}
	}
	slices.SortFunc(same, newestSession)
	for _, old := range same[min(max(keep-1, 0), len(same)):] {
		m.dropSession(old.ID)
	}
}

func newestSession(a, b auth.Session) int {
	return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
}

func (m *MemAccounts) dropSession(id string) {
	delete(m.sessions, id)
	for k, s := range m.sessions {
		if s.row.Parent == id {
			delete(m.sessions, k)
		}
	}
}

// SessionByKey implements auth.SessionStore.
func (m *MemAccounts) SessionByKey(ctx context.Context, key auth.Key) (n auth.Session, a auth.Account, err error) {
	err = m.within(ctx, func() error {
		for _, s := range m.sessions {
			if s.key == key {
				n, a = s.row, m.users[s.row.User]
				return nil
			}
		}
		return noAccount("session")
	})
	return n, a, err
}

// Session implements auth.SessionStore.
func (m *MemAccounts) Session(ctx context.Context, id string) (n auth.Session, err error) {
	err = m.within(ctx, func() error {
		s, ok := m.sessions[id]
		if !ok {
			return noAccount("session")
		}
		n = s.row
		return nil
	})
	return n, err
}

// TouchSession implements auth.SessionStore.
func (m *MemAccounts) TouchSession(ctx context.Context, id string, seen, expires time.Time) error {
	return m.within(ctx, func() error {
		if s, ok := m.sessions[id]; ok {
			s.row.Seen, s.row.Expires = kept(seen), kept(expires)
			m.sessions[id] = s
		}
		return nil
	})
}

// Sessions implements auth.SessionStore.
func (m *MemAccounts) Sessions(ctx context.Context, user string) (all []auth.Session, err error) {
	err = m.within(ctx, func() error {
		for _, s := range m.sessions {
			if s.row.User == user {
				all = append(all, s.row)
			}
		}
		slices.SortFunc(all, newestSession)
		return nil
	})
	return all, err
}

// DeleteSessions implements auth.SessionStore.
func (m *MemAccounts) DeleteSessions(ctx context.Context, f auth.SessionFilter) (n int, err error) {
	err = m.within(ctx, func() error {
		var ids []string
		for id, s := range m.sessions {
			if f != (auth.SessionFilter{}) && (f.ID == "" || f.ID == id) && (f.User == "" || f.User == s.row.User) &&
				(f.ExpiredBy.IsZero() || !s.row.Expires.After(f.ExpiredBy)) {
				ids = append(ids, id)
			}
		}
		for _, id := range ids {
			m.dropSession(id)
		}
		n = len(ids)
		return nil
	})
	return n, err
}

// InsertToken implements auth.TokenStore.
func (m *MemAccounts) InsertToken(ctx context.Context, key auth.Key, t auth.Token) error {
	return m.within(ctx, func() error {
		if _, ok := m.users[t.User]; !ok {
			return noAccount("user")
		}
		for _, other := range m.tokens {
			if other.key == key || other.row.ID == t.ID {
				return fault.New(fault.Conflict, "There is such a token already.")
			}
		}
		t.Created, t.LastUsed, t.Expires = kept(t.Created), kept(t.LastUsed), kept(t.Expires)
		m.tokens[t.ID] = keyed[auth.Token]{key, t}
		return nil
	})
}

// TokenByKey implements auth.TokenStore.
func (m *MemAccounts) TokenByKey(ctx context.Context, key auth.Key) (found auth.Token, a auth.Account, err error) {
	err = m.within(ctx, func() error {
		for _, t := range m.tokens {
			if t.key == key {
				found, a = t.row, m.users[t.row.User]
				return nil
			}
		}
		return noAccount("token")
	})
	return found, a, err
}

// TouchToken implements auth.TokenStore.
func (m *MemAccounts) TouchToken(ctx context.Context, id string, used time.Time) error {
	return m.within(ctx, func() error {
		if t, ok := m.tokens[id]; ok {
			t.row.LastUsed = kept(used)
			m.tokens[id] = t
		}
		return nil
	})
}

// Tokens implements auth.TokenStore.
func (m *MemAccounts) Tokens(ctx context.Context, user string) (all []auth.Token, err error) {
	err = m.within(ctx, func() error {
		for _, t := range m.tokens {
			if user == "" || user == t.row.User {
				all = append(all, t.row)
			}
		}
		slices.SortFunc(all, func(a, b auth.Token) int {
			return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
		})
		return nil
	})
	return all, err
}

// DeleteToken implements auth.TokenStore.
func (m *MemAccounts) DeleteToken(ctx context.Context, user, id string) error {
	return m.within(ctx, func() error {
		t, ok := m.tokens[id]
		if !ok || user != "" && user != t.row.User {
			return noAccount("token")
		}
		delete(m.tokens, id)
		return nil
	})
}

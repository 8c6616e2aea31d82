package auth

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"sandboxd/internal/fault"
)

// One-time codes stand in a URL for a moment: short lives, few of them.
const (
	codeLife       = 60 * time.Second
	codesInAll     = 4096
	codesOfSession = 16  // a person opening many tabs at once; the oldest are voided
	maxBinding     = 255 // bytes of a host name or a nonce
)

// code is what a one-time code stands for.
type code struct {
	user    string
	session string // the dashboard session's id
	sandbox string // id
	host    Key
	nonce   Key
	made    time.Time
}

func (c code) dead(now time.Time) bool { return now.Sub(c.made) >= codeLife }

// codes holds one-time codes in memory, by the hash of the code. A restart voids them all.
type codes struct {
	mu   sync.Mutex
	held map[Key]code
}

func newCodes() *codes { return &codes{held: map[Key]code{}} }

// add keeps c under key. Limited when there are too many.
func (k *codes) add(key Key, c code) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var oldest Key
	same, first := 0, c.made
	for held, other := range k.held {
		if other.dead(c.made) {
			delete(k.held, held)
			continue
		}
		if other.made.Before(first) {
			first = other.made
		}
		if other.session != c.session {
			continue
		}
		if same++; same == 1 || other.made.Before(k.held[oldest].made) {
			oldest = held
		}
	}
	if same >= codesOfSession {
		delete(k.held, oldest)
	}
	if len(k.held) >= codesInAll {
		return limited(codeLife-c.made.Sub(first), "Too many sandboxes are being opened at once.")
	}
	k.held[key] = c
	return nil
}

// take gives what is held under key, once.
func (k *codes) take(key Key, now time.Time) (code, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c, ok := k.held[key]
	delete(k.held, key)
	return c, ok && !c.dead(now)
}

// forget voids those that match.
func (k *codes) forget(match func(code) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, c := range k.held {
		if match(c) {
			delete(k.held, key)
		}
	}
}

// Place is where a session is opened: a host of one sandbox.
type Place struct{ Host, SandboxID string }

// IssueCode makes a code with which the owner of a dashboard session may open a session at a sandbox host, once and
// within a minute. The host is compared exactly; nonce is what the host gave the browser before, so that a code that leaks
// is of no use in another browser. Whether the user may use that sandbox is for the caller to check, here and at every
// later request.
func (s *Service) IssueCode(ctx context.Context, sessionSecret string, at Place, nonce string) (string, error) {
	if at.Host == "" || at.SandboxID == "" || nonce == "" || len(at.Host) > maxBinding || len(nonce) > maxBinding {
		return "", fault.New(fault.Invalid, "This link to a sandbox is not complete. Open the sandbox from the dashboard again.")
	}
	n, u, err := s.session(ctx, sessionSecret, "")
	if err != nil {
		return "", err
	}
	secret := newSecret()
	c := code{user: u.ID, session: n.ID, sandbox: at.SandboxID, host: keyOf(at.Host), nonce: keyOf(nonce), made: time.Now()}
	if err := s.codes.add(keyOf(secret), c); err != nil {
		return "", err
	}
	return secret, nil
}

// RedeemCode opens a session at host for the user who got the code, and gives its secret and the sandbox that it is for, which is good for nothing
// but HostSession at that host and ends with the dashboard session. Unauthenticated if the code is used up, too old,
// or made for another host or none of the nonces; trying it uses it up in any case.
func (s *Service) RedeemCode(ctx context.Context, oneTime, host string, nonces ...string) (secret, sandboxID string, err error) {
	if !plausible(oneTime) {
		return "", "", badCode()
	}
	c, ok := s.codes.take(keyOf(oneTime), time.Now())
	if !ok || c.host != keyOf(host) || !slices.ContainsFunc(nonces, func(n string) bool { return c.nonce == keyOf(n) }) {
		return "", "", badCode()
	}
	parent, err := s.store.Session(ctx, c.session)
	if fault.Is(err, fault.NotFound) || err == nil && !time.Now().Before(parent.Expires) {
		return "", "", badCode()
	}
	if err != nil {
		return "", "", fmt.Errorf("redeem code: %w", err)
	}
	a, err := s.store.User(ctx, c.user)
	if err != nil {
		return "", "", userFault(err, c.user)
	}
	if err := enabled(a.User); err != nil {
		return "", "", err
	}
	secret, err = s.open(ctx, Session{User: c.user, Parent: c.session, Host: host, SandboxID: c.sandbox, From: parent.From, Stay: parent.Stay}, keepHosts)
	if fault.Is(err, fault.NotFound) { // signed out this very moment
		return "", "", badCode()
	}
	return secret, c.sandbox, err
}

func badCode() error {
	return fault.New(fault.Unauthenticated, "This link to the sandbox is used up or too old. Open the sandbox from the dashboard again.")
}

package proxy

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"sandboxd/internal/auth"
)

// maxCredentials bounds how many credentials are remembered.
const maxCredentials = 4096

// credentialCache remembers the owner of each credential for askAgain, so that a page's hundred requests ask once. It remembers no
// refusals, and only hashes of credentials.
type credentialCache struct {
	Accounts

	mu  sync.Mutex
	who map[[sha256.Size]byte]cachedPrincipal
}

type cachedPrincipal struct {
	auth.Principal
	until time.Time
}

func newCredentialCache(a Accounts) *credentialCache {
	return &credentialCache{Accounts: a, who: map[[sha256.Size]byte]cachedPrincipal{}}
}

// Authenticate implements Accounts.
func (k *credentialCache) Authenticate(ctx context.Context, token string) (auth.Principal, error) {
	return k.ask(ctx, "token\x00"+token, func(ctx context.Context) (auth.Principal, error) {
		return k.Accounts.Authenticate(ctx, token)
	})
}

// HostSession implements Accounts.
func (k *credentialCache) HostSession(ctx context.Context, secret, host string) (auth.Principal, error) {
	return k.ask(ctx, host+"\x00"+secret, func(ctx context.Context) (auth.Principal, error) {
		return k.Accounts.HostSession(ctx, secret, host)
	})
}

// User implements Accounts.
func (k *credentialCache) User(ctx context.Context, id string) (auth.User, error) {
	who, err := k.ask(ctx, "user\x00"+id, func(ctx context.Context) (auth.Principal, error) {
		u, err := k.Accounts.User(ctx, id)
		return auth.Principal{User: u}, err
	})
	return who.User, err
}

func (k *credentialCache) ask(ctx context.Context, credential string, ask func(context.Context) (auth.Principal, error)) (auth.Principal, error) {
	key := sha256.Sum256([]byte(credential))
	now := time.Now()
	if who, ok := k.get(key, now); ok {
		return who, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	who, err := ask(ctx)
	if err == nil {
		k.put(key, cachedPrincipal{who, now.Add(askAgain)})
	}
	return who, err
}

func (k *credentialCache) get(key [sha256.Size]byte, now time.Time) (auth.Principal, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	who, ok := k.who[key]
	return who.Principal, ok && now.Before(who.until)
}

func (k *credentialCache) put(key [sha256.Size]byte, who cachedPrincipal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.who) >= maxCredentials {
		clear(k.who) // some are looked up once more than necessary
	}
	k.who[key] = who
}

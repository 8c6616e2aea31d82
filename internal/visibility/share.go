package visibility

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
)

// A link has a random secret of 256 bits. A browser that came by the link keeps not the secret but its pass,
// which is derived from it one way; the pass's hash is kept here. So neither a cookie nor the store tells the link.

// NewShare is a link that is to be made.
type NewShare struct {
	Port  int
	By    string // id of the user who makes it
	Label string // whom it is for
	TTL   time.Duration
}

// Share makes a link to a port of s, which is shared from then on unless it is public, and gives the link's secret, this
// once. Invalid with the field ("port", "label", "ttl": 10 s to 365 days), Conflict when s is being deleted or has too many,
// NotFound when it is gone.
func (p *Ports) Share(ctx context.Context, s sandbox.Sandbox, n NewShare) (share sandbox.Share, secret string, err error) {
	if err := n.check(); err != nil {
		return share, "", err
	}
	var b [sha256.Size]byte
	rand.Read(b[:]) // never fails since Go 1.24
	secret = base64.RawURLEncoding.EncodeToString(b[:])
	pass := passOf(secret)
	now := time.Now().UTC().Truncate(time.Microsecond) // as the store gives it back
	share = sandbox.Share{
		ID: sandbox.NewID(), SandboxID: s.ID, Port: n.Port, Hash: sha256.Sum256(pass[:]), Label: text.Trim(n.Label), Owner: n.By,
		Created: now, Expires: now.Add(n.TTL),
	}
	err = p.write(ctx, func(ctx context.Context) error {
		one := p.of(s.ID, n.Port)
		if len(one.live(now)) >= maxShares {
			return fault.New(fault.Conflict, "Port %d of %s has %d links already. Revoke one of them first.", n.Port, s.Name, maxShares)
		}
		if err := p.room(s, n.Port); err != nil {
			return err
		}
		if err := p.store.PutShare(ctx, share); err != nil {
			return err
		}
		if one.visibility == "" {
			one.visibility = sandbox.Shared
		}
		one.shares = append(slices.Clone(one.shares), share)
		p.keep(s.ID, n.Port, one)
		return nil
	})
	if err != nil {
		return sandbox.Share{}, "", fmt.Errorf("share port %d of %s: %w", n.Port, s.Name, err)
	}
	return share, secret, nil
}

func (n NewShare) check() error {
	if err := checkPort(n.Port); err != nil {
		return err
	}
	if n.TTL < minTTL || n.TTL > maxTTL {
		return fault.Field("ttl", "A link lasts between 10s and 365d. Give such a length of time, for example \"24h\".")
	}
	return sandbox.CheckLabel(n.Label)
}

// Revoke ends a link to a port of s now. NotFound when there is none of that id, any more.
func (p *Ports) Revoke(ctx context.Context, s sandbox.Sandbox, number int, id string) error {
	err := p.write(ctx, func(ctx context.Context) error {
		one := p.of(s.ID, number)
		at := slices.IndexFunc(one.live(time.Now()), func(have sandbox.Share) bool { return have.ID == id })
		if at < 0 {
			return fault.New(fault.NotFound, "Port %d of %s has no such link. It may have expired.", number, s.Name)
		}
		if err := p.store.DeleteShare(ctx, id); err != nil {
			return err
		}
		one.shares = slices.DeleteFunc(slices.Clone(one.shares), func(have sandbox.Share) bool { return have.ID == id })
		p.keep(s.ID, number, one)
		return nil
	})
	if err != nil {
		return fmt.Errorf("revoke a link to port %d of %s: %w", number, s.Name, err)
	}
	return nil
}

// Redeem gives the share of a port that the secret of a link opens, and the pass that stands for the link from then on.
func (p *Ports) Redeem(sandboxID string, number int, secret string) (share sandbox.Share, pass string, ok bool) {
	if _, formed := read(secret); !formed {
		return share, "", false
	}
	sum := passOf(secret)
	share, ok = p.find(sandboxID, number, sum)
	return share, base64.RawURLEncoding.EncodeToString(sum[:]), ok
}

// Admits gives the share of a port that a pass of Redeem's stands for, while that is good.
func (p *Ports) Admits(sandboxID string, number int, pass string) (sandbox.Share, bool) {
	sum, formed := read(pass)
	if !formed {
		return sandbox.Share{}, false
	}
	return p.find(sandboxID, number, sum)
}

// find compares with every share of the port, in the same time whichever it is.
func (p *Ports) find(sandboxID string, number int, pass [sha256.Size]byte) (share sandbox.Share, ok bool) {
	hash := sha256.Sum256(pass[:])
	for _, s := range p.of(sandboxID, number).live(time.Now()) {
		if subtle.ConstantTimeCompare(s.Hash[:], hash[:]) == 1 {
			share, ok = s, true
		}
	}
	return share, ok
}

// passDomain sets passes apart from every other hash of the same bytes.
const passDomain = "sandboxd share pass\x00"

func passOf(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(passDomain + secret)) }

// read gives what s encodes when it has the form of a secret, which is that of a pass too. Of the right length alone it may
// be shorter: the encoding takes line breaks for nothing.
func read(s string) (out [sha256.Size]byte, formed bool) {
	if len(s) != base64.RawURLEncoding.EncodedLen(sha256.Size) {
		return out, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) != sha256.Size {
		return out, false
	}
	return [sha256.Size]byte(b), true
}

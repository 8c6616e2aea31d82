package chat

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Link lets those who have its secret read a conversation, also what is said from then on.
type Link struct {
	ID           string // 16 hex digits
	Conversation string // id
	By           string // id of the user who made it
	Created      time.Time
	Expires      time.Time // zero for never
}

// LinkStore keeps links. Of a secret it knows the hash alone. Implementations pass chattest.LinkContract. Safe for concurrent use.
type LinkStore interface {
	// PutLink adds a link, unless its conversation has most of them already. Kinds: NotFound when its conversation, or who made it, is gone;
	// Conflict when there are too many.
	PutLink(ctx context.Context, l Link, hash [sha256.Size]byte, most int) error
	// Links gives those of a conversation, the oldest first.
	Links(ctx context.Context, conversation string) ([]Link, error)
	// LinkBy gives the link whose secret has a hash. Kind: NotFound.
	LinkBy(ctx context.Context, hash [sha256.Size]byte) (Link, error)
	// DeleteLink deletes one of a conversation. Kind: NotFound.
	DeleteLink(ctx context.Context, conversation, id string) error
	// DropLinks deletes those that expired before a time.
	DropLinks(ctx context.Context, before time.Time) error
}

// Limits of links.
const (
	MaxLinks   = 20 // of one conversation
	MinLinkTTL = time.Minute
	MaxLinkTTL = 365 * 24 * time.Hour
)

// Links are the links of all conversations. Safe for concurrent use.
type Links struct {
	store LinkStore
	now   func() time.Time
}

// NewLinks makes Links. nil for now means time.Now.
func NewLinks(store LinkStore, now func() time.Time) *Links {
	if now == nil {
		now = time.Now
	}
	return &Links{store, now}
}

// Make makes a link that lasts for a time, 0 for no end, and gives its secret, this once. Kinds: Invalid, NotFound, Conflict when there are
// too many.
func (s *Links) Make(ctx context.Context, conversation, by string, ttl time.Duration) (l Link, secret string, err error) {
	if ttl != 0 && (ttl < MinLinkTTL || ttl > MaxLinkTTL) {
		return l, "", fault.Field("ttl", "A link lasts from 1m to 365d, or has no end.")
	}
	var b [sha256.Size]byte
	rand.Read(b[:]) // never fails since Go 1.24
	l = Link{ID: sandbox.NewID(), Conversation: conversation, By: by, Created: s.now().UTC().Truncate(time.Microsecond)}
	if ttl > 0 {
		l.Expires = l.Created.Add(ttl)
	}
	if err := s.store.DropLinks(ctx, s.now()); err != nil {
		return l, "", err
	}
	return l, base64.RawURLEncoding.EncodeToString(b[:]), s.store.PutLink(ctx, l, sha256.Sum256(b[:]), MaxLinks)
}

// Of gives the links of a conversation that are good, the oldest first.
func (s *Links) Of(ctx context.Context, conversation string) (good []Link, err error) {
	all, err := s.store.Links(ctx, conversation)
	for _, l := range all {
		if !s.over(l) {
			good = append(good, l)
		}
	}
	return good, err
}

// Revoke ends a link of a conversation. Kind: NotFound.
func (s *Links) Revoke(ctx context.Context, conversation, id string) error {
	return s.store.DeleteLink(ctx, conversation, id)
}

// Open gives the link with a secret. Kind: NotFound, in the same words for one that never was, expired, or was revoked.
func (s *Links) Open(ctx context.Context, secret string) (Link, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(secret)
	if err != nil || len(b) != sha256.Size || len(secret) != base64.RawURLEncoding.EncodedLen(len(b)) { // line breaks are decoded as nothing
		return Link{}, ErrNoLink
	}
	l, err := s.store.LinkBy(ctx, sha256.Sum256(b))
	if fault.Is(err, fault.NotFound) || err == nil && s.over(l) {
		return Link{}, ErrNoLink
	}
	return l, err
}

// ErrManyLinks is what a LinkStore answers when a conversation has as many links as it may.
func ErrManyLinks(most int) error {
	return fault.New(fault.Conflict, "The conversation has %d links already. Revoke one of them first.", most)
}

// ErrNoLink says that a link is not good.
var ErrNoLink = fault.New(fault.NotFound, "This conversation is not shared, or no longer. Ask the person who sent you the link.")

func (s *Links) over(l Link) bool { return !l.Expires.IsZero() && !s.now().Before(l.Expires) }

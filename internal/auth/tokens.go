package auth

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// TokenPrefix begins every API token, so that secret scanners and people recognise one.
const TokenPrefix = "sbx_"

// What a token may be.
const (
	shownDigits   = 6 // of a token's secret that are kept to tell tokens apart; 220 unknown bits remain
	maxTokenName  = 64
	minTTL        = time.Minute
	maxTTL        = 10 * 366 * 24 * time.Hour
	tokensPerUser = 200
)

// NewToken asks for an API token. Without SandboxID and Models it may do all that its user may. A zero TTL means that it never expires.
type NewToken struct {
	Name      string
	Sandbox   string // name of the sandbox with SandboxID, for people to read
	SandboxID string
	Models    bool // for asking models alone
	TTL       time.Duration
}

func (n NewToken) check() error {
	length := utf8.RuneCountInString(n.Name)
	switch {
	case length == 0:
		return fault.Field("name", "Give the token a name that says what it is for.")
	case length > maxTokenName:
		return fault.Field("name", "The token's name is too long: use at most %d characters.", maxTokenName)
	case text.Unprintable(n.Name):
		return fault.Field("name", "The token's name holds characters that cannot be shown.")
	case (n.Sandbox == "") != (n.SandboxID == ""):
		return fault.Field("sandbox", "A token is limited to a sandbox by its name and its id.")
	case n.Models && n.SandboxID != "":
		return fault.Field("models", "A token is limited to models or to one sandbox, not to both.")
	case n.TTL != 0 && n.TTL < minTTL:
		return fault.Field("ttl", "A token lives at least a minute.")
	case n.TTL > maxTTL:
		return fault.Field("ttl", "A token lives at most ten years. Leave it out for one that never expires.")
	}
	return nil
}

// CreateToken makes an API token for a user and gives its secret, which cannot be had again.
func (s *Service) CreateToken(ctx context.Context, userID string, n NewToken) (secret string, t Token, err error) {
	n.Name = text.Trim(n.Name)
	if err := n.check(); err != nil {
		return "", Token{}, err
	}
	u, err := s.User(ctx, userID)
	if err != nil {
		return "", Token{}, err
	}
	if u.Disabled {
		return "", Token{}, fault.New(fault.Conflict, "The user %s is disabled and cannot have new tokens.", u.Name)
	}
	s.creating.Lock() // so that the count holds
	defer s.creating.Unlock()
	if have, err := s.Tokens(ctx, userID); err != nil {
		return "", Token{}, err
	} else if len(have) >= tokensPerUser {
		return "", Token{}, fault.New(fault.Conflict, "The user %s has %d tokens. Revoke some first.", u.Name, len(have))
	}
	secret = TokenPrefix + newSecret()
	t = Token{ID: newID(), User: userID, Name: n.Name, Sandbox: n.Sandbox, SandboxID: n.SandboxID, Models: n.Models,
		Prefix: secret[:len(TokenPrefix)+shownDigits], Created: time.Now()}
	if n.TTL > 0 {
		t.Expires = t.Created.Add(n.TTL)
	}
	if err := s.store.InsertToken(ctx, keyOf(secret), t); err != nil {
		return "", Token{}, fmt.Errorf("create token %s: %w", n.Name, err)
	}
	return secret, t, nil
}

// Authenticate says who an API token belongs to and notes its use. Unauthenticated if it is unknown, revoked or
// expired, or its user is disabled; Forbidden if it is limited to models. It reads the store each time: a revoked token is refused at once
// everywhere.
func (s *Service) Authenticate(ctx context.Context, tokenSecret string) (Principal, error) {
	p, err := s.AuthenticateForModels(ctx, tokenSecret)
	if err == nil && p.Models {
		return Principal{}, fault.New(fault.Forbidden, "This token is limited to models. Use it at the address /models, and another token here.")
	}
	return p, err
}

// AuthenticateForModels is Authenticate for who asks a model, where tokens that are limited to models are good too.
func (s *Service) AuthenticateForModels(ctx context.Context, tokenSecret string) (Principal, error) {
	digits, ok := strings.CutPrefix(tokenSecret, TokenPrefix)
	if !ok || !plausible(digits) {
		return Principal{}, badToken()
	}
	t, a, err := s.store.TokenByKey(ctx, keyOf(tokenSecret))
	if fault.Is(err, fault.NotFound) {
		return Principal{}, badToken()
	}
	if err != nil {
		return Principal{}, fmt.Errorf("find the token: %w", err)
	}
	if !t.Expires.IsZero() && !time.Now().Before(t.Expires) {
		return Principal{}, fault.New(fault.Unauthenticated, "This API token has expired. Create a new one.")
	}
	if err := enabled(a.User); err != nil {
		return Principal{}, err
	}
	s.touch(ctx, t.ID, t.LastUsed, func(ctx context.Context, now time.Time) error {
		return s.store.TouchToken(ctx, t.ID, now)
	})
	return Principal{User: a.User, Token: t.ID, TokenName: t.Name, Sandbox: t.Sandbox, SandboxID: t.SandboxID, Models: t.Models}, nil
}

func badToken() error {
	return fault.New(fault.Unauthenticated, "This API token is not valid. It may be mistyped or revoked, or its sandbox was deleted.")
}

// Tokens gives a user's tokens, expired ones included, newest first; of all users if userID is "".
func (s *Service) Tokens(ctx context.Context, userID string) ([]Token, error) {
	tokens, err := s.store.Tokens(ctx, userID)
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	return tokens, nil
}

// RevokeToken ends one of a user's tokens at once; of any user if userID is "". NotFound if it is not there.
func (s *Service) RevokeToken(ctx context.Context, userID, tokenID string) error {
	err := s.store.DeleteToken(ctx, userID, tokenID)
	if fault.Is(err, fault.NotFound) {
		return fault.Wrap(err, fault.NotFound, "There is no such token. It may be revoked already.")
	}
	if err != nil {
		return fmt.Errorf("revoke token: %w", err)
	}
	return nil
}

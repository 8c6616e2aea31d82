package web

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
)

type userShape struct {
	Name      string    `json:"name"`
	Role      string    `json:"role"`
	CreatedAt time.Time `json:"created_at"`
	Sandbox   string    `json:"sandbox"` // the one sandbox that the token in use is limited to, or ""
}

// apiMe answers who the token in use speaks for.
func (s *accountHandlers) apiMe(_ context.Context, r *request, _ none) (reply, error) {
	u := r.who.User
	return reply{body: userShape{Name: u.Name, Role: string(u.Role), CreatedAt: u.Created.UTC(), Sandbox: r.who.Sandbox}}, nil
}

// tokenShape is an API token as programs see it. Only the answer to its making has Secret.
type tokenShape struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Sandbox    string     `json:"sandbox"` // the one sandbox it is limited to, or ""
	Models     bool       `json:"models"`  // it is limited to asking models
	Prefix     string     `json:"prefix"`  // the first characters of the secret
	CreatedAt  time.Time  `json:"created_at"`
	LastUsedAt *time.Time `json:"last_used_at"` // null if never
	ExpiresAt  *time.Time `json:"expires_at"`   // null if never
	Secret     string     `json:"secret,omitempty"`
}

func newTokenShape(t auth.Token, secret string) tokenShape {
	return tokenShape{
		ID: t.ID, Name: t.Name, Sandbox: t.Sandbox, Models: t.Models, Prefix: t.Prefix, CreatedAt: t.Created.UTC(),
		LastUsedAt: timeOrNull(t.LastUsed), ExpiresAt: timeOrNull(t.Expires), Secret: secret,
	}
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

type tokensShape struct {
	Tokens []tokenShape `json:"tokens"`
}

// apiTokens lists the caller's own tokens.
func (s *accountHandlers) apiTokens(ctx context.Context, r *request, _ none) (reply, error) {
	tokens, err := s.cfg.Accounts.Tokens(ctx, r.who.User.ID)
	if err != nil {
		return reply{}, err
	}
	out := tokensShape{Tokens: make([]tokenShape, 0, len(tokens))}
	for _, t := range tokens {
		out.Tokens = append(out.Tokens, newTokenShape(t, ""))
	}
	return reply{body: out}, nil
}

type newTokenBody struct {
	Name    string   `json:"name"`
	Sandbox string   `json:"sandbox"`
	Models  bool     `json:"models"`
	TTL     tokenTTL `json:"ttl"`
}

// apiCreateToken makes a token for the caller. Its secret is in this answer and nowhere else.
func (s *accountHandlers) apiCreateToken(ctx context.Context, r *request, in newTokenBody) (reply, error) {
	ask := auth.NewToken{Name: in.Name, Sandbox: in.Sandbox, Models: in.Models, TTL: time.Duration(in.TTL)}
	var to access.Handle
	if in.Sandbox != "" {
		h, err := s.resolve(ctx, r.who, in.Sandbox)
		if err != nil {
			return reply{}, err
		}
		ask.SandboxID, to = h.ID(), h
	}
	if in.TTL < 0 {
		return reply{}, fault.Field("ttl", "A token cannot expire before it is made.")
	}
	secret, t, err := s.createToken(ctx, r, ask, to)
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusCreated, location: apiPrefix + "/tokens/" + t.ID, body: newTokenShape(t, secret)}, nil
}

// createToken makes a token for the caller, limited to a sandbox if ask says so, which is then the handle's. The delete of that
// sandbox may have revoked its tokens a moment before this one was made.
func (s *accountHandlers) createToken(ctx context.Context, r *request, ask auth.NewToken, to access.Handle) (secret string, t auth.Token, err error) {
	r.object = ask.Name
	secret, t, err = s.cfg.Accounts.CreateToken(ctx, r.who.User.ID, ask)
	if err != nil || ask.SandboxID == "" {
		return secret, t, err
	}
	if _, err = to.Current(ctx); err != nil {
		return "", t, errors.Join(err, s.cfg.Accounts.RevokeToken(context.WithoutCancel(ctx), r.who.User.ID, t.ID))
	}
	return secret, t, nil
}

// apiRevokeToken ends one of the caller's tokens at once, also the one in use.
func (s *accountHandlers) apiRevokeToken(ctx context.Context, r *request, _ none) (reply, error) {
	return reply{status: http.StatusNoContent}, s.revokeToken(ctx, r)
}

// revokeToken ends the caller's token that the path names, and records its name.
func (s *accountHandlers) revokeToken(ctx context.Context, r *request) error {
	tokens, err := s.cfg.Accounts.Tokens(ctx, r.who.User.ID)
	if err != nil {
		return err
	}
	if at := slices.IndexFunc(tokens, func(t auth.Token) bool { return t.ID == r.param("id") }); at >= 0 {
		r.object = tokens[at].Name
	}
	return s.cfg.Accounts.RevokeToken(ctx, r.who.User.ID, r.param("id"))
}

package web

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"sandboxd/internal/access"
	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

const (
	settingsPath = "/settings"
	tokensPath   = "/settings/tokens"
	usersPath    = "/settings/users"
)

// outcomes are what a settings page says has just been done; the address names it.
var outcomes = map[string]string{
	"password": "Your password was changed.",
	"revoked":  "The token was revoked.",
	"added":    "The user was added. Tell them the initial password.",
	"changed":  "The user was changed.",
	"deleted":  "The user was deleted.",

	"rule-deleted":    "The rule was deleted. Its alerts are resolved.",
	"rules-reset":     "The rules were reset to the defaults.",
	"channel-saved":   "The channel was saved.",
	"channel-deleted": "The channel was deleted.",

	"repository-saved": "The repository was saved. It can be used.",
	"template-begun":   "The template is being made, and is listed when it is there. If that fails, the page of the snapshots says why.",
	"template-deleted": "The template was deleted.",
	"volume-deleted":   "The volume was deleted. Sandboxes that run keep it until they are restarted.",

	"provider-saved":    "The provider was saved. Check it to see that it answers.",
	"provider-listed":   "The provider was saved, and its models are listed. Edit it to put the best one first and the fastest one last.",
	"provider-unlisted": "The provider was saved, but its models could not be listed. Check it to see why.",
	"models-listed":     "The models of the provider are listed. Edit it to put the best one first and the fastest one last.",
	"provider-deleted":  "The provider was deleted, with its key.",
	"alias-saved":       "The alias was saved.",
	"alias-deleted":     "The alias was deleted.",
	"budget-saved":      "The budget was saved.",
	"budget-deleted":    "The budget was deleted.",
	"models-off":        "Models are turned off.",
	"models-on":         "Models are turned on.",
	"content-on":        "Prompts and answers are stored from now on.",
	"content-off":       "Prompts and answers are not stored any more.",

	"repository-removed": "The repository was removed. What is in it was not deleted.",
}

func done(path, outcome string) string { return path + "?done=" + outcome }

// pageAccount is one's own account.
func (s *accountHandlers) pageAccount(_ context.Context, r *request) (templ.Component, error) {
	return s.accountForm(r, views.Account{Done: outcomes[r.query("done")]}), nil
}

func (s *accountHandlers) accountForm(r *request, a views.Account) templ.Component {
	a.Frame, a.Version = s.frame(r, "Account", "settings"), s.cfg.Version.Version
	a.Frame.Here = settingsPath
	return views.AccountPage(a)
}

// submitPassword changes one's own password. Every session ends with it; this browser gets a new one.
func (s *accountHandlers) submitPassword(ctx context.Context, r *request) (string, error) {
	name, next := r.who.User.Name, r.form("new")
	if err := s.cfg.Accounts.ChangePassword(ctx, r.who.User.ID, r.form("old"), next); err != nil {
		return "", err
	}
	secret, _, err := s.cfg.Accounts.Login(ctx, r.from, name, next, r.who.Stay)
	if err != nil { // the password is changed all the same: sign in with it
		s.log.Warn("sign in after a change of password", "err", err)
		return loginPath, nil
	}
	s.setSession(r, secret, r.who.Stay)
	return done(settingsPath, "password"), nil
}

func (s *accountHandlers) againPassword(_ context.Context, r *request, err error) (templ.Component, error) {
	var a views.Account
	switch text := fault.Message(err); fault.FieldOf(err) {
	case "old":
		a.Old.Fault = text
	case "new", "password":
		a.New.Fault = text
	default:
		a.Fault = text
	}
	return s.accountForm(r, a), nil
}

// pageTokens lists one's own API tokens.
func (s *accountHandlers) pageTokens(ctx context.Context, r *request) (templ.Component, error) {
	return s.tokensForm(ctx, r, views.Tokens{Done: outcomes[r.query("done")]})
}

func (s *accountHandlers) tokensForm(ctx context.Context, r *request, v views.Tokens) (templ.Component, error) {
	tokens, err := s.cfg.Accounts.Tokens(ctx, r.who.User.ID)
	if err != nil {
		return nil, err
	}
	now := s.cfg.Now()
	for _, t := range tokens {
		v.Items = append(v.Items, views.Token{
			ID: t.ID, Name: t.Name, Prefix: t.Prefix, Sandbox: t.Sandbox, Models: t.Models,
			Made: timeOf(t.Created, now), Used: timeOf(t.LastUsed, now), Expires: timeOf(t.Expires, now),
			Expired: !t.Expires.IsZero() && t.Expires.Before(now),
		})
	}
	if v.Sandboxes, err = s.tokenSandboxes(ctx, r); err != nil {
		return nil, err
	}
	v.ModelsURL = s.cfg.Hosts.DashboardURL() + modelCallsPath
	v.Frame = s.frame(r, "API tokens", "settings")
	v.Frame.Here = tokensPath
	return views.TokensPage(v), nil
}

// mostChoices bounds the sandboxes that a token can be limited to by picking from a list.
const mostChoices = 1000

// tokenSandboxes are the sandboxes that one may limit a token to, sorted. Each is named with its id: another one may have the
// name once the form is sent.
func (s *accountHandlers) tokenSandboxes(ctx context.Context, r *request) ([]views.Option, error) {
	f := sandbox.Filter{Limit: mostChoices}
	if !r.isAdmin() {
		f.Owner = r.who.User.ID
	}
	boxes, _, err := s.cfg.Sandboxes.List(ctx, f)
	if err != nil {
		return nil, err
	}
	choices := make([]views.Option, 0, len(boxes))
	for _, box := range boxes {
		choices = append(choices, views.Option{Value: box.Name + " " + box.ID, Text: box.Name})
	}
	slices.SortFunc(choices, func(a, b views.Option) int { return strings.Compare(a.Text, b.Text) })
	return choices, nil
}

// submitToken makes a token and shows its secret on the very page: it is kept nowhere and cannot be shown again.
func (s *accountHandlers) submitToken(ctx context.Context, r *request) (string, error) {
	ask, err := readToken(r)
	if err != nil {
		return "", err
	}
	var to access.Handle
	if ask.Sandbox != "" {
		h, err := s.resolve(ctx, r.who, ask.Sandbox)
		if err != nil {
			return "", fault.Wrap(err, fault.Invalid, "%s", fault.Message(err))
		}
		if h.ID() != ask.SandboxID {
			return "", fault.Field("sandbox", "The sandbox %s that was listed here was deleted. Choose again: another one has its name now.", h.Name())
		}
		to = h
	}
	secret, t, err := s.createToken(ctx, r, ask, to)
	if err != nil {
		return "", err
	}
	r.answer, err = s.tokensForm(ctx, r, views.Tokens{Secret: secret, Made: t.Name})
	return "", err
}

// maxDays bounds how long a token may live when days are given.
const maxDays = 3650

func readToken(r *request) (auth.NewToken, error) {
	ask := auth.NewToken{Name: r.field("name")}
	if ask.Models = r.field("sandbox") == views.OnlyModels; !ask.Models {
		ask.Sandbox, ask.SandboxID, _ = strings.Cut(r.field("sandbox"), " ")
	}
	if text := r.field("days"); text != "" {
		days, err := strconv.Atoi(text)
		if err != nil || days < 1 || days > maxDays {
			return ask, fault.Field("days", "Days must be a whole number from 1 to %d.", maxDays)
		}
		ask.TTL = time.Duration(days) * 24 * time.Hour
	}
	return ask, nil
}

func (s *accountHandlers) againToken(ctx context.Context, r *request, err error) (templ.Component, error) {
	var v views.Tokens
	v.Fault = r.fill(map[string]*views.Field{"name": &v.Name, "sandbox": &v.Sandbox, "days": &v.Days}, err)
	return s.tokensForm(ctx, r, v)
}

// submitRevoke revokes one of one's own tokens.
func (s *accountHandlers) submitRevoke(ctx context.Context, r *request) (string, error) {
	return done(tokensPath, "revoked"), s.revokeToken(ctx, r)
}

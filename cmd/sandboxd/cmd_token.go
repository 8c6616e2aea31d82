package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
)

func newTokenCmd(open openAuth) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Create, list and revoke API tokens",
		Long: `token manages the tokens with which programs use the API. A program sends one as 'Authorization: Bearer TOKEN' or as
'X-API-Key: TOKEN'. It can do what its user can. Limited to one sandbox, it can do everything with that sandbox, including
deleting it and making its ports public. Limited to models, it can ask models through the server, and do nothing else.

It works on the data folder, with or without a running server. Changes take effect at once.`,
		Example: `  TOKEN=$(sandboxd token create ci)
  curl -H "Authorization: Bearer $TOKEN" http://localhost:8080/api/v1/sandboxes
  sandboxd token revoke ci`,
	}
	cmd.AddCommand(newTokenCreateCmd(open), newTokenListCmd(open), newTokenRevokeCmd(open))
	return cmd
}

func newTokenCreateCmd(open openAuth) *cobra.Command {
	var user, ttl string
	var wish auth.NewToken
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a token; prints it alone on standard output",
		Long: `create makes an API token and prints it. It cannot be printed again: sandboxd keeps only its hash.

NAME says what the token is for. Without --user it belongs to the first admin, who exists from the first start,
before anyone has signed in.`,
		Example: `  sandboxd token create ci
  sandboxd token create notebook --user ada --sandbox ml --ttl 30d
  export SANDBOXD_TOKEN=$(sandboxd token create agent --ttl 12h)
  export OPENAI_API_KEY=$(sandboxd token create editor --models) OPENAI_BASE_URL=http://localhost:8080/models/v1`,
		Args: wantArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			wish.Name = args[0]
			if wish.TTL, err = parseTTL(ttl); err != nil {
				return err
			}
			return withAccounts(cmd, open, func(ctx context.Context, a accounts) error {
				return createToken(ctx, cmd, a, user, wish)
			})
		},
	}
	cmd.Flags().StringVar(&user, "user", "", "the user it belongs to (default: the first admin)")
	cmd.Flags().StringVar(&wish.Sandbox, "sandbox", "", "limit it to the sandbox of this name")
	cmd.Flags().BoolVar(&wish.Models, "models", false, "limit it to asking models")
	cmd.Flags().StringVar(&ttl, "ttl", "", "how long it is valid: 12h, 30d, 8w (default: forever)")
	return cmd
}

// limitOf gives the id of the sandbox that a token of owner's is to be limited to; "" for no name.
func (a accounts) limitOf(ctx context.Context, owner auth.User, name string) (id string, err error) {
	if name == "" {
		return "", nil
	}
	box, err := a.boxes.ByName(ctx, name)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return "", err
	}
	if err != nil || box.Pooled || !(auth.Principal{User: owner}).May(box.Owner, box.ID) {
		return "", fault.Field("sandbox", "%s has no sandbox called %.64q. Create it first.", owner.Name, name)
	}
	return box.ID, nil
}

func createToken(ctx context.Context, cmd *cobra.Command, s accounts, user string, n auth.NewToken) error {
	owner, err := tokenOwner(ctx, s.Service, user)
	if err != nil {
		return err
	}
	if n.SandboxID, err = s.limitOf(ctx, owner, n.Sandbox); err != nil {
		return err
	}
	secret, t, err := s.CreateToken(ctx, owner.ID, n)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), secret); err != nil { // a token that nobody has seen must not stay
		return errors.Join(err, s.RevokeToken(ctx, owner.ID, t.ID))
	}
	limit, end := "full access", "never expires"
	switch {
	case t.Models:
		limit = "models only"
	case t.Sandbox != "":
		limit = "sandbox " + t.Sandbox + " only"
	case owner.Role != auth.Admin:
		limit = "all their sandboxes"
	}
	if !t.Expires.IsZero() {
		end = "expires " + day(t.Expires, "")
	}
	return say(cmd, "Token %q for %s: %s, %s. It won't be shown again.", t.Name, owner.Name, limit, end)
}

func tokenOwner(ctx context.Context, s *auth.Service, name string) (auth.User, error) {
	if name == "" {
		return s.FirstAdmin(ctx)
	}
	return s.UserByName(ctx, name)
}

func newTokenListCmd(open openAuth) *cobra.Command {
	var user string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tokens, newest first",
		Long:  "list prints all tokens, or one user's, without their secrets. PREFIX is how the secret begins.",
		Example: `  sandboxd token list
  sandboxd token list --user ada`,
		Args: wantArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAuth(cmd, open, func(ctx context.Context, s *auth.Service) error {
				tokens, names, err := namedTokens(ctx, s, user)
				if err != nil {
					return err
				}
				rows := [][]string{{"ID", "NAME", "USER", "LIMITED TO", "PREFIX", "CREATED", "LAST USED", "EXPIRES"}}
				for _, t := range tokens {
					rows = append(rows, []string{t.ID, t.Name, names[t.User], orDash(limitText(t)), t.Prefix + "…",
						day(t.Created, ""), day(t.LastUsed, "never"), expiry(t)})
				}
				return printTable(cmd, rows)
			})
		},
	}
	cmd.Flags().StringVar(&user, "user", "", "only this user's")
	return cmd
}

// namedTokens gives the tokens of a user ("" for all), and users' names by id.
func namedTokens(ctx context.Context, s *auth.Service, user string) ([]auth.Token, map[string]string, error) {
	id, names := "", map[string]string{}
	if user != "" {
		u, err := s.UserByName(ctx, user)
		if err != nil {
			return nil, nil, err
		}
		id = u.ID
	}
	users, err := s.Users(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, u := range users {
		names[u.ID] = u.Name
	}
	tokens, err := s.Tokens(ctx, id)
	return tokens, names, err
}

func expiry(t auth.Token) string {
	if !t.Expires.IsZero() && !time.Now().Before(t.Expires) {
		return "expired"
	}
	return day(t.Expires, "never")
}

// limitText is what a token is limited to, or "".
func limitText(t auth.Token) string {
	if t.Models {
		return "models"
	}
	return t.Sandbox
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func newTokenRevokeCmd(open openAuth) *cobra.Command {
	var user string
	cmd := &cobra.Command{
		Use:   "revoke NAME|ID",
		Short: "Revoke a token at once",
		Long: `revoke ends a token; the server refuses it from its next request on. Name it as it was created, or by its id from
'token list' when several have one name.`,
		Example: `  sandboxd token revoke ci
  sandboxd token revoke 9f86d081884c7d65`,
		Args: wantArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAuth(cmd, open, func(ctx context.Context, s *auth.Service) error {
				tokens, names, err := namedTokens(ctx, s, user)
				if err != nil {
					return err
				}
				t, err := pickToken(tokens, args[0])
				if err != nil {
					return err
				}
				if err := s.RevokeToken(ctx, t.User, t.ID); err != nil {
					return err
				}
				return say(cmd, "Revoked the token %s of %s.", t.Name, names[t.User])
			})
		},
	}
	cmd.Flags().StringVar(&user, "user", "", "only among this user's")
	return cmd
}

// pickToken finds a token by its id, or by its name if only one has it.
func pickToken(tokens []auth.Token, which string) (auth.Token, error) {
	var named []auth.Token
	var ids []string
	for _, t := range tokens {
		if t.ID == which {
			return t, nil
		}
		if t.Name == which {
			named, ids = append(named, t), append(ids, t.ID)
		}
	}
	switch len(named) {
	case 0:
		return auth.Token{}, fault.New(fault.NotFound, "There is no token %q. See 'sandboxd token list'.", which)
	case 1:
		return named[0], nil
	}
	return auth.Token{}, fault.New(fault.Conflict, "%d tokens have the name %q. Name one by its id: %s.", len(named), which, strings.Join(ids, ", "))
}

// parseTTL reads a time such as 90m, 12h, 30d or 8w; "" is none.
func parseTTL(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	wrong := fault.Field("ttl", "--ttl is %q; write it like 12h, 30d or 8w.", s)
	unit := map[byte]time.Duration{'d': 24 * time.Hour, 'w': 7 * 24 * time.Hour}[s[len(s)-1]]
	if unit == 0 {
		d, err := time.ParseDuration(s)
		if err != nil || d <= 0 {
			return 0, wrong
		}
		return d, nil
	}
	const most = 10_000 // keeps the product in range; auth has the bound that people are told
	n, err := strconv.Atoi(s[:len(s)-1])
	if err != nil || n <= 0 || n > most {
		return 0, wrong
	}
	return time.Duration(n) * unit, nil
}

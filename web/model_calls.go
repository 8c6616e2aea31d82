package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"

	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
)

// modelCallsPath is where programs outside ask models, in the protocols of their providers: an SDK's base URL.
const modelCallsPath = "/models"

// modelCallHandlers answers programs outside that ask a model with a token.
type modelCallHandlers struct {
	*Server
	gate func() http.Handler // the gateway's, made once: it holds each caller's bounds
}

func newModelCallHandlers(s *Server) *modelCallHandlers {
	h := &modelCallHandlers{Server: s}
	h.gate = sync.OnceValue(func() http.Handler { return http.StripPrefix(modelCallsPath, s.cfg.Models.Handler(h.caller)) })
	return h
}

// table has the methods that protocols of models use.
func (s *modelCallHandlers) table() []route {
	return []route{
		{get, modelCallsPath + "/*", modelToken, s.ask},
		{post, modelCallsPath + "/*", modelToken, s.ask},
	}
}

// outsideCall is a request from outside on its way to the gateway.
type outsideCall struct {
	*request
	secret string // the token that came with it
}

// outsideKey is the key of an *outsideCall in a context.
type outsideKey struct{}

// ask hands a request to the gateway, which asks for its caller and answers in the protocol of the client, also that it is refused. The
// token does not go along.
func (s *modelCallHandlers) ask(c echo.Context) error {
	r := requestOf(c)
	if r.body != nil {
		r.body.pace = s.move
	}
	s.gate().ServeHTTP(c.Response(), withoutSecret(r.http, &outsideCall{r, modelSecret(r.http)}))
	return nil
}

// caller says whose a request is that ask handed on. Kind: Unauthenticated.
func (s *modelCallHandlers) caller(r *http.Request) (gateway.Caller, error) {
	call, ok := r.Context().Value(outsideKey{}).(*outsideCall)
	if !ok || call.secret == "" {
		return gateway.Caller{}, fault.New(fault.Unauthenticated, "This needs an API token of sandboxd in place of a provider's key.")
	}
	ctx, cancel := context.WithTimeout(r.Context(), handlerTime)
	defer cancel()
	who, err := s.cfg.Accounts.AuthenticateForModels(ctx, call.secret)
	if err != nil {
		return gateway.Caller{}, err
	}
	call.who = who
	out := gateway.Caller{User: who.User.ID, Sandbox: who.SandboxID, Label: who.TokenName, Outside: true}
	if who.SandboxID != "" {
		out.Label = who.Sandbox
	}
	return out, nil
}

// modelSecret takes the token out of a request, from where clients of models put a provider's key.
func modelSecret(r *http.Request) string {
	for _, secret := range []string{tokenSecret(r.Header), r.Header.Get("X-Goog-Api-Key"), r.URL.Query().Get("key")} {
		if secret != "" {
			return secret
		}
	}
	return ""
}

// withoutSecret is a copy of r with call in its context, and without credentials.
func withoutSecret(r *http.Request, call *outsideCall) *http.Request {
	r = r.Clone(context.WithValue(r.Context(), outsideKey{}, call))
	for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Cookie"} {
		r.Header.Del(name)
	}
	r.URL.RawQuery = withoutKey(r.URL.RawQuery)
	r.RequestURI = r.URL.RequestURI()
	return r
}

// withoutKey is a query without the parameter that a key comes in; the rest stays as it was written.
func withoutKey(query string) string {
	kept := make([]string, 0, strings.Count(query, "&")+1)
	for part := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(part, "=")
		if plain, err := url.QueryUnescape(name); err == nil && plain != "key" {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, "&")
}

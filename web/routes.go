package web

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"sandboxd/internal/sandbox"
)

// route is one line of the table: what is asked, who may ask it, and who answers.
type route struct {
	method, path string
	access       access
	handle       echo.HandlerFunc
}

// access says who may use a route.
type access uint8

const (
	public     access = iota // anybody; no credential is looked at
	visitor                  // anybody; the browser session is looked up when there is one
	signedIn                 // a browser session; without one pages lead to /login
	adminOnly                // a browser session of an admin
	token                    // an API token
	tokenWide                // an API token that is not limited to one sandbox
	tokenAdmin               // an API token of an admin, not limited to one sandbox
)

// Paths that other files must know.
const (
	apiPrefix = "/api/v1"
	loginPath = "/login"
)

// The methods, short, so that the table is one.
const (
	get   = http.MethodGet
	post  = http.MethodPost
	patch = http.MethodPatch
	del   = http.MethodDelete
)

// routes is the table of contents: the only place with paths, pages and API side by side.
func (s *Server) routes() []route {
	return slices.Concat(s.processRoutes(), s.accountRoutes(), s.sandboxRoutes(), s.templateRoutes())
}

func (s *Server) processRoutes() []route {
	return []route{
		{get, "/healthz", public, api(s.apiHealth)},
		{get, "/readyz", public, api(s.apiReady)},
		{get, apiPrefix + "/openapi.json", public, api(s.apiDocument)},
		{get, apiPrefix + "/version", token, api(s.apiVersion)},
		{get, apiPrefix + "/events", token, s.watch(s.apiEvents)},
	}
}

func (s *Server) accountRoutes() []route {
	return []route{
		{get, apiPrefix + "/users/me", token, api(s.apiMe)},
		{get, apiPrefix + "/tokens", tokenWide, api(s.apiTokens)},
		{post, apiPrefix + "/tokens", tokenWide, api(s.apiCreateToken)},
		{del, apiPrefix + "/tokens/:id", tokenWide, api(s.apiRevokeToken)},
	}
}

func (s *Server) sandboxRoutes() []route {
	boxes := s.cfg.Sandboxes
	return []route{
		{get, apiPrefix + "/sandboxes", token, api(s.apiListSandboxes)},
		{post, apiPrefix + "/sandboxes", tokenWide, apiLong(s.apiCreateSandbox)},
		{get, apiPrefix + "/sandboxes/:name", token, api(s.apiSandbox)},
		{patch, apiPrefix + "/sandboxes/:name", token, api(s.apiChangeSandbox)},
		{del, apiPrefix + "/sandboxes/:name", token, apiLong(s.apiDeleteSandbox)},
		{post, apiPrefix + "/sandboxes/:name/start", token, apiLong(s.power(boxes.Start, "ready", sandbox.Running))},
		{post, apiPrefix + "/sandboxes/:name/stop", token, apiLong(s.power(boxes.Stop, "stopped", sandbox.Stopped))},
		{post, apiPrefix + "/sandboxes/:name/restart", token, apiLong(s.power(boxes.Restart, "ready", sandbox.Running))},
		{post, apiPrefix + "/sandboxes/:name/exec", token, apiLong(s.apiExec)},
		{get, apiPrefix + "/sandboxes/:name/exec", token, s.socket(s.apiExecSocket)},
	}
}

func (s *Server) templateRoutes() []route {
	return []route{
		{get, apiPrefix + "/templates", token, api(s.apiTemplates)},
		{get, apiPrefix + "/templates/:name", token, api(s.apiTemplate)},
		{post, apiPrefix + "/templates/:name/build", tokenAdmin, api(s.apiBuildTemplate)},
		{get, apiPrefix + "/templates/:name/build", token, apiLong(s.apiBuildLog)},
	}
}

package web

import (
	"net/http"

	"github.com/labstack/echo/v4"
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
	public      access = iota // anybody; no credential is looked at
	visitor                   // anybody; the browser session is looked up when there is one
	signedIn                  // a browser session; without one pages lead to /login
	adminOnly                 // a browser session of an admin
	token                     // an API token
	tokenWide                 // an API token that is not limited to one sandbox
	tokenAdmin                // an API token of an admin, not limited to one sandbox
)

// Paths that other files must know.
const (
	apiPrefix = "/api/v1"
	loginPath = "/login"
)

// routes is the table of contents: the only place with paths, pages and API side by side.
func (s *Server) routes() []route {
	const get, post, patch, del = http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete
	_, _, _ = post, patch, del
	return []route{
		// The process.
		{get, "/healthz", public, api(s.apiHealth)},
		{get, "/readyz", public, api(s.apiReady)},
		{get, apiPrefix + "/version", token, api(s.apiVersion)},
	}
}

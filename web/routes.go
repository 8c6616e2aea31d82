package web

import (
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"sandboxd/internal/sandbox"
	"sandboxd/internal/terminal"
	"sandboxd/static"
)

// route is one line of the table: what is asked, who may ask it, and who answers.
type route struct {
	method, path string
	access       admission
	handle       echo.HandlerFunc
}

// admission says who may use a route.
type admission uint8

const (
	public     admission = iota // anybody; no credential is looked at
	visitor                     // anybody; the browser session is looked up when there is one
	signedIn                    // a browser session; without one pages lead to /login
	scripted                    // a browser session, asked for by a script of ours, which is told of errors as programs are
	adminOnly                   // a browser session of an admin
	token                       // an API token
	tokenWide                   // an API token that is not limited to one sandbox
	tokenAdmin                  // an API token of an admin, not limited to one sandbox
)

// bulky says whether a body may be of any size: of a file's content.
func (r route) bulky() bool { return r.method == put && strings.HasSuffix(r.path, filesPart) }

// Paths that other files must know.
const (
	filesPart = "/files"
	apiPrefix = "/api/v1"
	loginPath = "/login"
)

// The methods, short, so that the table is one.
const (
	get   = http.MethodGet
	post  = http.MethodPost
	put   = http.MethodPut
	patch = http.MethodPatch
	del   = http.MethodDelete
)

// routes is the table of contents: the only place with paths, pages and API side by side.
func (s *Server) routes() []route {
	return slices.Concat(s.processRoutes(), s.accountRoutes(), s.sandboxRoutes(), s.doorRoutes(), s.templateRoutes(),
		s.fileRoutes(apiPrefix, token), s.fileRoutes("", scripted),
		s.serviceRoutes(apiPrefix, token), s.insidePages(),
		s.portRoutes(apiPrefix, token), s.portRoutes("", scripted),
		s.ideRoutes(apiPrefix, token), s.ideRoutes("", scripted),
		s.entryPages(), s.sandboxPages(), s.templatePages(), s.settingsPages())
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
		{post, apiPrefix + "/sandboxes/:name/sleep", token, apiLong(s.apiSleep)},
		{get, apiPrefix + "/sandboxes/:name/holds", token, api(s.apiHolds)},
		{post, apiPrefix + "/sandboxes/:name/holds", token, api(s.apiPlaceHold)},
		{put, apiPrefix + "/sandboxes/:name/holds/:id", token, api(s.apiRenewHold)},
		{del, apiPrefix + "/sandboxes/:name/holds/:id", token, api(s.apiRevokeHold)},
		{get, apiPrefix + "/sandboxes/:name" + filesPart + `\:watch`, token, s.watch(s.apiWatchFiles)},
		{post, apiPrefix + "/sandboxes/:name/exec", token, apiLong(s.apiExec)},
		{get, apiPrefix + "/sandboxes/:name/exec", token, s.longSocket(s.apiExecSocket)},
	}
}

// fileRoutes are the files of a sandbox, for programs and for the page's script. A colon within a path's part is escaped.
func (s *Server) fileRoutes(prefix string, who admission) []route {
	base := prefix + "/sandboxes/:name" + filesPart
	return []route{
		{get, base, who, s.onFiles(s.apiFile)},
		{put, base, who, s.onFiles(s.apiPutFile)},
		{del, base, who, s.onFiles(s.apiDeleteFiles)},
		{post, base + `\:mkdir`, who, filesCall(s, s.apiMakeFolder)},
		{post, base + `\:move`, who, filesCall(s, s.apiMoveFiles)},
		{post, base + `\:copy`, who, filesCall(s, s.apiCopyFiles)},
		{post, base + `\:chmod`, who, filesCall(s, s.apiChangeMode)},
		{post, base + `\:search`, who, filesCall(s, s.apiSearchFiles)},
		{get, base + `\:trash`, who, s.onFiles(s.apiTrash)},
		{del, base + `\:trash`, who, s.onFiles(s.apiEmptyTrash)},
		{post, base + `\:restore`, who, filesCall(s, s.apiRestoreFiles)},
	}
}

// doorRoutes are for programs that bring their own protocol.
func (s *Server) doorRoutes() []route {
	return []route{
		{get, apiPrefix + "/ssh/host-key", token, api(s.apiHostKey)},
		{get, apiPrefix + "/sandboxes/:name/ssh", token, s.longSocket(s.apiSSH)},
		{get, apiPrefix + "/sandboxes/:name/ports/:port/tunnel", token, s.longSocket(s.apiTunnel)},
	}
}

// insidePages are the pages about what runs and listens in a sandbox. Their forms work without scripts.
func (s *Server) insidePages() []route {
	services, port := "/sandboxes/:name/services", "/sandboxes/:name/ports/:port"
	do := s.cfg.Services
	return []route{
		{get, services, signedIn, page(s.pageServices)},
		{post, services, signedIn, form(s.submitNewService, s.againService)},
		{post, "/sandboxes/:name/services-reset", signedIn, form(s.submitResetServices, s.againServices)},
		{get, services + "/new", signedIn, page(s.pageNewService)},
		{post, services + "/:service", signedIn, form(s.submitEditService, s.againService)},
		{get, services + "/:service/edit", signedIn, page(s.pageEditService)},
		{get, services + "/:service/delete", signedIn, page(s.pageDeleteService)},
		{post, services + "/:service/delete", signedIn, form(s.submitDeleteService, s.againServices)},
		{post, services + "/:service/start", signedIn, form(s.submitService(do.Start), s.againServices)},
		{post, services + "/:service/stop", signedIn, form(s.submitService(do.Stop), s.againServices)},
		{post, services + "/:service/restart", signedIn, form(s.submitService(do.Restart), s.againServices)},
		{get, services + "/:service/log", signedIn, page(s.pageServiceLog)},
		{get, "/sandboxes/:name/vscode", signedIn, page(s.pageIDE)},
		{post, "/sandboxes/:name/vscode", signedIn, form(s.submitIDE, s.againIDE)},
		{get, "/sandboxes/:name/vscode/stand", signedIn, page(s.partIDE)},
		{get, port, signedIn, page(s.pagePort)},
		{post, port, signedIn, form(s.submitPort, s.againPort)},
		{post, port + "/share", signedIn, form(s.submitShare, s.againPort)},
		{post, port + "/shares/:id/revoke", signedIn, form(s.submitRevokeShare, s.againPort)},
	}
}

// serviceRoutes are the services of a sandbox, for programs. Pages have their own way to them (insidePages).
func (s *Server) serviceRoutes(prefix string, who admission) []route {
	base := prefix + "/sandboxes/:name/services"
	do := s.cfg.Services
	return []route{
		{get, base, who, api(s.apiServices)},
		{put, base, who, api(s.apiPutServices)},
		{del, base, who, api(s.apiResetServices)},
		{get, base + "/:service", who, api(s.apiService)},
		{put, base + "/:service", who, api(s.apiPutService)},
		{del, base + "/:service", who, api(s.apiDeleteService)},
		{post, base + "/:service/start", who, apiLong(s.switchService(do.Start))},
		{post, base + "/:service/stop", who, apiLong(s.switchService(do.Stop))},
		{post, base + "/:service/restart", who, apiLong(s.switchService(do.Restart))},
		{get, base + "/:service/log", who, apiLong(s.apiServiceLog)},
	}
}

// portRoutes are the ports of a sandbox and who may use them, for programs and for the page's script.
func (s *Server) portRoutes(prefix string, who admission) []route {
	base := prefix + "/sandboxes/:name/ports"
	return []route{
		{get, base, who, api(s.apiPorts)},
		{put, base + "/:port", who, api(s.apiSetVisibility)},
		{post, base + "/:port/shares", who, api(s.apiShare)},
		{del, base + "/:port/shares/:id", who, api(s.apiRevokeShare)},
	}
}

// ideRoutes are VS Code in a sandbox, for programs and for the page's script.
func (s *Server) ideRoutes(prefix string, who admission) []route {
	base := prefix + "/sandboxes/:name/ide"
	return []route{
		{get, base, who, api(s.apiIDE)},
		{put, base, who, api(s.apiSetIDE)},
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

func (s *Server) entryPages() []route {
	return []route{
		{get, static.Prefix + "*", public, echo.WrapHandler(s.cfg.Assets)},
		{get, setupPath, public, page(s.pageSetup)},
		{post, setupPath, public, form(s.submitSetup, s.againSetup)},
		{get, loginPath, public, page(s.pageLogin)},
		{post, loginPath, public, form(s.submitLogin, s.againLogin)},
		{post, "/logout", visitor, form(s.submitLogout, nil)},
		{get, handoverPath, signedIn, s.handover},
		{post, "/theme", public, form(s.submitTheme, nil)},
		{put, "/preferences/workspace", scripted, api(s.apiSetLayout)},
		{get, "/live", scripted, explained(otherPerson, s.socket(s.openLive))},
	}
}

func (s *Server) sandboxPages() []route {
	boxes := s.cfg.Sandboxes
	return []route{
		{get, "/", signedIn, page(s.pageSandboxes)},
		{get, "/new", signedIn, page(s.pageNew)},
		{post, "/sandboxes", signedIn, form(s.submitNew, s.againNew)},
		{get, "/sandboxes/:name", signedIn, page(s.pageWorkspace)},
		{post, "/sandboxes/:name/start", signedIn, form(s.submitPower(boxes.Start), nil)},
		{post, "/sandboxes/:name/stop", signedIn, form(s.submitPower(boxes.Stop), nil)},
		{post, "/sandboxes/:name/restart", signedIn, form(s.submitPower(boxes.Restart), nil)},
		{post, "/sandboxes/:name/sleep", signedIn, form(s.submitPower(s.rest(false)), nil)},
		{get, "/sandboxes/:name/rest", signedIn, page(s.pageRest)},
		{post, "/sandboxes/:name/rest", signedIn, form(s.submitRest, s.againRest)},
		{post, "/sandboxes/:name/holds/:id/revoke", signedIn, form(s.submitRevokeHold, nil)},
		{get, "/sandboxes/:name/rename", signedIn, page(s.pageRename)},
		{post, "/sandboxes/:name/rename", signedIn, form(s.submitRename, s.againRename)},
		{get, "/sandboxes/:name/delete", signedIn, page(s.pageDelete)},
		{post, "/sandboxes/:name/delete", signedIn, form(s.submitDelete, s.againDelete)},
		{get, "/sandboxes/:name/terminals", signedIn, api(s.apiTabs)},
		{get, "/sandboxes/:name/terminals/:tab/ws", signedIn, explained(s.noTerminal, s.socket(s.openTerminal, terminal.Subprotocol))},
		{get, "/sandboxes/:name/terminals/:tab/text", scripted, s.terminalText},
		{put, "/sandboxes/:name/terminals/:tab/name", scripted, api(s.apiNameTab)},
		{post, "/sandboxes/:name/terminals/:tab/close", signedIn, form(s.submitCloseTab, nil)},
	}
}

func (s *Server) templatePages() []route {
	return []route{
		{get, "/templates", signedIn, page(s.pageTemplates)},
		{get, "/templates/:name", signedIn, page(s.pageTemplate)},
		{post, "/templates/:name/build", adminOnly, form(s.submitBuild, nil)},
	}
}

func (s *Server) settingsPages() []route {
	return []route{
		{get, settingsPath, signedIn, page(s.pageAccount)},
		{post, settingsPath + "/password", signedIn, form(s.submitPassword, s.againPassword)},
		{get, tokensPath, signedIn, page(s.pageTokens)},
		{post, tokensPath, signedIn, form(s.submitToken, s.againToken)},
		{post, tokensPath + "/:id/revoke", signedIn, form(s.submitRevoke, nil)},
		{get, usersPath, adminOnly, page(s.pageUsers)},
		{post, usersPath, adminOnly, form(s.submitUser, s.againUser)},
		{post, usersPath + "/:id/role", adminOnly, form(s.submitRole, s.againUsers)},
		{post, usersPath + "/:id/disabled", adminOnly, form(s.submitDisabled, s.againUsers)},
		{get, usersPath + "/:id/delete", adminOnly, page(s.pageDeleteUser)},
		{post, usersPath + "/:id/delete", adminOnly, form(s.submitDeleteUser, s.againDeleteUser)},
	}
}

// liveTopics are what a page can follow over its live connection, by address: fragments of the page that has it, folders
// in which something changes, and logs.
func (s *Server) liveTopics() []topic {
	return []topic{
		{"/sandboxes", s.live(s.openLiveList)},
		{"/sandboxes/:name", s.live(s.openLiveWorkspace)},
		{"/sandboxes/:name/files", s.openFolders},
		{"/sandboxes/:name/services", s.live(s.openLiveServices)},
		{"/sandboxes/:name/services/:service/log", s.openLog},
		{"/templates", s.live(s.openLiveTemplates)},
		{"/templates/:name", s.live(s.openLiveTemplate)},
	}
}

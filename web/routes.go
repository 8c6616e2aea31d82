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

// route is one line of the table: pattern, access and handler.
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
	modelToken                  // an API token, also one that is limited to models; the route's handler looks at it
)

// bulky says whether a body may be of any size: of a file's content, of an archive, or of what a model is asked, which the gateway bounds.
func (r route) bulky() bool {
	path := strings.TrimPrefix(r.path, apiPrefix)
	return r.access == modelToken || r.method == put && (strings.HasSuffix(path, filesPart) || strings.HasSuffix(path, restorePart)) || path == restorePart
}

// Paths that other files must know.
const (
	filesPart   = "/files"
	restorePart = "/restore"
	apiPrefix   = "/api/v1"
	loginPath   = "/login"
)

// The methods, short, so that the table is one.
const (
	get   = http.MethodGet
	post  = http.MethodPost
	put   = http.MethodPut
	patch = http.MethodPatch
	del   = http.MethodDelete
)

// routes is the table of contents: the only place with paths, beside routes_backups.go, pages and API side by side.
func (s *Server) routes() []route {
	return slices.Concat(s.processRoutes(), s.accountRoutes(), s.sandboxRoutes(), s.protocolRoutes(), s.templateRoutes(),
		s.filesAt(s.files, apiPrefix+"/sandboxes/:name", token), s.filesAt(s.files, "/sandboxes/:name", scripted), s.volumes.table(),
		s.serviceRoutes(apiPrefix, token), s.insidePages(),
		s.portRoutes(apiPrefix, token), s.portRoutes("", scripted),
		s.ideRoutes(apiPrefix, token), s.ideRoutes("", scripted),
		s.backups.table(), s.backups.pages(), s.schedules.table(), s.schedules.pages(), s.repositories.table(), s.modelCalls.table(), s.usage.table(), s.snapshots.table(), s.snapshots.pages(), s.updates.table(), s.updates.pages(),
		s.metrics.table(), s.logs.table(), s.activity.table(), s.alerts.table(), s.alertSettings.table(),
		s.entryPages(), s.sandboxPages(), s.templatePages(), s.ownTemplates.table(), s.host.table(), s.settingsPages(),
		s.providers.table(), s.aliases.table(), s.models.table(), s.chat.table(), s.agents.table(), s.sharedChat.table(), s.trials.table())
}

func (s *Server) processRoutes() []route {
	return []route{
		{get, "/healthz", public, api(s.process.apiHealth)},
		{get, "/readyz", public, api(s.process.apiReady)},
		{get, apiPrefix + "/openapi.json", public, api(s.process.apiDocument)},
		{get, apiPrefix + "/version", token, api(s.process.apiVersion)},
		{get, apiPrefix + "/events", token, s.live.watch(s.live.apiEvents)},
	}
}

func (s *Server) accountRoutes() []route {
	return []route{
		{get, apiPrefix + "/users/me", token, api(s.accounts.apiMe)},
		{get, apiPrefix + "/tokens", tokenWide, api(s.accounts.apiTokens)},
		{post, apiPrefix + "/tokens", tokenWide, api(s.accounts.apiCreateToken)},
		{del, apiPrefix + "/tokens/:id", tokenWide, api(s.accounts.apiRevokeToken)},
	}
}

func (s *Server) sandboxRoutes() []route {
	boxes := s.cfg.Sandboxes
	return []route{
		{get, apiPrefix + "/sandboxes", token, api(s.sandboxes.apiListSandboxes)},
		{post, apiPrefix + "/sandboxes", tokenWide, apiLong(s.sandboxes.apiCreateSandbox)},
		{get, apiPrefix + "/sandboxes/:name", token, api(s.sandboxes.apiSandbox)},
		{patch, apiPrefix + "/sandboxes/:name", token, api(s.sandboxes.apiChangeSandbox)},
		{del, apiPrefix + "/sandboxes/:name", token, apiLong(s.sandboxes.apiDeleteSandbox)},
		{post, apiPrefix + "/sandboxes/:name/start", token, apiLong(s.sandboxes.power(boxes.Start, "ready", sandbox.Running))},
		{post, apiPrefix + "/sandboxes/:name/stop", token, apiLong(s.sandboxes.power(boxes.Stop, "stopped", sandbox.Stopped))},
		{post, apiPrefix + "/sandboxes/:name/restart", token, apiLong(s.sandboxes.power(boxes.Restart, "ready", sandbox.Running))},
		{post, apiPrefix + "/sandboxes/:name/sleep", token, apiLong(s.sandboxes.apiSleep)},
		{get, apiPrefix + "/sandboxes/:name/holds", token, api(s.sandboxes.apiHolds)},
		{post, apiPrefix + "/sandboxes/:name/holds", token, api(s.sandboxes.apiPlaceHold)},
		{put, apiPrefix + "/sandboxes/:name/holds/:id", token, api(s.sandboxes.apiRenewHold)},
		{del, apiPrefix + "/sandboxes/:name/holds/:id", token, api(s.sandboxes.apiRevokeHold)},
		{get, apiPrefix + "/sandboxes/:name" + filesPart + `\:watch`, token, s.live.watch(s.files.apiWatchFiles)},
		{post, apiPrefix + "/sandboxes/:name/exec", token, apiLong(s.commands.apiExec)},
		{get, apiPrefix + "/sandboxes/:name/exec", token, s.live.longSocket(s.commands.apiExecSocket)},
		{get, apiPrefix + "/orphans", tokenAdmin, api(s.orphans.apiOrphans)},
		{post, apiPrefix + "/orphans/:id/adopt", tokenAdmin, api(s.orphans.apiAdoptOrphan)},
		{del, apiPrefix + "/orphans/:id", tokenAdmin, api(s.orphans.apiRemoveOrphan)},
	}
}

// filesAt are the files of a sandbox or of a volume, for programs and for the page's script. A colon within a path's part is escaped.
func (s *Server) filesAt(files *fileHandlers, of string, who admission) []route {
	base := of + filesPart
	return []route{
		{get, base, who, files.onFiles(files.apiFile)},
		{put, base, who, files.onFiles(files.apiPutFile)},
		{del, base, who, files.onFiles(files.apiDeleteFiles)},
		{post, base + `\:mkdir`, who, filesCall(files, files.apiMakeFolder)},
		{post, base + `\:move`, who, filesCall(files, files.apiMoveFiles)},
		{post, base + `\:copy`, who, filesCall(files, files.apiCopyFiles)},
		{post, base + `\:chmod`, who, filesCall(files, files.apiChangeMode)},
		{post, base + `\:search`, who, filesCall(files, files.apiSearchFiles)},
		{get, base + `\:trash`, who, files.onFiles(files.apiTrash)},
		{del, base + `\:trash`, who, files.onFiles(files.apiEmptyTrash)},
		{post, base + `\:restore`, who, filesCall(files, files.apiRestoreFiles)},
	}
}

// protocolRoutes are for programs that bring their own protocol.
func (s *Server) protocolRoutes() []route {
	return []route{
		{get, apiPrefix + "/ssh/host-key", token, api(s.commands.apiHostKey)},
		{get, apiPrefix + "/sandboxes/:name/ssh", token, s.live.longSocket(s.commands.apiSSH)},
		{get, apiPrefix + "/sandboxes/:name/ports/:port/tunnel", token, s.live.longSocket(s.commands.apiTunnel)},
	}
}

// insidePages are the pages about what runs and listens in a sandbox. Their forms work without scripts.
func (s *Server) insidePages() []route {
	services, port := "/sandboxes/:name/services", "/sandboxes/:name/ports/:port"
	do := s.cfg.Services
	return []route{
		{get, services, signedIn, page(s.services.pageServices)},
		{post, services, signedIn, form(s.services.submitNewService, s.services.againService)},
		{post, "/sandboxes/:name/services-reset", signedIn, form(s.services.submitResetServices, s.services.againServices)},
		{get, services + "/new", signedIn, page(s.services.pageNewService)},
		{post, services + "/:service", signedIn, form(s.services.submitEditService, s.services.againService)},
		{get, services + "/:service/edit", signedIn, page(s.services.pageEditService)},
		{get, services + "/:service/delete", signedIn, page(s.services.pageDeleteService)},
		{post, services + "/:service/delete", signedIn, form(s.services.submitDeleteService, s.services.againServices)},
		{post, services + "/:service/start", signedIn, form(s.services.submitService(do.Start), s.services.againServices)},
		{post, services + "/:service/stop", signedIn, form(s.services.submitService(do.Stop), s.services.againServices)},
		{post, services + "/:service/restart", signedIn, form(s.services.submitService(do.Restart), s.services.againServices)},
		{get, "/sandboxes/:name/vscode", signedIn, page(s.ide.pageIDE)},
		{post, "/sandboxes/:name/vscode", signedIn, form(s.ide.submitIDE, s.ide.againIDE)},
		{get, "/sandboxes/:name/vscode/stand", signedIn, page(s.ide.partIDE)},
		{get, "/sandboxes/:name/share", signedIn, page(s.ports.pageShare)},
		{get, port, signedIn, page(s.ports.pagePort)},
		{post, port, signedIn, form(s.ports.submitPort, s.ports.againPort)},
		{post, port + "/shares/:id/revoke", signedIn, form(s.ports.submitRevokeShare, s.ports.againPort)},
	}
}

// serviceRoutes are the services of a sandbox, for programs. Pages have their own way to them (insidePages).
func (s *Server) serviceRoutes(prefix string, who admission) []route {
	base := prefix + "/sandboxes/:name/services"
	do := s.cfg.Services
	return []route{
		{get, base, who, api(s.services.apiServices)},
		{put, base, who, api(s.services.apiPutServices)},
		{del, base, who, api(s.services.apiResetServices)},
		{get, base + "/:service", who, api(s.services.apiService)},
		{put, base + "/:service", who, api(s.services.apiPutService)},
		{del, base + "/:service", who, api(s.services.apiDeleteService)},
		{post, base + "/:service/start", who, apiLong(s.services.switchService(do.Start))},
		{post, base + "/:service/stop", who, apiLong(s.services.switchService(do.Stop))},
		{post, base + "/:service/restart", who, apiLong(s.services.switchService(do.Restart))},
		{get, base + "/:service/log", who, apiLong(s.services.apiServiceLog)},
	}
}

// portRoutes are the ports of a sandbox and who may use them, for programs and for the page's script.
func (s *Server) portRoutes(prefix string, who admission) []route {
	base := prefix + "/sandboxes/:name/ports"
	return []route{
		{get, base, who, api(s.ports.apiPorts)},
		{put, base + "/:port", who, api(s.ports.apiSetVisibility)},
		{post, base + "/:port/shares", who, api(s.ports.apiShare)},
		{del, base + "/:port/shares/:id", who, api(s.ports.apiRevokeShare)},
	}
}

// ideRoutes are VS Code in a sandbox, for programs and for the page's script.
func (s *Server) ideRoutes(prefix string, who admission) []route {
	base := prefix + "/sandboxes/:name/ide"
	return []route{
		{get, base, who, api(s.ide.apiIDE)},
		{put, base, who, api(s.ide.apiSetIDE)},
	}
}

// table is what a sandbox and the host use, for programs and as pages.
func (s *metricsHandlers) table() []route {
	return []route{
		{get, apiPrefix + "/sandboxes/:name/metrics", token, api(s.apiMetrics)},
		{get, apiPrefix + "/host/metrics", tokenAdmin, api(s.apiHostMetrics)},
		{get, "/sandboxes/:name/metrics", signedIn, page(s.pageMetrics)},
		{get, "/sandboxes/:name/metrics/series", scripted, api(s.apiColumns)},
	}
}

// table is what the services of sandboxes write, for programs and as pages.
func (s *logHandlers) table() []route {
	return []route{
		{get, apiPrefix + "/logs", token, apiLong(s.apiLogs)},
		{get, apiPrefix + "/logs/kept", token, api(s.apiKeptLogs)},
		{del, apiPrefix + "/logs/kept/:id", token, api(s.apiDropLog)},
		{get, apiPrefix + "/logs/:id", token, api(s.apiLogsAround)},
		{get, logsPath, signedIn, page(s.pageLogs)},
		{get, logsPath + "/download", scripted, apiLong(s.downloadLogs)},
		{post, logsPath + "/kept/:id/delete", signedIn, form(s.submitDropLog, nil)},
		{get, logsPath + "/lines/:id", signedIn, page(s.pageLogLine)},
		{get, logsPath + "/lines/:id/text", scripted, page(s.partLogText)},
	}
}

// table is who did what, for programs and as pages.
func (s *activityHandlers) table() []route {
	return []route{
		{get, apiPrefix + "/activity", token, apiLong(s.apiActivity)},
		{get, apiPrefix + "/log", tokenAdmin, api(s.process.apiOwnLog)},
		{get, activityPath, signedIn, page(s.pageActivity)},
		{get, activityPath + "/download", scripted, apiLong(s.downloadActivity)},
		{get, "/sandboxes/:name/activity", signedIn, page(s.pageSandboxActivity)},
		{get, ownLogPath, adminOnly, page(s.process.pageOwnLog)},
	}
}

// table is alerts, for programs and as a page.
func (s *alertHandlers) table() []route {
	return []route{
		{get, apiPrefix + "/alerts", token, api(s.apiAlerts)},
		{post, apiPrefix + "/alerts/:id/mute", tokenWide, api(s.apiMuteAlert)},
		{get, alertsPath, signedIn, page(s.pageAlerts)},
		{post, alertsPath + "/:id/mute", signedIn, form(s.submitMuteAlert, nil)},
	}
}

// table is the rules and channels of alerts, for programs and as pages.
func (s *alertSettingHandlers) table() []route {
	list, channel, pages := apiPrefix+"/alerts", apiPrefix+"/alerts/channels/:id", alertSettingsPath
	return []route{
		{get, list + "/rules", tokenWide, api(s.apiAlertRules)},
		{put, list + "/rules", tokenWide, api(s.apiSetAlertRules)},
		{get, list + "/channels", tokenWide, api(s.apiAlertChannels)},
		{post, list + "/channels", tokenWide, api(s.apiCreateAlertChannel)},
		{put, channel, tokenWide, api(s.apiChangeAlertChannel)},
		{del, channel, tokenWide, api(s.apiDeleteAlertChannel)},
		{post, channel + "/test", tokenWide, apiLong(s.apiTestAlertChannel)},
		{get, channel + "/deliveries", tokenWide, api(s.apiAlertDeliveries)},
		{get, pages, signedIn, page(s.pageAlertSettings)},
		{post, pages + "/reset", signedIn, form(s.submitResetRules, s.againAlertSettings)},
		{get, pages + "/rules/new", signedIn, page(s.pageNewRule)},
		{post, pages + "/rules", signedIn, form(s.submitRule, s.againRule)},
		{get, pages + "/rules/:id", signedIn, page(s.pageRule)},
		{post, pages + "/rules/:id", signedIn, form(s.submitRule, s.againRule)},
		{post, pages + "/rules/:id/switch", signedIn, form(s.submitSwitchRule, s.againAlertSettings)},
		{post, pages + "/rules/:id/mute", signedIn, form(s.submitMuteRule, s.againAlertSettings)},
		{post, pages + "/rules/:id/delete", signedIn, form(s.submitDeleteRule, s.againAlertSettings)},
		{get, pages + "/channels/new", signedIn, page(s.pageNewChannel)},
		{post, pages + "/channels", signedIn, form(s.submitChannel, s.againChannel)},
		{get, pages + "/channels/:id", signedIn, page(s.pageChannel)},
		{post, pages + "/channels/:id", signedIn, form(s.submitChannel, s.againChannel)},
		{post, pages + "/channels/:id/test", signedIn, form(s.submitTestChannel, s.againAlertSettings)},
		{post, pages + "/channels/:id/delete", signedIn, form(s.submitDeleteChannel, s.againAlertSettings)},
	}
}

func (s *Server) templateRoutes() []route {
	return []route{
		{get, apiPrefix + "/templates", token, api(s.templates.apiTemplates)},
		{get, apiPrefix + "/templates/:name", token, api(s.templates.apiTemplate)},
		{post, apiPrefix + "/templates/:name/build", tokenAdmin, api(s.templates.apiBuildTemplate)},
		{del, apiPrefix + "/templates/:name/build", tokenAdmin, api(s.templates.apiCancelBuild)},
		{get, apiPrefix + "/templates/:name/build", token, apiLong(s.templates.apiBuildLog)},
	}
}

// table is templates that are made here, with builds of all, for programs and as pages.
func (s *ownTemplateHandlers) table() []route {
	one, pages := apiPrefix+"/templates/:name", "/templates/:name"
	return []route{
		{post, apiPrefix + "/templates/check", tokenAdmin, api(s.apiCheckTemplate)},
		{put, one, tokenAdmin, api(s.apiPutTemplate)},
		{del, one, tokenAdmin, api(s.apiDeleteTemplate)},
		{get, one + "/files", tokenAdmin, api(s.apiTemplateFiles)},
		{get, one + "/source", tokenAdmin, api(s.apiTemplateSource)},
		{put, one + "/source", tokenAdmin, apiLong(s.apiSetTemplateSource)},
		{get, one + "/rebuild", tokenAdmin, api(s.apiRebuildPlan)},
		{put, one + "/rebuild", tokenAdmin, api(s.apiSetRebuildPlan)},
		{get, one + "/builds", token, api(s.apiBuilds)},
		{get, one + "/builds/:id", token, api(s.apiBuild)},
		{get, pages + "/files", scripted, api(s.apiTemplateFiles)},
		{put, pages + "/edit", scripted, api(s.apiPutTemplate)},
		{post, "/templates/check", scripted, api(s.apiCheckTemplate)},
		{get, "/templates/new", adminOnly, page(s.pageNewTemplate)},
		{post, "/templates", adminOnly, form(s.submitNewTemplate, s.againNewTemplate)},
		{get, "/templates/new/git", adminOnly, page(s.pageNewSource)},
		{post, "/templates/new/git", adminOnly, formWithin(fetchTime, s.submitSource, s.againSource)},
		{get, pages + "/edit", adminOnly, page(s.pageEditTemplate)},
		{get, pages + "/source", adminOnly, page(s.pageSource)},
		{post, pages + "/source", adminOnly, formWithin(fetchTime, s.submitSource, s.againSource)},
		{get, pages + "/rebuild", adminOnly, page(s.pagePlan)},
		{post, pages + "/rebuild", adminOnly, form(s.submitPlan, s.againPlan)},
		{get, pages + "/delete", adminOnly, page(s.pageDeleteTemplate)},
		{post, pages + "/delete", adminOnly, form(s.submitDeleteTemplate, s.againDeleteTemplate)},
		{get, pages + "/builds/:id", signedIn, page(s.pageBuild)},
	}
}

func (s *Server) entryPages() []route {
	return []route{
		{get, static.Prefix + "*", public, echo.WrapHandler(s.cfg.Assets)},
		{get, "/service-worker.js", public, echo.WrapHandler(http.HandlerFunc(s.cfg.Assets.ServeWorker))},
		{get, setupPath, public, page(s.accounts.pageSetup)},
		{post, setupPath, public, form(s.accounts.submitSetup, s.accounts.againSetup)},
		{get, loginPath, public, page(s.accounts.pageLogin)},
		{post, loginPath, public, form(s.accounts.submitLogin, s.accounts.againLogin)},
		{post, "/logout", visitor, form(s.accounts.submitLogout, nil)},
		{get, handoverPath, signedIn, s.accounts.handover},
		{post, "/theme", public, form(s.accounts.submitTheme, nil)},
		{put, "/preferences/workspace", scripted, api(s.workspace.apiSetLayout)},
		{get, "/live", scripted, explained(otherPerson, s.live.socket(streams, s.live.openLive))},
	}
}

func (s *Server) sandboxPages() []route {
	boxes := s.cfg.Sandboxes
	return []route{
		{get, "/", signedIn, page(s.list.pageSandboxes)},
		{post, "/many", signedIn, form(s.many.submitMany, s.many.againMany)},
		{post, "/many/delete", signedIn, form(s.many.submitAskDelete, nil)},
		{get, "/filters/new", signedIn, page(s.filters.pageNewFilter)},
		{post, "/filters", signedIn, form(s.filters.submitFilter, s.filters.againFilter)},
		{post, "/filters/delete", signedIn, form(s.filters.submitRemoveFilter, nil)},
		{post, "/orphans/:id/adopt", adminOnly, form(s.orphans.submitAdoptOrphan, s.orphans.againAdoptOrphan)},
		{get, "/orphans/:id/remove", adminOnly, page(s.orphans.pageRemoveOrphan)},
		{post, "/orphans/:id/remove", adminOnly, form(s.orphans.submitRemoveOrphan, nil)},
		{get, "/new", signedIn, page(s.creation.pageNew)},
		{get, "/palette", scripted, page(s.sandboxes.partPalette)},
		{post, "/sandboxes", signedIn, form(s.creation.submitNew, s.creation.againNew)},
		{get, "/sandboxes/:name", signedIn, page(s.workspace.pageWorkspace)},
		{post, "/sandboxes/:name/cancel", signedIn, form(s.creation.submitCancelNew, nil)},
		{post, "/sandboxes/:name/start", signedIn, form(s.workspace.submitPower(boxes.Start), nil)},
		{post, "/sandboxes/:name/stop", signedIn, form(s.workspace.submitPower(boxes.Stop), nil)},
		{post, "/sandboxes/:name/restart", signedIn, form(s.workspace.submitPower(boxes.Restart), nil)},
		{post, "/sandboxes/:name/sleep", signedIn, form(s.workspace.submitPower(s.sandboxes.rest(false)), nil)},
		{get, "/sandboxes/:name/rest", signedIn, page(s.rest.pageRest)},
		{post, "/sandboxes/:name/rest", signedIn, form(s.rest.submitRest, s.rest.againRest)},
		{post, "/sandboxes/:name/holds", signedIn, form(s.rest.submitKeep, s.rest.againKeep)},
		{post, "/sandboxes/:name/holds/end", signedIn, form(s.rest.submitEndKept, nil)},
		{post, "/sandboxes/:name/holds/:id/revoke", signedIn, form(s.rest.submitRevokeHold, nil)},
		{get, "/sandboxes/:name/size", signedIn, page(s.size.pageSize)},
		{post, "/sandboxes/:name/size", signedIn, form(s.size.submitSize, s.size.againSize)},
		{get, "/sandboxes/:name" + filesPart + `\:names`, scripted, s.files.onFiles(s.files.fileNames)},
		{get, "/sandboxes/:name/rename", signedIn, page(s.workspace.pageRename)},
		{post, "/sandboxes/:name/rename", signedIn, form(s.workspace.submitRename, s.workspace.againRename)},
		{get, "/sandboxes/:name/delete", signedIn, page(s.workspace.pageDelete)},
		{post, "/sandboxes/:name/delete", signedIn, form(s.workspace.submitDelete, s.workspace.againDelete)},
		{get, "/sandboxes/:name/terminals", signedIn, api(s.workspace.apiTabs)},
		{get, "/sandboxes/:name/terminals/:tab/ws", signedIn, explained(s.commands.noTerminal, s.live.socket(commands, s.commands.openTerminal, terminal.Subprotocol))},
		{get, "/sandboxes/:name/terminals/:tab/text", scripted, s.workspace.terminalText},
		{put, "/sandboxes/:name/terminals/:tab/name", scripted, api(s.commands.apiNameTab)},
		{post, "/sandboxes/:name/terminals/:tab/close", signedIn, form(s.workspace.submitCloseTab, nil)},
	}
}

func (s *Server) templatePages() []route {
	return []route{
		{get, "/templates", signedIn, page(s.templates.pageTemplates)},
		{get, "/templates/:name", signedIn, page(s.templates.pageTemplate)},
		{post, "/templates/:name/build", adminOnly, form(s.templates.submitBuild, nil)},
		{post, "/templates/:name/build/cancel", adminOnly, form(s.templates.submitCancelBuild, nil)},
	}
}

// table is about the whole host, for admins.
func (s *hostHandlers) table() []route {
	return []route{
		{get, hostPath, adminOnly, page(s.pageHost)},
		{get, hostPath + "/series", adminOnly, api(s.apiHostColumns)},
		{get, hostPath + "/saving", adminOnly, page(s.partSaving)},
		{post, hostPath + "/sleep", adminOnly, form(s.submitHostSleep, s.againHost)},
	}
}

func (s *Server) settingsPages() []route {
	return []route{
		{get, settingsPath, signedIn, page(s.accounts.pageAccount)},
		{post, settingsPath + "/password", signedIn, form(s.accounts.submitPassword, s.accounts.againPassword)},
		{get, tokensPath, signedIn, page(s.accounts.pageTokens)},
		{post, tokensPath, signedIn, form(s.accounts.submitToken, s.accounts.againToken)},
		{post, tokensPath + "/:id/revoke", signedIn, form(s.accounts.submitRevoke, nil)},
		{get, usersPath, adminOnly, page(s.accounts.pageUsers)},
		{post, usersPath, adminOnly, form(s.accounts.submitUser, s.accounts.againUser)},
		{post, usersPath + "/:id/role", adminOnly, form(s.accounts.submitRole, s.accounts.againUsers)},
		{post, usersPath + "/:id/disabled", adminOnly, form(s.accounts.submitDisabled, s.accounts.againUsers)},
		{get, usersPath + "/:id/delete", adminOnly, page(s.accounts.pageDeleteUser)},
		{post, usersPath + "/:id/delete", adminOnly, form(s.accounts.submitDeleteUser, s.accounts.againDeleteUser)},
	}
}

// liveTopics are what a page can follow over its live connection, by address: fragments of the page that has it, folders
// in which something changes, and logs.
func (s *Server) liveTopics() []topic {
	return []topic{
		{"/sandboxes", s.live.live(s.list.openLiveList)},
		{"/sandboxes/:name", s.live.live(s.workspace.openLiveWorkspace)},
		{"/sandboxes/:name/files", s.files.openFolders},
		{volumesPath, s.live.live(s.volumes.openLiveVolumes)},
		{volumesPath + "/:name", s.live.live(s.volumes.openLiveVolumes)},
		{volumesPath + "/:name/files", s.volumeFiles.openFolders},
		{"/sandboxes/:name/services", s.live.live(s.services.openLiveServices)},
		{chatPath + "/:id", s.chat.openChat},
		{"/sandboxes/:name/backups", s.live.live(s.backups.openLiveBackups)},
		{backupsPath, s.live.live(s.backups.openLiveAllBackups)},
		{schedulesPath, s.live.live(s.schedules.openLiveSchedules)},
		{schedulesPath + "/:id", s.live.live(s.schedules.openLiveSchedule)},
		{repositoriesPath, s.live.live(s.repositories.openLiveRepositories)},
		{"/sandboxes/:name/snapshots", s.live.live(s.snapshots.openLiveSnapshots)},
		{triesPath + "/:id", s.live.live(s.trials.openLiveTries)},
		{"/sandboxes/:name/metrics", s.live.live(s.metrics.openLiveMetrics)},
		{"/sandboxes/:name/metrics/points", s.metrics.openPoints},
		{"/templates", s.live.live(s.templates.openLiveTemplates)},
		{logsPath, s.logs.openTail},
		{activityPath, s.activity.openTail},
		{ownLogPath, s.process.openOwnLog},
		{alertsPath, s.live.live(s.alerts.openLiveAlerts)},
		{framePath, s.live.live(openLiveFrame)},
		{hostPath, s.live.live(s.host.openLiveHost)},
		{hostPath + "/points", s.host.openHostPoints},
		{"/templates/:name", s.live.live(s.templates.openLiveTemplate)},
		{"/templates/:name" + updatePart, s.live.live(s.updates.openLiveUpdate)},
	}
}

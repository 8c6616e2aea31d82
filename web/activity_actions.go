package web

import (
	"strings"

	"sandboxd/internal/activity"
	"sandboxd/internal/text"
)

// recording says as what the requests to a route are recorded, or why they are not. API and pages share a line where their paths are the
// same but for apiPrefix.
type recording struct {
	method, path string
	action       activity.Action
	object       object // what it is about besides its sandbox; nil when the handler says it, or nothing does
	not          string // why they are not recorded
}

// object tells from a request what it is about.
type object func(r *request) string

func parameter(name string) object { return func(r *request) string { return r.param(name) } }
func queried(name string) object {
	return func(r *request) string { return strings.Join(r.http.URL.Query()[name], ", ") }
}
func entered(name string) object {
	return func(r *request) string { return text.OneLine(r.form(name), maxEntered) }
}

// maxEntered bounds what is kept of an entry of a form, in bytes: a tried name may be anything.
const maxEntered = 64

// Why requests are not recorded.
const (
	onlyReads    = "it changes nothing"
	onlyWaits    = "it changes only what is sent later, which is recorded"
	onlyNotes    = "it only takes a note off a page"
	howItLooks   = "it changes only how pages look for its user"
	eachOfThem   = "each sandbox that is put to sleep by it is recorded"
	eachByItself = "each sandbox that it is done with is recorded"
	inTheCalls   = "the log of calls of models has it"
	whenItEnds   = "the update is recorded when it has ended"
)

// handsOut are the actions of a GET that is recorded although it opens no session: it gives away all that is in a sandbox.
var handsOut = []activity.Action{"sandbox.backup", "backup.download"}

// recordings are all routes that change something, open a session inside a sandbox, or hand out a backup.
var recordings = []recording{
	{post, setupPath, "account.setup", entered("name"), ""},
	{post, loginPath, "account.login", entered("name"), ""},
	{post, "/logout", "account.logout", nil, ""},
	{post, "/theme", "", nil, howItLooks},
	{put, "/preferences/workspace", "", nil, howItLooks},
	{post, "/filters", "", nil, howItLooks},
	{post, "/filters/delete", "", nil, howItLooks},
	{post, "/many", "", nil, eachByItself},
	{post, "/many/delete", "", nil, onlyReads},
	{post, settingsPath + "/password", "account.password", nil, ""},
	{post, "/tokens", "token.create", nil, ""},
	{del, "/tokens/:id", "token.revoke", parameter("id"), ""},
	{post, tokensPath, "token.create", nil, ""},
	{post, tokensPath + "/:id/revoke", "token.revoke", parameter("id"), ""},
	{post, modelCallsPath + "/*", "", nil, inTheCalls},
	{post, usersPath, "user.add", entered("name"), ""},
	{post, usersPath + "/:id/role", "user.role", nil, ""},
	{post, usersPath + "/:id/disabled", "user.disable", nil, ""},
	{post, usersPath + "/:id/delete", "user.delete", nil, ""},

	{post, "/sandboxes", "sandbox.create", nil, ""},
	{patch, "/sandboxes/:name", "sandbox.change", nil, ""},
	{del, "/sandboxes/:name", "sandbox.delete", nil, ""},
	{post, "/sandboxes/:name/delete", "sandbox.delete", nil, ""},
	{post, "/sandboxes/:name/rename", "sandbox.rename", entered("label"), ""},
	{post, "/sandboxes/:name/start", "sandbox.start", nil, ""},
	{post, "/sandboxes/:name/cancel", "sandbox.delete", nil, ""}, // what there is of it
	{post, "/sandboxes/:name/stop", "sandbox.stop", nil, ""},
	{post, "/sandboxes/:name/restart", "sandbox.restart", nil, ""},
	{post, "/sandboxes/:name/sleep", activity.SandboxSleep, nil, ""},
	{post, "/sandboxes/:name/rest", "sandbox.rest", nil, ""},
	{post, "/sandboxes/:name/size", "sandbox.resize", nil, ""},
	{post, "/sandboxes/:name/holds", "hold.place", nil, ""},
	{put, "/sandboxes/:name/holds/:id", "hold.renew", parameter("id"), ""},
	{del, "/sandboxes/:name/holds/:id", "hold.revoke", parameter("id"), ""},
	{post, "/sandboxes/:name/holds/:id/revoke", "hold.revoke", parameter("id"), ""},
	{post, "/sandboxes/:name/holds/end", "hold.revoke", nil, ""},

	{post, "/sandboxes/:name/exec", "command.run", nil, ""},
	{get, "/sandboxes/:name/exec", "command.run", nil, ""},
	{get, "/sandboxes/:name/ssh", "ssh.open", nil, ""},
	{get, "/sandboxes/:name/ports/:port/tunnel", "tunnel.open", parameter("port"), ""},
	{get, "/sandboxes/:name/terminals/:tab/ws", "terminal.open", parameter("tab"), ""},
	{put, "/sandboxes/:name/terminals/:tab/name", "terminal.name", parameter("tab"), ""},
	{post, "/sandboxes/:name/terminals/:tab/close", "terminal.close", parameter("tab"), ""},

	{put, "/sandboxes/:name/files", "file.write", queried("path"), ""},
	{del, "/sandboxes/:name/files", "file.delete", queried("path"), ""},
	{post, `/sandboxes/:name/files\:mkdir`, "file.mkdir", nil, ""},
	{post, `/sandboxes/:name/files\:move`, "file.move", nil, ""},
	{post, `/sandboxes/:name/files\:copy`, "file.copy", nil, ""},
	{post, `/sandboxes/:name/files\:chmod`, "file.chmod", nil, ""},
	{post, `/sandboxes/:name/files\:search`, "", nil, onlyReads},
	{del, `/sandboxes/:name/files\:trash`, "file.empty-trash", nil, ""},
	{post, `/sandboxes/:name/files\:restore`, "file.restore", nil, ""},

	{get, "/sandboxes/:name/backup", "sandbox.backup", nil, ""},
	{post, "/sandboxes/:name/backups", "sandbox.backup", nil, ""},
	{put, "/sandboxes/:name/restore", "sandbox.restore", queried("backup"), ""},
	{del, "/sandboxes/:name/restore", "sandbox.cancel-restore", nil, ""},
	{post, "/restore", "sandbox.create", nil, ""},
	{get, "/backups/:id/archive", "backup.download", parameter("id"), ""},
	{del, "/backups/:id", "backup.delete", parameter("id"), ""},
	{post, "/sandboxes/:name/restore/cancel", "sandbox.cancel-restore", nil, ""},
	{post, "/sandboxes/:name/restore/dismiss", "", nil, onlyNotes},
	{post, "/backups/:id/restore", "sandbox.restore", parameter("id"), ""},
	{post, "/backups/:id/new", "sandbox.create", nil, ""},
	{post, "/backups/:id/delete", "backup.delete", parameter("id"), ""},

	{post, schedulesPath, "schedule.create", entered("name"), ""},
	{patch, schedulesPath + "/:id", "schedule.change", parameter("id"), ""},
	{post, schedulesPath + "/:id/edit", "schedule.change", parameter("id"), ""},
	{post, schedulesPath + "/:id/switch", "schedule.change", parameter("id"), ""},
	{post, schedulesPath + "/:id/run", "schedule.run", parameter("id"), ""},
	{del, schedulesPath + "/:id", "schedule.delete", parameter("id"), ""},
	{post, schedulesPath + "/:id/delete", "schedule.delete", parameter("id"), ""},

	{post, volumesPath, "volume.create", entered("name"), ""},
	{patch, volumesPath + "/:name", "volume.change", parameter("name"), ""},
	{post, volumesPath + "/:name", "volume.change", parameter("name"), ""},
	{del, volumesPath + "/:name", "volume.delete", parameter("name"), ""},
	{post, volumesPath + "/:name/delete", "volume.delete", parameter("name"), ""},
	{put, "/volumes/:name/files", "file.write", volumePaths, ""},
	{del, "/volumes/:name/files", "file.delete", volumePaths, ""},
	{post, `/volumes/:name/files\:mkdir`, "file.mkdir", nil, ""},
	{post, `/volumes/:name/files\:move`, "file.move", nil, ""},
	{post, `/volumes/:name/files\:copy`, "file.copy", nil, ""},
	{post, `/volumes/:name/files\:chmod`, "file.chmod", nil, ""},
	{post, `/volumes/:name/files\:search`, "", nil, onlyReads},
	{del, `/volumes/:name/files\:trash`, "file.empty-trash", parameter("name"), ""},
	{post, `/volumes/:name/files\:restore`, "file.restore", parameter("name"), ""},

	{put, "/repositories/:name", "repository.connect", parameter("name"), ""},
	{del, "/repositories/:name", "repository.remove", parameter("name"), ""},
	{post, "/repositories/:name/check", "repository.check", parameter("name"), ""},
	{post, repositoriesPath, "repository.connect", entered("name"), ""},
	{post, repositoriesPath + "/:name", "repository.connect", parameter("name"), ""},
	{post, repositoriesPath + "/:name/check", "repository.check", parameter("name"), ""},
	{post, repositoriesPath + "/:name/remove", "repository.remove", parameter("name"), ""},

	{post, "/sandboxes/:name/snapshots", "sandbox.snapshot", nil, ""},
	{post, agentsPath + "/:agent/install", "agent.install", parameter("agent"), ""},
	{del, agentsPath + "/:agent", "agent.remove", parameter("agent"), ""},
	{post, chatPath, "conversation.create", nil, ""},
	{post, chatPath + "/:id/links", "conversation.share", nil, ""},
	{del, chatPath + "/:id/links/:link", "conversation.unshare", nil, ""},
	{post, trialPath, "sandbox.try", nil, ""},
	{post, trialPath + "/:id/keep", "sandbox.keep-try", nil, ""},
	{post, triesPath + "/:id/keep", "sandbox.keep-try", nil, ""},
	{del, trialPath + "/:id", "sandbox.cancel-tries", nil, ""},
	{post, triesPath + "/:id/cancel", "sandbox.cancel-tries", nil, ""},
	{patch, chatPath + "/:id", "conversation.change", nil, ""},
	{del, chatPath + "/:id", "conversation.delete", nil, ""},
	{post, chatPath + "/:id/messages", "conversation.send", nil, ""},
	{put, chatPath + "/:id/queue", "", nil, onlyWaits},
	{post, chatPath + "/:id/queue/:message/now", "conversation.send", nil, ""},
	{post, chatPath + "/:id/approvals/:question", "conversation.answer", nil, ""},
	{post, chatPath + "/:id/cancel", "conversation.cancel", nil, ""},
	{post, chatPath + "/:id/resume", "conversation.resume", nil, ""},
	{post, chatPath + "/:id/branch", "conversation.create", nil, ""},
	{post, chatPath + "/:id/edit", "conversation.send", nil, ""},
	{post, chatPath + "/:id/runs", "conversation.run", nil, ""},
	{post, chatPath + "/:id/runs/:run/cancel", "conversation.cancel-run", nil, ""},
	{post, chatPath + "/:id/turns/:turn/undo", "conversation.undo", nil, ""},
	{post, chatPath + "/:id/turns/:turn/redo", "conversation.redo", nil, ""},
	{patch, "/sandboxes/:name/snapshots/:id", "snapshot.change", nil, ""},
	{post, "/sandboxes/:name/snapshots/:id/edit", "snapshot.change", nil, ""},
	{del, "/sandboxes/:name/snapshots/:id", "snapshot.delete", nil, ""},
	{post, "/sandboxes/:name/snapshots/:id/delete", "snapshot.delete", nil, ""},
	{post, "/sandboxes/:name/snapshots/:id/restore", "sandbox.revert", nil, ""},
	{post, "/sandboxes/:name/snapshots/:id/undo", "sandbox.revert", nil, ""},
	{post, "/sandboxes/:name/snapshots/:id/template", "template.change", entered("name"), ""},
	{post, "/sandboxes/:name/update", "", nil, whenItEnds},
	{post, "/sandboxes/:name/clone", "sandbox.clone", nil, ""},

	{put, "/sandboxes/:name/services", "service.set", nil, ""},
	{del, "/sandboxes/:name/services", "service.reset", nil, ""},
	{post, "/sandboxes/:name/services-reset", "service.reset", nil, ""},
	{post, "/sandboxes/:name/services", "service.add", entered("name"), ""},
	{put, "/sandboxes/:name/services/:service", "service.change", parameter("service"), ""},
	{post, "/sandboxes/:name/services/:service", "service.change", parameter("service"), ""},
	{del, "/sandboxes/:name/services/:service", "service.delete", parameter("service"), ""},
	{post, "/sandboxes/:name/services/:service/delete", "service.delete", parameter("service"), ""},
	{post, "/sandboxes/:name/services/:service/start", "service.start", parameter("service"), ""},
	{post, "/sandboxes/:name/services/:service/stop", "service.stop", parameter("service"), ""},
	{post, "/sandboxes/:name/services/:service/restart", "service.restart", parameter("service"), ""},

	{put, "/sandboxes/:name/ide", "ide.change", nil, ""},
	{post, "/sandboxes/:name/vscode", "ide.change", nil, ""},
	{put, "/sandboxes/:name/ports/:port", "port.visibility", parameter("port"), ""},
	{post, "/sandboxes/:name/ports/:port", "port.visibility", parameter("port"), ""},
	{post, "/sandboxes/:name/ports/:port/shares", "port.share", parameter("port"), ""},
	{del, "/sandboxes/:name/ports/:port/shares/:id", "port.unshare", parameter("port"), ""},
	{post, "/sandboxes/:name/ports/:port/shares/:id/revoke", "port.unshare", parameter("port"), ""},

	{del, "/logs/kept/:id", "log.delete", parameter("id"), ""},
	{post, logsPath + "/kept/:id/delete", "log.delete", parameter("id"), ""},
	{post, "/orphans/:id/adopt", "orphan.adopt", parameter("id"), ""},
	{del, "/orphans/:id", "orphan.remove", parameter("id"), ""},
	{post, "/orphans/:id/remove", "orphan.remove", parameter("id"), ""},
	{post, "/templates/:name/update", "template.update", parameter("name"), ""},
	{post, "/templates/:name/update/cancel", "template.cancel-update", parameter("name"), ""},
	{del, "/templates/:name/update", "template.cancel-update", parameter("name"), ""},
	{post, "/templates/:name/build", "template.build", parameter("name"), ""},
	{post, "/templates/:name/build/cancel", "template.cancel-build", parameter("name"), ""},
	{del, "/templates/:name/build", "template.cancel-build", parameter("name"), ""},
	{post, "/templates/check", "", nil, onlyReads},
	{put, "/templates/:name", "template.change", parameter("name"), ""},
	{put, "/templates/:name/edit", "template.change", parameter("name"), ""},
	{post, "/templates", "template.change", entered("name"), ""},
	{del, "/templates/:name", "template.delete", parameter("name"), ""},
	{post, "/templates/:name/delete", "template.delete", parameter("name"), ""},
	{post, "/templates/new/git", "template.fetch", entered("name"), ""},
	{put, "/templates/:name/source", "template.fetch", parameter("name"), ""},
	{post, "/templates/:name/source", "template.fetch", parameter("name"), ""},
	{put, "/templates/:name/rebuild", "template.schedule", parameter("name"), ""},
	{post, "/templates/:name/rebuild", "template.schedule", parameter("name"), ""},
	{post, "/alerts/:id/mute", "alert.mute", parameter("id"), ""},
	{put, "/alerts/rules", "rule.set", nil, ""},
	{post, alertSettingsPath + "/reset", "rule.reset", nil, ""},
	{post, alertSettingsPath + "/rules", "rule.add", entered("name"), ""},
	{post, alertSettingsPath + "/rules/:id", "rule.change", entered("name"), ""},
	{post, alertSettingsPath + "/rules/:id/switch", "rule.enable", parameter("id"), ""},
	{post, alertSettingsPath + "/rules/:id/mute", "rule.mute", parameter("id"), ""},
	{post, alertSettingsPath + "/rules/:id/delete", "rule.delete", parameter("id"), ""},
	{post, "/alerts/channels", "channel.add", nil, ""},
	{put, "/alerts/channels/:id", "channel.change", parameter("id"), ""},
	{del, "/alerts/channels/:id", "channel.delete", parameter("id"), ""},
	{post, "/alerts/channels/:id/test", "channel.test", parameter("id"), ""},
	{post, alertSettingsPath + "/channels", "channel.add", entered("name"), ""},
	{post, alertSettingsPath + "/channels/:id", "channel.change", entered("name"), ""},
	{post, alertSettingsPath + "/channels/:id/test", "channel.test", parameter("id"), ""},
	{post, alertSettingsPath + "/channels/:id/delete", "channel.delete", parameter("id"), ""},

	{put, "/providers/:name", "provider.set", parameter("name"), ""},
	{del, "/providers/:name", "provider.remove", parameter("name"), ""},
	{post, "/providers/:name/check", "provider.check", parameter("name"), ""},
	{post, providersPath, "provider.set", entered("name"), ""},
	{post, providersPath + "/:name", "provider.set", parameter("name"), ""},
	{post, providersPath + "/:name/check", "provider.check", parameter("name"), ""},
	{post, providersPath + "/:name/models", "provider.set", parameter("name"), ""},
	{post, providersPath + "/:name/delete", "provider.remove", parameter("name"), ""},
	{put, "/models/aliases/:name", "alias.set", aliasName, ""},
	{del, "/models/aliases/:name", "alias.remove", aliasName, ""},
	{post, aliasesPath, "alias.set", entered("name"), ""},
	{post, aliasesPath + "/:name", "alias.set", aliasName, ""},
	{post, aliasesPath + "/:name/delete", "alias.remove", aliasName, ""},
	{put, "/models/budgets", "budget.set", nil, ""},
	{del, "/models/budgets", "budget.remove", nil, ""},
	{post, budgetsPath, "budget.set", nil, ""},
	{post, budgetsPath + "/edit", "budget.set", nil, ""},
	{post, budgetsPath + "/delete", "budget.remove", nil, ""},
	{put, "/models/settings", "models.change", nil, ""},
	{post, modelsPath + "/settings", "models.change", nil, ""},

	{post, hostPath + "/sleep", "host.sleep", nil, eachOfThem},
}

// recordingOf gives the line about a route; ok is false when there is none.
func recordingOf(method, path string) (d recording, ok bool) {
	path = strings.TrimPrefix(path, apiPrefix)
	for _, d := range recordings {
		if d.method == method && d.path == path {
			return d, true
		}
	}
	return recording{}, false
}

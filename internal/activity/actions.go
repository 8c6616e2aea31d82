package activity

// Lost is the Action of an entry that says how many could not be kept.
const Lost Action = "activity.lost"

// What happens in a sandbox without a request for it.
const (
	SandboxWake   Action = "sandbox.wake"
	SandboxFreeze Action = "sandbox.freeze"
	SandboxSleep  Action = "sandbox.sleep"
	SandboxFail   Action = "sandbox.fail"
	SandboxUpdate Action = "sandbox.update"
)

// What ends badly behind a request that has begun it.
const (
	SnapshotFail   Action = "snapshot.fail"
	BackupFail     Action = "backup.fail"
	RepositoryFail Action = "repository.fail"
)

// Known is one of Actions.
type Known struct {
	Action  Action
	Words   string // for people, behind the user's name: "created the sandbox"
	Routine bool   // scripts do it all day: it is summed up from the first repetition on
}

// Actions are all that is recorded, by noun.
var Actions = []Known{
	{"sandbox.create", "created the sandbox", false},
	{"sandbox.change", "changed the sandbox", false},
	{"sandbox.rename", "renamed the sandbox", false},
	{"sandbox.start", "started the sandbox", false},
	{"sandbox.stop", "stopped the sandbox", false},
	{"sandbox.restart", "restarted the sandbox", false},
	{SandboxWake, "woke the sandbox", false},
	{SandboxFreeze, "froze the sandbox", false},
	{SandboxSleep, "put the sandbox to sleep", false},
	{"sandbox.rest", "changed the sleep settings", false},
	{"sandbox.disk", "changed the disk limit", false}, // of earlier versions; now it is a resize
	{"sandbox.resize", "changed the size", false},
	{SandboxFail, "found that the sandbox failed", false},
	{"sandbox.delete", "deleted the sandbox", false},
	{"sandbox.backup", "started a backup of the sandbox", false},
	{"sandbox.restore", "restored the sandbox", false},
	{"sandbox.cancel-restore", "cancelled the restore of the sandbox", false},
	{"sandbox.snapshot", "took a snapshot of the sandbox", false},
	{"agent.install", "installed an agent in the sandbox", false},
	{"agent.remove", "removed an agent from the sandbox", false},
	{"conversation.create", "began the conversation", false},
	{"conversation.change", "changed the conversation", false},
	{"conversation.delete", "deleted the conversation", false},
	{"conversation.send", "sent a message in the conversation", true},
	{"conversation.answer", "answered a question in the conversation", true},
	{"conversation.cancel", "stopped the agent in the conversation", false},
	{"conversation.resume", "resumed the conversation", false},
	{"conversation.run", "ran code of the conversation", true},
	{"conversation.cancel-run", "stopped code of the conversation", false},
	{"conversation.undo", "undid a turn of the conversation", false},
	{"conversation.redo", "redid a turn of the conversation", false},
	{"conversation.share", "made a link to the conversation", false},
	{"conversation.unshare", "revoked a link to the conversation", false},
	{"sandbox.revert", "restored the sandbox to a snapshot", false},
	{"sandbox.clone", "cloned the sandbox", false},
	{"sandbox.try", "had agents try something several times in clones of the sandbox", false},
	{"sandbox.keep-try", "kept a try of the sandbox", false},
	{"sandbox.cancel-tries", "cancelled tries of the sandbox", false},
	{SandboxUpdate, "updated the sandbox to a newer image", false},

	{"snapshot.change", "changed a snapshot of the sandbox", false},
	{"snapshot.delete", "deleted or cancelled a snapshot of the sandbox", false},

	{SnapshotFail, "found that a snapshot of the sandbox could not be taken or used", false},
	{BackupFail, "found that a backup of the sandbox failed", false},
	{"backup.download", "downloaded a backup of the sandbox", true},
	{"backup.delete", "deleted or cancelled a backup of the sandbox", false},

	{"schedule.create", "created a backup schedule", false},
	{"schedule.change", "changed a backup schedule", false},
	{"schedule.run", "started a run of a backup schedule", false},
	{"schedule.delete", "deleted a backup schedule", false},

	{"volume.create", "created a volume", false},
	{"volume.change", "changed a volume", false},
	{"volume.delete", "deleted a volume", false},
	{"repository.connect", "connected a backup repository", false},
	{"repository.remove", "removed a backup repository", false},
	{"repository.check", "started a check of a backup repository", false},
	{RepositoryFail, "found that a backup repository is damaged or cannot be checked", false},

	{"hold.place", "kept the sandbox awake", false},
	{"hold.renew", "kept the sandbox awake for longer", true},
	{"hold.revoke", "let the sandbox rest again", false},

	{"command.run", "ran a command", true},
	{"terminal.open", "opened a terminal", true},
	{"terminal.name", "named a terminal", false},
	{"terminal.close", "closed a terminal", false},
	{"ssh.open", "connected with SSH", true},
	{"tunnel.open", "connected to a port", true},

	{"file.write", "wrote a file", true},
	{"file.mkdir", "made a folder", true},
	{"file.move", "moved files", true},
	{"file.copy", "copied files", true},
	{"file.chmod", "changed the mode of files", true},
	{"file.delete", "deleted files", true},
	{"file.restore", "took files out of the trash", false},
	{"file.empty-trash", "emptied the trash", false},

	{"service.set", "changed all services", false},
	{"service.reset", "reset the services to the template's", false},
	{"service.add", "added a service", false},
	{"service.change", "changed a service", false},
	{"service.delete", "deleted a service", false},
	{"service.start", "started a service", false},
	{"service.stop", "stopped a service", false},
	{"service.restart", "restarted a service", false},

	{"ide.change", "switched VS Code on or off", false},
	{"port.visibility", "changed who may use a port", false},
	{"port.share", "shared a port", false},
	{"port.unshare", "ended a share of a port", false},

	{"log.delete", "deleted the log of a deleted sandbox", false},
	{"orphan.adopt", "adopted a sandbox without a record", false},
	{"orphan.remove", "removed a sandbox without a record", false},
	{"template.build", "built the image of a template", false},
	{"template.cancel-build", "cancelled the build of a template's image", false},
	{"template.update", "began to update the sandboxes of a template", false},
	{"template.cancel-update", "cancelled the update of the sandboxes of a template", false},
	{"template.change", "created or changed a template", false},
	{"template.delete", "deleted a template", false},
	{"template.fetch", "set the git repository of a template", false},
	{"template.schedule", "changed when a template is rebuilt", false},
	{"host.sleep", "put unused sandboxes to sleep", false},

	{"alert.mute", "muted an alert", false},
	{"alert.unmute", "unmuted an alert", false},
	{"rule.set", "set all alert rules", false},
	{"rule.reset", "reset the alert rules", false},
	{"rule.add", "added an alert rule", false},
	{"rule.change", "changed an alert rule", false},
	{"rule.enable", "turned on an alert rule", false},
	{"rule.disable", "turned off an alert rule", false},
	{"rule.mute", "muted an alert rule", false},
	{"rule.unmute", "unmuted an alert rule", false},
	{"rule.delete", "deleted an alert rule", false},
	{"channel.add", "added an alert channel", false},
	{"channel.change", "changed an alert channel", false},
	{"channel.test", "tested an alert channel", false},
	{"channel.delete", "deleted an alert channel", false},

	{"provider.set", "added or changed a provider of models", false},
	{"provider.remove", "deleted a provider of models", false},
	{"provider.check", "checked a provider of models", false},
	{"alias.set", "added or changed a model alias", false},
	{"alias.remove", "deleted a model alias", false},
	{"budget.set", "added or changed a budget for models", false},
	{"budget.remove", "deleted a budget for models", false},
	{"models.change", "changed the settings of models", false},

	{"account.setup", "created the first admin", false},
	{"account.login", "signed in", false},
	{"account.logout", "signed out", false},
	{"account.password", "changed their password", false},
	{"token.create", "created an API token", false},
	{"token.revoke", "revoked an API token", false},
	{"user.add", "added a user", false},
	{"user.role", "changed a user's role", false},
	{"user.disable", "disabled or enabled a user", false},
	{"user.delete", "deleted a user", false},

	{Lost, "lost entries of this log", false},
}

var known = func() map[Action]Known {
	m := make(map[Action]Known, len(Actions))
	for _, k := range Actions {
		m[k.Action] = k
	}
	return m
}()

// Known reports whether a is in Actions.
func (a Action) Known() bool { return known[a].Action != "" }

// Words says for people what was done; an Action that is not in Actions says itself.
func (a Action) Words() string {
	if k := known[a]; k.Action != "" {
		return k.Words
	}
	return string(a)
}

// Routine reports whether scripts do it all day.
func (a Action) Routine() bool { return known[a].Routine }

// Command sandboxd serves named sandboxes on a machine of your own: a dashboard, an API, a subdomain for each.
//
// This package wires the parts together and holds no rule of the product. A tour, from the outside in:
//
//   - cmd_serve.go is the process: what lives, in one errgroup, and how it ends. app.go puts the parts together,
//     config.go says what can be configured.
//   - web serves pages and API (routes.go and routes_backups.go list every path), internal/proxy the sandboxes' own hosts; seams.go here
//     tells the two apart by internal/hostname.
//   - internal/sandbox is the heart: Manager is the one writer, Store and Runtime are its ports. Start with
//     manager.go, which lists the type of each step, then create.go, power.go, rest.go, delete.go and reconcile.go.
//   - internal/sqlite keeps intent, internal/docker asks the engine; nobody else imports their drivers.
//   - internal/link talks to the guest (cmd/guest, internal/guest) that runs in every sandbox; internal/wire is their
//     language; internal/access is how everybody else gets a link.
//   - internal/terminal and internal/exec are what people and programs do inside; internal/files is their files,
//     internal/services keeps programs running, internal/ide is VS Code.
//   - internal/sshd terminates SSH for every sandbox and internal/tunnel leads to ports; the commands for anywhere (cmd_ssh.go,
//     cmd_exec.go, cmd_cp.go, cmd_forward.go, cmd_logs.go) ask a server through internal/client.
//   - internal/visibility says which of a sandbox's ports are shared or public; internal/proxy is where that counts.
//   - internal/activity keeps who did what: web's activity_actions.go says which requests, and activity.go here what else.
//   - internal/backup keeps homes as archives, internal/schedule makes those at set times, and internal/snapshot keeps copies on the engine.
//     internal/update puts sandboxes on newer images, with a snapshot to go back to.
//     internal/repository knows the other places for archives, and internal/kopia works on them, in a process of its own (cmd_kopia.go).
//   - internal/serverbackup seals what the server itself knows; data_folder.go here lists what that is. internal/sqlite copies the database
//     before an upgrade (upgrade.go) and puts it back (rollback.go).
//   - internal/volume knows the folders that several sandboxes have; internal/docker mounts them, and runs a guest that serves their files.
//   - internal/catalog reads templates and keeps their images built; internal/template keeps those that are made in the dashboard or fetched by
//     internal/git, rebuilds images at set times (internal/cron) and keeps the record of builds. internal/auth knows users and credentials.
//   - internal/gateway gives models to what runs in sandboxes, over their links (models.go here): keys, names, budgets, the log of calls.
//   - internal/chat keeps conversations with agents, internal/chat/loop drives sandboxd's own agent (chat.go here): a turn of internal/agent,
//     with a driver for each protocol, and the operations of internal/tools. internal/coderun finds the code that messages
//     ask to run. static/chat is the pane.
//
// Invariant: everything that lives is started in serve and waited for there.
package main

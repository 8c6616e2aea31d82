// Package alert watches what sandboxes and their host do, by rules, and tells people when something is wrong and when it is well
// again.
//
// It measures nothing itself and sends nothing itself: Sources say how things stand, and a Sender of each kind of channel carries
// a Message away. It knows no HTTP, no SMTP and no SQL.
//
// Invariant: an alert is pending, then firing, then resolved, and never goes back. Each firing and each resolve is in one message to
// each channel of its rule, unless it was muted then; a message that was queued is sent or given up, also over a restart, and which
// of the two is on record. Nobody sees an alert about a sandbox that they may not see.
package alert

import (
	"time"
)

// Kind is what a rule watches.
type Kind string

// The kinds. The meaning of a rule's Threshold is in brackets.
const (
	ServiceDown Kind = "service-down" // a service is unhealthy, or is restarted again and again
	Memory      Kind = "memory"       // use of the memory limit [percent]
	OOMKill     Kind = "oom-kill"     // a process was killed for want of memory
	HomeSize    Kind = "home-size"    // size of the home [GiB]
	Broken      Kind = "broken"       // a create, start or wake failed
	BuildFailed Kind = "build-failed" // the image of a template could not be built
	HostDisk    Kind = "host-disk"    // the host's disk, or the storage pool, is used to [percent], or the pool is read-only
	HostMemory  Kind = "host-memory"  // the host's memory is used to [percent]
	Certificate Kind = "certificate"  // the dashboard's certificate expires within [days]
	LogLine     Kind = "log-line"     // a line of a log matches Pattern [times within five minutes]

	BackupFailed Kind = "backup-failed" // the last run of a schedule made no backup of a sandbox
	BackupMissed Kind = "backup-missed" // a schedule did not run when it was due, or no run was good at two due times
	BackupTest   Kind = "backup-test"   // the last test of a schedule could not restore a backup
)

// Rule says what is watched and who is told.
type Rule struct {
	ID    string
	Owner string // user id; "" for a rule of the installation, which admins keep and which watches all sandboxes and the host
	Name  string // for people
	Kind  Kind

	SandboxID string // only this sandbox; "" for all
	Template  string // only sandboxes of this template; "" for all

	Threshold float64       // see Kind
	Pattern   string        // of LogLine: text as the search of logs takes it
	For       time.Duration // how long it must last before it fires; 0 for at once
	Remind    time.Duration // between two reminders while it fires; 0 for none
	Disabled  bool
	Muted     time.Time // no messages until then; zero for not muted
	Channels  []string  // ids of the channels that are told; none for the pages alone
}

// State is where an alert stands.
type State string

// The states, in their order.
const (
	Pending  State = "pending" // it is so, but not for long enough yet; such an alert is in memory alone
	Firing   State = "firing"
	Resolved State = "resolved"
)

// Target is what an alert is about: a sandbox, a template or the host. Its fields together tell alerts of one rule apart.
type Target struct {
	SandboxID string // "" for what is about none
	Sandbox   string // its name
	Owner     string // user id of the sandbox's owner
	Template  string // of the sandbox, or the template itself
	Part      string // a service's name, for example
}

// Alert is one thing that is or was wrong.
type Alert struct {
	ID     string
	RuleID string
	Rule   string // the rule's name at that time
	Owner  string // the rule's
	Kind   Kind
	Target Target
	State  State
	Text   string // how it stands, or stood last: "uses 96 % of its 512 MiB"

	Since    time.Time // from when on it was so
	Fired    time.Time // zero before it fired
	Resolved time.Time // zero before it was resolved
	Reminded time.Time // when the last message about it was queued; zero for none
	Muted    time.Time // no messages about it until then
}

// ChannelKind is how a channel carries messages.
type ChannelKind string

// The kinds of channels.
const (
	Email    ChannelKind = "email"
	Webhook  ChannelKind = "webhook"  // Standard Webhooks
	Shoutrrr ChannelKind = "shoutrrr" // chat services, by the address of that library; for admins only
)

// Channel is where messages go.
type Channel struct {
	ID      string
	Owner   string // user id; "" for one of the installation, which admins keep
	Name    string // for people
	Kind    ChannelKind
	Address string // e-mail address, or URL. That of Shoutrrr is a secret.
	Secret  string // of Webhook: signs what is sent ("whsec_…")
}

// Message is what people are told at once: one or several alerts of one rule.
type Message struct {
	ID       string // the same each time that it is tried, so that a receiver can tell
	Time     time.Time
	Subject  string // one line, without controls: "3 sandboxes: memory nearly full"
	Rule     string // the rule's name
	Kind     Kind
	Event    Event
	Firing   []Alert // that fire now, or still
	Resolved []Alert
	Link     string // to the page of alerts
}

// Event is why a message is sent.
type Event string

// The events.
const (
	Fired    Event = "firing"
	Ended    Event = "resolved"
	Reminder Event = "reminder" // still firing
	Test     Event = "test"     // a user pressed the button
	Held     Event = "held"     // there were too many messages for the channel; Subject says how many were not sent
)

// Delivery is one message on its way to one channel, or its end.
type Delivery struct {
	ID       string
	Channel  string // its id
	Message  Message
	Created  time.Time
	Next     time.Time // of the next try; zero once it is over
	Attempts int
	Sent     time.Time // zero until it was taken
	GivenUp  bool
	Problem  string // of the last try; "" when it was taken
}

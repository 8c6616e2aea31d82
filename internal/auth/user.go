// Package auth identifies people and programs and says what they may use: users, passwords, browser sessions,
// API tokens and one-time codes.
//
// It knows nothing about HTTP: cookies, headers and redirects are web's and proxy's.
//
// There are four credentials, each good in one place only. A password opens a dashboard session. A dashboard session's
// secret, in a cookie, is good at the dashboard. It buys one-time codes, each of which opens a session at one sandbox
// host for the browser that holds the nonce. An API token is good at the API and, as a bearer, at sandbox hosts. All
// are looked up anew at each question, so that what is revoked, by whatever process, is refused at once.
//
// Invariant: no secret is kept in the clear, and comparing one takes the same time whether it is right or wrong.
package auth

import "time"

// Role is what a user may do.
type Role string

// The roles.
const (
	Admin  Role = "admin"  // everything, also other people's sandboxes, users and templates
	Member Role = "member" // their own sandboxes
)

// User is a person with an account. It is a value.
type User struct {
	ID       string
	Name     string
	Role     Role
	Claimed  bool // has a password; the first admin is unclaimed until the setup link is used
	Disabled bool
	Created  time.Time
}

// Token is an API token without its secret.
type Token struct {
	ID        string
	User      string // user id
	Name      string
	Sandbox   string // name of the one sandbox that it is limited to, or ""
	SandboxID string // its id: another sandbox of the name later is another one
	Models    bool   // it is good for asking models and for nothing else
	Prefix    string // the first characters of the secret, to tell tokens apart
	Created   time.Time
	LastUsed  time.Time // zero if never; exact to the minute
	Expires   time.Time // zero if never
}

// Session is a browser's session without its secret. Host is "" for the dashboard's own; a host session is good at
// that one host of that one sandbox only and ends with its Parent.
type Session struct {
	ID        string
	User      string // user id
	Host      string
	SandboxID string // for a host session
	Parent    string // the dashboard session's id, for a host session
	From      string // the address that it was opened from, as the caller gave it
	Stay      bool   // the user asked to stay signed in
	Created   time.Time
	Seen      time.Time // last use, exact to some minutes
	Expires   time.Time // unless it is used before
}

// Principal is who asks: a user in a browser session, or a program with a token of that user's.
type Principal struct {
	User      User
	Session   string // session id, or "" for a token
	Stay      bool   // its user asked to stay signed in
	Token     string // token id, or "" for a browser session
	TokenName string // for people to read
	Sandbox   string // name of the one sandbox that the token or the host session is limited to, or ""; for people to read
	SandboxID string // its id, which is what counts
	Models    bool   // the token is good for asking models and for nothing else; Authenticate gives none
}

// LimitedToken reports whether p has come with a token for one sandbox alone.
func (p Principal) LimitedToken() bool { return p.Token != "" && p.SandboxID != "" }

// May reports whether p may see and use the sandbox with that id, which belongs to owner (a user id).
func (p Principal) May(owner, sandboxID string) bool {
	if p.SandboxID != "" && p.SandboxID != sandboxID {
		return false
	}
	return p.User.Role == Admin || p.User.ID == owner
}

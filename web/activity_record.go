package web

import (
	"cmp"
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/gorilla/websocket"
	"github.com/labstack/echo/v4"

	"sandboxd/internal/activity"
	"sandboxd/internal/auth"
	"sandboxd/internal/exec"
	"sandboxd/internal/sandbox"
)

// note is what handlers tell of a request, so that it can be recorded.
type note struct {
	action  activity.Action // as which it is recorded, which a handler may say more exactly; "" when it is not
	about   sandbox.Sandbox // that it is about
	object  string          // what else it is about: no secret, and no content
	as      auth.User       // who has signed in by it
	ofAll   bool            // it is about a rule or a channel of the installation
	problem error           // with which a form is shown again
	failed  bool            // problem is no refusal, whatever its kind: what was asked for was tried
	begun   func()          // of a websocket: it has begun
	tells   bool            // its handler says when it has begun, as that needs its first message
}

// begins notes that a websocket has begun.
func (n *note) begins() {
	if n.begun != nil {
		n.begun()
	}
}

// callerOf is who asks, for what is done under the request's context.
func callerOf(r *request) activity.Caller {
	c := activity.Caller{
		UserID: r.who.User.ID, User: r.who.User.Name, Token: r.who.Token, Via: activity.Page, From: r.from, Request: r.id, Action: r.action,
	}
	switch {
	case r.action == "ssh.open":
		c.Via = activity.SSH
	case r.access == token || r.access == tokenWide || r.access == tokenAdmin:
		c.Via = activity.API
	}
	return c
}

// signsIn are the actions by which a caller who is not known yet becomes known.
var signsIn = []activity.Action{"account.setup", "account.login"}

// record adds an entry for each request to a route, at the response's end, or at the begin of a websocket. A GET that is neither one nor
// in handsOut only looks. What an unknown caller asks
// for is refused, and not recorded, so that nobody fills the log from outside; only attempts to sign in are.
func (s *activityHandlers) record(to route) echo.MiddlewareFunc {
	d, ok := recordingOf(to.method, to.path)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		if !ok || d.action == "" {
			return next
		}
		return func(c echo.Context) error {
			r := requestOf(c)
			if to.method == http.MethodGet && !websocket.IsWebSocketUpgrade(r.http) && (r.wantsHead() || !slices.Contains(handsOut, d.action)) {
				return next(c)
			}
			r.action = d.action
			if d.not != "" {
				return next(c)
			}
			told := false
			r.begun = func() { told = true; s.addEntry(r, d, nil) }
			err := rescued(func() error { return next(c) })
			if !told {
				s.addEntry(requestOf(c), d, cmp.Or(err, r.problem))
			}
			return err
		}
	}
}

// addEntry records how a request ended.
func (s *activityHandlers) addEntry(r *request, d recording, err error) {
	who := callerOf(r)
	if r.as.ID != "" {
		who.UserID, who.User = r.as.ID, r.as.Name
	}
	if who.UserID == "" && !slices.Contains(signsIn, d.action) {
		return
	}
	e := who.Entry(r.action)
	if err != nil {
		e.Outcome, e.Problem = outcomeOf(r, err)
	}
	e.SandboxID, e.Sandbox, e.Owner, e.Object = r.about.ID, r.about.Name, r.about.Owner, r.object
	if e.Sandbox == "" && strings.HasPrefix(d.path, "/sandboxes/:name") { // one that there is not, or not for this caller
		e.Sandbox = r.param("name")
	}
	if e.Object == "" && d.object != nil {
		e.Object = d.object(r)
	}
	if r.ofAll {
		e.Object = strings.TrimSpace(e.Object + " (installation)")
	}
	s.cfg.Activity.Add(e)
}

// outcomeOf says what has become of a request that ended with err, and what its caller was told.
func outcomeOf(r *request, err error) (activity.Outcome, string) {
	p := problemFor(r, err)
	if r.failed || p.Status >= http.StatusInternalServerError || p.Status == statusLeft || p.Code == sandboxFailed {
		return activity.Failed, p.Detail
	}
	return activity.Refused, p.Detail
}

// objectUser has a request be about a user.
func (s *accountHandlers) objectUser(ctx context.Context, r *request, more ...string) {
	if u, err := s.cfg.Accounts.User(ctx, r.param("id")); err == nil { // else the handler says what is wrong
		r.object = strings.Join(append([]string{u.Name}, more...), " ")
	}
}

// onOff is what a switch was turned to.
var onOff = map[bool]string{true: "on", false: "off"}

// programName is what the name of a program looks like.
var programName = regexp.MustCompile(`^[\w./+-]{1,64}$`)

// quoted are the signs with which a word may go on over spaces.
const quoted = "'\"`\\$("

// program is the name of the program that a command runs. What follows may hold secrets, as may variables before it: with quotes in
// those it is not told.
func program(command []string) string {
	line, ok := exec.ShellLine(command)
	if ok {
		command = strings.Fields(line)
	}
	for _, word := range command {
		if ok && strings.Contains(word, "=") {
			if strings.ContainsAny(word, quoted) {
				return ""
			}
			continue
		}
		return programName.FindString(word)
	}
	return ""
}

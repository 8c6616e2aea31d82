package proxy

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
)

// responder writes the answers that sandboxd itself gives at a sandbox's host.
type responder struct {
	*request
	w         http.ResponseWriter
	sandboxes Sandboxes
	log       *slog.Logger
}

// dashboard links to the page of the sandbox called name in the dashboard, or to the list.
func (q *request) dashboard(text, name string) link {
	url := q.hosts.DashboardURL() + "/"
	if name != "" {
		url += "sandboxes/" + name
	}
	return link{text, url}
}

// here links to the requested address, always at this host.
func (q *request) here(text string) link {
	at := url.URL{Scheme: q.hosts.Scheme, Host: q.outsideHost(), Path: q.r.URL.Path, RawPath: q.r.URL.RawPath, RawQuery: q.r.URL.RawQuery}
	return link{text, at.String()}
}

// unknown is the same for a sandbox that does not exist, was deleted, or belongs to another user.
func (a *responder) unknown() notice {
	return notice{Status: http.StatusNotFound, Code: fault.NotFound.String(), Title: "No such sandbox",
		Text: "There is no sandbox at this address, or it is not yours.", Links: []link{a.dashboard("All sandboxes", "")}}
}

// closedNotice explains why a sandbox in its present state cannot be used, if so.
func (a *responder) closedNotice(sb sandbox.Sandbox) (notice, bool) {
	if sb.State == sandbox.Running && a.target.Kind != hostname.IDE { // most requests
		return notice{}, false
	}
	state := sb.State
	if state != sandbox.Deleting && a.sandboxes.Starts(sb.ID) {
		state = sandbox.Starting
	}
	name := a.target.Name
	n := notice{Status: http.StatusServiceUnavailable, Code: string(sb.State), Links: []link{a.dashboard("Open in the dashboard", name)}}
	switch state {
	case sandbox.Stopping, sandbox.Stopped:
		n.Code = string(sandbox.Stopped)
		n.Title, n.Text = name+" is stopped", "Its owner has stopped it, so opening it does not start it."
		n.Hint, n.Links[0].Text = "Start it in the dashboard or through the API.", "Start it in the dashboard"
	case sandbox.Failed:
		n.Title, n.Text = name+" has failed", sb.Problem
		if n.Text == "" || a.who.outside() { // the problem may name what is in it
			n.Text = "It could not be started."
		}
		n.Hint = "It can be started again in the dashboard."
	case sandbox.Deleting:
		n = notice{Status: http.StatusGone, Code: string(sandbox.Deleting), Title: name + " is being deleted",
			Text: "It will not come back.", Links: []link{a.dashboard("All sandboxes", "")}}
	default:
		if a.target.Kind == hostname.IDE && !a.sandboxes.OffersIDE(sb) {
			return a.noIDE(errOff), true
		}
		return notice{}, false
	}
	return n, true
}

// methodRefused says that a method is not allowed. The text begins with what, such as "This address does".
func methodRefused(what, method string) notice {
	return notice{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Title: "Not possible",
		Text: fmt.Sprintf("%s not support %.32s.", what, method)}
}

func (a *responder) nothingListens(port string) notice {
	if a.who.outside() {
		return notice{Status: http.StatusBadGateway, Code: "nothing_listens", Refresh: true, Title: "Nothing is served here now",
			Text: "The sandbox is awake, but the program that answers at this address is not running."}
	}
	return notice{Status: http.StatusBadGateway, Code: "nothing_listens", Refresh: true,
		Title:  fmt.Sprintf("Nothing is listening on port %s in %s", port, a.target.Name),
		Text:   "Start a program there that serves this port, on any address, including 127.0.0.1.",
		Hint:   "For example, in the terminal:",
		Sample: "python3 -m http.server " + port,
		Links:  []link{{"Open the terminal", a.hosts.TerminalURL(a.target.Name)}, a.dashboard("Dashboard", a.target.Name)}}
}

func (a *responder) badAnswer() notice {
	return notice{Status: http.StatusBadGateway, Code: "bad_answer", Title: "No proper answer from " + a.target.Name,
		Text:  "The program there hung up, or does not speak plain HTTP.",
		Links: []link{{"Open the terminal", a.hosts.TerminalURL(a.target.Name)}, a.dashboard("Dashboard", a.target.Name)}}
}

// badBody answers a request whose body cannot be read, which is not the sandbox's fault.
var badBody = notice{Status: http.StatusBadRequest, Code: fault.Invalid.String(), Title: "Bad request",
	Text: "The request's body is not sent as HTTP has it, or was cut off."}

// refuse answers with an error of the domain. Only unclassified errors are logged.
func (a *responder) refuse(err error) {
	kind := fault.KindOf(err)
	n := notice{Code: kind.String(), Text: fault.Message(err), Retry: int(fault.RetryAfter(err).Seconds()), Links: []link{a.dashboard("Dashboard", a.target.Name)}}
	switch kind {
	case fault.NotFound:
		n = a.unknown()
	case fault.Gone:
		n.Status, n.Title, n.Links = http.StatusGone, a.target.Name+" has been deleted", []link{a.dashboard("All sandboxes", "")}
	case fault.Forbidden:
		n.Status, n.Title = http.StatusForbidden, "Refused"
	case fault.Conflict:
		n.Status, n.Title = http.StatusServiceUnavailable, a.target.Name+" cannot be used now"
		if errors.Is(err, auth.ErrMixed) {
			n.Status, n.Title = http.StatusConflict, "Sign in again"
			hostname.ForgetCookie(a.w.Header(), cookieName(a.hosts, hostCookie), a.hosts.Host(a.target), a.r.URL.EscapedPath())
		}
	case fault.Unavailable:
		n.Status, n.Title, n.Refresh = http.StatusServiceUnavailable, a.target.Name+" does not answer", true
	case fault.Timeout:
		n.Status, n.Title = http.StatusGatewayTimeout, a.target.Name+" takes too long"
	case fault.Limited:
		n.Status, n.Title, n.Refresh = http.StatusTooManyRequests, "Too many requests", a.target.Kind != hostname.Terminal
	default:
		n.Status, n.Title = http.StatusInternalServerError, "Something went wrong"
		a.log.Error("serve sandbox host", "sandbox", a.target.Name, "path", a.r.URL.Path, "err", err)
	}
	a.show(n)
}

// misdirected answers for a host that is no sandbox's. Under our own domain it is a mistyped name; any other was pointed at us by
// foreign DNS and learns nothing.
func (a *responder) misdirected() {
	host, _, _ := strings.Cut(strings.ToLower(a.r.Host), ":")
	if strings.HasSuffix(strings.TrimSuffix(host, "."), "."+a.hosts.Domain) {
		a.show(a.unknown())
		return
	}
	http.Error(a.w, "This host is not served here.", http.StatusMisdirectedRequest)
}

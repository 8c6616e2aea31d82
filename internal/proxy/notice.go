package proxy

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the notice's files
	"encoding/base64"
	"encoding/json"
	"html/template"
	"net/http"
	"strconv"
	"strings"

	"sandboxd/internal/hostname"
)

// notice is an answer of our own in place of the sandbox's: a page for a person, a problem document with the same content for a
// program.
type notice struct {
	Status  int
	Code    string // stable, for programs
	Title   string
	Text    string // what happened, in whole sentences
	Hint    string // what to do next
	Sample  string // a command that would help
	Links   []link
	Refresh bool // it will pass: the page reloads by itself, a program may try again
	Waits   bool // the sandbox is starting: the page polls, and loads the address when it is ready
	Retry   int  // seconds after which a program may try again; retrySeconds without it
}

type link struct{ Text, URL string }

// toOrigin reports whether the link is to a web origin.
func (l link) toOrigin(origin string) bool { return strings.HasPrefix(l.URL, origin+"/") }

// retrySeconds is when a program may try again.
const retrySeconds = 2

// noticeHeader has the code of the notice that an address shows now, for the notice's script.
const noticeHeader = "Sandboxd-Notice"

// scriptPath is where the notice's script is served, so that its policy needs no inline script.
const scriptPath = hostname.OwnPath + "/notice.js"

var (
	//go:embed assets/notice.html
	noticeHTML string
	//go:embed assets/notice.css
	noticeCSS string
	//go:embed assets/notice.js
	noticeJS []byte

	noticePage  = template.Must(template.New("notice").Parse(noticeHTML))
	noticeStyle = template.CSS(noticeCSS) // our own file
	styleHash   = hashSource(noticeCSS)
)

func hashSource(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// show answers with the notice.
func (a *responder) show(n notice) {
	n = a.forOutsider(n)
	h := a.w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Vary", "Accept")
	h.Set(noticeHeader, n.Code)
	if n.Refresh && n.Retry == 0 {
		n.Retry = retrySeconds
	}
	if n.Retry > 0 {
		h.Set("Retry-After", strconv.Itoa(n.Retry))
	}
	if acceptsHTML(a.r) && !isUpgrade(a.r) {
		a.showPage(n)
		return
	}
	a.showProblem(n)
}

func (a *responder) showPage(n notice) {
	a.page(n.Status, noticePage, struct {
		notice
		Name, Script, Wait string
		Style              template.CSS
	}{n, a.target.Name, scriptPath, waitPath, noticeStyle},
		"style-src "+styleHash+"; script-src 'self'; connect-src 'self'; frame-ancestors 'self' "+a.hosts.DashboardURL())
}

// page answers with a page of our own, which may load what policy says and nothing else.
func (a *responder) page(status int, t *template.Template, data any, policy string) {
	var page bytes.Buffer
	if err := t.Execute(&page, data); err != nil { // our own template and plain values
		panic(err)
	}
	h := a.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; "+policy)
	a.write(status, page.Bytes())
}

// showProblem writes an RFC 9457 document, with the fields that the API's have.
func (a *responder) showProblem(n notice) {
	body, err := json.Marshal(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
		Code   string `json:"code"`
		Hint   string `json:"hint,omitempty"`
	}{"about:blank", http.StatusText(n.Status), n.Status, n.Title + ". " + n.Text, n.Code, strings.TrimSpace(n.Hint + " " + n.Sample)})
	if err != nil { // strings and a number
		panic(err)
	}
	a.w.Header().Set("Content-Type", "application/problem+json")
	a.write(n.Status, append(body, '\n'))
}

// write sends an answer of our own. It fails only when the client has gone, which is no matter.
func (a *responder) write(status int, body []byte) {
	a.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	a.w.WriteHeader(status)
	if a.r.Method != http.MethodHead {
		_, _ = a.w.Write(body)
	}
}

func (a *responder) serveScript() {
	h := a.w.Header()
	h.Set("Content-Type", "text/javascript; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "public, max-age=300")
	a.write(http.StatusOK, noticeJS)
}

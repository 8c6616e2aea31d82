package tools

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/idle"
	"sandboxd/internal/text"
	"sandboxd/internal/tools/browser"
)

// BrowserService is the service of a sandbox that is its browser.
const BrowserService = "browser"

// pageText is the tool of the browser's server that describes the page.
const pageText = "browser_snapshot"

const (
	browserStart = 30 * time.Second // that its server may take to listen
	startEvery   = 100 * time.Millisecond
	leaveLimit   = 5 * time.Second
	maxSeen      = 1 << 20 // bytes of a page that are remembered
)

// port is that of the browser of the seat's sandbox; 0 when it has none.
func (t pages) port() int {
	declared := t.cfg.Services.Declared(t.seat.Handle.Sandbox())
	i := slices.IndexFunc(declared, func(s catalog.Service) bool { return s.Name == BrowserService })
	if i < 0 {
		return 0
	}
	return declared[i].Port
}

// page is the browser of a seat, and what it has told of the page that is open. Safe for concurrent use.
type page struct {
	mu      sync.Mutex
	session *browser.Session // nil before the first call
	close   func(ctx context.Context)
	address string
	seen    string
}

// of gives the browser behind a port.
func (p *page) of(h access.Handle, port int) *browser.Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == nil {
		session := browser.NewSession(fmt.Sprintf("localhost:%d", port))
		p.session = session
		p.close = func(ctx context.Context) {
			inside, ok := h.OpenNow(idle.Use{Kind: idle.Exec, Detail: "close the browser"})
			if !ok {
				return // it has ended with its sandbox
			}
			defer inside.Release()
			session.Close(ctx, func(ctx context.Context) (net.Conn, error) { return inside.Guest.DialPort(ctx, port) })
		}
	}
	return p.session
}

// pageAddress is the line of the browser's own that says where a page is from.
var pageAddress = regexp.MustCompile(`(?m)^- Page URL: (.*)$`)

// sees remembers what the browser says of its page. told is an answer that describes the page alone: in others the page itself has a say.
func (p *page) sees(told string) {
	head, seen, ok := strings.Cut("\n"+told, "\n### Snapshot\n")
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := pageAddress.FindStringSubmatch(head); m != nil {
		p.address = strings.Clone(m[1][:min(len(m[1]), maxURL)]) // what is kept keeps no more than itself
	}
	if ok {
		p.seen = strings.Clone(seen[:min(len(seen), maxSeen)])
	}
}

// pageLine is a line of a page's text that describes an element: its role, its name and its marks. What follows is the page's own words,
// which may look like marks.
var pageLine = regexp.MustCompile(`^\s*- '?[a-z]+(?: (?:"(?:[^"\\]|\\.)*"|/(?:[^/\\]|\\.)*/))?((?: \[[^\]]*\])*)`)

// find gives the address of the page, and the line of it that describes the element with a ref; "" for what is not known.
func (p *page) find(ref string) (address, line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for line := range strings.Lines(p.seen) {
		if m := pageLine.FindStringSubmatch(line); m != nil && strings.Contains(m[1], "[ref="+ref+"]") {
			return p.address, text.OneLine(strings.TrimPrefix(strings.TrimSpace(line), "- "), 300)
		}
	}
	return p.address, ""
}

// browse has the browser do something, and starts its server when it does not run.
func (t pages) browse(ctx context.Context, tool string, args map[string]any) (browser.Answer, error) {
	if args == nil {
		args = map[string]any{}
	}
	port := t.port()
	if port == 0 {
		return browser.Answer{}, fault.New(fault.NotFound, "This sandbox has no browser. Create one from the template Browser.")
	}
	inside, err := t.seat.Handle.Open(ctx, idle.Use{Kind: idle.Exec, Detail: "browser"})
	if err != nil {
		return browser.Answer{}, err
	}
	defer inside.Release()
	a, err := t.desk.page.of(t.seat.Handle, port).Call(ctx, func(ctx context.Context) (net.Conn, error) { return t.reach(ctx, inside, port) }, tool, args)
	if err == nil && tool == pageText {
		t.desk.page.sees(a.Text)
	}
	return a, err
}

// reach connects to the browser's server.
func (t pages) reach(ctx context.Context, inside *access.Session, port int) (net.Conn, error) {
	conn, err := inside.Guest.DialPort(ctx, port)
	if !fault.Is(err, fault.NotFound) {
		return conn, err
	}
	if _, err := t.cfg.Services.Start(ctx, t.seat.Handle, BrowserService); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, browserStart, fault.New(fault.Unavailable, "The browser does not start. Look at its log with service_log, service %q.", BrowserService))
	defer cancel()
	for tick := time.Tick(startEvery); ; {
		conn, err := inside.Guest.DialPort(ctx, port)
		if !fault.Is(err, fault.NotFound) {
			return conn, err
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// told makes an answer a result, with at most so many bytes of text. What is no picture that models take is left out, and said.
func (t pages) told(a browser.Answer, most int) Result {
	r := Result{Text: shorten(plain(a.Text), most), Failed: a.Failed}
	if a.Anew {
		r.Text = "[The browser was started anew. What was open before is gone.]\n" + r.Text
	}
	for _, b := range a.Pictures {
		if mime := pictureType(b); mime == "" || len(b) > maxPicture {
			r.Text += fmt.Sprintf("\n[A picture was left out: it is too large, or none that you can see: %s.]", text.Size(int64(len(b))))
		} else {
			r.Images = append(r.Images, Image{MIME: mime, Bytes: b})
		}
	}
	return r
}

// leavePage closes the browser of a desk, if its sandbox runs. It does not wait.
func (s *Service) leavePage(d *desk) {
	d.page.mu.Lock()
	end := d.page.close
	d.page.mu.Unlock()
	if end == nil || !s.enter() {
		return
	}
	go func() {
		defer s.work.Done()
		ctx, cancel := context.WithTimeout(s.life, leaveLimit)
		defer cancel()
		end(ctx)
	}()
}

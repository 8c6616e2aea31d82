//go:build e2e

package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestTossed_CookiesOfASandboxsPageLockNobodyOut lets a page of one sandbox set cookies for the whole domain, over plain
// HTTP, in the browser of a user who is signed in and opens it.
func TestTossed_CookiesOfASandboxsPageLockNobodyOut(t *testing.T) {
	const domain = "sandboxd.test"
	s := newServerNamed(t, domain, "--prebuild", "", "--domain", domain, "--templates", echoTemplates(t))
	program := echoProgram(t)
	origin := func(sub string) string { return "http://" + sub + domain + ":" + s.port() }
	for _, name := range []string{"mine", "evil"} {
		s.createEchoAt(name, program, strings.TrimPrefix(origin("3000-"+name+"."), "http://"))
	}
	if status, text := s.raw("PUT", "/sandboxes/evil/ports/3000", map[string]any{"visibility": "public"}); status != http.StatusOK {
		t.Fatalf("make it public: %d %s", status, text)
	}
	p := newPerson(t, chromedp.Flag("host-resolver-rules", "MAP *."+domain+" 127.0.0.1, MAP "+domain+" 127.0.0.1"))
	p.signsIn(origin(""))
	deep := origin("3000-mine.") + "/1/2/3/4/5/6"
	p.does("open the own sandbox", chromedp.Navigate(deep))
	p.sees("its page", `document.querySelector("h1")?.innerText.includes("3000-mine")`)

	tosses := func(name, value string, paths ...string) {
		t.Helper()
		p.does("open the other one", chromedp.Navigate(origin("3000-evil.")+"/"))
		p.sees("its page", `document.querySelector("h1")?.innerText.includes("3000-evil")`)
		for _, path := range paths {
			p.reads(fmt.Sprintf("document.cookie = %q", name+"="+value+"; Domain="+domain+"; Path="+path))
		}
	}
	session := "sandboxd_" + s.port()
	tosses(session, "evil", "/sandboxes", "/sandboxes/", "/sandboxes/mine", "/sandboxes/mine/", "/sandboxes/mine/rest", "/")
	tosses("sandboxd_host", "evil", "/1", "/1/", "/1/2", "/1/2/", "/1/2/3", "/1/2/3/", "/1/2/3/4", "/1/2/3/4/", "/1/2/3/4/5", "/1/2/3/4/5/")
	tosses("sandboxd_nonce", strings.Repeat("A", 43), "/.sandboxd", "/")
	p.does("open the dashboard", chromedp.Navigate(origin("")+"/sandboxes/mine/rest"))
	p.sees("its page, signed in", `location.pathname === "/sandboxes/mine/rest" && document.querySelector('form[action="/logout"]') !== null`)
	p.does("open the own sandbox", chromedp.Navigate(deep))
	p.sees("its page", `location.pathname === "/1/2/3/4/5/6" && document.querySelector("h1")?.innerText.includes("3000-mine")`)
	p.does("open a host without a session", chromedp.Navigate(origin("3001-mine.")+"/"))
	p.sees("that nothing listens", `location.pathname === "/" && document.body.innerText.includes("Nothing is listening")`)

	s.addUser("mallory")
	tosses(session, s.session("mallory", session), "/", "/sandboxes")
	p.does("open the dashboard", chromedp.Navigate(origin("")+"/sandboxes/mine"))
	p.sees("that there are two sign-ins", `document.body.innerText.includes("more than one sign-in")`)
	p.signsIn(origin(""))
	p.does("open the dashboard", chromedp.Navigate(origin("")+"/sandboxes/mine/rest"))
	p.sees("its page, signed in", `location.pathname === "/sandboxes/mine/rest" && document.querySelector("strong.clip")?.textContent === "admin"`)
}

// session signs a user in beside the browser, and gives the value of that cookie.
func (s *server) session(user, cookie string) string {
	s.t.Helper()
	client := &http.Client{Transport: s.http.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.PostForm("http://"+s.addr+"/login", url.Values{"name": {user}, "password": {"a-long-test-password"}})
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	for _, c := range resp.Cookies() {
		if c.Name == cookie {
			return c.Value
		}
	}
	s.t.Fatalf("login gives %s and no session", resp.Status)
	return ""
}

package mail

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	netmail "net/mail"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"sandboxd/internal/alert"
	"sandboxd/internal/fault"
)

var (
	since   = time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)
	channel = alert.Channel{ID: "c1", Name: "Ada's mail", Kind: alert.Email, Address: "ada@example.org"}
	firing  = alert.Message{
		ID: "0123abcd", Time: since.Add(12 * time.Minute), Subject: "lab: memory nearly full", Rule: "Memory", Kind: alert.Memory, Event: alert.Fired,
		Firing:   []alert.Alert{{Target: alert.Target{Sandbox: "lab"}, Text: "uses 96 % of its 512 MiB", Since: since}},
		Resolved: []alert.Alert{{Target: alert.Target{Sandbox: "web"}, Text: "used 95 % of its 1 GiB", Since: since.Add(-time.Hour), Resolved: since}},
		Link:     "https://box.example.com/alerts",
	}
)

// sender makes a Sender for a server; change may adapt its configuration.
func (s *server) sender(t *testing.T, security Security, change ...func(*Config)) *Sender {
	t.Helper()
	c := Config{Server: s.address, Security: security, From: "sandboxd <alerts@example.com>", RootCAs: s.cas}
	for _, f := range change {
		f(&c)
	}
	out, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func signedIn(c *Config) { c.User, c.Password = user, password }

func TestSend_ByEachWay(t *testing.T) {
	for _, c := range []struct {
		security Security
		way      string
		user     string
	}{
		{security: STARTTLS}, {security: Implicit}, {security: None},
		{security: STARTTLS, user: user}, {security: Implicit, user: user, way: "LOGIN"}, {security: None, user: user, way: "LOGIN"}, {security: None, user: user},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			s := (&server{way: c.way, must: c.user != ""}).serve(t, c.security)
			sender := s.sender(t, c.security, func(config *Config) {
				if c.user != "" {
					signedIn(config)
				}
			})
			if err := sender.Send(t.Context(), channel, firing); err != nil {
				t.Fatal(err)
			}
			got := s.letters()
			if len(got) != 1 {
				t.Fatalf("%d mails arrived", len(got))
			}
			if l := got[0]; l.from != "alerts@example.com" || l.to != "ada@example.org" || l.user != c.user || l.encrypted != (c.security != None) {
				t.Errorf("from %q to %q by %q, encrypted %v", l.from, l.to, l.user, l.encrypted)
			}
		})
	}
}

func TestSend_WhatGoesWrongIsSaidAndRetriedOnlyIfThatHelps(t *testing.T) {
	answer := func(code int, text string) error {
		return &smtp.SMTPError{Code: code, EnhancedCode: smtp.NoEnhancedCode, Message: text}
	}
	for name, c := range map[string]struct {
		server *server
		serves Security
		sends  Security
		change func(*Config)
		kind   fault.Kind
		says   string
	}{
		"wrong password":      {serves: STARTTLS, change: func(c *Config) { c.User, c.Password = user, "wrong" }, kind: fault.Unavailable, says: "refuses the user name or password (535"},
		"unknown recipient":   {server: &server{rcpt: answer(550, "no such user")}, serves: STARTTLS, kind: fault.Invalid, says: "refuses the address (550 no such user)"},
		"greylisting":         {server: &server{rcpt: answer(451, "greylisted, try again")}, serves: STARTTLS, kind: fault.Unavailable, says: "takes no mail now (451 greylisted"},
		"spam":                {server: &server{data: answer(554, "looks like spam")}, serves: STARTTLS, kind: fault.Invalid, says: "refuses the mail (554"},
		"full disk":           {server: &server{data: answer(452, "disk full")}, serves: STARTTLS, kind: fault.Unavailable, says: "takes no mail now (452"},
		"foreign sender":      {server: &server{mail: answer(553, "not yours")}, serves: STARTTLS, kind: fault.Unavailable, says: "change --smtp-from"},
		"no user":             {server: &server{must: true}, serves: STARTTLS, kind: fault.Unavailable, says: "wants TLS or a user name first (530"},
		"no way to sign in":   {server: &server{way: "GSSAPI"}, serves: STARTTLS, change: signedIn, kind: fault.Unavailable, says: "offers no sign-in"},
		"no STARTTLS":         {serves: None, kind: fault.Unavailable, says: "does not offer STARTTLS. An administrator can set --smtp-tls=implicit"},
		"STARTTLS, not TLS":   {serves: STARTTLS, sends: Implicit, kind: fault.Unavailable, says: "set --smtp-tls=starttls"},
		"unknown certificate": {serves: STARTTLS, change: func(c *Config) { c.RootCAs = nil }, kind: fault.Unavailable, says: "is not trusted"},
		"no server":           {serves: STARTTLS, change: func(c *Config) { c.Server = "127.0.0.1:1" }, kind: fault.Unavailable, says: "refuses connections"},
		"no such name":        {serves: STARTTLS, change: func(c *Config) { c.Server = "mail..invalid:587" }, kind: fault.Unavailable, says: "there is no such name"},
	} {
		t.Run(name, func(t *testing.T) {
			s := cmp.Or(c.server, &server{}).serve(t, c.serves)
			if c.change == nil {
				c.change = func(*Config) {}
			}
			err := s.sender(t, c.sends, c.change).Send(t.Context(), channel, firing)
			if !fault.Is(err, c.kind) || !strings.Contains(fault.Message(err), c.says) {
				t.Errorf("%v: %v", fault.KindOf(err), err)
			}
			if strings.Contains(fmt.Sprint(err), password) || len(s.letters()) != 0 {
				t.Errorf("%d mails; %v", len(s.letters()), err)
			}
		})
	}
}

func TestSend_ARefusalThatDoesNotLastIsSentLater(t *testing.T) {
	s := (&server{rcpt: &smtp.SMTPError{Code: 451, Message: "greylisted"}}).serve(t, STARTTLS)
	sender := s.sender(t, STARTTLS)
	if err := sender.Send(t.Context(), channel, firing); !fault.Is(err, fault.Unavailable) {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.rcpt = nil
	s.mu.Unlock()
	if err := sender.Send(t.Context(), channel, firing); err != nil {
		t.Fatal(err)
	}
}

// TestSend_EndsWithItsContext speaks to servers that do not answer: one says nothing, as one that waits for TLS does, and one hangs
// after the greeting.
func TestSend_EndsWithItsContext(t *testing.T) {
	for _, said := range []string{"", "220 mail.example.com\r\n"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		heard, gone := make(chan struct{}), make(chan error, 1)
		go func() {
			conn, err := l.Accept()
			if err != nil {
				gone <- err
				return
			}
			_, err = io.WriteString(conn, said)
			close(heard)
			_, readErr := io.Copy(io.Discard, conn) // until the sender hangs up
			gone <- errors.Join(err, readErr, conn.Close())
		}()
		s := &server{address: l.Addr().String()}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		err = s.sender(t, STARTTLS).Send(ctx, channel, firing)
		cancel()
		if !fault.Is(err, fault.Timeout) || !strings.Contains(fault.Message(err), "did not answer in time") || !strings.Contains(fault.Message(err), "--smtp-tls=implicit") {
			t.Errorf("after %q: %v", said, err)
		}
		<-heard
		if err := errors.Join(<-gone, l.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestSend_AnAnswerWithoutAnEndIsCutOff speaks to servers that never stop talking.
func TestSend_AnAnswerWithoutAnEndIsCutOff(t *testing.T) {
	for what, said := range map[string]string{"a line": "2", "lines of a greeting": "220-hello\r\n"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		written := make(chan int64, 1)
		go func() {
			conn, err := l.Accept()
			if err != nil {
				written <- 0
				return
			}
			defer conn.Close()
			part, n := []byte(strings.Repeat(said, 4096/len(said))), int64(0)
			for err == nil {
				var k int
				k, err = conn.Write(part)
				n += int64(k)
			}
			written <- n
		}()
		s := &server{address: l.Addr().String()}
		err = s.sender(t, None).Send(t.Context(), channel, firing)
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Message(err), "without an end") {
			t.Errorf("%s: %v", what, err)
		}
		if n := <-written; n > 64<<20 { // what the kernel takes for both sides is beside it
			t.Errorf("%s: %d bytes were taken", what, n)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestSend_ACancelIsNoTimeout(t *testing.T) {
	s := (&server{}).serve(t, STARTTLS)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.sender(t, STARTTLS).Send(ctx, channel, firing); !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Message(err), "interrupted") {
		t.Error(err)
	}
}

// parsed sends a message and gives what a mail program makes of it.
func parsed(t *testing.T, c alert.Channel, m alert.Message, change ...func(*Config)) (header netmail.Header, text, html string) {
	t.Helper()
	s := (&server{}).serve(t, STARTTLS)
	if err := s.sender(t, STARTTLS, change...).Send(t.Context(), c, m); err != nil {
		t.Fatal(err)
	}
	got, err := netmail.ReadMessage(bytes.NewReader(s.letters()[0].text))
	if err != nil {
		t.Fatal(err)
	}
	kind, options, err := mime.ParseMediaType(got.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatalf("%s, %v", kind, err)
	}
	parts := multipart.NewReader(got.Body, options["boundary"])
	for _, part := range []*string{&text, &html} {
		p, err := parts.NextRawPart()
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(quotedprintable.NewReader(p))
		if err != nil {
			t.Fatal(err)
		}
		*part = strings.ReplaceAll(string(body), "\r\n", "\n")
	}
	if _, err := parts.NextPart(); !errors.Is(err, io.EOF) {
		t.Errorf("there are more parts: %v", err)
	}
	return got.Header, text, html
}

func TestMail_SaysWhatSinceWhenAndWhy(t *testing.T) {
	header, text, html := parsed(t, channel, firing)
	want := `lab: memory nearly full

Firing:
  lab: uses 96 % of its 512 MiB (since 24 Nov 2026, 09:00 UTC, 12 min)
Resolved:
  web: used 95 % of its 1 GiB (lasted 1 h, until 24 Nov 2026, 09:00 UTC)
https://box.example.com/alerts

You get this mail because the rule "Memory" of sandboxd sends to the channel "Ada's mail". Change or delete either in Settings → Alerts.
`
	if text != want {
		t.Errorf("%s", text)
	}
	for _, part := range []string{"<strong>lab</strong>: uses 96 % of its 512 MiB", "since 24 Nov 2026", "lasted 1 h", `href="https://box.example.com/alerts"`, "the rule"} {
		if !strings.Contains(html, part) {
			t.Errorf("the HTML lacks %q:\n%s", part, html)
		}
	}
	for name, want := range map[string]string{
		"Message-Id": "<0123abcd@example.com>", "Date": "Tue, 24 Nov 2026 09:12:00 +0000", "Auto-Submitted": "auto-generated", "Precedence": "bulk",
		"From": `"sandboxd" <alerts@example.com>`, "To": "<ada@example.org>", "Subject": "lab: memory nearly full", "X-Mailer": "", "User-Agent": "",
	} {
		if got := header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestMail_ARetryIsRecognised(t *testing.T) {
	first, _, _ := parsed(t, channel, firing)
	again, _, _ := parsed(t, channel, firing)
	if first.Get("Message-Id") == "" || first.Get("Message-Id") != again.Get("Message-Id") || first.Get("Date") != again.Get("Date") {
		t.Errorf("%v, then %v", first, again)
	}
}

func TestMail_OfATest(t *testing.T) {
	_, text, html := parsed(t, channel, alert.Message{ID: "1", Time: since, Subject: "Test", Event: alert.Test, Link: "https://box.example.com/alerts"})
	for _, body := range []string{text, html} {
		if !strings.Contains(body, "This is a test.") || !strings.Contains(body, "was asked for") {
			t.Error(body)
		}
	}
}

func TestMail_WithoutARule(t *testing.T) {
	_, text, html := parsed(t, channel, alert.Message{ID: "1", Time: since, Subject: "12 messages were not sent", Event: "held"})
	for _, body := range []string{text, html} {
		if !strings.Contains(body, "12 messages were not sent") || strings.Contains(body, "the rule") || !strings.Contains(body, "rules of sandboxd send to the channel") {
			t.Error(body)
		}
	}
}

func TestMail_NothingInAMessageChangesItsHeaderOrPage(t *testing.T) {
	evil := "x\r\nBcc: eve@example.net\r\n\r\n<img src=//eve.example.net> \u202eÜ"
	m := firing
	m.Subject, m.Rule, m.Link = evil, evil, "javascript:alert(1)"
	m.Firing = []alert.Alert{{Target: alert.Target{Sandbox: evil, Part: evil}, Text: evil, Since: since}}
	c := channel
	c.Name = evil
	header, text, html := parsed(t, c, m, func(c *Config) { c.From = `"Büro, eve@example.net" <alerts@example.com>` })
	if header.Get("Bcc") != "" || strings.Contains(html, "<img") || strings.Contains(html, `"javascript:`) || strings.Contains(text, "\u202e") || strings.Contains(text, "\nBcc") {
		t.Errorf("%v\n%s\n%s", header, text, html)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(header.Get("Subject"))
	if err != nil || !strings.HasPrefix(subject, "x Bcc: eve@example.net") && !strings.HasPrefix(subject, "x  Bcc: eve@example.net") || !strings.HasSuffix(subject, "Ü") {
		t.Errorf("%q, %v", subject, err)
	}
	from, err := header.AddressList("From")
	if err != nil || len(from) != 1 || from[0].Address != "alerts@example.com" || from[0].Name != "Büro, eve@example.net" {
		t.Errorf("%v, %v", from, err)
	}
}

func TestMail_SubjectIsReadAsItIsWritten(t *testing.T) {
	for _, subject := range []string{
		"=?utf-8?q?a=0d=0aBcc:x=E2=80=AE?=", "lab: =?utf-8?b?4oCu?= =?utf-8?b?4oCu?=", "é =?utf-8?q?=0d=0a?= 日本", "lab =? ?=", "=", "50 % = half?",
		strings.TrimSpace(strings.Repeat("日=?", 33)), strings.TrimSpace(strings.Repeat("=?utf-8?q?a?= ", 14)),
	} {
		m := firing
		m.Subject = subject
		header, _, _ := parsed(t, channel, m)
		got, err := new(mime.WordDecoder).DecodeHeader(header.Get("Subject"))
		if err != nil || got != subject {
			t.Errorf("%q is read as %q, %v", subject, got, err)
		}
	}
}

func TestMail_OfAThousandMembersNamesAHundred(t *testing.T) {
	m := firing
	m.Firing = nil
	for i := range 1000 {
		m.Firing = append(m.Firing, alert.Alert{Target: alert.Target{Sandbox: fmt.Sprintf("box-%03d", i)}, Text: strings.Repeat("t", 10000), Since: since})
	}
	_, text, html := parsed(t, channel, m)
	for _, body := range []string{text, html} {
		if !strings.Contains(body, "box-099") || strings.Contains(body, "box-100") || !strings.Contains(body, "and 900 more") || len(body) > 100<<10 {
			t.Errorf("%d bytes: %.2000s", len(body), body)
		}
	}
}

func TestCheck_OneAddressAlone(t *testing.T) {
	s := (&server{address: "mail.example.com:587"}).sender(t, STARTTLS)
	for _, good := range []string{"ada@example.org", "root@localhost", "a+b.c@sub.example.org", "ü@example.org"} {
		if err := s.Check(alert.Channel{Address: good}); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "ada", "ada@", "@example.org", "Ada <ada@example.org>", "a@example.org, b@example.org", "a@example.org\r\nRCPT TO:<b@example.org>", " ada@example.org",
		"<ada@example.org>", strings.Repeat("a", 250) + "@example.org", "a@example.org\u202e"} {
		c := alert.Channel{Address: bad}
		if err := s.Check(c); !fault.Is(err, fault.Invalid) || fault.FieldOf(err) != "address" {
			t.Errorf("%q: %v", bad, err)
		}
		if err := s.Send(t.Context(), c, firing); !fault.Is(err, fault.Invalid) {
			t.Errorf("send to %q: %v", bad, err)
		}
	}
}

func TestNew_RefusesWhatCannotWork(t *testing.T) {
	good := Config{Server: "mail.example.com:587", From: "alerts@example.com"}
	for _, c := range []struct {
		change func(*Config)
		field  string
	}{
		{func(*Config) {}, ""},
		{func(c *Config) { c.User, c.Password = user, password }, ""},
		{func(c *Config) { c.Security = None }, ""},
		{func(c *Config) { c.User, c.Password, c.Security, c.Server = user, password, None, "localhost:25" }, ""},
		{func(c *Config) { c.User, c.Password, c.Security, c.Server = user, password, None, "[::1]:25" }, ""},
		{func(c *Config) { c.User, c.Password, c.Security = user, password, None }, "smtp-tls"},
		{func(c *Config) { c.Security = "tls" }, "smtp-tls"},
		{func(c *Config) { c.Server = "mail.example.com" }, "smtp"},
		{func(c *Config) { c.Server = ":587" }, "smtp"},
		{func(c *Config) { c.Server = "mail.example.com:70000" }, "smtp"},
		{func(c *Config) { c.Server = "mail.example.com:0" }, "smtp"},
		{func(c *Config) { c.From = "" }, "smtp-from"},
		{func(c *Config) { c.From = "a@example.com\r\nBcc: b@example.com" }, "smtp-from"},
		{func(c *Config) { c.User = user }, "smtp-password-file"},
		{func(c *Config) { c.Password = password }, "smtp-user"},
	} {
		config := good
		c.change(&config)
		if _, err := New(config); (err != nil) != (c.field != "") || fault.FieldOf(err) != c.field {
			t.Errorf("%+v: %v", config, err)
		}
	}
}

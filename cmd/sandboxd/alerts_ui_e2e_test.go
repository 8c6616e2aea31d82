//go:build e2e

package main

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/emersion/go-smtp"
)

// postbox is a mail server that keeps what it gets.
type postbox struct {
	addr string

	mu    sync.Mutex
	mails []string // with their heads
}

func newPostbox(t *testing.T) *postbox {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &postbox{addr: listener.Addr().String()}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &postboxSession{b}, nil }))
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() { _ = server.Close(); running.Wait() })
	return b
}

// subjects are those of what came, in order.
func (b *postbox) subjects() (out []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, mail := range b.mails {
		for line := range strings.Lines(mail) {
			if subject, ok := strings.CutPrefix(line, "Subject: "); ok {
				out = append(out, strings.TrimSpace(subject))
				break
			}
		}
	}
	return out
}

// has reports whether a mail came whose subject has all of some words.
func (b *postbox) has(words ...string) bool {
	for _, subject := range b.subjects() {
		all := true
		for _, word := range words {
			all = all && strings.Contains(subject, word)
		}
		if all {
			return true
		}
	}
	return false
}

type postboxSession struct{ to *postbox }

func (*postboxSession) Mail(string, *smtp.MailOptions) error { return nil }
func (*postboxSession) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (*postboxSession) Reset()                               {}
func (*postboxSession) Logout() error                        { return nil }

func (s *postboxSession) Data(r io.Reader) error {
	mail, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.to.mu.Lock()
	defer s.to.mu.Unlock()
	s.to.mails = append(s.to.mails, string(mail))
	return nil
}

// hogScript is a service that holds 120 MiB of memory.
const hogScript = `(head -c 120M /dev/zero; exec sleep infinity) | tail -c 120M`

// Scripts about the page.
const (
	badge       = `document.querySelector("#alert-count")?.textContent.trim()`
	toastShown  = `(() => { const t = document.getElementById("toast"); return t && !t.hidden ? t.textContent : ""; })()`
	sheetIsOpen = `document.getElementById("sheet").open`
)

// lastLimit is how long a test waits for an alert's message: a look, the time in which alerts are gathered, and the mail's way.
const lastLimit = 2 * time.Minute

// TestAlerts_AreSeenMailedAndResolved is the life of an alert, as a person sees it: rule and channel, badge and toast, two mails.
func TestAlerts_AreSeenMailedAndResolved(t *testing.T) {
	t.Parallel()
	mails := newPostbox(t)
	s := newServer(t, "--prebuild", "", "--templates", echoTemplates(t), "--smtp", mails.addr, "--smtp-tls", "none", "--smtp-from", "alerts@example.com")
	s.create(map[string]any{"name": "lab", "template": "echo", "memory": "256MiB"})
	p := newPerson(t)
	dashboard := "http://localhost:" + s.port()
	p.signsIn(dashboard)
	p.sees("the sandboxes", at("/")+" && "+current)
	p.does("go to the alerts by the keyboard", chromedp.KeyEvent("g"), chromedp.KeyEvent("n"))
	p.sees("that nothing fires", at("/alerts")+` && document.querySelector("#alerts-firing").textContent.includes("No alerts")`)
	p.pictures("alerts-none")
	p.addsAChannel(dashboard, mails)
	p.addsARule()
	p.mutesTheRule()

	p.does("look at another page", chromedp.Navigate(dashboard+"/"))
	p.sees("the sandboxes, and no badge", at("/")+" && "+current+" && "+badge+` === ""`)
	p.runs("mark the page", `window.sameRun = true`)
	s.declare("hog", map[string]any{"command": hogScript})
	p.seesWithin("the toast", toastShown+`.includes("Memory of lab – lab: uses ")`, lastLimit)
	p.sees("the badge", badge+`.startsWith("1")`)
	p.pictures("alerts-toast")
	if p.reads(`window.sameRun`) != "true" {
		t.Error("the page was loaded again")
	}
	p.does("follow the toast", chromedp.Click("#toast .link"))
	p.sees("what fires", at("/alerts")+` && document.querySelector("#alerts-firing .alert")?.textContent.includes("of its 256 MiB")`)
	p.runs("mark the page", `window.sameRun = true`)
	p.pictures("alerts-firing")
	s.untilWithin(lastLimit, "the mail has come", func() bool { return mails.has("lab", "memory nearly full") })
	p.mutesAndEndsIt()
	p.looksIntoTheWorkspace(dashboard)

	p.does("go back to the alerts", chromedp.Navigate(dashboard+"/alerts"))
	p.sees("that it still fires", current+` && document.querySelectorAll("#alerts-firing .alert").length === 1`)
	p.runs("mark the page", `window.sameRun = true`)
	if status, text := s.raw("POST", "/sandboxes/lab/services/hog/stop", nil); status >= 300 {
		t.Fatalf("stop it: %d %s", status, text)
	}
	p.seesWithin("it among what is over", `document.querySelector("#alerts-history .alert")?.textContent.includes("lasted") && document.querySelector("#alerts-firing .alert") === null && `+badge+` === ""`, lastLimit)
	if p.reads(`window.sameRun`) != "true" {
		t.Error("the page was loaded again")
	}
	p.pictures("alerts-over")
	s.untilWithin(lastLimit, "the end is mailed", func() bool { return mails.has("Resolved", "lab") })
	if got := mails.subjects(); len(got) != 3 {
		t.Errorf("the mails are %q", got)
	}
	p.does("look at the figures of that time", chromedp.Navigate(dashboard+p.reads(`document.querySelector("#alerts-history .alert .facts a").getAttribute("href")`)))
	p.sees("the figures", at("/sandboxes/lab/metrics"))
	p.does("look at the channel", chromedp.Navigate(dashboard+"/settings/alerts?owner=installation"), chromedp.Click(".deliveries:has(.delivery) summary"))
	p.sees("the last messages", `document.querySelectorAll(".delivery").length === 3 && [...document.querySelectorAll(".delivery .state-word")].every((w) => w.textContent === "Sent")`)
	p.runs("go to the end", `document.querySelector("#channels").scrollIntoView()`)
	p.pictures("alert-channels")
}

// addsAChannel adds an address and sends a test to it, and to one that does not take it.
func (p *person) addsAChannel(dashboard string, mails *postbox) {
	p.t.Helper()
	p.does("open the settings", chromedp.Click(".page-head .end a"))
	p.sees("the default rules", at("/settings/alerts")+` && document.querySelectorAll("#rules .item").length === 12`)
	p.pictures("alert-settings")
	p.does("add a channel", chromedp.Click("#channels .section-head .button"))
	p.sees("its kinds", sheetIsOpen+` && document.querySelectorAll("#sheet .kind").length === 3`)
	p.pictures("alert-channel-kinds")
	p.does("choose e-mail", chromedp.Click(`#sheet .kind[href*="kind=email"]`))
	p.sees("its form", `document.querySelector("#sheet #channel-address") !== null`)
	p.does("make a mistake", chromedp.SetValue("#channel-name", "Ops <b>team"), chromedp.SetValue("#channel-address", "nobody"), chromedp.Click("#sheet .button.primary"))
	p.sees("what is wrong, and what was typed", sheetIsOpen+` && document.querySelector("#channel-address-fault") !== null && document.activeElement.id === "channel-address" && document.querySelector("#channel-name").value === "Ops <b>team"`)
	p.pictures("alert-channel-fault")
	p.does("mend it", chromedp.SetValue("#channel-address", "ops@example.com"), chromedp.Click("#sheet .button.primary"))
	p.sees("the channel", at("/settings/alerts")+` && !(`+sheetIsOpen+`) && document.querySelector(".channel")?.textContent.includes("Ops <b>team")`)
	p.does("send a test", chromedp.Click(".test-button"))
	p.sees("that it was sent", `document.querySelector(".tested")?.textContent.includes("Test message sent")`)
	if !mails.has("Test message") {
		p.t.Errorf("the mails are %q", mails.subjects())
	}
	p.runs("bring it into sight", `document.querySelector("#channels").scrollIntoView()`)
	p.pictures("alert-test")
}

// addsARule adds one about the memory of the sandbox that tells the channel.
func (p *person) addsARule() {
	p.t.Helper()
	p.does("add a rule", chromedp.Click("#rules .section-head .button"))
	p.sees("its kinds", sheetIsOpen+` && document.querySelectorAll("#sheet .kind").length === 13`)
	p.pictures("alert-rule-kinds")
	p.does("choose memory", chromedp.Click(`#sheet .kind[href*="kind=memory"]`))
	p.sees("its form", `document.querySelector("#sheet #rule-threshold")?.value === "90"`)
	p.does("fill it in", chromedp.SetValue("#rule-name", "Memory of lab"), chromedp.SetValue("#rule-threshold", "many"),
		chromedp.Click(`#sheet [name="channel"]`))
	p.runs("choose the sandbox", `(() => { const s = document.querySelector("#rule-scope"); s.value = [...s.options].find((o) => o.text === "Only lab").value; })()`)
	p.runs("make it fire at once", `document.querySelector("#rule-for").value = ""`)
	p.does("save it", chromedp.Click("#sheet .button.primary"))
	p.sees("what is wrong, and all that was chosen", `document.querySelector("#rule-threshold-fault") !== null && document.activeElement.id === "rule-threshold" && document.querySelector("#rule-threshold").value === "many" &&
		document.querySelector("#rule-scope").selectedOptions[0].text === "Only lab" && document.querySelector('#sheet [name="channel"]').checked`)
	p.pictures("alert-rule")
	p.does("mend it", chromedp.SetValue("#rule-threshold", "30"), chromedp.Click("#sheet .button.primary"))
	p.sees("the rule", `!(`+sheetIsOpen+`) && [...document.querySelectorAll("#rules .item")].some((i) => i.textContent.includes("Uses at least 30 % of its memory limit") && i.textContent.includes("only lab") && i.textContent.includes("sends to Ops <b>team"))`)
}

// mutesTheRule mutes it where it stands in the list, and ends that.
func (p *person) mutesTheRule() {
	p.t.Helper()
	row := `[...document.querySelectorAll("#rules .item")].find((i) => i.textContent.includes("Memory of lab"))`
	inSight := fmt.Sprintf(`((box) => box.top > 0 && box.bottom < innerHeight)((%s).getBoundingClientRect())`, row)
	for _, c := range []struct{ button, said string }{{`[value="8h"]`, "Memory of lab is muted."}, {`[value="0"]`, "Memory of lab is no longer muted."}} {
		p.runs("open the menu", fmt.Sprintf(`(%s).querySelector("summary").click()`, row))
		p.runs("choose", fmt.Sprintf(`(%s).querySelector('%s').click()`, row, c.button))
		p.sees("in its place: "+c.said, fmt.Sprintf(`(%s)?.textContent.includes(%q) && %s`, row, c.said, inSight))
		p.pictures("alert-rule-" + c.button[8:9])
	}
}

// mutesAndEndsIt mutes the alert on the page, which stays as it is.
func (p *person) mutesAndEndsIt() {
	p.t.Helper()
	p.does("open the menu", chromedp.Click("#alerts-firing .menu summary"))
	p.pictures("alerts-menu")
	p.does("mute it", chromedp.Click(`#alerts-firing [value="8h"] + button`))
	p.sees("it muted, and no badge", `document.querySelector("#alerts-firing .alert").textContent.includes("muted for") && `+badge+` === "" && window.sameRun`)
	p.pictures("alerts-muted")
	p.does("end that", chromedp.Click(`#alerts-firing [value="0"] + button`))
	p.sees("the badge again", badge+`.startsWith("1") && window.sameRun`)
}

// looksIntoTheWorkspace finds the sign of the alert there, which leads to it.
func (p *person) looksIntoTheWorkspace(dashboard string) {
	p.t.Helper()
	p.does("open the workspace", chromedp.Navigate(dashboard+"/sandboxes/lab"))
	p.sees("the sign", fmt.Sprintf(`document.querySelector("#ws-alerts a")?.getAttribute("href") === %q`, "/alerts?sandbox=lab"))
	p.pictures("alerts-workspace")
}

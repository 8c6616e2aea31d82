package shoutrrr

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nicholas-fedor/shoutrrr/pkg/router"

	"sandboxd/internal/alert"
	"sandboxd/internal/fault"
)

// token is in each address, and nowhere else.
const token = "S3cretTokenS3cretToken24"

var firing = alert.Message{
	ID: "1", Time: time.Date(2026, 11, 24, 9, 12, 0, 0, time.UTC), Subject: "lab: memory nearly full\r\nX-Evil: 1", Rule: "Memory", Event: alert.Fired,
	Firing: []alert.Alert{{Target: alert.Target{Sandbox: "lab"}, Text: "uses 96 %"}}, Link: "https://box.example.com/alerts",
}

const lines = "Firing:\n  lab: uses 96 %\nhttps://box.example.com/alerts\n"

// patience bounds every wait of a test, but for what is to end early.
const patience = time.Minute

// sender gives one whose children are this test's program.
func sender() *Sender {
	return &Sender{Program: []string{os.Args[0], asChild}, Limit: patience}
}

func to(address string) alert.Channel {
	return alert.Channel{ID: "c1", Name: "chat", Kind: alert.Shoutrrr, Address: address}
}

// taken is a request as a server got it.
type taken struct {
	header http.Header
	path   string
	body   string
}

// listen runs a server that answers with a status once free is closed; nil for at once.
func listen(t *testing.T, status int, free <-chan struct{}) (host string, got chan taken) {
	t.Helper()
	got = make(chan taken, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- taken{r.Header, r.URL.Path, string(body)}
		if free != nil {
			<-free
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://"), got
}

func TestSend_ByNtfyAndGeneric(t *testing.T) {
	host, got := listen(t, http.StatusOK, nil)
	s := sender()
	for _, c := range []struct{ address, path, title, body string }{
		{"ntfy://ada:" + token + "@" + host + "/topic?scheme=http", "/topic", "lab: memory nearly full  X-Evil: 1", lines},
		{"generic+http://" + host + "/" + token, "/" + token, "", "lab: memory nearly full  X-Evil: 1\n" + lines},
	} {
		if err := s.Check(to(c.address)); err != nil {
			t.Error(err)
		}
		if err := s.Send(t.Context(), to(c.address), firing); err != nil {
			t.Fatal(err)
		}
		r := <-got
		if title := r.header.Get("Title"); r.path != c.path || title != c.title || r.body != c.body || r.header.Get("X-Evil") != "" {
			t.Errorf("%s: %q, %q, %q", c.path, r.path, title, r.body)
		}
	}
}

func TestSend_ASandboxCallsNobody(t *testing.T) {
	host, got := listen(t, http.StatusOK, nil)
	m := firing
	m.Subject = "@everyone"
	m.Firing = []alert.Alert{{Target: alert.Target{Sandbox: "lab"}, Text: "@everyone <!channel> [safe](https://eve.example.net)"}}
	if err := sender().Send(t.Context(), to("generic+http://"+host+"/"), m); err != nil {
		t.Fatal(err)
	}
	if body := (<-got).body; strings.ContainsAny(body, "@<>") || strings.Contains(body, "](") || strings.Contains(body, "://eve") || strings.Count(body, "everyone") != 2 {
		t.Errorf("%q", body)
	}
}

// TestSend_NoErrorHasTheAddress also looks at what is logged.
func TestSend_NoErrorHasTheAddress(t *testing.T) {
	var logged bytes.Buffer
	before := log.Writer()
	log.SetOutput(&logged)
	t.Cleanup(func() { log.SetOutput(before) })
	broken, _ := listen(t, http.StatusInternalServerError, nil)
	forbidding, _ := listen(t, http.StatusForbidden, nil)
	s := sender()
	for _, c := range []struct {
		address string
		kind    fault.Kind
		says    string
	}{
		{"ntfy://ada:" + token + "@127.0.0.1:1/topic?scheme=http", fault.Unavailable, "refuses connections"},
		{"ntfy://ada:" + token + "@a..b/topic", fault.Unavailable, "no such name"},
		{"generic+http://" + broken + "/" + token, fault.Unavailable, "did not take the message"},
		{"generic+https://" + broken + "/" + token, fault.Unavailable, "did not take the message"},
		{"generic+http://" + forbidding + "/" + token, fault.Unavailable, "did not take the message"},
		{"gotify://" + broken + "/A" + token[:14] + "?disabletls=yes", fault.Unavailable, "gotify"},
		{"matrix://ada:" + token + "@127.0.0.1:1/?disableTLS=yes", fault.Unavailable, "matrix did not take"},
	} {
		if err := s.Check(to(c.address)); err != nil {
			t.Errorf("check %s: %v", c.address, err)
		}
		err := s.Send(t.Context(), to(c.address), firing)
		if !fault.Is(err, c.kind) || !strings.Contains(fault.Message(err), c.says) {
			t.Errorf("%s: %v, %v", c.address, fault.KindOf(err), err)
		}
		if said := fmt.Sprint(err) + logged.String(); strings.Contains(said, token[:14]) {
			t.Errorf("the address is told: %s", said)
		}
	}
}

func TestProblem_TheStatusDecidesAboutARetry(t *testing.T) {
	for status, kind := range map[int]fault.Kind{400: fault.Invalid, 401: fault.Invalid, 404: fault.Invalid, 408: fault.Unavailable, 429: fault.Unavailable, 500: fault.Unavailable, 503: fault.Unavailable} {
		if err := refusal("slack", status); !fault.Is(err, kind) || !strings.Contains(fault.Message(err), fmt.Sprint("slack answers ", status)) {
			t.Errorf("%d: %v", status, err)
		}
	}
}

func TestCheck_RefusesWhatIsNoAddressAndSaysNothingOfIt(t *testing.T) {
	var s Sender
	addresses := []string{"", token, "https://hooks.example.com/" + token, "logger://", "slack", "slack://", "unknown://" + token, "slack://" + token + "\n", "ntfy://" + token + "/" + strings.Repeat("x", addressLimit),
		"matrix://" + token, "matrix://ada:" + token + "@", "generic+ntfy+http://" + token, "discord+http://" + token, "slack://hook:" + token + "@webhook", "telegram://" + token + "@telegram"}
	for _, service := range new(router.ServiceRouter).ListServices() {
		for _, rest := range []string{"", "://", ":", "://%zz" + token, ":" + token, "://?" + token + "=" + token, "://:" + token + "@:x/"} {
			addresses = append(addresses, service+rest)
		}
	}
	for _, address := range addresses {
		err := s.Check(to(address))
		if err == nil {
			continue // some services of the library take nearly anything
		}
		if !fault.Is(err, fault.Invalid) || fault.FieldOf(err) != "address" || strings.Contains(strings.ToLower(err.Error()), strings.ToLower(token[:8])) {
			t.Errorf("%s: %v", address, err)
		}
		if sent := send(request{Address: address, Text: "hello"}); sent == nil || strings.Contains(strings.ToLower(sent.Error()), strings.ToLower(token[:8])) {
			t.Errorf("send to %s: %v", address, sent)
		}
	}
}

func TestCheck_TakesAddressesOfKnownServices(t *testing.T) {
	var s Sender
	for _, address := range []string{
		"slack://hook:T00000000-B00000000-XXXXXXXXXXXXXXXXXXXXXXXX@webhook",
		"discord://token@123456789012345678",
		"telegram://110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw@telegram?chats=@channel",
		"ntfy://ntfy.sh/topic", "matrix://:token@matrix.example.com/?rooms=!x:example.com", "gotify://gotify.example.com/AzyoeNS.D4iJLVa",
		"pushover://shoutrrr:token@user", "generic+https://example.com/hook",
	} {
		if err := s.Check(to(address)); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestSend_AMessageThatHangsHoldsUpOnlyItsAddress(t *testing.T) {
	free := make(chan struct{})
	host, got := listen(t, http.StatusOK, free)
	other, _ := listen(t, http.StatusOK, nil)
	s := sender()
	send := func(address string, wait time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		return s.Send(ctx, to(address), firing)
	}
	ended := make(chan error)
	hang := func(path string) string {
		address := "generic+http://" + host + "/" + path
		go func() { ended <- send(address, patience) }()
		<-got
		return address
	}
	if err := send(hang(token), 10*time.Millisecond); !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Message(err), "still under way") {
		t.Errorf("behind it: %v", err)
	}
	if err := send("generic+http://"+other+"/", patience); err != nil {
		t.Errorf("elsewhere: %v", err)
	}
	for i := 1; i < mostUnderWay; i++ {
		hang(fmt.Sprint(i))
	}
	if err := send("generic+http://"+other+"/", 10*time.Millisecond); !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Message(err), "Too many messages") {
		t.Errorf("one too many: %v", err)
	}
	close(free)
	for range mostUnderWay {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if n := len(got); n != 0 {
		t.Errorf("%d more requests", n)
	}
}

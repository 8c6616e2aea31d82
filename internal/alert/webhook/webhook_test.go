package webhook

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"sandboxd/internal/alert"
	"sandboxd/internal/fault"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

var (
	since  = time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)
	firing = alert.Message{
		ID: "0123abcd", Time: since.Add(12 * time.Minute), Subject: "lab: memory nearly full", Rule: "Memory", Kind: alert.Memory, Event: alert.Fired,
		Firing:   []alert.Alert{{ID: "a1", Owner: "u1", Target: alert.Target{SandboxID: "s1", Sandbox: "lab", Owner: "u2", Part: "web"}, Text: "uses 96 %", Since: since}},
		Resolved: []alert.Alert{{ID: "a2", Target: alert.Target{Template: "go"}, Since: since.Add(-time.Hour), Resolved: since}},
		Link:     "https://box.example.com/alerts",
	}
)

func to(address string) alert.Channel {
	return alert.Channel{ID: "c1", Name: "hook", Kind: alert.Webhook, Address: address, Secret: secret}
}

// received is a request as a server got it.
type received struct {
	header http.Header
	body   []byte
}

// listen runs a server that answers each request with the next status, the last one for all after it.
func listen(t *testing.T, statuses ...int) (url string, got <-chan received) {
	t.Helper()
	requests := make(chan received, 10)
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		requests <- received{r.Header, body}
		w.WriteHeader(statuses[min(int(n.Add(1)), len(statuses))-1])
	}))
	t.Cleanup(s.Close)
	return s.URL, requests
}

func TestSend_IsSignedAndVerified(t *testing.T) {
	url, got := listen(t, http.StatusNoContent)
	if err := New(Config{Private: true}).Send(t.Context(), to(url+"/hook?x=1"), firing); err != nil {
		t.Fatal(err)
	}
	r := <-got
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := verifier.Verify(r.body, r.header); err != nil {
		t.Error(err)
	}
	if err := verifier.Verify(append(r.body, ' '), r.header); err == nil {
		t.Error("another body passes")
	}
	if id, kind := r.header.Get("webhook-id"), r.header.Get("Content-Type"); id != firing.ID || kind != "application/json" {
		t.Errorf("%q, %q", id, kind)
	}
	const want = `{"type":"alert.firing","timestamp":"2026-11-24T09:12:00Z","data":{"subject":"lab: memory nearly full","rule":"Memory","kind":"memory",` +
		`"firing":[{"id":"a1","sandbox_id":"s1","sandbox":"lab","template":"","part":"web","text":"uses 96 %","since":"2026-11-24T09:00:00Z","resolved_at":null}],` +
		`"resolved":[{"id":"a2","sandbox_id":"","sandbox":"","template":"go","part":"","text":"","since":"2026-11-24T08:00:00Z","resolved_at":"2026-11-24T09:00:00Z"}],` +
		`"link":"https://box.example.com/alerts"}}`
	if diff := gocmp.Diff(want, string(r.body)); diff != "" {
		t.Error(diff)
	}
}

func TestSend_ATestHasEmptyLists(t *testing.T) {
	url, got := listen(t, http.StatusOK)
	if err := New(Config{Private: true}).Send(t.Context(), to(url), alert.Message{ID: "1", Event: alert.Test}); err != nil {
		t.Fatal(err)
	}
	var b body
	if err := json.Unmarshal((<-got).body, &b); err != nil || b.Type != "alert.test" || b.Data.Firing == nil || b.Data.Resolved == nil {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestSend_TheStatusDecidesAboutARetry(t *testing.T) {
	for status, kind := range map[int]fault.Kind{
		400: fault.Invalid, 401: fault.Invalid, 404: fault.Invalid, 410: fault.Invalid, 301: fault.Invalid, 304: fault.Invalid,
		408: fault.Unavailable, 429: fault.Unavailable, 500: fault.Unavailable, 503: fault.Unavailable, 599: fault.Unavailable,
	} {
		url, _ := listen(t, status)
		err := New(Config{Private: true}).Send(t.Context(), to(url+"/secret-path"), firing)
		if !fault.Is(err, kind) || !strings.Contains(fault.Message(err), fmt.Sprint(status)) || strings.Contains(err.Error(), "secret-path") {
			t.Errorf("%d: %v, %v", status, fault.KindOf(err), err)
		}
	}
}

func TestSend_ARetryHasTheSameID(t *testing.T) {
	url, got := listen(t, http.StatusInternalServerError, http.StatusOK)
	s := New(Config{Private: true})
	if err := s.Send(t.Context(), to(url), firing); !fault.Is(err, fault.Unavailable) {
		t.Fatal(err)
	}
	if err := s.Send(t.Context(), to(url), firing); err != nil {
		t.Fatal(err)
	}
	if first, second := <-got, <-got; first.header.Get("webhook-id") != second.header.Get("webhook-id") {
		t.Error("the ids differ")
	}
}

// TestSend_EndsInTime posts to servers that hang: one before its answer, one in the middle of it, which counts as taken.
func TestSend_EndsInTime(t *testing.T) {
	for answers, kind := range map[bool]fault.Kind{false: fault.Timeout, true: fault.Internal} {
		over := make(chan struct{})
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if answers {
				w.WriteHeader(http.StatusOK)
				http.NewResponseController(w).Flush()
			}
			<-over
		}))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		err := New(Config{Private: true}).Send(ctx, to(s.URL+"/secret-path"), firing)
		if answers && err != nil || !answers && (!fault.Is(err, kind) || strings.Contains(err.Error(), "secret-path")) {
			t.Errorf("answers %v: %v", answers, err)
		}
		cancel()
		close(over)
		s.Close()
	}
}

func TestSend_AnAnswerWithoutEndIsCutOff(t *testing.T) {
	for name, endless := range map[string]func(w http.ResponseWriter) error{
		"head": func(w http.ResponseWriter) error {
			w.Header().Set("X", strings.Repeat("x", 10*answerLimit))
			return nil
		},
		"body": func(w http.ResponseWriter) error {
			for {
				if _, err := w.Write(make([]byte, answerLimit)); err != nil {
					return err
				}
			}
		},
	} {
		ended := make(chan error, 1)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { ended <- endless(w) }))
		err := New(Config{Private: true}).Send(t.Context(), to(s.URL), firing)
		if ended := <-ended; (name == "head") != fault.Is(err, fault.Unavailable) || (name == "body") != (ended != nil) {
			t.Errorf("%s: %v; the server: %v", name, err, ended)
		}
		s.Close()
	}
}

func TestSend_ARedirectIsNotFollowed(t *testing.T) {
	inner, got := listen(t, http.StatusOK)
	outer := httptest.NewServer(http.RedirectHandler(inner, http.StatusTemporaryRedirect))
	defer outer.Close()
	err := New(Config{Private: true}).Send(t.Context(), to(outer.URL), firing)
	if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Message(err), "redirect") || len(got) != 0 {
		t.Errorf("%v, %d requests", err, len(got))
	}
}

func TestSend_OverTLSTheCertificateCounts(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	cas := x509.NewCertPool()
	cas.AddCert(s.Certificate())
	if err := New(Config{Private: true, RootCAs: cas}).Send(t.Context(), to(s.URL), firing); err != nil {
		t.Error(err)
	}
	if err := New(Config{Private: true}).Send(t.Context(), to(s.URL), firing); !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Message(err), "is not trusted") {
		t.Error(err)
	}
}

func TestSend_NobodyThere(t *testing.T) {
	s := New(Config{Private: true})
	for address, says := range map[string]string{"http://127.0.0.1:1/": "refuses connections", "http://a..b/": "there is no such name"} {
		if err := s.Send(t.Context(), to(address), firing); !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Message(err), says) {
			t.Errorf("%s: %v", address, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Send(ctx, to("http://127.0.0.1:1/"), firing); !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Message(err), "interrupted") {
		t.Error(err)
	}
}

func TestSend_AsksNoProxy(t *testing.T) {
	if New(Config{}).client.Transport.(*http.Transport).Proxy != nil {
		t.Error("a proxy would connect in our place")
	}
}

func TestCheck_SaysWhatIsWrong(t *testing.T) {
	s := New(Config{})
	for address, says := range map[string]string{
		"https://example.com/hook?token=x": "", "http://example.com:8080": "", "https://93.184.216.34/": "", "https://[2606:2800:220:1::1]/": "",
		"":                      "must begin with https://",
		"example.com":           "must begin with https://",
		"ftp://example.com":     "must begin with https://",
		"mailto:a@example.com":  "not a URL",
		"https://exa mple.com":  "not a URL",
		"https://a\nb":          "not a URL",
		"https://":              "must have a host name",
		"https://:443/":         "must have a host name",
		"https://example.com:0": "a port between",
		"https://e:99999":       "a port between",
		"https://u:p@e.com":     "must not contain a user",
		"https://e.com/" + strings.Repeat("x", urlLimit): "too long",
		"http://localhost/":          "private or local",
		"http://LOCALHOST.:8080":     "private or local",
		"http://x.localhost/":        "private or local",
		"http://127.0.0.1/":          "private or local",
		"http://[::1]/":              "private or local",
		"http://[fe80::1%25eth0]/":   "private or local",
		"http://169.254.169.254/":    "private or local",
		"http://[::ffff:10.0.0.1]/":  "private or local",
		"http://[64:ff9b::a00:1]:1/": "private or local",
	} {
		err := s.Check(to(address))
		if (err != nil) != (says != "") || !strings.Contains(fault.Message(cmp.Or(err, fault.New(fault.Invalid, ""))), says) || err != nil && fault.FieldOf(err) != "address" {
			t.Errorf("%s: %v", address, err)
		}
	}
	if err := New(Config{Private: true}).Check(to("http://127.0.0.1/")); err != nil {
		t.Error(err)
	}
}

func TestCheck_TheSecret(t *testing.T) {
	s := New(Config{Private: true})
	for secret, good := range map[string]bool{
		secret: true, "": true, "whsec_": false, "whsec_c2hvcnQ=": false, "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw": false, "whsec_!!!": false,
		"whsec_" + strings.Repeat("MfKQ", 22): false,
	} {
		c := to("https://example.com")
		c.Secret = secret
		if err := s.Check(c); (err == nil) != good || err != nil && (fault.FieldOf(err) != "secret" || strings.Contains(err.Error(), "MfKQ")) {
			t.Errorf("%q: %v", secret, err)
		}
	}
	url, _ := listen(t, http.StatusOK)
	c := to(url)
	c.Secret = ""
	if err := s.Send(t.Context(), c, firing); !fault.Is(err, fault.Invalid) {
		t.Errorf("unsigned: %v", err)
	}
}

// Package agenttest is the conformance suite of agent.Model: what a driver does with a provider that answers, fails and misbehaves.
//
// It does not test what a provider is asked in which form; each driver's own tests do.
//
// Invariant: every driver passes all of it, so that a turn need not know which one it has.
package agenttest

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/agent"
	"sandboxd/internal/agent/transport"
	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
	"sandboxd/internal/gateway/gatewaytest"
)

// Driver is what the suite tests.
type Driver struct {
	Kind gateway.Kind
	Open func(transport.Endpoint) agent.Model
	Caps Caps
	Near bool // the provider is reached through a handler in this process, as the gateway is
}

// Caps are the differences between protocols.
type Caps struct {
	Signs        bool // thinking comes with a signature
	WholeCalls   bool // the arguments of a call come at once, and are always an object
	CachesTokens bool // usage tells cached tokens apart
}

// key adds a provider's key, as the gateway does.
type key string

// RoundTrip implements http.RoundTripper.
func (k key) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(k))
	return http.DefaultTransport.RoundTrip(r)
}

// bench is a driver's model before a scripted provider.
type bench struct {
	*gatewaytest.Provider
	Driver
	model agent.Model
}

func (d Driver) bench(t *testing.T, times transport.Timeouts) *bench {
	t.Helper()
	p := gatewaytest.NewProvider(t, d.Kind)
	e := transport.Endpoint{BaseURL: p.BaseURL(d.Kind), Model: "scripted-1", HTTP: key(p.Key()), Timeouts: times}
	if d.Near {
		to, err := url.Parse(p.URL())
		if err != nil {
			t.Fatal(err)
		}
		proxy := httputil.NewSingleHostReverseProxy(to)
		proxy.Transport, proxy.FlushInterval, proxy.ErrorLog = e.HTTP, -1, log.New(t.Output(), "", 0)
		e.HTTP, e.BaseURL = transport.Handler(proxy), strings.Replace(e.BaseURL, p.URL(), "http://gateway.invalid", 1)
	}
	return &bench{Provider: p, Driver: d, model: d.Open(e)}
}

// answer is what came of a request.
type answer struct {
	text, thinking string
	opaque         []*agent.Opaque
	names          map[int]string
	ids            map[int]string
	arguments      map[int]string
	finish         agent.Finish
	err            error
	chunks         int
}

// ask sends a request for a turn with a tool.
func (b *bench) ask(ctx context.Context, messages ...agent.Message) *answer {
	if len(messages) == 0 {
		messages = []agent.Message{agent.NewText(agent.User, "Hello.")}
	}
	a := &answer{names: map[int]string{}, ids: map[int]string{}, arguments: map[int]string{}}
	a.finish, a.err = b.model.Stream(ctx, agent.Request{System: "Be brief.", Messages: messages, Output: 1000, Tools: []agent.ToolSpec{Look}}, a.take)
	return a
}

func (a *answer) take(c agent.Chunk) error {
	a.chunks++
	switch c.Kind {
	case agent.ChunkText:
		a.text += c.Text
	case agent.ChunkThinking:
		a.thinking += c.Text
	case agent.ChunkOpaque:
		a.opaque = append(a.opaque, c.Opaque)
	case agent.ChunkCall:
		a.names[c.Index], a.ids[c.Index] = c.Name, c.ID
	case agent.ChunkArgs:
		a.arguments[c.Index] += c.Text
	}
	return nil
}

// Look is the tool that the suite offers.
var Look = agent.ToolSpec{
	Name: "look", Description: "Looks at something.",
	Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","description":"What to look at."}},"required":["path"]}`),
}

// ModelContract runs the suite.
func ModelContract(t *testing.T, d Driver) {
	for name, test := range map[string]func(*testing.T, Driver){
		"AnswersAreStreamed":               answersAreStreamed,
		"CallsAreTold":                     callsAreTold,
		"ManyCallsStayApart":               manyCallsStayApart,
		"ATranscriptIsAccepted":            aTranscriptIsAccepted,
		"UsageIsTold":                      usageIsTold,
		"RefusalsAreClassified":            refusalsAreClassified,
		"RetryAfterIsRead":                 retryAfterIsRead,
		"ItDoesNotRetry":                   itDoesNotRetry,
		"AHalfStreamIsBroken":              aHalfStreamIsBroken,
		"AnErrorMidwayIsClassified":        anErrorMidwayIsClassified,
		"BrokenJSONIsTold":                 brokenJSONIsTold,
		"AnotherContentTypeIsTold":         anotherContentTypeIsTold,
		"ARedirectIsNotFollowed":           aRedirectIsNotFollowed,
		"SilenceBeforeAndWithinEnds":       silenceBeforeAndWithinEnds,
		"NoServerIsUnreachable":            noServerIsUnreachable,
		"CancelEndsIt":                     cancelEndsIt,
		"EmitCanEndIt":                     emitCanEndIt,
		"AHugeArgumentIsBounded":           aHugeArgumentIsBounded,
		"ATurnWorks":                       aTurnWorks,
		"ATurnEndsAnEndlessAnswer":         aTurnEndsAnEndlessAnswer,
		"ATurnRefusesAHugeArgument":        aTurnRefusesAHugeArgument,
		"ATurnThatIsCutCanBeContinued":     aTurnThatIsCutCanBeContinued,
		"ATurnShortensWhatIsTooLong":       aTurnShortensWhatIsTooLong,
		"BrokenArgumentsComeAsTheyAre":     brokenArgumentsComeAsTheyAre,
		"TheirWordsAreShownSafelyAndShort": theirWordsAreShownSafelyAndShort,
		"AnAnswerThatMayNotBeRepeatedIsSo": finalIsKept,
		"PicturesAreSent":                  picturesAreSent,
		"CallsThatAreCutAreNotMade":        cutCallsAreNotMade,
		"UnknownToolsAndBadNamesAreTold":   unknownToolsAreAnswered,
	} {
		t.Run(name, func(t *testing.T) { test(t, d) })
	}
}

// wantCode checks how a request failed, and that a person can read it.
func wantCode(t *testing.T, err error, code agent.Code) *agent.ModelError {
	t.Helper()
	var m *agent.ModelError
	if !errors.As(err, &m) {
		t.Fatalf("it failed with %v, want a failure with code %s", err, code)
	}
	if m.Code != code {
		t.Fatalf("it failed with code %s (%v), want %s", m.Code, err, code)
	}
	if said := fault.Message(err); said == "" || strings.Contains(said, "inside sandboxd") || strings.ContainsAny(said, "\n\r\x1b") {
		t.Fatalf("a person reads %q", said)
	}
	return m
}

// long is a time that a test may take on a busy machine.
const long = time.Minute

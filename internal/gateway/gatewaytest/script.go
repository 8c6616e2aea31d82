package gatewaytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"sandboxd/internal/gateway"
)

// Script is one answer of a Provider. The zero one says "ok".
//
// It is played to the next request for an answer that it fits: For must be true, and a Command needs a tool that runs one. A request that
// the first script does not fit is answered "ok", and the script waits: agents ask for titles and suggestions on the side. A list or a
// count plays only a script with a For, and of it only a fault.
type Script struct {
	For func(Request) bool // nil fits all

	Thinking string
	Text     string // sent word by word
	Calls    []Call
	Command  string          // a shell command, for the tool of the client's that runs one
	Usage    *gateway.Tokens // nil means 10 in and 5 out
	NoUsage  bool            // says nothing about usage, as some servers do
	Header   http.Header     // beside the protocol's own
	Delay    time.Duration   // between the pieces of a stream
	Gate     <-chan struct{} // waited for after the first piece; before an answer that is not streamed
	Repeat   int             // how often it is played; 0 means once

	Status     int // an error of this status; with CutAfter, an error in a stream that began well
	RetryAfter time.Duration
	Body       string // instead of the error in the protocol's own form

	CutAfter     int  // breaks the connection after so many pieces; in the middle of an answer that is not streamed
	Hang         bool // does not answer until the client leaves or the test ends
	WrongType    bool // a page instead of an answer
	BrokenJSON   bool // JSON that ends too soon
	HugeArgument bool // the arguments of the first call have 10 MB more
	Endless      bool // more and more text until the client leaves
}

// Call is a call of a tool. Args is any value that becomes JSON; a string is sent as it is, so that it may be broken.
type Call struct {
	Name string
	Args any
}

// AfterResult fits requests that bring the result of a tool.
func AfterResult(r Request) bool { return r.Result }

// WithTools fits requests that offer tools.
func WithTools(r Request) bool { return len(r.Tools) > 0 }

// Listing fits requests for lists and counts.
func Listing(r Request) bool { return r.Listed }

const hugeArgument = 10 << 20

// next takes the next script if it fits.
func (p *Provider) next(seen Request) (Script, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.script) == 0 || !p.script[0].fits(seen) {
		return Script{}, false
	}
	s := p.script[0]
	if p.script[0].Repeat--; p.script[0].Repeat <= 0 {
		p.script = slices.Delete(p.script, 0, 1)
	}
	return s, true
}

func (s *Script) fits(r Request) bool {
	if s.For == nil && r.Listed || s.For != nil && !s.For(r) {
		return false
	}
	return s.Command == "" || slices.ContainsFunc(shells, func(name string) bool { return slices.Contains(r.Tools, name) })
}

// answer is what a protocol puts into its own form.
type answer struct {
	number   int // unique
	model    string
	asked    ask
	thinking string
	text     string
	calls    []called
	usage    *gateway.Tokens // nil when nothing is said about it
	endless  bool
}

// called is a call of a tool, with arguments as JSON.
type called struct {
	id, name, args string
}

// answer makes a script an answer to what was asked.
func (p *Provider) answer(s Script, asked ask) answer {
	p.mu.Lock()
	p.served++
	number := p.served
	p.mu.Unlock()
	a := answer{number: number, model: asked.model, asked: asked, thinking: s.Thinking, text: s.Text, endless: s.Endless}
	if !s.NoUsage {
		a.usage = &gateway.Tokens{Input: 10, Output: 5}
		if s.Usage != nil {
			a.usage = s.Usage
		}
	}
	calls := s.Calls
	if s.Command != "" {
		calls = append(slices.Clone(calls), shellCall(asked.tools, s.Command))
	}
	for i, c := range calls {
		args := arguments(c.Args)
		if s.HugeArgument && i == 0 {
			args = huge(args)
		}
		a.calls = append(a.calls, called{id: fmt.Sprintf("call_%d_%d", number, i), name: c.Name, args: args})
	}
	if a.text == "" && a.thinking == "" && len(a.calls) == 0 {
		a.text = "ok"
	}
	return a
}

// arguments makes the arguments of a call JSON.
func arguments(args any) string {
	switch args := args.(type) {
	case nil:
		return "{}"
	case string:
		return args
	case json.RawMessage:
		return string(args)
	}
	return string(encode(args))
}

// huge adds a long member to an object.
func huge(object string) string {
	sep := ","
	if strings.TrimSpace(object) == "{}" {
		sep = ""
	}
	return `{"huge":"` + strings.Repeat("0123456789abcdef", hugeArgument/16) + `"` + sep + strings.TrimPrefix(strings.TrimSpace(object), "{")
}

// pieces cuts text so that each piece is a delta: a word, or of long text without spaces a part.
func pieces(text string) []string {
	var all []string
	for word := range strings.SplitAfterSeq(text, " ") {
		all = append(all, parts(word, 64<<10)...)
	}
	return all
}

// parts cuts text into parts of at most size bytes, between characters.
func parts(text string, size int) []string {
	var all []string
	for len(text) > size {
		cut := size
		for cut > 1 && text[cut]&0xC0 == 0x80 {
			cut--
		}
		all, text = append(all, text[:cut]), text[cut:]
	}
	if text != "" {
		all = append(all, text)
	}
	return all
}

// argumentParts cuts the arguments of a call as models send them: a few characters at a time, more of long ones.
func argumentParts(args string) []string { return parts(args, max(12, len(args)/160)) }

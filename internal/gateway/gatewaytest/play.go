package gatewaytest

import (
	"bytes"
	"encoding/json"
	"io"
	"iter"
	"maps"
	"net/http"
	"strconv"
	"time"

	"sandboxd/internal/gateway"
)

// protocol is the form in which a client and a provider speak.
type protocol interface {
	key(*http.Request) string
	read(*http.Request, []byte) ask
	fault(status int, message string) any
	whole(answer) any
	contentType(ask) string
	frames(answer) iter.Seq[frame]
	broken(status int, message string) []byte // an error within a stream
}

// ask is what the protocols' requests have in common.
type ask struct {
	model   string
	stream  bool
	tools   []tool
	result  bool   // it brings the result of a tool
	usage   bool   // a stream says at its end what it took
	events  bool   // of Gemini: a stream is one of events, not an array
	problem string // why the vendor refuses the request
}

// frame is what is sent of a stream at once. A piece is what a model has said: the others are around it.
type frame struct {
	data  []byte
	piece bool
}

// routes has all paths of the kinds' protocols.
func (p *Provider) routes(kinds []gateway.Kind) http.Handler {
	mux := http.NewServeMux()
	listed := p.handle(listing{}, true, (*exchange).models)
	for _, kind := range kinds {
		switch kind {
		case gateway.Anthropic:
			mux.HandleFunc("POST /v1/messages", p.handle(messages{}, false, (*exchange).turn))
			mux.HandleFunc("POST /v1/messages/count_tokens", p.handle(messages{}, true, (*exchange).countTokens))
		case gateway.OpenAI:
			mux.HandleFunc("POST /v1/chat/completions", p.handle(chat{}, false, (*exchange).turn))
			mux.HandleFunc("POST /v1/responses", p.handle(responses{}, false, (*exchange).turn))
			mux.HandleFunc("POST /v1/embeddings", p.handle(chat{}, true, (*exchange).embeddings))
		case gateway.Ollama:
			p.ollamaRoutes(mux, kinds)
		case gateway.Gemini:
			mux.HandleFunc("POST /v1beta/models/{call}", p.geminiRoute)
			mux.HandleFunc("GET /v1beta/models", p.handle(gemini{}, true, (*exchange).geminiModels))
		}
	}
	mux.HandleFunc("GET /v1/models", listed)
	mux.HandleFunc("/", p.handle(listing{}, true, func(x *exchange) {
		reply(x.w, http.StatusNotFound, x.speak.fault(http.StatusNotFound, "there is nothing at "+x.r.URL.Path))
	}))
	return mux
}

// turn answers one request to a model.
func (x *exchange) turn() {
	if x.ask.problem != "" {
		reply(x.w, http.StatusBadRequest, x.speak.fault(http.StatusBadRequest, x.ask.problem))
		return
	}
	if _, ok := x.p.offered(x.ask.model); !ok {
		reply(x.w, http.StatusNotFound, x.speak.fault(http.StatusNotFound, "model: "+x.ask.model))
		return
	}
	s, _ := x.p.next(x.seen)
	maps.Copy(x.w.Header(), s.Header)
	if x.faulty(s) {
		return
	}
	if a := x.p.answer(s, x.ask); x.ask.stream {
		x.stream(s, a)
	} else {
		x.once(s, a)
	}
}

// faulty plays a fault that comes instead of an answer, and reports whether it did.
func (x *exchange) faulty(s Script) bool {
	switch {
	case s.Hang:
		x.wait(make(chan struct{}), 0)
	case s.Status != 0 && s.CutAfter == 0:
		if s.RetryAfter > 0 {
			x.w.Header().Set("Retry-After", strconv.Itoa(int(s.RetryAfter.Seconds())))
		}
		body := x.speak.fault(s.Status, "the script says so")
		if s.Body != "" {
			body = json.RawMessage(s.Body)
		}
		reply(x.w, s.Status, body)
	case s.WrongType:
		x.w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(x.w, "<!doctype html><title>Sign in</title><p>Sign in to the network.") // the client's end is tested, not ours
	default:
		return false
	}
	return true
}

// once sends an answer that is not streamed.
func (x *exchange) once(s Script, a answer) {
	if !x.wait(s.Gate, s.Delay) {
		return
	}
	x.w.Header().Set("Content-Type", "application/json")
	for s.Endless && x.send(spaces) {
	}
	body := encode(x.speak.whole(a))
	switch {
	case s.BrokenJSON:
		body = body[:len(body)/2]
	case s.CutAfter > 0:
		x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		x.send(body[:len(body)/2])
		panic(http.ErrAbortHandler)
	}
	x.send(body)
}

// spaces may come before JSON, as many as there are.
var spaces = bytes.Repeat([]byte(" "), 32<<10)

// stream sends an answer piece by piece.
func (x *exchange) stream(s Script, a answer) {
	x.w.Header().Set("Content-Type", x.speak.contentType(x.ask))
	x.w.Header().Set("Cache-Control", "no-cache")
	sent := 0
	for f := range x.speak.frames(a) {
		if s.BrokenJSON && sent == 1 {
			x.send(append(bytes.Clone(f.data[:len(f.data)*3/4]), "\n\n"...))
			return
		}
		if !x.send(f.data) {
			return
		}
		if !f.piece {
			continue
		}
		if sent++; sent == s.CutAfter {
			if s.Status == 0 {
				panic(http.ErrAbortHandler)
			}
			x.send(x.speak.broken(s.Status, "the script says so"))
			return
		}
		var gate <-chan struct{}
		if sent == 1 {
			gate = s.Gate
		}
		if !x.wait(gate, s.Delay) {
			return
		}
	}
}

// wait waits for a gate and then for a time, where there are such. It reports false when the client has left or the test has ended.
func (x *exchange) wait(gate <-chan struct{}, delay time.Duration) bool {
	var after <-chan time.Time
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		after = timer.C
	}
	for gate != nil || after != nil {
		select {
		case <-gate:
			gate = nil
		case <-after:
			after = nil
		case <-x.p.done:
			return false
		case <-x.r.Context().Done():
			x.p.change(func() { x.p.left++ })
			return false
		}
	}
	return true
}

// send sends bytes at once, and reports whether the client is still there.
func (x *exchange) send(data []byte) bool {
	_, err := x.w.Write(data)
	if err == nil {
		err = http.NewResponseController(x.w).Flush()
	}
	if err != nil || x.r.Context().Err() != nil {
		x.p.change(func() { x.p.left++ })
		return false
	}
	return true
}

// reply sends JSON.
func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(encode(body)) // the client's end is tested, not ours
}

// encode writes JSON as the vendors do, which leave < and & as they are.
func encode(v any) []byte {
	if raw, ok := v.(json.RawMessage); ok {
		return raw
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // a script with a value that JSON does not have
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

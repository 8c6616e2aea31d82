package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"

	"sandboxd/internal/text"
)

// body is what a client has sent.
type body struct {
	raw     []byte
	model   string
	models  []span // values that name the model
	stream  bool
	usage   bool // it asks for a chunk with the usage at the end of a stream of Chat Completions
	options []span
	others  []span // models to be asked in the place of the one that is named, as brokers take them
}

// span is a part of a body.
type span struct{ from, to int }

// parseBody reads a body that is JSON. named are the fields that name the model, the last one first.
func parseBody(raw []byte, named []string) (body, *problem) {
	b := body{raw: raw}
	if first := bytes.TrimLeft(raw, jsonSpace); len(first) == 0 || first[0] != '{' || !json.Valid(raw) {
		return b, refuse(http.StatusBadRequest, "The body of the request is no JSON object.")
	}
	for _, name := range slices.Backward(named) {
		for key, value := range fields(raw) {
			var model string
			if strings.EqualFold(key, name) && json.Unmarshal(raw[value.from:value.to], &model) == nil {
				b.models = append(b.models, value)
				if key == name {
					b.model = model
				}
			}
		}
	}
	for key, value := range fields(raw) {
		if strings.EqualFold(key, "models") || strings.EqualFold(key, "fallbacks") {
			b.others = append(b.others, value)
		}
		switch key {
		case "stream":
			b.stream = string(raw[value.from:value.to]) == "true"
		case "stream_options":
			b.options = append(b.options, value)
			var o struct {
				Usage bool `json:"include_usage"`
			}
			b.usage = json.Unmarshal(raw[value.from:value.to], &o) == nil && o.Usage
		}
	}
	return b, nil
}

// check gives the problem with a body that names no model.
func (b body) check() *problem {
	if b.model == "" || len(b.model) > maxModel || text.Unprintable(b.model) {
		return refuse(http.StatusBadRequest, "The request names no model: the field \"model\" must be a name of at most %d characters.", maxModel)
	}
	return nil
}

// asksFor reports whether all models that are to be asked in the place of the one that is named are among some.
func (b body) asksFor(listed func(string) bool) bool {
	for _, at := range b.others {
		var names []string
		if json.Unmarshal(b.raw[at.from:at.to], &names) != nil || slices.ContainsFunc(names, func(name string) bool { return !listed(name) }) {
			return false
		}
	}
	return true
}

// withModel gives the body with another model and, when asked, with the wish for usage. All else is as it was, byte for byte.
func (b body) withModel(model string, usage bool) []byte {
	type edit struct {
		span
		text string
	}
	var edits []edit
	if len(b.models) > 1 || model != b.model {
		for _, at := range b.models {
			edits = append(edits, edit{at, string(encode(model))})
		}
	}
	switch {
	case !usage:
	case len(b.options) == 0:
		after := bytes.IndexByte(b.raw, '{') + 1
		edits = append(edits, edit{span{after, after}, `"stream_options":{"include_usage":true},`})
	default:
		for _, at := range b.options {
			edits = append(edits, edit{at, askForUsage(b.raw[at.from:at.to])})
		}
	}
	if len(edits) == 0 {
		return b.raw
	}
	slices.SortFunc(edits, func(x, y edit) int { return x.from - y.from })
	out := make([]byte, 0, len(b.raw)+len(edits)*(len(model)+64))
	at := 0
	for _, e := range edits {
		out = append(append(out, b.raw[at:e.from]...), e.text...)
		at = e.to
	}
	return append(out, b.raw[at:]...)
}

// askForUsage gives the options of a stream with that one set.
func askForUsage(options []byte) string {
	const wish = `{"include_usage":true`
	if options[0] != '{' {
		return wish + "}"
	}
	out := []byte(wish)
	for key, value := range fields(options) {
		if key != "include_usage" {
			out = append(append(append(out, ','), encode(key)...), ':')
			out = append(out, options[value.from:value.to]...)
		}
	}
	return string(append(out, '}'))
}

const jsonSpace = " \t\r\n"

// fields gives the fields of an object that is valid JSON, in order, with duplicates.
func fields(object []byte) iter.Seq2[string, span] {
	return func(yield func(string, span) bool) {
		for i := bytes.IndexByte(object, '{') + 1; ; i++ { // behind the brace, or a comma
			i = skipSpace(object, i)
			if object[i] != '"' {
				return // the object is empty
			}
			end := endOfString(object, i)
			var key string
			_ = json.Unmarshal(object[i:end], &key) // it is valid
			from := skipSpace(object, skipSpace(object, end)+len(":"))
			to := endOfValue(object, from)
			if !yield(key, span{from, to}) {
				return
			}
			if i = skipSpace(object, to); object[i] != ',' {
				return
			}
		}
	}
}

func skipSpace(text []byte, i int) int {
	for strings.IndexByte(jsonSpace, text[i]) >= 0 {
		i++
	}
	return i
}

// endOfString gives where the string ends that begins at i.
func endOfString(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// endOfValue gives where the value ends that begins at i.
func endOfValue(text []byte, i int) int {
	depth := 0
	for {
		switch text[i] {
		case '"':
			i = endOfString(text, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		default:
			i++
		}
		if depth == 0 && (text[i-1] == '"' || text[i-1] == '}' || text[i-1] == ']' || strings.IndexByte(jsonSpace+",}]", text[i]) >= 0) {
			return i
		}
	}
}

// smallBody is how much of a body is read without asking for room.
const smallBody = 1 << 20

// readBody reads the body of the request.
func (x *exchange) readBody() error {
	if coding := x.r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return refuse(http.StatusUnsupportedMediaType, "The gateway reads no compressed bodies. Send the request without Content-Encoding.")
	}
	if x.r.ContentLength > MaxBody {
		return tooLarge()
	}
	raw, err := x.readAll(http.MaxBytesReader(x.w, x.r.Body, MaxBody))
	if over := (*http.MaxBytesError)(nil); errors.As(err, &over) {
		return tooLarge()
	} else if p := (*problem)(nil); errors.As(err, &p) {
		return p
	} else if err != nil {
		return gone(err)
	}
	x.size = len(raw)
	x.deadline(0) // not before: net/http reads what is left of a body that was given up
	if len(x.route.named) == 0 && len(raw) == 0 {
		return nil
	}
	var wrong *problem
	if x.body, wrong = parseBody(raw, x.route.named); wrong == nil && x.route.model == "" && len(x.route.named) > 0 {
		wrong = x.body.check()
	}
	if wrong != nil {
		return wrong
	}
	return nil
}

// readAll reads a body. For a large one it takes room, which x.release gives back.
func (x *exchange) readAll(from io.Reader) ([]byte, error) {
	x.deadline(bodyLimit)
	var buf bytes.Buffer
	_, err := io.CopyN(&buf, from, smallBody)
	if err == nil { // there may be more
		if err := x.takeRoom(); err != nil {
			return nil, err
		}
		x.deadline(bodyLimit) // anew: it may have waited
		buf.Grow(int(max(x.r.ContentLength-smallBody, 0)) + bytes.MinRead)
		_, err = io.Copy(&buf, from)
		return buf.Bytes(), err
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return buf.Bytes(), err
}

// takeRoom waits until a large body may be read, and has x.release give the room back. Many sandboxes together must not take all memory.
func (x *exchange) takeRoom() error {
	own, err := x.plane.large.Acquire(x.r.Context(), x.key(), maxLarge, -1)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(x.r.Context(), roomLimit)
	defer cancel()
	all, err := x.plane.large.Acquire(ctx, "all", maxLargeOfAll, -1)
	if err == nil {
		x.release = sync.OnceFunc(func() { all(); own() })
		return nil
	}
	if own(); x.r.Context().Err() != nil {
		return err
	}
	p := refuse(http.StatusServiceUnavailable, "Too many large requests to models are under way on this server. Try again in a minute.")
	p.wait = roomLimit
	return p
}

func tooLarge() *problem {
	return refuse(http.StatusRequestEntityTooLarge, "The body of the request is larger than %d MiB.", MaxBody>>20)
}

// gone is the problem with a client that has left, or sends nothing.
func gone(err error) *problem {
	return &problem{status: statusGone, message: "The client went away.", err: err}
}

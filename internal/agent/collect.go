package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"sandboxd/internal/text"
)

// Reasons to stop a stream.
var (
	errTooMuchText = errors.New("the model has written more than one step may have")
	errTokensSpent = errors.New("the turn's tokens are spent")
)

// goodID is what every provider takes as the ID of a call; names of tools have the same form.
var goodID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// badName finds what the name of a tool may not have.
var badName = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// collector puts the chunks of one answer together, within bounds, and tells of each.
type collector struct {
	emit    func(Event)
	taken   map[string]bool // IDs of calls that are in the transcript; those of this answer are added
	most    int64           // bytes of all that are paid for; 0 means any number
	parts   []*piece
	calls   map[int]*piece
	ignored map[int]bool // calls beyond MaxCalls
	bytes   int64        // of text, thinking and arguments
	written [2]int       // bytes of text and of thinking
}

// piece is a part that is being put together.
type piece struct {
	kind   PartKind
	text   strings.Builder // of a call: its arguments, at most MaxArguments
	size   int             // of all the arguments that came
	opaque *Opaque
	call   Call
}

func newCollector(emit func(Event), messages []Message) *collector {
	c := &collector{emit: emit, taken: map[string]bool{}, calls: map[int]*piece{}, ignored: map[int]bool{}}
	for _, m := range messages {
		for _, call := range m.calls() {
			c.taken[call.ID] = true
		}
	}
	return c
}

// take adds a chunk. An error ends the stream.
func (c *collector) take(chunk Chunk) error {
	chunk.Text = strings.ToValidUTF8(chunk.Text, "\uFFFD")
	c.bytes += int64(len(chunk.Text))
	switch chunk.Kind {
	case ChunkText:
		return c.write(PartText, TextDelta, chunk.Text)
	case ChunkThinking:
		return c.write(PartThinking, ThinkingDelta, chunk.Text)
	case ChunkOpaque:
		c.seal(chunk.Opaque)
	case ChunkCall:
		c.begin(chunk)
	case ChunkArgs:
		c.argue(chunk)
	}
	return c.spent()
}

func (c *collector) spent() error {
	if len(c.parts) > maxParts {
		return errTooMuchText
	}
	if c.most > 0 && c.bytes > c.most {
		return errTokensSpent
	}
	return nil
}

func (c *collector) write(kind PartKind, event EventKind, text string) error {
	if text == "" {
		return nil
	}
	which := 0
	if kind == PartThinking {
		which = 1
	}
	if c.written[which] += len(text); c.written[which] > MaxText {
		return errTooMuchText
	}
	c.last(kind).text.WriteString(text)
	c.emit(Event{Kind: event, Text: text})
	return c.spent()
}

// last gives the part under way when it is of that kind, else a new one.
func (c *collector) last(kind PartKind) *piece {
	if n := len(c.parts); n > 0 && c.parts[n-1].kind == kind && c.parts[n-1].opaque == nil {
		return c.parts[n-1]
	}
	p := &piece{kind: kind}
	c.parts = append(c.parts, p)
	return p
}

// seal ends a part of thinking.
func (c *collector) seal(o *Opaque) {
	if o == nil || o.Signature == "" || c.written[1]+len(o.Signature) > MaxText {
		return
	}
	c.written[1] += len(o.Signature)
	if o.Redacted {
		c.parts = append(c.parts, &piece{kind: PartThinking, opaque: o})
		return
	}
	c.last(PartThinking).opaque = o
}

func (c *collector) begin(chunk Chunk) {
	if c.calls[chunk.Index] != nil || c.ignored[chunk.Index] {
		return
	}
	if len(c.calls) >= MaxCalls {
		if len(c.ignored) < MaxCalls*MaxCalls { // and beyond that not even counted
			c.ignored[chunk.Index] = true
		}
		return
	}
	name := text.OneLine(chunk.Name, maxName)
	name = badName.ReplaceAllString(name, "_")
	p := &piece{kind: PartCall, call: Call{ID: c.id(chunk.ID), Name: orElse(name[:min(len(name), 64)], "unnamed")}}
	c.calls[chunk.Index] = p
	c.parts = append(c.parts, p)
	c.emit(Event{Kind: CallBegun, CallID: p.call.ID, Name: p.call.Name})
}

// id gives the provider's ID of a call, or another one when that cannot be used.
func (c *collector) id(theirs string) string {
	if !goodID.MatchString(theirs) || c.taken[theirs] {
		theirs = newCallID()
	}
	c.taken[theirs] = true
	return theirs
}

func (c *collector) argue(chunk Chunk) {
	p := c.calls[chunk.Index]
	if p == nil || chunk.Text == "" {
		return
	}
	if p.size += len(chunk.Text); p.size > MaxArguments {
		return
	}
	p.text.WriteString(chunk.Text)
	c.emit(Event{Kind: CallDelta, CallID: p.call.ID, Text: chunk.Text})
}

// finish gives the parts that show something. whole says that the answer is complete; otherwise a call at its end is not.
func (c *collector) finish(whole bool) []Part {
	var parts []Part
	for i, p := range c.parts {
		switch {
		case p.kind == PartCall:
			call := p.finished(whole || i < len(c.parts)-1)
			c.emit(Event{Kind: CallDone, CallID: call.ID, Name: call.Name, Call: &call})
			parts = append(parts, Part{Kind: PartCall, Call: &call})
		case strings.TrimSpace(p.text.String()) != "" || p.opaque != nil:
			parts = append(parts, Part{Kind: p.kind, Text: p.text.String(), Opaque: p.opaque})
		}
	}
	return parts
}

// maxBroken bounds what is kept of broken arguments.
const maxBroken = 2000

// finished gives the call with arguments that can be sent; whole says that all of them came.
func (p *piece) finished(whole bool) Call {
	call := p.call
	sent := p.text.String()
	arguments, problem := parseArguments(sent)
	switch {
	case p.size > MaxArguments:
		call.problem = fmt.Sprintf("The arguments of %s have %s bytes; at most %s are taken. Nothing was done. Do it in smaller parts.",
			call.Name, grouped(int64(p.size)), grouped(MaxArguments))
	case !whole:
		call.problem = "The answer ended before the arguments of this call were complete. Nothing was done. Do it in smaller parts."
	case problem != "":
		call.problem = fmt.Sprintf("The arguments of %s are not a valid JSON object: %s. Nothing was done. Call it again with valid arguments.", call.Name, problem)
	default:
		call.Arguments = arguments
		return call
	}
	call.Arguments, call.Broken = json.RawMessage(`{}`), strings.ToValidUTF8(sent[:min(len(sent), maxBroken)], "")
	return call
}

// parseArguments gives arguments as one compact JSON object, or says what is wrong with them. No text means none.
func parseArguments(sent string) (json.RawMessage, string) {
	if strings.TrimSpace(sent) == "" {
		return json.RawMessage(`{}`), ""
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(sent), &object); err != nil {
		var at *json.SyntaxError
		if errors.As(err, &at) {
			near := sent[max(0, int(at.Offset)-20):min(len(sent), int(at.Offset)+10)]
			return nil, fmt.Sprintf("%s at byte %d, near %q", text.OneLine(err.Error(), 200), at.Offset, strings.ToValidUTF8(near, "?"))
		}
		return nil, "it is no object"
	}
	if object == nil {
		return nil, "it is null"
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(sent)); err != nil {
		return nil, text.OneLine(err.Error(), 200)
	}
	return compact.Bytes(), ""
}

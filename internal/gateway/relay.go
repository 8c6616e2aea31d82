package gateway

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sandboxd/internal/text"
)

const (
	maxWhole = 1 << 20  // of an answer that is not streamed, which is looked at before it is passed on
	maxLine  = 64 << 10 // of a stream that is held until it has ended
	readSize = 32 << 10
)

// judge gives the form of an answer, or the problem with one that is none.
func (x *exchange) judge(res *http.Response, c candidate) (form, error) {
	switch status := res.StatusCode; {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return whole, c.keyRefused(status)
	case status < http.StatusOK || status >= http.StatusMultipleChoices && status < http.StatusBadRequest:
		return whole, refuse(http.StatusBadGateway, "The model provider %q redirects to another address (status %d), which is not followed. %s", c.Name, status, c.mend("check"))
	}
	if coding := res.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return whole, refuse(http.StatusBadGateway, "The model provider %q compressed its answer, which was not asked for. %s", c.Name, c.mend("check"))
	}
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case kind == "text/event-stream":
		return events, nil
	case kind == "application/x-ndjson" || kind == "application/jsonl":
		return lines, nil
	case strings.HasSuffix(kind, "json"):
		return whole, nil
	case err != nil || kind == "text/plain": // small servers say nothing, or what net/http guesses
		if form, ok := x.guess(res); ok {
			return form, nil
		}
	}
	status := http.StatusBadGateway
	if res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= http.StatusInternalServerError {
		status = res.StatusCode
	}
	p := refuse(status, "The model provider %q answered with the status %d and %s instead of JSON. Its address may be wrong, or a network in between wants a login. %s",
		c.Name, res.StatusCode, cmp.Or(text.OneLine(kind, maxModel), "something unnamed"), c.mend("check"))
	p.again, p.wait = true, retryAfter(res.Header)
	return whole, p
}

// guess gives the form of an answer by how it begins.
func (x *exchange) guess(res *http.Response) (form, bool) {
	from := bufio.NewReader(res.Body)
	first, err := from.Peek(1)
	res.Body = struct {
		io.Reader
		io.Closer
	}{from, res.Body}
	switch {
	case err != nil: // it is empty, or will be found broken
		return whole, true
	case first[0] == '{' || first[0] == '[':
		res.Header.Set("Content-Type", "application/json")
		return whole, true
	case x.streams() && strings.IndexByte("de:", first[0]) >= 0:
		res.Header.Set("Content-Type", "text/event-stream")
		return events, true
	}
	return whole, false
}

// retryAfter gives what an answer says of it, in seconds.
func retryAfter(h http.Header) time.Duration {
	n, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || n < 0 || n > int(24*time.Hour/time.Second) {
		return 0
	}
	return time.Duration(n) * time.Second
}

// relay passes an answer on: a stream piece by piece, anything else when it is known to be complete, unless it is large.
func (x *exchange) relay(ctx context.Context, res *http.Response, c candidate, form form, quiet *time.Timer) (err error) {
	o := &outlet{x: x, res: res, form: form, meter: newMeter(form), secret: secretOf(c.key), filters: x.addsUsage() && form == events}
	defer func() { o.account(c, x.isCut(err)) }()
	x.call.Stream = x.call.Stream || form != whole
	from := &watched{res.Body, quiet}
	if form == whole && (!x.streams() || res.StatusCode >= http.StatusBadRequest) {
		head, err := io.ReadAll(io.LimitReader(from, maxWhole))
		if err != nil {
			return c.brokeOff(ctx, err)
		}
		if len(head) < maxWhole {
			return o.all(head, c)
		}
		if err := o.write(head); err != nil {
			return err
		}
	}
	buf := make([]byte, readSize)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if err := o.write(buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case err == nil:
		case !errors.Is(err, io.EOF), form != whole && !o.meter.ended && res.StatusCode < http.StatusBadRequest:
			return c.brokeOff(ctx, err)
		default:
			return o.close()
		}
	}
}

// isCut reports whether a provider works, or has worked, on an answer that the client will not have whole.
func (x *exchange) isCut(err error) bool {
	return err != nil && (x.out != nil && x.call.Status < http.StatusBadRequest || x.r.Context().Err() != nil)
}

// watched is an answer's body whose silence is bounded.
type watched struct {
	from  io.Reader
	quiet *time.Timer
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.from.Read(p)
	w.quiet.Reset(silence)
	return n, err
}

// brokeOff is the problem with an answer that is not complete.
func (c candidate) brokeOff(ctx context.Context, err error) *problem {
	if p := (*problem)(nil); errors.Is(context.Cause(ctx), errSilent) || errors.As(context.Cause(ctx), &p) {
		return c.unreachable(ctx, err)
	}
	return &problem{status: http.StatusBadGateway, message: "The model provider " + quoted(c.Name) + " broke off its answer. Try again.", again: true, err: err}
}

// outlet is the client's end of an answer.
type outlet struct {
	x       *exchange
	res     *http.Response
	form    form
	meter   *meter
	secret  []byte // is cut out
	tail    []byte // what may be the beginning of it
	held    []byte // a line that has not ended
	within  bool   // what was sent last is within a line
	filters bool   // the chunk with the usage is for us alone
	blank   bool   // the empty line behind it is, too
	sent    bool   // something was sent
}

// all sends a complete answer.
func (o *outlet) all(answer []byte, c candidate) error {
	if o.res.StatusCode >= http.StatusBadRequest && bytes.Contains(answer, []byte("API_KEY_INVALID")) { // Gemini's, with the status 400
		return c.keyRefused(o.res.StatusCode)
	}
	if len(answer) > 0 && !json.Valid(answer) {
		return c.brokeOff(context.Background(), errors.New("the answer is no valid JSON"))
	}
	if len(o.secret) > 0 {
		answer = bytes.ReplaceAll(answer, o.secret, []byte(mask))
	}
	o.meter.read(answer)
	o.begin()
	o.x.w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	return o.send(answer)
}

// write takes the next piece of an answer.
func (o *outlet) write(piece []byte) error {
	piece = o.censor(piece)
	o.meter.read(piece)
	if o.form != whole {
		piece = o.complete(piece)
	}
	return o.send(piece)
}

// close sends what was held.
func (o *outlet) close() error {
	o.meter.read(o.tail)
	return o.send(append(o.held, o.tail...))
}

// begin sends the head of the answer with the next piece.
func (o *outlet) begin() {
	if o.x.out != nil {
		return
	}
	o.x.out, o.x.body.raw = o, nil // no other provider is asked
	o.x.release()
	copyHeaders(o.x.w.Header(), o.res.Header, string(o.secret))
	o.x.w.Header().Del("Content-Length")
	o.x.call.Status = o.res.StatusCode
}

// send sends a piece to the client, at once.
func (o *outlet) send(piece []byte) error {
	if len(piece) == 0 && o.form != whole {
		return nil
	}
	o.begin()
	if !o.sent {
		o.sent = true
		o.x.call.FirstByte = time.Since(o.x.begun)
		o.x.w.WriteHeader(o.res.StatusCode)
	}
	if o.x.keepsContent() {
		o.x.kept = append(o.x.kept, piece[:min(len(piece), MaxContent-len(o.x.kept))]...)
	}
	if len(piece) > 0 {
		o.within = piece[len(piece)-1] != '\n'
	}
	if _, err := o.x.w.Write(piece); err != nil {
		return gone(err)
	}
	if o.form == whole && !o.x.streams() {
		return nil
	}
	if err := o.x.control.Flush(); err != nil {
		return gone(err)
	}
	return nil
}

// fail ends a stream that has begun with a problem.
func (o *outlet) fail(p *problem) {
	end := p.event(o.x.route, o.form)
	if o.form == events || o.within {
		end = append([]byte("\n"), end...) // ends the event, or the line, that was under way
	}
	_ = o.send(end) // the call has a problem already
}

// account notes what the answer took.
func (o *outlet) account(c candidate, cut bool) {
	m := o.meter
	if o.x.call.Asked != "" || m.later { // an answer that was kept is counted once
		o.x.count(c, m, cut || o.res.StatusCode < http.StatusMultipleChoices && m.problem == "" && !m.later && !m.told())
	}
	if o.res.StatusCode >= http.StatusBadRequest || m.problem != "" {
		said := cmp.Or(m.problem, fmt.Sprintf("The model provider %q answered with the status %d.", c.Name, o.res.StatusCode))
		o.x.call.Problem = o.x.censored(text.OneLine(said, maxText))
	}
}

// count notes what a meter has seen, and estimates the rest of an answer that was cut or whose provider tells nothing.
func (x *exchange) count(c candidate, m *meter, unknown bool) {
	if unknown && x.route.protocol != models && x.route.protocol != countTokens {
		m.estimate(x.size)
	}
	if x.route.protocol == embeddings {
		m.tokens.Output = 0
	}
	x.call.Tokens = m.tokens
	x.call.Cost, x.call.Priced = x.plane.Price(c.model, m.tokens)
}

// complete gives the lines that have ended, so that no client sees half a line when a stream breaks. A long one is passed on in pieces.
func (o *outlet) complete(piece []byte) []byte {
	if len(o.held) > 0 {
		piece = append(o.held, piece...)
		o.held = nil
	}
	end := bytes.LastIndexByte(piece, '\n') + 1
	if len(piece)-end > maxLine || end == 0 && o.within {
		end = len(piece)
	}
	if end < len(piece) {
		o.held = append(o.held, piece[end:]...)
	}
	if piece = piece[:end]; o.filters {
		return o.filter(piece)
	}
	return piece
}

// filter leaves out the chunk with the usage that the client has not asked for.
func (o *outlet) filter(piece []byte) []byte {
	var out []byte
	within := o.within
	for line := range bytes.SplitAfterSeq(piece, []byte("\n")) {
		switch {
		case len(line) == 0:
		case within:
			out = append(out, line...)
		case o.blank && len(bytes.TrimRight(line, "\r\n")) == 0:
			o.blank = false
		case isUsage(line):
			o.blank = true
		default:
			out = append(out, line...)
		}
		within = false
	}
	return out
}

// isUsage reports whether a line is a chunk of a stream of Chat Completions that has only the usage.
func isUsage(line []byte) bool {
	data, ok := bytes.CutPrefix(line, []byte(dataField))
	if !ok || !bytes.Contains(data, []byte(`"usage"`)) {
		return false
	}
	var chunk struct {
		Choices *[]json.RawMessage `json:"choices"`
		Usage   *json.RawMessage   `json:"usage"`
	}
	return json.Unmarshal(data, &chunk) == nil && chunk.Choices != nil && len(*chunk.Choices) == 0 && chunk.Usage != nil
}

// mask is in the place of a key that a provider has repeated.
const mask = "[key]"

// minSecret is how long a key is that cannot be in an answer by chance; local servers are given words as keys.
const minSecret = 16

func secretOf(key string) []byte {
	if len(key) < minSecret {
		return nil
	}
	return []byte(key)
}

// censor cuts the key out of a piece. It holds back an end that may be the beginning of the key.
func (o *outlet) censor(piece []byte) []byte {
	if len(o.secret) == 0 {
		return piece
	}
	if len(o.tail) > 0 {
		piece = append(o.tail, piece...)
		o.tail = nil
	}
	if bytes.Contains(piece, o.secret) {
		piece = bytes.ReplaceAll(piece, o.secret, []byte(mask))
	}
	for i := max(len(piece)-len(o.secret)+1, 0); i < len(piece); i++ {
		if bytes.HasPrefix(o.secret, piece[i:]) {
			o.tail = bytes.Clone(piece[i:])
			return piece[:i]
		}
	}
	return piece
}

package agent

import (
	"context"
	"slices"
	"unicode/utf8"
)

// How the context is kept under the window. Shortening changes what providers have cached, so it is done seldom, and then much at once.
const (
	fullAt     = 85 // per cent of the room for input from which on it is shortened
	keepRecent = 25 // per cent of that room that the newest messages take, which are left as they are
	enough     = 60 // per cent that shortening the outputs must come to; else the older part is summed up
	oldOutput  = 1000
	maxReserve = 16_000 // tokens that are kept free for the answer when Turn.Output is not set

	bytesPerToken = 4    // of English and code
	imageTokens   = 1600 // about what a large picture takes
	messageTokens = 6    // around each part
	maxNarrow     = 3    // how often a turn believes that the window is smaller than it was told
)

// request gives what the model is asked next.
func (r *run) request() Request {
	specs := make([]ToolSpec, len(r.Tools))
	for i, t := range r.Tools {
		specs[i] = t.spec()
	}
	return Request{System: r.System, Messages: View(r.messages, r.NoImages), Tools: specs, Output: r.Output, Effort: r.Effort}
}

// View gives the messages as a model gets them: shortened as marks say, neighbours of one role made one. messages must be repaired.
func View(messages []Message, noImages bool) []Message {
	start, trimmed, summary := shortened(messages)
	var view []Message
	if summary != "" {
		view = append(view, auto(summaryHead+summary))
	}
	v := sight(messages[max(start, trimmed):], noImages)
	for i, m := range messages[start:] {
		if m.Mark != nil {
			continue
		}
		m.Parts = v.parts(m.Parts, start+i < trimmed)
		if m.Role == Assistant && m.Parts[len(m.Parts)-1].Kind == PartThinking { // which providers refuse
			m.Parts = append(m.Parts, textPart("(The answer ended here.)"))
		}
		if n := len(view); n > 0 && view[n-1].Role == m.Role {
			view[n-1].Parts = slices.Concat(view[n-1].Parts, m.Parts)
			continue
		}
		view = append(view, m)
	}
	return view
}

// shortened gives the first message that is sent, the first one whose outputs are sent whole, and the summary of those before.
func shortened(messages []Message) (start, trimmed int, summary string) {
	for _, m := range messages {
		if m.Mark == nil {
			continue
		}
		until := slices.IndexFunc(messages, func(o Message) bool { return o.ID == m.Mark.Until }) + 1
		if m.Mark.Summary == "" {
			trimmed = max(trimmed, until)
		} else if until > start {
			start, summary = until, m.Mark.Summary
		}
	}
	for start > 0 && beginsWithResults(messages[start:]) { // never without their calls
		start--
	}
	return start, trimmed, summary
}

func beginsWithResults(messages []Message) bool {
	for _, m := range messages {
		if m.Mark == nil {
			return hasResults(m)
		}
	}
	return false
}

func hasResults(m Message) bool {
	return slices.ContainsFunc(m.Parts, func(p Part) bool { return p.Kind == PartResult })
}

// room gives how many tokens may go in.
func (r *run) room() int {
	reserve := r.Output
	if reserve <= 0 {
		reserve = min(maxReserve, r.window/8)
	}
	return max(r.window-min(reserve, r.window/2), 1)
}

// used gives how many tokens would go in now.
func (r *run) used() int {
	q := r.request()
	n := estimateText(q.System) + estimate(q.Messages)
	for _, t := range q.Tools {
		n += estimateText(t.Name) + estimateText(t.Description) + estimateText(string(t.Schema)) + messageTokens
	}
	return int(float64(n) * r.factor)
}

// calibrate takes the factor from the newest answer in the transcript whose provider said how much went in.
func (r *run) calibrate() {
	for i := len(r.messages) - 1; i >= 0; i-- {
		if u := r.messages[i].Usage; u != nil && u.Context() > 0 && !u.Estimated {
			all := r.messages
			r.messages = all[:i]
			r.calibrateBy(*u)
			r.messages = all
			return
		}
	}
}

// calibrateBy corrects the estimate by what a provider says about the request that would be sent now. Bounds keep a provider that says
// nonsense from making the context useless or endless.
func (r *run) calibrateBy(u Usage) {
	r.factor = 1
	if mine := r.used(); mine > 0 {
		r.factor = min(max(float64(u.Context())/float64(mine), 0.5), 4)
	}
}

// estimate gives about how many tokens messages take.
func estimate(messages []Message) int {
	n := 0
	for _, m := range messages {
		for _, p := range m.Parts {
			n += messageTokens + estimatePart(p)
		}
	}
	return n
}

func estimatePart(p Part) int {
	switch p.Kind {
	case PartImage:
		return imageTokens
	case PartCall:
		return estimateText(p.Call.Name) + estimateText(string(p.Call.Arguments))
	case PartResult:
		return estimateText(p.Result.Text) + imageTokens*len(p.Result.Images)
	}
	n := estimateText(p.Text)
	if p.Opaque != nil {
		n += estimateText(p.Opaque.Signature)
	}
	return n
}

// estimateText counts four characters of ASCII a token, and one of others.
func estimateText(s string) int {
	runes := utf8.RuneCountInString(s)
	ascii := runes // minus those that are longer: each has at least one byte more
	if other := (len(s) - runes + 1) / 2; other > 0 {
		ascii = max(0, runes-other)
	}
	return (ascii+bytesPerToken-1)/bytesPerToken + runes - ascii
}

// fit shortens what the model gets until it fits. An ending means that it cannot.
func (r *run) fit(ctx context.Context) (Ending, error) {
	room := r.room()
	if r.used() <= room*fullAt/100 {
		return "", nil
	}
	cut := r.recent(room * keepRecent / 100)
	if cut > 0 && r.mark(Mark{Until: r.messages[cut-1].ID}, room*enough/100) {
		return "", nil
	}
	if start, _, _ := shortened(r.messages); cut > start {
		switch err := r.summarise(ctx, start, cut); {
		case ctx.Err() != nil:
			return endingOf(ctx), nil
		case err != nil:
			return Failed, err
		}
	}
	if r.used() <= room*fullAt/100 {
		return "", nil
	}
	if r.mark(Mark{Until: r.messages[len(r.messages)-1].ID}, room) || r.used() <= room {
		return "", nil
	}
	return r.tooLong()
}

// mark adds a mark if that makes it fit into limit tokens.
func (r *run) mark(m Mark, limit int) bool {
	before := r.messages
	r.messages = append(slices.Clip(before), Message{ID: newID(), Role: User, Auto: true, Mark: &m})
	fits := r.used() <= limit
	added := r.messages[len(before)]
	r.messages = before
	if fits {
		r.add(added)
	}
	return fits
}

// recent gives the index from which on messages take at most so many tokens and can be sent without those before. The last message is
// always among them.
func (r *run) recent(tokens int) int {
	cut, sum := 0, 0
	for i := len(r.messages) - 1; i > 0; i-- {
		m := r.messages[i]
		sum += int(float64(estimate([]Message{m})) * r.factor)
		if cut > 0 && sum > tokens {
			break
		}
		if m.Mark == nil && !hasResults(m) {
			cut = i
		}
	}
	return cut
}

// narrow believes that the window is smaller than was said, because the provider says so.
func (r *run) narrow() (Ending, error) {
	if r.overflow++; r.overflow > maxNarrow {
		return r.tooLong()
	}
	r.window = max(1, min(r.window, r.used())*8/10)
	return "", nil
}

package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"sandboxd/internal/text"
)

// Tool is something that a model can do.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of its arguments, an object
	Changes     bool            // it may change something: it runs alone and in order; others of one step run at once
	Repeats     bool            // calling it again with the same arguments is how it is used, such as to wait for more output
	MaxOutput   int             // bytes of text that the model gets of a result, its head and tail; 0 means DefaultOutput

	// Run does it. It must return soon after ctx ends. args is a valid JSON object of at most MaxArguments bytes; Run checks its members.
	// What it writes to out is shown while it runs, and kept (bounded) when the call is cancelled; out takes any amount, at once, and
	// never fails. An error is for what the model cannot mend; its fault message is what the model gets. Safe for concurrent use unless
	// Changes is set.
	Run func(ctx context.Context, args json.RawMessage, out io.Writer) (Output, error)
}

// Output is what a tool gives the model.
type Output struct {
	Text   string
	Images []Image
	Failed bool // what was asked did not work; Text says why
}

// Bounds of outputs.
const (
	DefaultOutput = 30_000   // bytes of the text of a result
	maxImages     = 10       // of a result
	maxImage      = 5 << 20  // bytes of one
	maxLive       = 1 << 20  // bytes of output that are shown while a tool runs
	maxKept       = 16 << 10 // bytes of that which are kept in case of a cancellation, at the head and at the tail
)

// spec gives what a model is told.
func (t Tool) spec() ToolSpec {
	return ToolSpec{Name: t.Name, Description: t.Description, Schema: t.Schema}
}

// Shorten keeps the head and the tail of a text of more than limit bytes, and says how much is missing between them. The result is valid
// UTF-8.
func Shorten(s string, limit int) string {
	if len(s) <= limit {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	head, tail := limit*2/3, len(s)-limit/3
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return strings.ToValidUTF8(s[:head]+leftOut(int64(tail-head))+s[tail:], "\uFFFD")
}

// leftOut says that bytes are missing.
func leftOut(bytes int64) string { return fmt.Sprintf("\n… %s bytes left out …\n", grouped(bytes)) }

// grouped writes a number with commas.
func grouped(n int64) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// bounded makes an output a result: its text cut, its pictures those that can be sent.
func (t Tool) bounded(call Call, o Output) *ToolResult {
	limit := t.MaxOutput
	if limit <= 0 {
		limit = DefaultOutput
	}
	r := &ToolResult{CallID: call.ID, Status: OK, Text: Shorten(o.Text, limit)}
	if o.Failed {
		r.Status = Error
	}
	for i, image := range o.Images {
		if why := image.Problem(); why != "" || i >= maxImages {
			r.Text = strings.TrimPrefix(r.Text+"\n(A picture was left out: "+orElse(why, "there are too many")+".)", "\n")
			continue
		}
		r.Images = append(r.Images, image)
	}
	if r.Text == "" && len(r.Images) == 0 {
		r.Text = "(no output)"
	}
	return r
}

// orElse gives s, or other when it is empty.
func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// toolNames lists the tools for a model that asked for another.
func toolNames(tools []Tool) string {
	if len(tools) == 0 {
		return "there are no tools"
	}
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return "the tools are: " + strings.Join(names, ", ")
}

// unknownTool is the result of a call of a tool that does not exist.
func unknownTool(call Call, tools []Tool) string {
	return fmt.Sprintf("There is no tool %q; %s.", text.OneLine(call.Name, maxName), toolNames(tools))
}

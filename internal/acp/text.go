package acp

import (
	"encoding/json"
	"strings"

	"sandboxd/internal/text"
)

// Bounds of short texts.
const (
	maxTitle = 300
	maxWhy   = 500
)

// Text is what went wrong, as one line.
func (e *Error) Text() string {
	words := e.Message
	var more struct{ Details, Message string }
	var plain string
	switch {
	case json.Unmarshal(e.Data, &more) == nil && more.Details+more.Message != "":
		words += ": " + more.Details + more.Message
	case json.Unmarshal(e.Data, &plain) == nil && plain != "":
		words += ": " + plain
	}
	return strings.TrimRight(text.Excerpt(words, maxWhy), ". ")
}

// word gives a short word of the protocol, such as a kind; "" for what is too long to be one.
func word(s string) string {
	if len(s) > MaxID {
		return ""
	}
	return s
}

// title makes a text of the agent fit for a label.
func title(s string) string { return text.Excerpt(s, maxTitle) }

package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one mistake in a template: where it is and what to do about it.
type Problem struct {
	File    string // absolute path
	Line    int    // from 1; 0 when it is about the whole file
	Message string // a sentence for a person
}

// Error gives "file:line: message", or "file: message" for a whole file.
func (p Problem) Error() string {
	if p.Line == 0 {
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message)
}

// problems collects the mistakes of one file.
type problems struct {
	file string
	list []Problem
}

func (p *problems) add(line int, format string, args ...any) {
	p.list = append(p.list, Problem{File: p.file, Line: line, Message: fmt.Sprintf(format, args...)})
}

// sorted gives the problems in the order of the file; those about the whole file first.
func (p *problems) sorted() []Problem {
	slices.SortStableFunc(p.list, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return p.list
}

// shorten cuts text to at most limit bytes at a rune's start, so that no message carries a file's worth of input.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}

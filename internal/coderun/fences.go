// Package coderun finds the code in a message, and says whether the message asks to run it.
//
// It runs nothing, and knows no sandbox: it judges texts alone.
//
// Invariant: Blocks finds what the chat pane (static/chat/fences.js) finds, in the same order: a block's number means the same code in both.
package coderun

import (
	"regexp"
	"strings"
)

// Block is a fenced block of code in a text.
type Block struct {
	Language string // the first word after the opening fence, in lower case; "" for none
	Code     string // without the fences, and without the indentation that they have
}

// Blocks gives the blocks of a Markdown text in their order. A block begins with a fence on a line of its own, or after the marks of list
// items, and ends with a fence as long, with its list item, or with the text. There are none in quotes.
func Blocks(text string) []Block {
	s := scan(text)
	return s.blocks
}

// scanner goes through a text line by line.
type scanner struct {
	blocks []Block
	prose  []string // lines outside of blocks and quotes
	items  []int    // where the contents of the list items begin that are open, in columns

	fence string // of the open block; "" for none
	base  int    // where the contents of its list item begin
	strip int    // columns that its lines lose
	lines []string
}

var (
	opening = regexp.MustCompile("^( {0,3})(`{3,}|~{3,})(.*)$")
	listed  = regexp.MustCompile(`^ {0,3}(?:[-*+]|[0-9]{1,9}[.)])(?: {1,4}|$)`)
	newline = strings.NewReplacer("\r\n", "\n", "\r", "\n")
)

func scan(text string) *scanner {
	s := &scanner{}
	for line := range strings.SplitSeq(newline.Replace(text), "\n") {
		s.line(untab(line))
	}
	if s.fence != "" {
		if n := len(s.lines) - 1; n >= 0 && s.lines[n] == "" { // after the last line break of the text
			s.lines = s.lines[:n]
		}
		s.end()
	}
	return s
}

// untab writes the tabs that a line begins with as spaces.
func untab(line string) string {
	rest := strings.TrimLeft(line, " \t")
	lead := line[:len(line)-len(rest)]
	if !strings.Contains(lead, "\t") {
		return line
	}
	return strings.ReplaceAll(lead, "\t", "    ") + rest
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

func (s *scanner) line(line string) {
	blank := strings.Trim(line, " \t") == ""
	if s.fence != "" {
		switch {
		case s.base > 0 && !blank && indent(line) < s.base: // the list item ends, and its block with it
			s.end()
		case s.closes(line):
			s.end()
			return
		default:
			s.lines = append(s.lines, line[min(indent(line), s.strip):])
			return
		}
	}
	if !blank {
		s.outside(line)
	}
}

func (s *scanner) closes(line string) bool {
	line = line[min(len(line), s.base):]
	mark := strings.TrimRight(line, " \t")
	n := indent(mark)
	return n <= 3 && len(mark)-n >= len(s.fence) && strings.Trim(mark[n:], s.fence[:1]) == ""
}

// outside looks at a line that is in no block.
func (s *scanner) outside(line string) {
	at, column := 0, indent(line)
	for len(s.items) > 0 && s.items[len(s.items)-1] > column {
		s.items = s.items[:len(s.items)-1]
	}
	if n := len(s.items); n > 0 {
		at = s.items[n-1]
	}
	for {
		mark := listed.FindString(line[at:])
		if mark == "" {
			break
		}
		at += len(mark)
		s.items = append(s.items, at)
	}
	m := opening.FindStringSubmatch(line[at:])
	if m == nil || m[2][0] == '`' && strings.Contains(m[3], "`") {
		if !strings.HasPrefix(strings.TrimLeft(line, " "), ">") {
			s.prose = append(s.prose, line[at:])
		}
		return
	}
	s.fence, s.base, s.strip, s.lines = m[2], at, at+len(m[1]), nil
	s.blocks = append(s.blocks, Block{Language: languageOf(m[3])})
}

func (s *scanner) end() {
	s.blocks[len(s.blocks)-1].Code = strings.Join(s.lines, "\n")
	s.fence, s.lines = "", nil
}

// languageOf gives the language that the rest of an opening fence names.
func languageOf(rest string) string {
	words := strings.FieldsFunc(rest, func(r rune) bool { return r == ' ' || r == '\t' || r == '{' || r == ',' || r == ':' || r == '}' })
	if len(words) == 0 {
		return ""
	}
	return strings.ToLower(words[0])
}

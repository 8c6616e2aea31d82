package views

import (
	"regexp"
	"strings"
)

// Block is a paragraph, heading, list or code of a README, or of what an agent says. Kind is "h2", "h3", "h4", "p", "ul", "ol" or "pre".
type Block struct {
	Kind  string
	Text  string   // of "pre"
	Items [][]Span // one for headings and paragraphs, one per entry for lists
}

// Span is a run of text. URL is only ever http or https.
type Span struct {
	Text string
	Code bool
	Bold bool
	URL  string
}

// The bounds of a README that is shown; more is cut off.
const (
	maxReadme = 64 << 10
	maxBlocks = 500
)

var (
	headingLine = regexp.MustCompile(`^(#{1,6})\s+(.*?)\s*#*$`)
	bulletLine  = regexp.MustCompile(`^\s{0,3}[-*+]\s+(.*)$`)
	numberLine  = regexp.MustCompile(`^\s{0,3}\d{1,3}[.)]\s+(.*)$`)
	inline      = regexp.MustCompile("`([^`]+)`|\\*\\*([^*]+)\\*\\*|\\[([^\\]]+)\\]\\(([^)\\s]+)\\)")
)

// Prose reads the safe part of Markdown: headings, paragraphs, flat lists, fenced and indented code, and in them code, bold and
// links to http and https. Everything else, HTML included, is text as it stands.
func Prose(text string) []Block {
	if len(text) > maxReadme {
		text = text[:maxReadme]
	}
	p := proseReader{lines: strings.Split(strings.ReplaceAll(strings.ToValidUTF8(text, "�"), "\r\n", "\n"), "\n")}
	for p.at < len(p.lines) && len(p.blocks) < maxBlocks {
		p.next()
	}
	return p.blocks
}

type proseReader struct {
	lines  []string
	at     int
	blocks []Block
}

// next reads one block; it always moves on by a line at least.
func (p *proseReader) next() {
	line := p.lines[p.at]
	switch {
	case strings.TrimSpace(line) == "":
		p.at++
	case strings.HasPrefix(line, "```"):
		p.at++
		p.add(Block{Kind: "pre", Text: strings.Join(p.until(func(l string) bool { return strings.HasPrefix(l, "```") }), "\n")})
		p.at++
	case strings.HasPrefix(line, "    "):
		code := p.until(func(l string) bool { return !strings.HasPrefix(l, "    ") })
		p.add(Block{Kind: "pre", Text: strings.ReplaceAll(strings.Join(code, "\n")[4:], "\n    ", "\n")})
	case headingLine.MatchString(line):
		p.at++
		m := headingLine.FindStringSubmatch(line)
		kind := [...]string{"h2", "h3", "h4"}[min(len(m[1])-1, 2)]
		p.add(Block{Kind: kind, Items: [][]Span{spans(m[2])}})
	case bulletLine.MatchString(line):
		p.list("ul", bulletLine)
	case numberLine.MatchString(line):
		p.list("ol", numberLine)
	default:
		first := line
		p.at++
		rest := p.until(func(l string) bool {
			return strings.TrimSpace(l) == "" || strings.HasPrefix(l, "```") || headingLine.MatchString(l) || bulletLine.MatchString(l) || numberLine.MatchString(l)
		})
		p.add(Block{Kind: "p", Items: [][]Span{spans(strings.Join(append([]string{first}, rest...), " "))}})
	}
}

func (p *proseReader) add(b Block) { p.blocks = append(p.blocks, b) }

// until takes the lines before the first that ends matches.
func (p *proseReader) until(ends func(string) bool) []string {
	from := p.at
	for p.at < len(p.lines) && !ends(p.lines[p.at]) {
		p.at++
	}
	return p.lines[from:p.at]
}

// list takes entries, each with the indented lines that follow it.
func (p *proseReader) list(kind string, entry *regexp.Regexp) {
	b := Block{Kind: kind}
	for p.at < len(p.lines) {
		m := entry.FindStringSubmatch(p.lines[p.at])
		if m == nil {
			break
		}
		p.at++
		rest := p.until(func(l string) bool {
			return !strings.HasPrefix(l, "  ") || strings.TrimSpace(l) == "" || bulletLine.MatchString(l) || numberLine.MatchString(l)
		})
		text := m[1]
		for _, l := range rest {
			text += " " + strings.TrimSpace(l)
		}
		b.Items = append(b.Items, spans(text))
	}
	p.add(b)
}

// spans splits a line of text at code, bold and links.
func spans(text string) []Span {
	var out []Span
	for text != "" {
		m := inline.FindStringSubmatchIndex(text)
		if m == nil {
			return append(out, Span{Text: text})
		}
		if m[0] > 0 {
			out = append(out, Span{Text: text[:m[0]]})
		}
		out = append(out, spanOf(text, m))
		text = text[m[1]:]
	}
	return out
}

func spanOf(text string, m []int) Span {
	switch {
	case m[2] >= 0:
		return Span{Text: text[m[2]:m[3]], Code: true}
	case m[4] >= 0:
		return Span{Text: text[m[4]:m[5]], Bold: true}
	}
	url := text[m[8]:m[9]]
	if !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://") {
		return Span{Text: text[m[6]:m[7]]}
	}
	return Span{Text: text[m[6]:m[7]], URL: url}
}

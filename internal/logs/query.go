package logs

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"sandboxd/internal/fault"
)

// Limits of a query.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
	MaxPage      = 4 << 20 // bytes of text in one Result
	maxQuery     = 1 << 10 // bytes of its text
	maxTerms     = 32
	minPrefix    = 3 // bytes of one that the index is asked for: too many words begin with a shorter one
)

// Filter says which lines are wanted. An empty field wants any.
type Filter struct {
	Services []string
	Levels   []Level

	// Text has words that a line must have, in any order and in lower or upper case, "several as they stand" in quotes, and
	// beginnings of words*. Nothing else has a meaning.
	Text string
}

// Query asks for the newest lines that match.
type Query struct {
	Scope Scope
	Filter
	Since, Until time.Time     // within [Since, Until); zero is open
	Limit        int           // DefaultLimit when 0, at most MaxLimit
	Before       ID            // only lines before this one, which is Next of the Result before; 0 begins with the newest
	Budget       time.Duration // of the search, if less than the Keeper's; 0 for that
}

// Page bounds what is given at once: it ends with the line with which it has so many lines, or so many bytes of their text.
type Page struct{ Lines, Text int }

// Take puts a line on it.
func (p *Page) Take(l *Line) {
	p.Lines--
	p.Text -= len(l.Text)
}

// Full says whether it takes no further line.
func (p Page) Full() bool { return p.Lines <= 0 || p.Text <= 0 }

// fill gives how many of lines it takes, from the first on, and whether it is full then.
func (p Page) fill(lines []Line) (n int, full bool) {
	for n < len(lines) && !p.Full() {
		p.Take(&lines[n])
		n++
	}
	return n, p.Full()
}

// Result is what a search has found: a Page of it, of Query.Limit lines and MaxPage bytes.
type Result struct {
	Lines []Line // newest first

	// SearchedBackTo is the time back to which lines were looked at: the budget, or enough lines, ended the search there. It is never
	// later than the Time of one of Lines. Zero when all lines were looked at.
	SearchedBackTo time.Time

	// Next is the Before that continues the search; 0 when nothing is left to look at.
	Next ID
}

// Word is what the index is asked for.
type Word struct {
	Text   string
	Prefix bool // words that begin so
}

// matcher tells which lines a query means. Not safe for concurrent use.
type matcher struct {
	q     Query
	terms []term
	plain []byte // of the line under way
}

// newMatcher reads a query. Kind: Invalid.
func newMatcher(q Query) (*matcher, error) {
	if len(q.Text) > maxQuery {
		return nil, fault.Field("q", "The search text has at most %d bytes.", maxQuery)
	}
	m := &matcher{q: q}
	for rest := q.Text; ; {
		t, more, ok := nextTerm(rest)
		if !ok {
			break
		}
		if rest = more; len(t.text) > 0 {
			m.terms = append(m.terms, t)
		}
	}
	if len(m.terms) > maxTerms {
		return nil, fault.Field("q", "The search text has at most %d words.", maxTerms)
	}
	return m, nil
}

// nextTerm cuts the first term off a query's text. A quote that is never closed goes to the end.
func nextTerm(s string) (t term, rest string, ok bool) {
	s = strings.TrimLeftFunc(s, unicode.IsSpace)
	if s == "" {
		return term{}, "", false
	}
	var text string
	if quoted, is := strings.CutPrefix(s, `"`); is {
		text, rest, _ = strings.Cut(quoted, `"`)
	} else {
		end := strings.IndexFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == '"' })
		if end < 0 {
			end = len(s)
		}
		text, rest = s[:end], s[end:]
		if before, star := strings.CutSuffix(text, "*"); star && before != "" {
			text, t.prefix = before, true
		}
	}
	t.text = AppendPlain(nil, strings.ToValidUTF8(text, "\uFFFD"))
	return t, rest, true
}

// words gives what a chunk of lines must have in its index so that one of its lines can match.
func (m *matcher) words() (out []Word) {
	for _, t := range m.terms {
		from := len(out)
		Words(t.text, func(w []byte) { out = append(out, Word{Text: string(w)}) })
		if last := len(out) - 1; last >= from && t.prefix && len(out[last].Text) < maxWord && strings.HasSuffix(string(t.text), out[last].Text) {
			if out[last].Prefix = true; len(out[last].Text) < minPrefix {
				out = out[:last]
			}
		}
	}
	slices.SortFunc(out, func(a, b Word) int { return strings.Compare(a.Text, b.Text) })
	return slices.Compact(out)
}

// match reports whether a line is meant.
func (m *matcher) match(l *Line) bool {
	q := &m.q
	switch {
	case !q.Scope.Has(l.Sandbox),
		q.Before != 0 && l.ID >= q.Before,
		!q.Since.IsZero() && l.Time.Before(q.Since),
		!q.Until.IsZero() && !l.Time.Before(q.Until),
		len(q.Levels) > 0 && !slices.Contains(q.Levels, l.Level),
		len(q.Services) > 0 && !slices.Contains(q.Services, l.Service):
		return false
	}
	if len(m.terms) == 0 {
		return true
	}
	m.plain = AppendPlain(m.plain[:0], l.Text)
	for _, t := range m.terms {
		if !t.in(m.plain) {
			return false
		}
	}
	return true
}

// CheckText reads a Filter's Text, and gives how many words or quotes it asks for. Kind: Invalid, with the field "q".
func CheckText(text string) (terms int, err error) {
	m, err := newMatcher(Query{Filter: Filter{Text: text}})
	if err != nil {
		return 0, err
	}
	return len(m.terms), nil
}

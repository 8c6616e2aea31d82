package coderun

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
)

// Bounds of what is looked at.
const (
	fewWords  = 3    // around code: then the code itself is what the person wants to say
	mostWords = 2000 // of a message; a request is not further on
)

// Asked gives the number of the block in a person's message that is to be run by itself, and whether there is one. runs tells the languages
// that can be run by their names.
//
// The rule: a message with one block that can be run has it run when it asks for that in plain English, or has at most three words beside
// it. The first phrase of phrases.txt decides which it asks for; a phrase that forbids it decides alone. Of several blocks that can be run none
// is: which one is meant is not known.
func Asked(text string, runs func(language string) bool) (block int, asked bool) {
	s := scan(text)
	block = -1
	for i, b := range s.blocks {
		if !runs(b.Named()) || strings.TrimSpace(b.Code) == "" {
			continue
		}
		if block >= 0 {
			return -1, false
		}
		block = i
	}
	if block < 0 || !wants(wordsOf(strings.Join(s.prose, "\n"))) {
		return -1, false
	}
	return block, true
}

// wants says whether words around code ask to run it.
func wants(words []string) bool {
	kind, longest, at := "", 0, len(words)
	for _, p := range phrases {
		i, n := p.find(words)
		switch {
		case i < 0:
		case p.kind == "never":
			return false
		case i < at || i == at && n > longest:
			kind, longest, at = p.kind, n, i
		}
	}
	if kind == "" {
		return len(words) <= fewWords
	}
	return kind == "run"
}

var (
	quoted = regexp.MustCompile("`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”")
	word   = regexp.MustCompile(`[\p{L}\p{N}]+(?:'[\p{L}]+)*`)
)

// wordsOf gives the words of a text in lower case, without what it quotes.
func wordsOf(text string) []string {
	text = strings.ToLower(strings.ReplaceAll(text, "’", "'"))
	return word.FindAllString(quoted.ReplaceAllString(text, " "), mostWords)
}

// phrase is a line of phrases.txt.
type phrase struct {
	kind  string // "run", "not" or "never"
	steps []step
}

// step is a place in a phrase.
type step struct {
	words []string // any of them; none for up to two words
	maybe bool
}

//go:embed phrases.txt
var phrasesText string

var phrases = readPhrases(phrasesText)

func readPhrases(text string) (all []phrase) {
	kind := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			kind = strings.Trim(line, "[]")
		default:
			p := phrase{kind: kind}
			for token := range strings.FieldsSeq(line) {
				token, maybe := strings.CutSuffix(token, "?")
				one := step{maybe: maybe}
				if token != "*" {
					one.words = strings.Split(token, "/")
				}
				p.steps = append(p.steps, one)
			}
			all = append(all, p)
		}
	}
	return all
}

// find gives where a phrase first is in words, and how long it is; -1 for nowhere.
func (p phrase) find(words []string) (at, length int) {
	for i := range words {
		if n := match(p.steps, words[i:]); n > 0 {
			return i, n
		}
	}
	return -1, 0
}

// match gives how many words steps take of the beginning of words, at most; 0 for no match.
func match(steps []step, words []string) int {
	if len(steps) == 0 {
		return 0
	}
	one, rest, best := steps[0], steps[1:], 0
	take := func(n int) {
		if len(rest) == 0 {
			best = max(best, n)
		} else if m := match(rest, words[n:]); m > 0 {
			best = max(best, n+m)
		}
	}
	switch {
	case one.words == nil:
		for n := 0; n <= min(2, len(words)); n++ {
			take(n)
		}
	case len(words) > 0 && slices.Contains(one.words, words[0]):
		take(1)
	}
	if one.maybe && best == 0 {
		take(0)
	}
	return best
}

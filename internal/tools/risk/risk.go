// Package risk judges what a command line or a piece of code would do before it is run: look, change something, or something that a
// person should see first.
//
// It is a hint for asking, not a guard: a program can do anything that its sandbox allows, whatever its name is. It runs nothing and
// looks at text alone. What it knows of commands is data: table.yaml.
//
// Invariant: in doubt the answer is Risky. What cannot be read, has an unknown name or is put together when it runs is in doubt.
package risk

import (
	"slices"
	"strings"
)

// Level says how far something reaches.
type Level int

// The levels, from the least to the most.
const (
	Harmless Level = iota // it only reads
	Changing              // it changes something, as work does
	Risky                 // it may destroy, send something away, or do what cannot be told
)

var levelNames = []string{"harmless", "changing", "risky"}

// String gives the name that the table has for it.
func (l Level) String() string { return levelNames[l] }

// Judgement is what a person is told.
type Judgement struct {
	Level   Level
	Reasons []string // why it is Risky, each a phrase: "rm: deletes folders with all that is in them"
}

// maxReasons bounds the reasons of one judgement.
const maxReasons = 8

// add raises the level, with a reason for Risky.
func (j *Judgement) add(level Level, why string) {
	j.Level = max(j.Level, level)
	if level == Risky && why != "" && len(j.Reasons) < maxReasons && !slices.Contains(j.Reasons, why) {
		j.Reasons = append(j.Reasons, why)
	}
}

// Join gives the more risky of both, with the reasons of both.
func (j Judgement) Join(other Judgement) Judgement {
	joined := Judgement{Level: j.Level, Reasons: slices.Clone(j.Reasons)}
	joined.Level = max(joined.Level, other.Level)
	for _, why := range other.Reasons {
		joined.add(Risky, why)
	}
	return joined
}

// shells are the languages that Command reads.
var shells = []string{"bash", "sh", "shell", "zsh", "dash"}

// Code judges code of a language. Code of a language other than a shell's is at least Changing, because it may do anything.
func Code(language, code string) Judgement {
	language = strings.ToLower(language)
	if slices.Contains(shells, language) {
		return Command(code)
	}
	j := Judgement{Level: Changing}
	j.hidden(code)
	for _, c := range table().Code {
		if c.pattern.MatchString(code) {
			j.add(Risky, c.Why)
		}
	}
	return j
}

// Path judges a write to a path, given as it is or from the home.
func Path(path string) Judgement {
	j := Judgement{Level: Changing}
	j.hidden(path)
	for _, p := range table().Paths {
		if p.pattern.MatchString(path) {
			j.add(Risky, p.Why)
		}
	}
	return j
}

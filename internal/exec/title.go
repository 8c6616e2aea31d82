package exec

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// Bounds of a command's title.
const (
	titleWords = 2
	titleWord  = 24 // bytes
)

// plainWord is a word that may be shown: the name of a program, of what it is to do, or of a file. Everything else (an
// assignment, an address, a value behind an option) may be a secret.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+/-]*$`)

// Title is what a command is called where people are told what keeps a sandbox awake: its program, and the word after it
// ("go test", "python train.py").
func Title(command []string) string {
	words := command
	if line, ok := shellLine(command); ok {
		words = strings.Fields(line)
		words = words[assignments(words):]
	}
	var shown []string
	for i, word := range words[:min(len(words), titleWords)] {
		if i == 0 {
			word = path.Base(word)
		}
		if !plainWord.MatchString(word) {
			break
		}
		shown = append(shown, word[:min(len(word), titleWord)])
	}
	if len(shown) == 0 {
		return "command"
	}
	return strings.Join(shown, " ")
}

// assignments counts the words before a line's program that set variables.
func assignments(words []string) int {
	first := slices.IndexFunc(words, func(w string) bool { return !strings.Contains(w, "=") })
	if first < 0 {
		return len(words)
	}
	return first
}

// shellLine gives the line that Shell made a command of, or that a shell is given otherwise.
func shellLine(command []string) (line string, ok bool) {
	if len(command) == 5 && command[2] == chooseShell {
		return command[4], true
	}
	if len(command) == 3 && strings.HasSuffix(command[0], "sh") && strings.HasSuffix(command[1], "c") && command[1][0] == '-' {
		return command[2], true
	}
	return "", false
}

package coderun

import "regexp"

// Named is the block's language: the one that is written at its fence, or else the one that the code looks like; "" when it is not known.
func (b Block) Named() string {
	if b.Language != "" {
		return b.Language
	}
	for _, l := range looks {
		if l.like.MatchString(b.Code) {
			return l.language
		}
	}
	return ""
}

// looks are what code of a language looks like. What comes first counts: "none" is output of programs, which is not run.
var looks = []struct {
	language string
	like     *regexp.Regexp
}{
	{"none", regexp.MustCompile(`^\s*(?:Traceback |[$>%#] |[\w.-]+@[\w.-]+[:~]|\{|\[|<)`)},
	{"python", regexp.MustCompile(`^#!.*\bpython`)},
	{"bash", regexp.MustCompile(`^#!.*\b(?:ba|da|k|z)?sh\b`)},
	{"javascript", regexp.MustCompile(`^#!.*\bnode`)},
	{"go", regexp.MustCompile(`(?m)^package \w+$`)},
	{"python", regexp.MustCompile(`(?m)^(?:import \w[\w., ]*|from [\w.]+ import .*|(?:async )?def \w+\(.*|class \w+.*:|(?:for|while|if|with) .*:|print\(.*)$`)},
	{"javascript", regexp.MustCompile(`(?m)^(?:const|let|var) [\w{}\[\], ]+ ?=|\bconsole\.(?:log|error)\(|^(?:async )?function \w+\(|^import .* from ["']`)},
	{"bash", regexp.MustCompile(`^\s*(?:echo|ls|cd|cat|curl|git|grep|find|mkdir|pip3?|npm|export|for \w+ in|while|set -|sudo|uname|date|printf|seq|python3?|node|go) `)},
}

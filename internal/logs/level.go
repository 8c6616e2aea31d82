package logs

import (
	"strings"
)

// guessWithin is how far into a line a level is looked for.
const guessWithin = 2 << 10

// levelWords are what programs call their levels, in lower case.
var levelWords = map[string]Level{
	"trace": Debug, "debug": Debug, "dbg": Debug, "verbose": Debug, "silly": Debug, "fine": Debug, "finer": Debug, "finest": Debug,
	"info": Info, "inf": Info, "information": Info, "notice": Info, "log": Info, "http": Info,
	"warn": Warn, "warning": Warn, "wrn": Warn, "deprecated": Warn,
	"error": Error, "err": Error, "severe": Error, "exception": Error, "traceback": Error,
	"fatal": Fatal, "ftl": Fatal, "panic": Fatal, "critical": Fatal, "crit": Fatal, "alert": Fatal, "emerg": Fatal, "emergency": Fatal,
	"t": Debug, "d": Debug, "i": Info, "w": Warn, "e": Error, "f": Fatal, // fields only
}

// fieldNames are what JSON lines and logfmt call the field of their level.
var fieldNames = []string{"level", "severity", "lvl", "levelname", "loglevel", "log.level"}

// Guess tells the level of a line from its text: from a field of JSON or logfmt, the prefix of klog, or a word at its start.
func Guess(line string) Level {
	if len(line) > guessWithin {
		line = line[:guessWithin]
	}
	if strings.IndexByte(line, escape) >= 0 {
		line = string(appendPlain(nil, line))
	}
	line = strings.TrimLeft(line, " \t")
	switch {
	case line == "":
		return Unknown
	case line[0] == '{':
		return fromJSON(line)
	case strings.HasPrefix(line, ownMark):
		return fromOwn(line)
	case isKlog(line):
		return levelWords[strings.ToLower(line[:1])]
	}
	if l := fromLogfmt(line); l != Unknown {
		return l
	}
	return fromStart(line)
}

// ownMark begins the lines that the guest writes itself.
const ownMark = Own + " "

// fromOwn finds the level of such a line: a warning when something was lost or went wrong.
func fromOwn(line string) Level {
	for _, part := range []string{" dropped ", " missing ", " cannot ", "exit code"} {
		if strings.Contains(line, part) {
			return Warn
		}
	}
	return Info
}

// fromJSON finds `"level": "warn"` or `"level": 40` (pino's and bunyan's numbers).
func fromJSON(line string) Level {
	for _, name := range fieldNames {
		_, rest, found := strings.Cut(line, `"`+name+`"`)
		if !found {
			continue
		}
		rest, found = strings.CutPrefix(strings.TrimLeft(rest, " \t"), ":")
		if !found {
			continue
		}
		rest = strings.TrimLeft(rest, " \t")
		if value, ok := strings.CutPrefix(rest, `"`); ok {
			if l := word(value); l != Unknown {
				return l
			}
			rest = value
		}
		if l := fromNumber(rest); l != Unknown {
			return l
		}
	}
	return Unknown
}

// fromNumber reads pino's 10 to 60.
func fromNumber(s string) Level {
	if len(s) < 2 || s[1] != '0' || len(s) > 2 && isDigit(s[2]) {
		return Unknown
	}
	switch s[0] {
	case '1', '2':
		return Debug
	case '3':
		return Info
	case '4':
		return Warn
	case '5':
		return Error
	case '6':
		return Fatal
	}
	return Unknown
}

// fromLogfmt finds `level=warn`.
func fromLogfmt(line string) Level {
	for _, name := range fieldNames {
		at := strings.Index(line, name+"=")
		if at < 0 || at > 0 && line[at-1] != ' ' && line[at-1] != '\t' {
			continue
		}
		if l := word(strings.TrimLeft(line[at+len(name)+1:], `"'`)); l != Unknown {
			return l
		}
	}
	return Unknown
}

// word gives the level that a text begins with, as a whole word.
func word(s string) Level {
	end := 0
	for end < len(s) && end < 16 && isLetter(s[end]) {
		end++
	}
	if end == len(s) || !isDigit(s[end]) && s[end] != '_' {
		return levelWords[strings.ToLower(s[:end])]
	}
	return Unknown
}

// isKlog reports whether a line begins as klog's do: "E0102 15:04:05.".
func isKlog(line string) bool {
	if len(line) < 14 || !strings.ContainsRune("IWEFD", rune(line[0])) || line[5] != ' ' || line[8] != ':' {
		return false
	}
	for _, c := range []byte(line[1:5]) {
		if !isDigit(c) {
			return false
		}
	}
	return true
}

const startWords = 8 // of a line: a time, a process, a logger's name, and then the level

// fromStart finds a level among the first words: any but a single letter when only times and brackets stand before it, else only in
// capitals.
func fromStart(line string) Level {
	clean := true
	for range startWords {
		line = strings.TrimLeft(line, " \t[](){}<>|:,;-*#=\"'")
		if line == "" {
			return Unknown
		}
		end := strings.IndexAny(line, " \t[](){}<>|:,;=\"'!")
		if end < 0 {
			end = len(line)
		}
		w := line[:end]
		l := levelOf(w)
		if l != Unknown && (clean || w == strings.ToUpper(w)) {
			return l
		}
		if strings.IndexFunc(w, func(r rune) bool { return r >= '0' && r <= '9' }) < 0 {
			clean = false
		}
		line = line[end:]
	}
	return Unknown
}

// levelOf gives the level that a word stands for: "WARN", or the name of an exception, such as "TypeError".
func levelOf(w string) Level {
	if len(w) < 3 || len(w) > 40 {
		return Unknown
	}
	if len(w) <= 16 {
		if l := levelWords[strings.ToLower(w)]; l != Unknown {
			return l
		}
	}
	if w[0] >= 'A' && w[0] <= 'Z' && (strings.HasSuffix(w, "Error") || strings.HasSuffix(w, "Exception")) {
		return Error
	}
	return Unknown
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

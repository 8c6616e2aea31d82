package catalog

import (
	"regexp"
	"slices"
	"strings"

	"sandboxd/internal/text"
)

// How much of a build's output is kept: enough to find a cause in, little enough to keep one for every template.
const (
	maxLogLines = 2000
	maxLogBytes = 256 << 10
	maxLogLine  = 1000
)

// buildLog keeps the last lines of one build. It is not safe for concurrent use.
type buildLog struct {
	lines []string
	bytes int
}

// add appends a cleaned line, forgetting the oldest ones beyond the bounds.
func (l *buildLog) add(line string) {
	l.lines = append(l.lines, line)
	l.bytes += len(line)
	drop := 0
	for len(l.lines)-drop > maxLogLines || l.bytes > maxLogBytes {
		l.bytes -= len(l.lines[drop])
		drop++
	}
	l.lines = slices.Delete(l.lines, 0, drop)
}

// all gives a copy of the lines.
func (l *buildLog) all() []string { return slices.Clone(l.lines) }

// escapeSequence is what programs send to a terminal to move and colour.
var escapeSequence = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_()][0-9A-Za-z]?)`)

// CleanLine makes a line of a build's output fit to be shown anywhere, as text.Excerpt does, without escape sequences. Of a line that
// overwrote itself, such as a progress bar, the last state is kept.
func CleanLine(line string) string {
	line = escapeSequence.ReplaceAllString(line[:min(len(line), 4*maxLogLine)], "")
	line = strings.TrimRight(line, "\r\n\t ")
	line = line[strings.LastIndexByte(line, '\r')+1:]
	return text.Excerpt(strings.ReplaceAll(line, "\t", "    "), maxLogLine)
}

package docker

import "strings"

// lineSplitter cuts a stream of text into lines, bounded in length. A carriage return ends a line as well: programs
// use it to paint over what they have said.
type lineSplitter struct {
	rest strings.Builder
	emit func(line string)
}

// longestLine bounds one line of a build's output, in bytes; the rest of a longer one is dropped.
const longestLine = 4096

func (s *lineSplitter) write(text string) {
	for len(text) > 0 {
		i := strings.IndexAny(text, "\r\n")
		part := text
		if i >= 0 {
			part = text[:i]
		}
		if room := longestLine - s.rest.Len(); room > 0 {
			s.rest.WriteString(part[:min(len(part), room)])
		}
		if i < 0 {
			return
		}
		s.flush()
		text = text[i+1:]
	}
}

// flush emits an unfinished line.
func (s *lineSplitter) flush() {
	line := strings.TrimRight(strings.ToValidUTF8(s.rest.String(), "?"), " \t")
	s.rest.Reset()
	if line != "" {
		s.emit(line)
	}
}

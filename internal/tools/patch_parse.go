package tools

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// filePatch is what a patch says of one file.
type filePatch struct {
	path   string
	create bool
	remove bool
	hunks  []hunk
}

// hunk is one place of a file. Its lines have no line breaks.
type hunk struct {
	at       int // the first line in the old file, 0 when that is not told
	old, new []string
	noEnd    bool // the new file's last line, which is in it, has no line break
}

// Bounds of a patch.
const (
	mostPatched = 50
	mostHunks   = 500
)

var hunkHead = regexp.MustCompile(`^@@(?: -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@.*|.*)$`)

// parsePatch reads a unified diff of one or more files, or the form that begins with *** Begin Patch. The numbers of lines are hints: models
// count badly.
func parsePatch(text string) ([]filePatch, error) {
	p := &patchParser{}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		if err := p.line(line, lines[i+1:]); err != nil {
			return nil, fmt.Errorf("line %d of the patch: %w", i+1, err)
		}
	}
	p.closeFile()
	for _, f := range p.files {
		if len(f.hunks) == 0 && !f.remove && !f.create {
			return nil, fmt.Errorf("it says nothing of what to change in %s", shownPath(f.path))
		}
	}
	if len(p.files) == 0 {
		return nil, fmt.Errorf("it has no file: begin each with the lines --- a/PATH and +++ b/PATH")
	}
	return p.files, nil
}

// patchParser reads line by line.
type patchParser struct {
	files  []filePatch
	file   *filePatch
	hunk   *hunk
	from   string // of a --- line whose +++ line is to come
	begun  bool   // from is set
	counts [2]int // lines that the hunk was to have, before and after
	last   byte   // the kind of the hunk's last line
	empty  int    // lines at the hunk's end that are empty, without even a space
}

// line reads a line. What follows tells whether one that begins with --- is a header.
func (p *patchParser) line(line string, next []string) error {
	switch {
	case p.begun && strings.HasPrefix(line, "+++ "):
		return p.open(p.from, patchPath(line[4:]))
	case strings.HasPrefix(line, "*** "):
		return p.marker(line[4:])
	case p.isHead(line, next):
		p.closeFile()
		p.from, p.begun = patchPath(line[4:]), true
		return nil
	case strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "rename "), strings.HasPrefix(line, "copy "):
		return p.header(line)
	case p.file == nil:
		return nil // words before the first file, and headers of git
	case strings.HasPrefix(line, "@@"):
		return p.openHunk(line)
	}
	return p.body(line)
}

// isHead says whether a line begins a file. One that is taken away and begins with --, before one that is new and begins with ++, looks the
// same: then it counts how many lines the place was to have.
func (p *patchParser) isHead(line string, next []string) bool {
	if !strings.HasPrefix(line, "--- ") || len(next) == 0 || !strings.HasPrefix(next[0], "+++ ") {
		return false
	}
	if p.hunk == nil || p.file.create {
		return true
	}
	old, fresh := p.counts[0]-len(p.hunk.old), p.counts[1]-len(p.hunk.new)
	if old < 1 || fresh < 1 {
		return true
	}
	return len(next) > 1 && strings.HasPrefix(next[1], "@@") && (old > 1 || fresh > 1)
}

func (p *patchParser) header(line string) error {
	p.closeFile()
	if !strings.HasPrefix(line, "diff ") {
		return fmt.Errorf("files cannot be renamed or copied by a patch. Use a command")
	}
	return nil
}

// patchPath gives the path of a line --- or +++, without what stands behind a tab.
func patchPath(s string) string {
	s, _, _ = strings.Cut(s, "\t")
	if unquoted, err := strconv.Unquote(s); err == nil {
		return unquoted
	}
	return strings.TrimSpace(s)
}

const noFile = "/dev/null"

// open begins a file.
func (p *patchParser) open(from, to string) error {
	p.begun = false
	if strings.HasPrefix(from, "a/") || strings.HasPrefix(to, "b/") {
		from, to = strings.TrimPrefix(from, "a/"), strings.TrimPrefix(to, "b/")
	}
	f := filePatch{path: to, create: from == noFile, remove: to == noFile}
	if f.remove {
		f.path = from
	}
	if !f.create && !f.remove && from != to {
		return fmt.Errorf("files cannot be renamed by a patch. Use a command")
	}
	return p.begin(f)
}

func (p *patchParser) begin(f filePatch) error {
	p.closeFile()
	if f.path == "" || f.path == noFile {
		return fmt.Errorf("a path is missing")
	}
	if len(p.files) == mostPatched {
		return fmt.Errorf("it changes more than %d files", mostPatched)
	}
	for _, other := range p.files {
		if other.path == f.path {
			return fmt.Errorf("%s is in it twice", shownPath(f.path))
		}
	}
	p.files = append(p.files, f)
	p.file = &p.files[len(p.files)-1]
	if f.create {
		p.hunk = p.addHunk(0)
	}
	return nil
}

// marker reads a line of the form that begins with *** Begin Patch.
func (p *patchParser) marker(s string) error {
	verb, path, _ := strings.Cut(s, ": ")
	path = strings.TrimSpace(path)
	switch verb {
	case "Update File":
		return p.begin(filePatch{path: path})
	case "Add File":
		return p.begin(filePatch{path: path, create: true})
	case "Delete File":
		return p.begin(filePatch{path: path, remove: true})
	case "Move to":
		return fmt.Errorf("files cannot be renamed by a patch. Use a command")
	}
	p.closeFile() // the beginning and the end
	return nil
}

func (p *patchParser) closeFile() {
	p.closeHunk()
	p.file = nil
}

// closeHunk leaves out the empty lines that only part it from what follows.
func (p *patchParser) closeHunk() {
	if h := p.hunk; h != nil {
		h.old, h.new = h.old[:max(len(h.old)-p.empty, 0)], h.new[:max(len(h.new)-p.empty, 0)]
	}
	p.hunk, p.empty = nil, 0
}

func (p *patchParser) openHunk(line string) error {
	m := hunkHead.FindStringSubmatch(line)
	at := number(m[1], 0)
	if p.file.create && len(p.file.hunks) == 1 && len(p.file.hunks[0].new) == 0 {
		return nil // of a made file
	}
	p.closeHunk()
	if len(p.file.hunks) == mostHunks {
		return fmt.Errorf("it changes more than %d places of a file", mostHunks)
	}
	p.hunk = p.addHunk(at)
	if p.counts = [2]int{}; m[1] != "" {
		p.counts = [2]int{number(m[2], 1), number(m[3], 1)}
	}
	return nil
}

func number(s string, otherwise int) int {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	return otherwise
}

func (p *patchParser) addHunk(at int) *hunk {
	p.file.hunks = append(p.file.hunks, hunk{at: at})
	return &p.file.hunks[len(p.file.hunks)-1]
}

// body reads a line of a hunk.
func (p *patchParser) body(line string) error {
	if p.hunk == nil {
		if p.file.remove || line == "" {
			return nil
		}
		return fmt.Errorf("a line @@ is missing before it")
	}
	kind, rest := byte(' '), ""
	p.empty++
	if line != "" { // an empty line is one whose space was lost
		kind, rest, p.empty = line[0], line[1:], 0
	}
	switch kind {
	case ' ':
		p.hunk.old, p.hunk.new = append(p.hunk.old, rest), append(p.hunk.new, rest)
	case '-':
		p.hunk.old = append(p.hunk.old, rest)
	case '+':
		p.hunk.new = append(p.hunk.new, rest)
	case '\\': // No newline at end of file
		p.hunk.noEnd = p.hunk.noEnd || p.last != '-'
	default:
		return fmt.Errorf("it begins with %q, and must begin with a space, - or +", rune(kind))
	}
	p.last = kind
	return nil
}

package files

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// Bounds of what is searched.
const (
	searchedFile = 64 << 20 // bytes of a file that are looked at
	searchedLine = 64 << 10 // bytes of a line
	binaryHead   = 8 << 10  // bytes in which a zero byte says that it is no text
	hitsOfFile   = 1000     // results of one file
)

// byContent finds lines of text files: by ripgrep where the image has it, which passes over what the folders' ignore files
// name, else by itself.
func (f *finding) byContent(w *walk) error {
	if rg := w.actor.tree.findProgram("rg"); rg != "" {
		return f.ripgrep(w, rg)
	}
	m, err := f.matcher()
	if err != nil {
		return problem(wire.CodeInvalid, "The expression cannot be read: %v.", err)
	}
	lines := bufio.NewReaderSize(nil, searchedLine)
	return w.each("", len(w.levels), neverSearched, func(p, name string, kind wire.FileType) error {
		if kind != wire.TypeFile || isTemporary(name) {
			return nil
		}
		return f.inFile(w, p, name, m, lines)
	})
}

func (t *Tree) findProgram(name string) string {
	if t.cfg.Find == nil {
		return ""
	}
	return t.cfg.Find(name)
}

// neverSearched are folders of which nobody wants to know.
func neverSearched(name string) bool { return name == ".git" || name == "node_modules" }

// matcher says where in a line the first match is; nil when there is none.
type matcher func(line []byte) []int

func (f *finding) matcher() (matcher, error) {
	if f.Case && !f.Regex {
		query := []byte(f.Query)
		return func(line []byte) []int {
			if i := bytes.Index(line, query); i >= 0 {
				return []int{i, i + len(query)}
			}
			return nil
		}, nil
	}
	expression := f.Query
	if !f.Regex {
		expression = regexp.QuoteMeta(expression)
	}
	if !f.Case {
		expression = "(?i)" + expression
	}
	re, err := regexp.Compile(expression)
	if err != nil {
		return nil, err
	}
	return re.FindIndex, nil
}

// inFile tells of the lines of one file. One that is no text, or cannot be read, has none.
func (f *finding) inFile(w *walk, p, name string, m matcher, lines *bufio.Reader) error {
	var st unix.Stat_t
	fd, err := openFile(w.fd(), name, &st)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	lines.Reset(io.LimitReader(reader(fd), searchedFile))
	if head, _ := lines.Peek(binaryHead); bytes.IndexByte(head, 0) >= 0 {
		return nil
	}
	hits := 0
	for number := 1; hits < hitsOfFile; number++ {
		if number%1024 == 0 && w.actor.ctx.Err() != nil {
			return w.actor.ctx.Err()
		}
		line, err := lines.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		if hit := m(bytes.TrimRight(line, "\r\n")); hit != nil {
			hits++
			if err := f.tell(foundIn(p, number, bytes.TrimRight(line, "\r\n"), hit)); err != nil {
				return err
			}
		}
		for long {
			_, err = lines.ReadSlice('\n')
			long = errors.Is(err, bufio.ErrBufferFull)
		}
		if err != nil {
			return nil
		}
	}
	return nil
}

// foundIn is a result with the part of the line around the match that there is room for.
func foundIn(p string, number int, line []byte, hit []int) *wire.Found {
	x := &wire.Found{Path: p, Type: wire.TypeFile, Line: number, Column: hit[0] + 1}
	from := 0
	if hit[1] > wire.MaxFoundText {
		from = max(0, hit[0]-wire.MaxFoundText/4)
	}
	to := min(len(line), from+wire.MaxFoundText)
	x.Text = strings.Clone(string(line[from:to]))
	x.Start, x.End = hit[0]-from, min(hit[1], to)-from
	return x
}

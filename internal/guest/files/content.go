package files

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// Bounds of a search.
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
		return err
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

// neverSearched reports whether a folder is left out of searches.
func neverSearched(name string) bool { return name == ".git" || name == "node_modules" }

// matcher says where in a line the first match is; start is negative when there is none.
type matcher func(line []byte) (start, end int)

// matcher makes one for a query. A regular expression takes ripgrep: a package for them would make the guest,
// which is in every sandbox, noticeably larger.
func (f *finding) matcher() (matcher, error) {
	query := []byte(f.Query)
	switch {
	case f.Regex:
		return nil, problem(wire.CodeConflict, "A search for a regular expression needs ripgrep (rg) in the sandbox's image.")
	case f.Case:
		return func(line []byte) (int, int) {
			i := bytes.Index(line, query)
			return i, i + len(query)
		}, nil
	case bytes.IndexFunc(query, func(r rune) bool { return r >= utf8.RuneSelf }) < 0:
		return foldedMatcher(query), nil
	}
	runes := utf8.RuneCount(query)
	return func(line []byte) (int, int) { return indexFold(line, query, runes) }, nil
}

// foldedMatcher looks for ASCII without regard to case.
func foldedMatcher(query []byte) matcher {
	query = bytes.ToLower(query)
	var room []byte
	return func(line []byte) (int, int) {
		room = append(room[:0], line...)
		for i, c := range room {
			if c >= 'A' && c <= 'Z' {
				room[i] = c + 'a' - 'A'
			}
		}
		i := bytes.Index(room, query)
		return i, i + len(query)
	}
}

// indexFold looks for any text, of so many characters, without regard to case.
func indexFold(line, query []byte, runes int) (start, end int) {
	for start = 0; start < len(line); {
		end = start
		for range runes {
			_, n := utf8.DecodeRune(line[end:])
			end += n
		}
		if bytes.EqualFold(line[start:end], query) {
			return start, end
		}
		_, n := utf8.DecodeRune(line[start:])
		start += n
	}
	return -1, -1
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
		text := bytes.TrimRight(line, "\r\n")
		if start, end := m(text); start >= 0 {
			hits++
			if err := f.tell(foundIn(p, number, text, start, end)); err != nil {
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
func foundIn(p string, number int, line []byte, start, end int) *wire.Found {
	from := 0
	if end > wire.MaxFoundText {
		from = max(0, start-wire.MaxFoundText/4)
	}
	to := min(len(line), from+wire.MaxFoundText)
	return &wire.Found{Path: p, Type: wire.TypeFile, Line: number, Column: start + 1, Text: string(line[from:to]),
		Start: start - from, End: min(end, to) - from}
}

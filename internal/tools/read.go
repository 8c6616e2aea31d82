package tools

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"unicode/utf8"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/files"
	"sandboxd/internal/text"
	"sandboxd/internal/wire"
)

// Bounds of what is read.
const (
	sniffed   = 8 << 10  // bytes by which the kind of a file is told
	mostLines = 2000     // of one read
	longLine  = 2000     // bytes of one that are shown
	mostRead  = 64 << 20 // bytes of a file that are looked through for a line
	mostEdit  = 4 << 20  // bytes of a file that is edited
)

func (t *table) readFile() spec {
	return spec{
		name: "read_file", title: "Read a file",
		description: "Read a text file, or look at a picture (PNG, JPEG, WebP, GIF). Each line comes with its number and a tab before it, which are no part of the file. " +
			"Of a long file you get a part: ask for more with from_line.",
		params: []param{
			{name: "path", kind: isText, required: true, about: "Absolute, or relative to the home."},
			{name: "from_line", kind: isNumber, min: 1, max: 1 << 30, about: "The first line to read; 1 if you say nothing."},
			{name: "lines", kind: isNumber, min: 1, max: mostLines, about: "How many lines to read at most; as many as fit if you say nothing."},
		},
		preview: func(a args) Preview {
			p := Preview{Path: a.text("path"), Risk: hiddenIn(a.text("path"))}
			return p
		},
		run: func(ctx context.Context, a args, _ io.Writer) (Result, error) {
			c, err := t.cfg.Files.Read(ctx, t.seat.Handle, t.path(a.text("path")), 0, -1)
			if err != nil {
				if errors.Is(err, files.ErrIsFolder) {
					return failed("That is a folder. Use list_folder."), nil
				}
				return ended(ctx, err)
			}
			defer c.Close()
			in := bufio.NewReaderSize(c, sniffed)
			head, err := in.Peek(int(min(sniffed, c.Size)))
			if err != nil {
				return ended(ctx, err)
			}
			if mime := pictureType(head); mime != "" {
				return picture(ctx, c, in, mime)
			}
			if bytes.IndexByte(head, 0) >= 0 {
				return failed(fmt.Sprintf("That is no text: a file of %d bytes, %s. Look at it with a command, such as xxd or file.", c.Size, http.DetectContentType(head))), nil
			}
			p := lines{from: a.number("from_line", 1), most: a.number("lines", mostLines)}
			if err := p.read(in); err != nil {
				return ended(ctx, err)
			}
			return p.result(c.Size), nil
		},
	}
}

// pictureType gives the MIME type of a picture that models take; "" for anything else.
func pictureType(head []byte) string {
	switch mime := http.DetectContentType(head); mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return mime
	}
	return ""
}

func picture(ctx context.Context, c *files.Content, in io.Reader, mime string) (Result, error) {
	if c.Size > maxPicture {
		return failed(fmt.Sprintf("The picture has %s; at most %s can be looked at. Make it smaller first.", text.Size(c.Size), text.Size(maxPicture))), nil
	}
	b, err := io.ReadAll(in)
	if err != nil {
		return ended(ctx, err)
	}
	return Result{Text: fmt.Sprintf("The picture is %s, %s.", mime, text.Size(c.Size)), Images: []Image{{MIME: mime, Bytes: b}}}, nil
}

// lines reads a part of a text.
type lines struct {
	from, most int

	b      strings.Builder
	number int  // of the line that was read last
	shown  int  // lines
	more   bool // there are more after those that are shown
	full   bool // because no more fits
}

func (l *lines) read(in *bufio.Reader) error {
	for read := 0; ; {
		line, cut, size, err := nextLine(in)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if read += size; read > mostRead {
			l.more, l.full = true, true
			return nil
		}
		l.number++
		switch {
		case l.number < l.from:
			continue
		case l.shown == l.most || l.b.Len()+len(line) > maxText:
			l.more, l.full = true, l.shown < l.most
			return nil
		}
		l.shown++
		fmt.Fprintf(&l.b, "%d\t%s", l.number, line)
		if cut > 0 {
			fmt.Fprintf(&l.b, " [%d bytes of this line left out]", cut)
		}
		l.b.WriteByte('\n')
	}
}

// nextLine gives a line without its end, the beginning alone of a long one. size is how much was read.
func nextLine(in *bufio.Reader) (line string, cut, size int, err error) {
	var kept []byte
	for {
		piece, err := in.ReadSlice('\n')
		size += len(piece)
		body := bytes.TrimSuffix(piece, []byte("\n"))
		n := min(len(body), longLine-len(kept))
		kept, cut = append(kept, body[:n]...), cut+len(body)-n
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil && (err != io.EOF || size == 0) {
			return "", 0, 0, err
		}
		return strings.ToValidUTF8(strings.TrimSuffix(string(kept), "\r"), "\uFFFD"), cut, size, nil
	}
}

func (l *lines) result(size int64) Result {
	switch {
	case size == 0:
		return Result{Text: "[The file is empty.]"}
	case l.shown == 0 && l.more:
		return failed(fmt.Sprintf("The file is too long to look for line %d in it. Use a command, such as sed -n.", l.from))
	case l.shown == 0:
		return failed(fmt.Sprintf("The file has only %d lines.", l.number))
	case l.more:
		fmt.Fprintf(&l.b, "[There is more: read on with from_line %d. The file has %s.]", l.from+l.shown, text.Size(size))
	}
	return Result{Text: l.b.String()}
}

// whole reads a file of at most so many bytes.
func (s *Service) whole(ctx context.Context, h access.Handle, path string, most int64) ([]byte, files.Entry, error) {
	c, err := s.cfg.Files.Read(ctx, h, path, 0, most+1)
	if err != nil {
		return nil, files.Entry{}, err
	}
	defer c.Close()
	if c.Entry.Size > most {
		return nil, c.Entry, fault.New(fault.TooLarge, "The file has %s, which is too much for this. Change it with a command.", text.Size(c.Entry.Size))
	}
	b, err := io.ReadAll(c)
	return b, c.Entry, err
}

func (t *table) listFolder() spec {
	return spec{
		name: "list_folder", title: "List a folder",
		description: "List a folder: its folders (with a / at the end) first, then its files with their sizes.",
		params:      []param{{name: "path", kind: isText, about: "Absolute, or relative to the home; the home if you say nothing."}},
		preview:     func(a args) Preview { return Preview{Path: a.text("path"), Risk: hiddenIn(a.text("path"))} },
		run: func(ctx context.Context, a args, _ io.Writer) (Result, error) {
			l, err := t.cfg.Files.List(ctx, t.seat.Handle, t.path(a.text("path")), "", mostEntries)
			if err != nil {
				return ended(ctx, err)
			}
			var b strings.Builder
			fmt.Fprintf(&b, "%s:\n", shownPath(l.Path))
			for i, e := range l.Entries {
				if b.Len() > maxText {
					fmt.Fprintf(&b, "[%d more are left out]\n", len(l.Entries)-i)
					break
				}
				b.WriteString(entryLine(e))
			}
			switch {
			case l.Next != "":
				fmt.Fprintf(&b, "[There are more than %d. Use search_files, or a command.]\n", mostEntries)
			case len(l.Entries) == 0:
				b.WriteString("[It is empty.]\n")
			}
			return Result{Text: b.String()}, nil
		},
	}
}

// mostEntries bounds a listing.
const mostEntries = 500

func entryLine(e wire.Entry) string {
	name := shownPath(e.Name)
	switch e.Type {
	case wire.TypeFolder:
		return name + "/\n"
	case wire.TypeLink:
		return name + " -> " + shownPath(e.Target) + "\n"
	case wire.TypeFile:
		return fmt.Sprintf("%s  %s\n", name, text.Size(e.Size))
	}
	return fmt.Sprintf("%s  (%s)\n", name, e.Type)
}

// shownPath is a path on a line: one that forges a line, or is no text, is quoted.
func shownPath(p string) string {
	if strings.ContainsAny(p, "\n\r\t\x1b") || !utf8.ValidString(p) {
		return fmt.Sprintf("%q", p)
	}
	return p
}

func (t *table) searchFiles() spec {
	return spec{
		name: "search_files", title: "Search files",
		description: "Search the contents of text files for a text or a regular expression, or the names of files for a part or a pattern such as *.go. Links are not followed.",
		params: []param{
			{name: "query", kind: isText, required: true, about: "What to look for."},
			{name: "folder", kind: isText, about: "Where to look, with all folders in it; the home if you say nothing."},
			{name: "in", kind: isText, enum: []string{"contents", "names"}, about: "contents if you say nothing."},
			{name: "regex", kind: isFlag, about: "The query is a regular expression (Go's syntax); contents only."},
			{name: "case", kind: isFlag, about: "Upper and lower case differ."},
			{name: "limit", kind: isNumber, min: 1, max: 1000, about: "How many results at most; 100 if you say nothing."},
		},
		preview: func(a args) Preview {
			return Preview{Code: a.text("query"), Language: "text", Path: a.text("folder"), Risk: hiddenIn(a.text("folder"))}
		},
		run: t.search,
	}
}

func (t *table) search(ctx context.Context, a args, _ io.Writer) (Result, error) {
	q := wire.Search{Path: t.path(a.text("folder")), Query: a.text("query"), In: wire.SearchContent, Case: a.flag("case", false), Regex: a.flag("regex", false), Limit: a.number("limit", 100)}
	if a.text("in") == "names" {
		q.In = wire.SearchNames
	}
	var b strings.Builder
	found, leftOut := 0, 0
	more, err := t.cfg.Files.Search(ctx, t.seat.Handle, q, func(f wire.Found) error {
		if found++; b.Len() > maxText {
			leftOut++
			return nil
		}
		if q.In == wire.SearchNames {
			b.WriteString(shownPath(path.Clean(f.Path)) + "\n")
			return nil
		}
		fmt.Fprintf(&b, "%s:%d: %s\n", shownPath(path.Clean(f.Path)), f.Line, plain(strings.ReplaceAll(f.Text, "\n", " ")))
		return nil
	})
	if err != nil {
		return ended(ctx, err)
	}
	switch {
	case found == 0:
		b.WriteString("[Nothing was found.]")
	case leftOut > 0:
		fmt.Fprintf(&b, "[%d more are left out. Search for something narrower.]", leftOut)
	case more:
		b.WriteString("[There may be more. Search for something narrower, or with a higher limit.]")
	}
	return Result{Text: b.String()}, nil
}

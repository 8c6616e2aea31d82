package wire

import (
	"path"
	"strings"

	"sandboxd/internal/text"
)

// CleanPath gives the absolute path that p means in a sandbox: p itself when it is absolute, else below home. It is
// shortened by its text alone, as path.Clean does it. A path that is too long, holds a zero byte or leads out of home
// (or the root) by "..", is refused.
func CleanPath(home, p string) (string, error) {
	if p == "" || len(p) > MaxPath {
		return "", badField("path: it is empty or too long")
	}
	if strings.IndexByte(p, 0) >= 0 {
		return "", badField("path: it holds a zero byte")
	}
	depth := 0
	for name := range strings.SplitSeq(p, "/") {
		switch {
		case len(name) > MaxFileName:
			return "", badField("path: a name in it is too long")
		case name == "..":
			depth--
		case name != "" && name != ".":
			depth++
		}
		if depth < 0 {
			return "", badField("path: it leads out of where it begins")
		}
	}
	if p[0] != '/' {
		p = home + "/" + p
	}
	p = path.Clean("/" + p)
	if len(p) > MaxPath {
		return "", badField("path: it is too long")
	}
	return p, nil
}

// CheckFileName says whether name can be one name in a folder.
func CheckFileName(name string) error {
	if name == "" || len(name) > MaxFileName || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return badField("file name")
	}
	return nil
}

// CheckUpload says whether id can name a resumable upload.
func CheckUpload(id string) error {
	if id == "" || len(id) > maxUploadName {
		return badField("upload")
	}
	for _, c := range []byte(id) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return badField("upload")
		}
	}
	return nil
}

// Check says whether e is within its bounds.
func (e *Entry) Check() error {
	if e.Name != "/" {
		if err := CheckFileName(e.Name); err != nil {
			return err
		}
	}
	if e.Size < 0 || e.Mode > MaxFileMode || !e.Type.known() {
		return badField("entry")
	}
	if e.TargetType != "" && !e.TargetType.known() {
		return badField("target type")
	}
	if err := checkText("target", e.Target, MaxPath); err != nil {
		return err
	}
	e.Owner, e.Group = cleanName(e.Owner), cleanName(e.Group)
	return nil
}

// cleanName is Clean, for names that nearly always are clean.
func cleanName(s string) string {
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' {
			return text.OneLine(s, maxName)
		}
	}
	return s
}

func (t FileType) known() bool {
	switch t {
	case TypeFile, TypeFolder, TypeLink, TypeFIFO, TypeSocket, TypeDevice:
		return true
	}
	return false
}

// Check says whether f is within its bounds. It does not judge the path, which CleanPath does.
func (f *FilePut) Check() error {
	if f.Upload != "" {
		if err := CheckUpload(f.Upload); err != nil {
			return err
		}
	}
	if f.Offset < 0 || f.Offset > 0 && f.Upload == "" || f.Size >= 0 && f.Offset > f.Size {
		return badField("offset")
	}
	if f.Mode > MaxFileMode {
		return badField("mode")
	}
	if f.IfNone && f.IfMatch != "" {
		return badField("condition: it cannot be there and not there")
	}
	return checkText("if_match", f.IfMatch, maxETag)
}

// Check says whether t is within its bounds.
func (t *Trashed) Check() error {
	if err := CheckFileName(t.ID); err != nil {
		return err
	}
	if t.Size < 0 || !t.Type.known() {
		return badField("trash")
	}
	if !strings.HasPrefix(t.Path, "/") {
		return badField("trash path")
	}
	return checkText("trash path", t.Path, MaxPath)
}

// Check says whether s is within its bounds, and fills in the limit.
func (s *Search) Check() error {
	if s.Query == "" || strings.ContainsAny(s.Query, "\x00\n") {
		return badField("query")
	}
	if err := checkText("query", s.Query, MaxQuery); err != nil {
		return err
	}
	if s.In != SearchNames && s.In != SearchContent {
		return badField("in")
	}
	if s.Limit < 0 || s.Regex && s.In == SearchNames {
		return badField("search")
	}
	if s.Limit == 0 || s.Limit > MaxFound {
		s.Limit = MaxFound
	}
	return nil
}

// Check says whether f is within its bounds.
func (f *Found) Check() error {
	if f.Path == "" || f.Path[0] == '/' || path.Clean(f.Path) != f.Path || f.Path == ".." || strings.HasPrefix(f.Path, "../") {
		return badField("found path")
	}
	if err := checkText("found path", f.Path, MaxPath); err != nil {
		return err
	}
	if !f.Type.known() || f.Line < 0 || f.Column < 0 || len(f.Text) > MaxFoundText {
		return badField("found")
	}
	if f.Start < 0 || f.Start > f.End || f.End > len(f.Text) {
		return badField("found range")
	}
	return nil
}

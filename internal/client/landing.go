package client

import (
	"path"
	"strings"

	"sandboxd/internal/fault"
)

// Source is the source of a copy: by docker's rules a folder, or its contents when the path ends in "/.".
type Source struct {
	Folder   string // that holds it; of contents the folder itself
	Name     string // in there; "" for contents
	IsFolder bool
}

// SourceOf splits a path that is copied. Of one that names no entry of a folder, such as "/", "." or "..", the contents are
// meant.
func SourceOf(p string, isFolder bool) Source {
	bare := strings.TrimRight(p, "/")
	base := path.Base(bare)
	if bare == "" || base == "." || base == ".." || base == "~" && bare == "~" {
		if p == "" {
			p = "."
		}
		return Source{Folder: path.Clean(p), IsFolder: true}
	}
	return Source{Folder: path.Dir(bare), Name: base, IsFolder: isFolder}
}

// Kind is the type of an existing path.
type Kind uint8

// The kinds.
const (
	Nothing Kind = iota
	AFolder      // or a link to one
	AFile        // or anything else
)

// Landing says where a copy lands: in which folder, and under which name; "" for the contents of a folder, which are merged
// into it. There may be nothing at dst if there is a folder that it can be in: NeedsParent says so.
type Landing struct {
	Folder      string
	Name        string
	NeedsParent bool
}

// LandingOf decides by docker's rules. base is the copy's name inside a folder, "" when s is a folder's contents. It is the
// name that the user gave, not the one that links lead to.
func LandingOf(s Source, base, dst string, at Kind) (Landing, error) {
	contents := base == ""
	named := Landing{Folder: path.Dir(strings.TrimRight(dst, "/")), Name: path.Base(strings.TrimRight(dst, "/"))}
	switch at {
	case AFolder:
		if contents {
			return Landing{Folder: dst}, nil
		}
		return Landing{Folder: dst, Name: base}, nil
	case AFile:
		if s.IsFolder {
			return Landing{}, fault.Field("destination", "%q is a file, and a folder cannot be copied over it.", dst)
		}
		if strings.HasSuffix(dst, "/") {
			return Landing{}, fault.Field("destination", "%q is not a folder.", dst)
		}
		return named, nil
	}
	if !s.IsFolder && strings.HasSuffix(dst, "/") {
		return Landing{}, fault.Field("destination", "There is no folder %q.", dst)
	}
	named.NeedsParent = true
	return named, nil
}

package files

import (
	"strings"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
	"sandboxd/internal/wire"
)

// homeShort is how people write the home.
const homeShort = "~"

// CheckPath gives a path of a sandbox as it is asked for: absolute, or relative to the home of the sandbox's user, which is
// "." itself. "~" and what begins with "~/" are relative too. It refuses, as Invalid, what no path can be, and what leads out
// of where it begins. It looks at the text alone: where links lead is the guest's to find, as the sandbox's user.
func CheckPath(given string) (string, error) {
	const field = "path"
	switch {
	case given == "":
		return "", fault.Field(field, "A path is needed, such as /home/agent/notes.txt, or notes.txt in the home.")
	case given == homeShort || strings.HasPrefix(given, homeShort+"/"):
		given = "." + given[len(homeShort):]
	}
	clean, err := wire.CleanPath("", given)
	if err != nil {
		return "", fault.Field(field, "%.80q is no path that can be used (%v).", text.OneLine(given, 80), err)
	}
	if given[0] == '/' {
		return clean, nil
	}
	if clean == "/" {
		return ".", nil
	}
	return clean[1:], nil
}

// absolute gives where a path that CheckPath gave is, by what the guest says of the home.
func absolute(g access.Guest, clean string) string {
	if clean[0] == '/' {
		return clean
	}
	if at, err := wire.CleanPath(g.Hello().Home, clean); err == nil {
		return at
	}
	return clean
}

// checkPaths is CheckPath for at least one path and not too many.
func checkPaths(given []string) ([]string, error) {
	if len(given) == 0 {
		_, err := CheckPath("")
		return nil, err
	}
	if err := checkCount("path", given); err != nil {
		return nil, err
	}
	clean := make([]string, 0, len(given))
	for _, p := range given {
		c, err := CheckPath(p)
		if err != nil {
			return nil, err
		}
		clean = append(clean, c)
	}
	return clean, nil
}

// checkNames refuses what cannot be names of things in a folder, or of the trash.
func checkNames(field string, names []string) error {
	if err := checkCount(field, names); err != nil {
		return err
	}
	for _, name := range names {
		if err := wire.CheckFileName(name); err != nil {
			return fault.Field(field, "%q cannot be the name of something in a folder.", text.OneLine(name, 80))
		}
	}
	return nil
}

func checkCount(field string, list []string) error {
	if len(list) > wire.MaxFilePaths {
		return fault.Field(field, "That is too much at once: %d at most.", wire.MaxFilePaths)
	}
	return nil
}

func checkMode(mode uint32) error {
	if mode > wire.MaxFileMode {
		return fault.Field("mode", "A mode is an octal number such as 0644.")
	}
	return nil
}

func checkUpload(id string) error {
	if wire.CheckUpload(id) != nil {
		return fault.Field("upload", "The name of an upload has 1 to 64 letters, digits, - or _.")
	}
	return nil
}

// checkEntry refuses what a guest's entry must not say beyond what the link has looked at: the ETag becomes a header.
func checkEntry(e wire.Entry) error {
	if e.ETag == "" {
		return nil
	}
	inner, quoted := strings.CutPrefix(e.ETag, `"`)
	inner, closed := strings.CutSuffix(inner, `"`)
	if !quoted || !closed || strings.ContainsFunc(inner, func(r rune) bool { return r <= ' ' || r == '"' || r > '~' }) {
		return fault.New(fault.Unavailable, "The program inside the sandbox did not answer as it should.")
	}
	return nil
}

package program

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"sandboxd/internal/text"
	"sandboxd/internal/tools/risk"
)

// whole is all that a call would do: its command, or the files with what is written, or its input. Gemini gives no input, and the command as the
// title, which is cut where it is shown as one.
func whole(t *tool) string {
	var parts []string
	line := t.Command()
	if line != "" {
		parts = append(parts, line)
	}
	var written []string
	for _, f := range t.Changes {
		written = append(written, f.Path)
		parts = append(parts, named(f.Path)+"\n\n"+f.New)
	}
	if line == "" {
		for _, f := range t.Files() {
			if !slices.Contains(written, f) {
				written = append(written, f)
				parts = append(parts, named(f))
			}
		}
	}
	if input := string(t.Input); input != "{}" && (line == "" && len(t.Changes) == 0 || t.HasMore()) {
		parts = append(parts, input)
	}
	all := strings.TrimSpace(strings.Join(parts, "\n"))
	if all == "" && t.Kind == "execute" {
		return t.Label
	}
	return all
}

// named writes a path so that it cannot be taken for more than one line.
func named(p string) string {
	if text.Unprintable(p) {
		return strconv.Quote(p)
	}
	return p
}

// Kinds of calls.
var (
	looks  = []string{"read", "search", "think"} // change nothing
	writes = []string{"edit", "delete", "move"}
)

// judge says how risky a call is, and whether it changes something outside of the home. What cannot be told is risky: a call is less only when
// all of it is known, and it looks at something, runs a command that is known, or changes files that it names.
func (r asks) judge(t *tool) (j risk.Judgement, outside bool) {
	risky := func(is bool, why ...string) {
		if is {
			j = j.Join(risk.Judgement{Level: risk.Risky, Reasons: why})
		}
	}
	risky(t.Cut || t.recalled, "not all that it does is known here")
	line := t.Command()
	if line != "" {
		j = j.Join(risk.Command(line))
		risky(t.HasMore(), "it has more input than the command")
	}
	if line != "" && j.Level > risk.Harmless {
		for _, f := range t.Folders() {
			j = j.Join(risk.Path(f))
			outside = outside || !r.inHome(f)
		}
	}
	changes := len(t.Changes) > 0 || slices.Contains(writes, t.Kind)
	if changes {
		files := t.Files()
		for _, f := range files {
			j = j.Join(risk.Path(f))
			outside = outside || !r.inHome(f)
			risky(text.Unprintable(f), "the name of a file cannot be shown as it is")
		}
		risky(len(files) == 0, "it does not say which files it changes")
		risky(t.Kind == "delete", "it deletes files")
		risky(t.Kind == "move", "it moves files")
	}
	risky(!changes && !slices.Contains(looks, t.Kind) && (line == "" || t.Kind != "execute"))
	return j, outside
}

// inHome reports whether a path is in the home. A relative one begins where the agent works.
func (r asks) inHome(p string) bool {
	if !path.IsAbs(p) {
		p = path.Join(cmp.Or(r.how.Cwd, r.d.c.Home), p)
	}
	p = path.Clean(p)
	return p == r.d.c.Home || strings.HasPrefix(p, r.d.c.Home+"/")
}

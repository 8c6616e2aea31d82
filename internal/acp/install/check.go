package install

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sandboxd/internal/sandbox"
)

// Bounds of a list of agents.
const (
	maxAgents  = 50
	maxFiles   = 10
	maxText    = 64 << 10 // of one file
	maxArgs    = 20
	maxSizeMB  = 20_000
	maxNode    = 99
	maxPackage = 214 // npm's own
)

var (
	agentID     = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)
	packageName = regexp.MustCompile(`^(@[a-z0-9][a-z0-9._-]*/)?[a-z0-9][a-z0-9._-]*$`)
	exact       = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})(-[0-9A-Za-z.-]{1,40})?$`)
	programName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	filePath    = regexp.MustCompile(`^[A-Za-z0-9._-][A-Za-z0-9._/ -]{0,199}$`)
)

// npmFlags are the flags of npm that an agent may need.
var npmFlags = []string{"--ignore-scripts", "--omit=optional", "--omit=peer", "--legacy-peer-deps"}

// own is the id of sandboxd's agent, which is not installed.
const own = "sandboxd"

// check reports the first thing that is wrong.
func (l list) check() error {
	for _, v := range []string{l.Node.X64, l.Node.ARM64} {
		if v != "" && !exact.MatchString(v) {
			return errors.New("node has exact versions, such as 24.1.2")
		}
	}
	if len(l.Agents) > maxAgents {
		return fmt.Errorf("there are more than %d agents", maxAgents)
	}
	seen := map[string]bool{}
	for i, e := range l.Agents {
		if err := e.check(); err != nil {
			return fmt.Errorf("agent %d (%.40q): %w", i+1, e.ID, err)
		}
		if seen[e.ID] {
			return fmt.Errorf("there are two agents with the id %s", e.ID)
		}
		seen[e.ID] = true
	}
	return nil
}

// check reports the first thing that is wrong.
func (e Entry) check() error {
	if !agentID.MatchString(e.ID) || e.ID == own {
		return errors.New("an id has lower-case letters, digits and hyphens, begins with a letter, and is not sandboxd")
	}
	if e.Off {
		return nil
	}
	for field, v := range map[string]string{"name": e.Name, "summary": e.Summary, "licence": e.Licence} {
		if v == "" || !plain(v, 200) {
			return fmt.Errorf("%s is a line of 1 to 200 bytes", field)
		}
	}
	if u, err := url.Parse(e.LicenceURL); err != nil || u.Scheme != "https" || u.Host == "" || !plain(e.LicenceURL, 300) {
		return errors.New("licence_url is an https address")
	}
	if len(e.Package) > maxPackage || !packageName.MatchString(e.Package) {
		return errors.New("package is not the name of an npm package")
	}
	if !exact.MatchString(e.Version) {
		return errors.New("version is not an exact version, such as 1.2.3")
	}
	return errors.Join(e.checkInstall(), e.checkStart(), e.checkFiles())
}

func (e Entry) checkInstall() error {
	for _, f := range e.NPMFlags {
		if !slices.Contains(npmFlags, f) {
			return fmt.Errorf("npm_flags may have %s, not %.40q", strings.Join(npmFlags, ", "), f)
		}
	}
	if e.Node < 1 || e.Node > maxNode {
		return errors.New("node is a major version of Node, such as 22")
	}
	if e.SizeMB < 1 || e.SizeMB > maxSizeMB {
		return fmt.Errorf("size_mb is 1 to %d", maxSizeMB)
	}
	return nil
}

func (e Entry) checkStart() error {
	if len(e.Command) == 0 || len(e.Command) > maxArgs || !programName.MatchString(e.Command[0]) {
		return errors.New("command is a program of the package, without a path, and at most 19 arguments")
	}
	for _, arg := range e.Command {
		if !plain(arg, 200) {
			return errors.New("an argument of the command has at most 200 bytes and no control characters")
		}
	}
	return sandbox.CheckEnv(e.Env)
}

func (e Entry) checkFiles() error {
	if len(e.Files) > maxFiles {
		return fmt.Errorf("there are more than %d files", maxFiles)
	}
	for _, f := range e.Files {
		if !filePath.MatchString(f.Path) || f.Path == "." || path.Clean(f.Path) != f.Path || strings.Contains(f.Path, "..") {
			return fmt.Errorf("%.60q is not a path below the home folder, such as .config/agent.json", f.Path)
		}
		if len(f.Text) > maxText || !utf8.ValidString(f.Text) {
			return fmt.Errorf("%s has more than 64 KiB, or is no text", f.Path)
		}
	}
	return nil
}

// plain reports whether text is one short line that shows what it is.
func plain(text string, most int) bool {
	return len(text) <= most && utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

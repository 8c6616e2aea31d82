package install

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"sandboxd/internal/exec"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// Bounds of what is kept of an installation's output.
const (
	maxLine = 200
	maxTail = 5 // lines, for the reason of a failure
	maxRaw  = 4096
	maxSaid = 16 << 20 // bytes of all of it, of which npm needs a hundredth
)

// errFlood ends an installation that says too much.
var errFlood = fault.New(fault.Unavailable, "The installation wrote more than %d MiB of messages, and was ended.", maxSaid>>20)

// nodeMB is about what an installation of Node takes while it is unpacked.
const nodeMB = 190

// npmCode is how npm says what went wrong.
var npmCode = regexp.MustCompile(`^npm (?:error|ERR!) code ([A-Z0-9_]{1,40})$`)

// noise is what is of no use in the reason of a failure.
var noise = regexp.MustCompile(`^npm (?:http|notice|warn|error A complete log|error *$)`)

// progress is what the output of an installation has told. None of it is to be trusted.
type progress struct {
	total   int64 // KiB, about
	node    bool  // it is installed first
	before  int64 // KiB of the steps before
	percent int
	line    string
	tail    []string
	fail    string // a reason of the script's
	code    string // of npm
	full    bool   // the disk
	rest    []byte // of a line that is not complete
	said    int    // bytes
}

// write takes a piece of the output.
func (p *progress) write(b []byte) error {
	if p.said += len(b); p.said > maxSaid {
		return errFlood
	}
	for _, c := range b {
		switch {
		case c == '\n':
			p.take(string(p.rest))
			p.rest = p.rest[:0]
		case len(p.rest) < maxRaw:
			p.rest = append(p.rest, c)
		}
	}
	return nil
}

// take takes a line.
func (p *progress) take(line string) {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "@node":
		p.total, p.node = p.total+(nodeMB<<10), true
	case "@agent":
		if p.node {
			p.before = nodeMB << 10
		}
	case "@kib":
		if n, err := strconv.ParseInt(rest, 10, 32); err == nil && n >= 0 && p.total > 0 {
			p.percent = max(p.percent, int(min(99, 100*(p.before+n)/p.total)))
		}
	case "@fail":
		p.fail = rest
	default:
		p.say(line)
	}
}

func (p *progress) say(line string) {
	line = strings.TrimSpace(text.OneLine(line, maxLine))
	if line == "" {
		return
	}
	p.line = line
	if m := npmCode.FindStringSubmatch(line); m != nil {
		p.code = m[1]
	}
	for _, full := range []string{"ENOSPC", "EDQUOT", "No space left on device", "Disk quota exceeded"} {
		p.full = p.full || strings.Contains(line, full)
	}
	if !noise.MatchString(line) {
		p.tail = append(p.tail, strings.TrimPrefix(line, "npm error "))
		p.tail = p.tail[max(0, len(p.tail)-maxTail):]
	}
}

// why says why an installation has failed, in a sentence or two.
func (p *progress) why(e Entry, r exec.Result, err error) string {
	switch {
	case err != nil:
		return fault.Message(err)
	case r.TimedOut:
		return fmt.Sprintf("It was not done after %d minutes, and was ended.", int(installLimit.Minutes()))
	case p.full:
		return fmt.Sprintf("The disk of the sandbox is full. %s needs about %d MB, and as much again while it is installed.", e.Name, e.SizeMB)
	}
	switch p.fail {
	case "npm":
		return "The sandbox has no npm. Use an image that has Node and npm, such as that of the template base."
	case "network":
		return "The sandbox has no network, so it cannot reach npm's registry. Sandboxes of the template agents have the free agents already."
	case "machine":
		return "The sandbox's Node is too old, and there is no newer one for this kind of machine."
	case "program":
		return fmt.Sprintf("The package %s has no program %s.", e.Package, e.Command[0])
	}
	switch p.code {
	case "ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH", "EHOSTUNREACH", "ERR_SOCKET_TIMEOUT":
		return fmt.Sprintf("npm's registry cannot be reached from the sandbox (%s).", p.code)
	case "E404", "ETARGET":
		return fmt.Sprintf("npm's registry has no %s %s, or one of the packages that it needs is missing.", e.Package, e.Version)
	}
	return strings.TrimSpace(fmt.Sprintf("npm ended with exit code %d. %s", r.ExitCode, strings.Join(p.tail, " ")))
}

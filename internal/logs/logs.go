// Package logs keeps what the services, containers and commands of all sandboxes write, line by line: it takes lines, hands them
// to a Store in batches, searches them, and shows them live.
//
// It also keeps the newest records of sandboxd's own log, in memory (Recent).
//
// It collects nothing itself and judges nobody: a caller appends lines, and says by a Scope whose lines a search may see. It knows
// no SQL.
//
// Invariant: Append never waits for the disk, and no line is lost in silence: a line that says how many stands in their place. No
// line outside of a Scope leaves the package.
package logs

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"sandboxd/internal/fault"
)

// Limits of a line. What is longer is cut, and its end says so.
const (
	MaxText    = 16 << 10
	maxService = 128
)

// ID names a line for ever. A line that came later has a larger one. It is about the microseconds since 1970 at which the line
// was appended, and never less than those of its Time.
type ID int64

// String gives the ID as it stands in a link.
func (i ID) String() string { return strconv.FormatInt(int64(i), 36) }

// ParseID reads what String gives. Kind: Invalid.
func ParseID(s string) (ID, error) {
	n, err := strconv.ParseInt(s, 36, 64)
	if err != nil || n <= 0 || ID(n).String() != s {
		return 0, fault.New(fault.Invalid, "This is not the address of a log line.")
	}
	return ID(n), nil
}

// Line is one line of a log.
type Line struct {
	ID      ID // 0 before it is appended
	Time    time.Time
	Sandbox string // its id
	Service string // "" for what has none
	Level   Level
	Text    string // valid UTF-8 without its line break; may have controls and terminal escapes
}

// Own is the Service of lines that sandboxd itself writes into a sandbox's log. No service of a sandbox can have that name.
const Own = "[sandboxd]"

// Level is how serious a line is.
type Level uint8

// The levels, from the least serious on.
const (
	Unknown Level = iota
	Debug
	Info
	Warn
	Error
	Fatal
)

var levelNames = [...]string{"unknown", "debug", "info", "warn", "error", "fatal"}

// String is the level's stable name.
func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return levelNames[Unknown]
}

// ParseLevel reads what String gives. Kind: Invalid.
func ParseLevel(s string) (Level, error) {
	if i := slices.Index(levelNames[:], s); i >= 0 {
		return Level(i), nil
	}
	return Unknown, fault.Field("level", "The level is one of %s.", strings.Join(levelNames[:], ", "))
}

// Scope says of which sandboxes lines may be seen. The zero Scope has none.
type Scope struct {
	all bool
	ids map[string]struct{}
}

// All is the Scope of an admin.
func All() Scope { return Scope{all: true} }

// Only is the Scope of those sandbox ids.
func Only(ids ...string) Scope {
	s := Scope{ids: make(map[string]struct{}, len(ids))}
	for _, id := range ids {
		s.ids[id] = struct{}{}
	}
	return s
}

// Has reports whether lines of a sandbox may be seen.
func (s Scope) Has(sandbox string) bool {
	_, ok := s.ids[sandbox]
	return ok || s.all
}

// Sandboxes gives the ids, sorted, or all.
func (s Scope) Sandboxes() (ids []string, all bool) {
	return slices.Sorted(maps.Keys(s.ids)), s.all
}

// Use is what the lines of one sandbox take.
type Use struct {
	Sandbox string
	Lines   int64
	Text    int64 // bytes of their texts
	Stored  int64 // bytes on the disk, their part of the index included, about
	Oldest  time.Time
	Newest  time.Time
}

// Limits bound what is kept; the oldest lines go first. 0 is no limit.
type Limits struct {
	Total   int64 // bytes on the disk, of all
	Sandbox int64 // bytes on the disk, of each sandbox
	Age     time.Duration
}

// DefaultLimits are those of an installation that says nothing else.
var DefaultLimits = Limits{Total: 4 << 30, Sandbox: 512 << 20, Age: 30 * 24 * time.Hour}

// tidy makes a line fit to be kept: its text and service valid and not too long, without a pointer into a larger text, its time
// not after now.
func tidy(l Line, now time.Time) Line {
	l.Text = cut(l.Text, MaxText)
	l.Service = cut(l.Service, maxService)
	if l.Time.After(now) || l.Time.UnixMicro() <= 0 {
		l.Time = now
	}
	l.Time = l.Time.Round(0).UTC().Truncate(time.Microsecond)
	if l.Level == Unknown || int(l.Level) >= len(levelNames) {
		l.Level = Guess(l.Text)
	}
	return l
}

// cut gives s as valid UTF-8 of at most limit bytes. The end of what was longer says how long it was.
func cut(s string, limit int) string {
	if len(s) <= limit {
		valid := strings.ToValidUTF8(strings.TrimRight(s, "\r\n"), "\uFFFD")
		if len(valid) <= limit {
			return valid
		}
		s = valid
	}
	mark := " … (cut: the line has " + strconv.Itoa(len(s)) + " bytes)"
	kept := s[:max(limit-len(mark), 0)]
	for i := 0; i < utf8.UTFMax && len(kept) > 0 && !utf8.RuneStart(s[len(kept)]); i++ {
		kept = kept[:len(kept)-1]
	}
	kept = strings.ToValidUTF8(kept, "?") + mark // "?" is no longer than what it stands for
	return strings.Clone(kept)
}

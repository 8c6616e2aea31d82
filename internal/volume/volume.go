// Package volume keeps folders that several sandboxes have, beside their homes: which there are, who gets them, and a way in to fill them.
//
// How a volume is stored and mounted is its Engine's (internal/docker), and what is done with its files internal/files's. It knows nothing
// of HTTP.
//
// Invariant: nobody chooses where on the host a volume is. What is in one is never opened by this process: a program in a container, without
// network, that has only this volume does so. A volume's content is removed only once its row says so, and no sandbox's container has it.
package volume

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
)

// Shared is the name of the volume that every sandbox has, read-only.
const Shared = "shared"

// reserved is the path of the form for a new one.
const reserved = "new"

// Where volumes are in a sandbox.
const (
	sharedTarget = "/shared"
	targets      = "/volumes/" // and the name
)

// Bounds of what is entered.
const (
	MaxVolumes = 64
	MaxName    = 32
	maxNote    = 200 // bytes
	maxGrants  = 500 // of each kind
)

// Mode says what sandboxes may do with a volume.
type Mode string

// The modes.
const (
	ReadOnly  Mode = "ro"
	ReadWrite Mode = "rw"
)

// Volume is one as it is stored. It is a value: do not change its slices.
type Volume struct {
	ID       string // 16 hex digits; names it on the engine; never reused
	Name     string // DNS label, unique
	Note     string // what it is for; may be ""
	Mode     Mode
	Grants   Grants
	Created  time.Time
	Deleting bool // it is gone for everybody; its content goes when no container has it any more
}

// Grants say which sandboxes get a volume when they start next.
type Grants struct {
	All       bool     // every sandbox
	Templates []string // those of these templates
	Sandboxes []string // those with these ids
}

// Target is where v is in a sandbox.
func (v Volume) Target() string { return targetOf(v.Name) }

func targetOf(name string) string {
	if name == Shared {
		return sharedTarget
	}
	return targets + name
}

// IsShared reports whether v is the one that every sandbox has.
func (v Volume) IsShared() bool { return v.Name == Shared }

// Covers reports whether a sandbox gets a volume.
func (g Grants) Covers(s sandbox.Sandbox) bool {
	return g.All || s.Spec.Template != "" && slices.Contains(g.Templates, s.Spec.Template) || slices.Contains(g.Sandboxes, s.ID)
}

var namePattern = regexp.MustCompile(`^[a-z]([a-z0-9-]*[a-z0-9])?$`)

// CheckName is Invalid unless a volume can be called that.
func CheckName(name string) error {
	if name == reserved {
		return fault.Field("name", "The name %q is reserved. Choose another one.", name)
	}
	if len(name) > MaxName || !namePattern.MatchString(name) {
		return fault.Field("name", "A name has up to %d of a–z, 0–9 and -. It begins with a letter and does not end with -.", MaxName)
	}
	return nil
}

// checked gives v as it is stored, after a change of old. Invalid names the field that is wrong.
func (v Volume) checked(old Volume, template func(string) bool) (Volume, error) {
	if old.IsShared() && (v.Name != old.Name || v.Mode != ReadOnly || !v.Grants.All) {
		return v, fault.New(fault.Conflict, "The volume %s is read-only and in every sandbox. Create another volume instead.", Shared)
	}
	if err := CheckName(v.Name); err != nil {
		return v, err
	}
	if v.Mode != ReadOnly && v.Mode != ReadWrite {
		return v, fault.Field("mode", "The mode must be %s or %s.", ReadOnly, ReadWrite)
	}
	if v.Note = strings.TrimSpace(text.Trim(v.Note)); len(v.Note) > maxNote || text.Unprintable(v.Note) {
		return v, fault.Field("note", "A note is one line of at most %d bytes.", maxNote)
	}
	var err error
	v.Grants, err = v.Grants.checked(old.Grants, template)
	return v, err
}

// checked gives g sorted. A template that is gone by now stays where it was granted to before.
func (g Grants) checked(old Grants, template func(string) bool) (Grants, error) {
	g.Templates, g.Sandboxes = sorted(g.Templates), sorted(g.Sandboxes)
	if len(g.Templates) > maxGrants || len(g.Sandboxes) > maxGrants {
		return g, fault.Field("sandboxes", "Choose at most %d. To have it in more, choose all sandboxes.", maxGrants)
	}
	if g.All && (g.Templates != nil || g.Sandboxes != nil) {
		return g, fault.Field("sandboxes", "A volume is for all sandboxes, or for chosen ones and those of chosen templates. Say one of both.")
	}
	for _, name := range g.Templates {
		if !slices.Contains(old.Templates, name) && !template(name) {
			return g, fault.Field("templates", "There is no template %.64q.", name)
		}
	}
	return g, nil
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	if list = slices.Compact(list); len(list) == 0 {
		return nil
	}
	return list
}

// NotFound says that there is no volume of that name.
func NotFound(name string) error {
	return fault.New(fault.NotFound, "There is no volume called %.64q.", name)
}

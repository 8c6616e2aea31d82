package web

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
)

// layout is how a person has arranged the workspace. The zero value is as it comes.
type layout struct {
	Panes map[string]panePlace `json:"panes,omitempty"`
	Whole string               `json:"whole,omitempty"` // the pane that fills the workspace, or ""
	Front string               `json:"front,omitempty"` // the pane that a phone shows
	Sizes map[string]int       `json:"sizes,omitempty"` // pixels that panes keep of their inside, such as the width of the tree
	// CopyOnSelect copies a terminal's selection at once; nil is as it comes, which is that it does.
	CopyOnSelect *bool `json:"copy_on_select,omitempty"`
}

// panePlace is one pane's share of the width, in thousandths, and whether it is put away.
type panePlace struct {
	Share  int  `json:"share,omitempty"`
	Hidden bool `json:"hidden,omitempty"`
}

// layoutName is the name of the preference.
const layoutName = "workspace"

// Bounds of a layout: what a page could ever write, and no store of anything else.
const (
	maxLayout = 4 << 10 // bytes, as JSON
	maxShare  = 1000
	maxSize   = 10_000
)

var paneName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,19}$`)

// check gives the fault of a layout that a page has sent. Panes that this program does not know are kept: the next
// one may.
func (l layout) check() error {
	for name, p := range l.Panes {
		if !paneName.MatchString(name) || p.Share < 0 || p.Share > maxShare {
			return fault.Field("panes", "A pane has a short name, and a share from 0 to %d.", maxShare)
		}
	}
	for name, size := range l.Sizes {
		if !paneName.MatchString(name) || size < 0 || size > maxSize {
			return fault.Field("sizes", "A size has a short name, and is from 0 to %d.", maxSize)
		}
	}
	for field, name := range map[string]string{"whole": l.Whole, "front": l.Front} {
		if name != "" && !paneName.MatchString(name) {
			return fault.Field(field, "This is not the name of a pane.")
		}
	}
	return nil
}

// place is where a pane stands.
func (l layout) place(e paneEntry) panePlace {
	p := l.Panes[e.id]
	if p.Share == 0 {
		p.Share = e.share
	}
	return p
}

// layout gives how a person has arranged the workspace, and the same as the page's script reads it. What cannot be read
// is as it comes: the page matters more.
func (s *workspaceHandlers) layout(ctx context.Context, who auth.Principal) (l layout, text string) {
	text, err := s.cfg.Preferences.Preference(ctx, who.User.ID, layoutName)
	if err == nil && text != "" {
		err = json.Unmarshal([]byte(text), &l)
	}
	if err == nil {
		err = l.check()
	}
	if err != nil {
		s.log.Warn("read layout", "user", who.User.Name, "err", err)
		return layout{}, "{}"
	}
	return l, text
}

// apiSetLayout keeps how a person has arranged the workspace, for the next page in whatever browser.
func (s *workspaceHandlers) apiSetLayout(ctx context.Context, r *request, in layout) (reply, error) {
	if err := in.check(); err != nil {
		return reply{}, err
	}
	text, err := json.Marshal(in)
	if err != nil {
		return reply{}, fault.Wrap(err, fault.Internal, "The layout could not be written.")
	}
	if len(text) > maxLayout {
		return reply{}, fault.New(fault.TooLarge, "A layout has at most %d bytes.", maxLayout)
	}
	if err := s.cfg.Preferences.SetPreference(ctx, r.who.User.ID, layoutName, string(text)); err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusNoContent}, nil
}

package web

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
)

// layout is how a person has arranged the workspace. The zero value is the default.
type layout struct {
	Shapes map[string]shape `json:"shapes,omitempty"` // by the width of the window: "narrow", "medium" or "wide" (static/js/panes.js)
	Last   string           `json:"last,omitempty"`   // the width of the window that was used last
	Whole  string           `json:"whole,omitempty"`  // the pane that fills the workspace, or ""
	Front  string           `json:"front,omitempty"`  // the pane that a phone shows
	Sizes  map[string]int   `json:"sizes,omitempty"`  // pixels that panes keep of their inside, such as the width of a volume's tree
	// CopyOnSelect copies a terminal's selection at once; nil is as it comes, which is that it does.
	CopyOnSelect *bool `json:"copy_on_select,omitempty"`
}

// shape is where the panes are in windows of one width.
type shape struct {
	Panes map[string]panePlace `json:"panes,omitempty"`
	Flow  string               `json:"flow,omitempty"` // beside or below; "" for what suits the width
	Side  int                  `json:"side,omitempty"` // pixels of the sidebar's width; 0 for the default
}

// The values of shape.Flow: how the panes follow each other, but for the sidebar.
const (
	beside = "beside"
	below  = "below"
)

// panePlace is one pane's share of the room, in thousandths, and whether it is hidden.
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
	maxSide   = 1023 // what the page's classes can say (views.Panes)
	maxSize   = 10_000
)

var paneName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,19}$`)

// check returns the error of a layout that a page has sent. Panes that this program does not know are kept: the next
// version may.
func (l layout) check() error {
	for width, sh := range l.Shapes {
		if !paneName.MatchString(width) {
			return fault.Field("shapes", "This is not the name of a width.")
		}
		if err := sh.check(); err != nil {
			return err
		}
	}
	for name, size := range l.Sizes {
		if !paneName.MatchString(name) || size < 0 || size > maxSize {
			return fault.Field("sizes", "A size has a short name, and is from 0 to %d.", maxSize)
		}
	}
	for field, name := range map[string]string{"whole": l.Whole, "front": l.Front, "last": l.Last} {
		if name != "" && !paneName.MatchString(name) {
			return fault.Field(field, "This is not a name.")
		}
	}
	return nil
}

func (s shape) check() error {
	for name, p := range s.Panes {
		if !paneName.MatchString(name) || p.Share < 0 || p.Share > maxShare {
			return fault.Field("panes", "A pane has a short name, and a share from 0 to %d.", maxShare)
		}
	}
	if s.Flow != "" && s.Flow != beside && s.Flow != below {
		return fault.Field("flow", "Panes follow each other %q or %q.", beside, below)
	}
	if s.Side < 0 || s.Side > maxSide {
		return fault.Field("side", "A sidebar has a width from 0 to %d.", maxSide)
	}
	return nil
}

// place is where a pane is.
func (s shape) place(e paneEntry) panePlace {
	p, placed := s.Panes[e.id]
	if !placed {
		p.Hidden = e.hides
	}
	if p.Share == 0 {
		p.Share = e.share
	}
	return p
}

// layout returns how a person has arranged the workspace, and the same as the page's script reads it. One that cannot be read
// is the default: the page matters more.
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
	known, err := json.Marshal(l) // without what an earlier version kept: the script sends it back
	if err != nil {
		return layout{}, "{}"
	}
	return l, string(known)
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

package web

// layout is how a person has arranged the workspace. The zero value is as it comes.
type layout struct {
	Panes map[string]panePlace `json:"panes,omitempty"`
	Whole string               `json:"whole,omitempty"` // the pane that fills the workspace, or ""
	Front string               `json:"front,omitempty"` // the pane that a phone shows
	Sizes map[string]int       `json:"sizes,omitempty"` // what panes keep of their inside, such as the width of the tree
}

// panePlace is one pane's share of the width, in thousandths, and whether it is put away.
type panePlace struct {
	Share  int  `json:"share,omitempty"`
	Hidden bool `json:"hidden,omitempty"`
}

// place is where a pane stands.
func (l layout) place(e paneEntry) panePlace {
	p := l.Panes[e.id]
	if p.Share == 0 {
		p.Share = e.share
	}
	return p
}

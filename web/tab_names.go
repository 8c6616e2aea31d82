package web

import (
	"context"
	"net/http"
	"strings"
	"unicode/utf8"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
	"sandboxd/internal/wire"
)

// maxTabName is how many characters the name of a terminal has at most.
const maxTabName = 40

// maxTabNames bounds how many names are kept of one sandbox: more than it may have terminals, because those end without
// being closed.
const maxTabNames = 4 * wire.MaxTabs

// tabName is what its people call a terminal, "" for what its program says.
type tabName struct {
	Name string `json:"name"`
}

// apiNameTab names a terminal for all who see it. It asks nothing of the sandbox.
func (s *commandHandlers) apiNameTab(ctx context.Context, r *request, in tabName) (reply, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	box := h.Sandbox()
	tab, name := r.param("tab"), strings.TrimSpace(in.Name)
	if err := wire.CheckTab(tab); err != nil {
		return reply{}, fault.Wrap(err, fault.NotFound, "There is no such terminal.")
	}
	if utf8.RuneCountInString(name) > maxTabName || text.Unprintable(name) {
		return reply{}, fault.Field("name", "A terminal's name is one line of at most %d characters.", maxTabName)
	}
	if names := s.tabLabels(ctx, box); name != "" && names[tab] == "" && len(names) >= maxTabNames {
		return reply{}, fault.New(fault.Conflict, "%s has names for %d terminals already.", box.Name, len(names))
	}
	if err := s.cfg.TabNames.NameTab(ctx, box.ID, tab, name); err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusNoContent}, nil
}

// tabLabels are the names that its people gave a sandbox's terminals. Without them the page is of use all the same.
func (s *commandHandlers) tabLabels(ctx context.Context, box sandbox.Sandbox) map[string]string {
	names, err := s.cfg.TabNames.TabNames(ctx, box.ID)
	if err != nil && ctx.Err() == nil {
		s.log.Warn("the names of terminals cannot be read", "sandbox", box.Name, "err", err)
	}
	return names
}

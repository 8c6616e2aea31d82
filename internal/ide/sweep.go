package ide

import (
	"context"
	"strings"

	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// sweep removes what broke off, and versions other than the present one that no sandbox uses. What cannot be told yet, of a
// sandbox that is frozen or does not answer, is asked again the next time.
func (s *Service) sweep(ctx context.Context) {
	if err := s.tree.clean(); err != nil {
		s.cfg.Log.Warn("folder of VS Code", "error", err)
	}
	now, err := s.present()
	if err != nil || now == "" || s.cfg.Boxes == nil {
		return // an old one is better than none
	}
	all, err := s.tree.versions()
	if err != nil || len(all) < 2 {
		return
	}
	used, known := s.used(ctx)
	if !known {
		return
	}
	for _, version := range all {
		if version == now || used[version] {
			continue
		}
		if err := s.tree.remove(version); err != nil {
			s.cfg.Log.Warn("an old version of VS Code stays", "error", err)
		} else {
			s.cfg.Log.Info("an old version of VS Code is removed", "version", version)
		}
	}
}

// used asks all sandboxes that are up which version they run.
func (s *Service) used(ctx context.Context) (versions map[string]bool, known bool) {
	boxes, _, err := s.cfg.Boxes.List(ctx, sandbox.Filter{Up: true})
	if err != nil {
		return nil, false
	}
	versions = map[string]bool{}
	for _, box := range boxes {
		if !s.cfg.Boxes.OffersIDE(box) {
			continue // its guest has ended what ran there
		}
		st, ok := s.ask(ctx, box)
		if !ok {
			return nil, false
		}
		if st.State != wire.IDEStopped {
			versions[st.Version] = true
		}
	}
	return versions, true
}

// placed puts places into the origin of the port 65535 of a sandbox called "name".
func placed(origin string) string {
	return strings.Replace(origin, "65535-name", wire.PortPlace+"-"+wire.NamePlace, 1)
}

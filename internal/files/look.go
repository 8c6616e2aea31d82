package files

import (
	"context"
	"maps"
	"path"
	"slices"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// Search tells emit what it finds, by its absolute path, in no order, one at a time, until there is no more, the search's limit is reached or it has
// taken too long; it says whether there may be more. An error of emit ends it and comes back. q.Path "" is the home.
func (s *Service) Search(ctx context.Context, h access.Handle, q wire.Search, emit func(wire.Found) error) (more bool, err error) {
	if q.Path == "" {
		q.Path = homeShort
	}
	if q.Path, err = CheckPath(q.Path); err != nil {
		return false, err
	}
	if err := checkSearch(&q); err != nil {
		return false, err
	}
	err = s.call(ctx, h, "search", searchLimit, func(ctx context.Context, g access.Guest) (err error) {
		folder := absolute(g, q.Path)
		more, err = g.FileSearch(ctx, q, func(f wire.Found) error {
			f.Path = path.Join(folder, f.Path)
			return emit(f)
		})
		return err
	})
	return more, err
}

func checkSearch(q *wire.Search) error {
	switch {
	case q.Query == "" || len(q.Query) > wire.MaxQuery:
		return fault.Field("query", "What to search for has 1 to %d bytes.", wire.MaxQuery)
	case q.In != wire.SearchNames && q.In != wire.SearchContent:
		return fault.Field("in", "Search in %q or in %q.", wire.SearchNames, wire.SearchContent)
	case q.Regex && q.In == wire.SearchNames:
		return fault.Field("regex", "Names are found by a part of them or by a pattern such as *.go, not by a regular expression.")
	case q.Limit < 0 || q.Limit > wire.MaxFound:
		return fault.Field("limit", "limit must be between 1 and %d.", wire.MaxFound)
	}
	return fault.Wrap(q.Check(), fault.Invalid, "That cannot be searched for.")
}

// Watch tells emit of folders among paths, by the path that was given, in which something has changed: each once at the
// beginning, then whenever it does. It lasts until ctx ends, the sandbox goes to rest or ends (Conflict or Unavailable), or emit
// fails, whose error comes back. It is no use of the sandbox and wakes nothing.
func (s *Service) Watch(ctx context.Context, h access.Handle, paths []string, emit func(folder string) error) error {
	if len(paths) > wire.MaxWatched {
		return fault.Field("path", "At most %d folders can be watched at once.", wire.MaxWatched)
	}
	clean, err := checkPaths(paths)
	if err != nil {
		return err
	}
	given := make(map[string][]string, len(paths))
	for i, p := range clean {
		given[p] = append(given[p], paths[i])
	}
	clean = slices.Sorted(maps.Keys(given))
	session, err := h.Look(ctx)
	if err != nil {
		return err
	}
	return session.Guest.FileWatch(ctx, clean, func(folder string) error {
		for _, p := range given[folder] {
			if err := emit(p); err != nil {
				return err
			}
		}
		return nil
	})
}

package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"sandboxd/internal/text"
)

// The aliases that always exist: unless someone defines them they are the first and the last model of the first fitting provider that
// lists models.
const (
	best = "best"
	fast = "fast"
)

// candidate is a provider that can serve a request, and the model that it is asked for.
type candidate struct {
	configured
	model string
}

// Models gives the names that a user can ask for: aliases, then the models that providers list.
func (s *Service) Models(user string) []string { return s.table().names(user, nil) }

// offered gives the providers of a user and then the server's, of some kinds or, with none, of all.
func (t *table) offered(user string, kinds []Kind) (out []configured) {
	for _, owner := range owners(user) {
		for _, p := range t.providers {
			if p.Owner == owner && (kinds == nil || slices.Contains(kinds, p.Kind)) {
				out = append(out, p)
			}
		}
	}
	return out
}

// owners are a user, and the server.
func owners(user string) []string { return []string{user, ""} }

// names gives what a user can ask providers of some kinds for.
func (t *table) names(user string, kinds []Kind) []string {
	names := []string{}
	for _, a := range t.aliases {
		if (a.Owner == user || a.Owner == "") && len(t.targets(a, kinds)) > 0 {
			names = append(names, a.Name)
		}
	}
	offered := t.offered(user, kinds)
	if slices.ContainsFunc(offered, func(p configured) bool { return len(p.Models) > 0 }) {
		names = append(names, best, fast)
	}
	for _, p := range offered {
		names = append(names, p.Models...)
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(names, func(name string) bool {
		again := seen[name]
		seen[name] = true
		return again
	})
}

// targets gives the targets of an alias whose providers exist, are of some kinds, and list the models: an alias of a user's own leads to
// no model that the server's provider does not offer any more.
func (t *table) targets(a Alias, kinds []Kind) (out []candidate) {
	for _, target := range a.Targets {
		p, err := t.named(a.Owner, target.Provider)
		if err == nil && (kinds == nil || slices.Contains(kinds, p.Kind)) && p.lists(target.Model) {
			out = append(out, candidate{p, target.Model})
		}
	}
	return out
}

// lists reports whether a provider may be asked for a model.
func (c configured) lists(model string) bool {
	return len(c.Models) == 0 || slices.ContainsFunc(c.Models, func(m string) bool { return same(c.Kind, m, model) })
}

// find gives those that can serve a route for a user, in the order in which they are tried: never none without a problem.
func (t *table) find(user, asked string, rt route) ([]candidate, *problem) {
	fitting := t.offered(user, rt.kinds)
	if len(fitting) == 0 {
		return nil, t.none(user, rt)
	}
	if asked == "" { // nothing names a model
		var all []candidate
		for _, p := range fitting {
			all = append(all, candidate{configured: p})
		}
		return all, nil
	}
	for _, owner := range owners(user) {
		at := slices.IndexFunc(t.aliases, func(a Alias) bool { return a.Owner == owner && a.Name == asked })
		if at < 0 {
			continue
		}
		if found := t.targets(t.aliases[at], rt.kinds); len(found) > 0 {
			return found, nil
		}
		return nil, refuse(http.StatusBadRequest, "The alias %s leads to no provider of the kind %s, which this request needs. Change it in the dashboard under Settings → Models.", quoted(asked), either(rt.kinds))
	}
	if asked == best || asked == fast {
		return implied(fitting, asked)
	}
	for _, p := range fitting {
		if at := slices.IndexFunc(p.Models, func(m string) bool { return same(p.Kind, m, asked) }); at >= 0 {
			return []candidate{{p, p.Models[at]}}, nil
		}
	}
	for _, p := range fitting {
		if len(p.Models) == 0 {
			return []candidate{{p, asked}}, nil
		}
	}
	return nil, t.unknown(user, asked, rt)
}

// implied gives what "best" and "fast" mean when no alias says so.
func implied(fitting []configured, asked string) ([]candidate, *problem) {
	for _, p := range fitting {
		if n := len(p.Models); n > 0 && asked == best {
			return []candidate{{p, p.Models[0]}}, nil
		} else if n > 0 {
			return []candidate{{p, p.Models[n-1]}}, nil
		}
	}
	return nil, refuse(http.StatusNotFound, "Nothing says which model %q is: the provider %q lists no models. List them, or add an alias %q, in the dashboard under Settings → Models.", asked, fitting[0].Name, asked)
}

// same reports whether two names are of one model. Ollama's ":latest" is understood.
func same(kind Kind, listed, asked string) bool {
	return listed == asked || kind == Ollama && strings.TrimSuffix(listed, ":latest") == strings.TrimSuffix(asked, ":latest")
}

// none is the problem when no provider can serve a route.
func (t *table) none(user string, rt route) *problem {
	others := t.offered(user, nil)
	if len(others) == 0 {
		return refuse(http.StatusBadRequest, "No model provider is configured. Add one in the dashboard under Settings → Models: a key, or the address of a local server.")
	}
	var have []string
	for _, p := range others {
		have = append(have, fmt.Sprintf("%s (%s)", p.Name, p.Kind))
	}
	return refuse(http.StatusBadRequest, "This request needs a model provider of the kind %s. There are only: %s. Add one in the dashboard under Settings → Models, or use a client for one of those.",
		either(rt.kinds), some(have))
}

// unknown is the problem when no provider has a model.
func (t *table) unknown(user, asked string, rt route) *problem {
	for _, p := range t.offered(user, nil) {
		if slices.Contains(p.Models, asked) {
			return noModel("The model %s is one of the provider %q (%s), and this request needs one of the kind %s. %s",
				quoted(asked), p.Name, p.Kind, either(rt.kinds), instead(t.names(user, rt.kinds)))
		}
	}
	return noModel("There is no model %s. %s", quoted(asked), instead(t.names(user, rt.kinds)))
}

func noModel(format string, args ...any) *problem {
	p := refuse(http.StatusNotFound, format, args...)
	p.code = "model_not_found"
	return p
}

// instead says what can be asked for.
func instead(names []string) string {
	if len(names) == 0 {
		return "Add a model provider in the dashboard under Settings → Models."
	}
	return "These can be asked for: " + some(names) + "."
}

// maxNamed bounds how many things an error names.
const maxNamed = 10

func some(names []string) string {
	if len(names) > maxNamed {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
	}
	return strings.Join(names, ", ")
}

func either(kinds []Kind) string {
	var names []string
	for _, k := range kinds {
		names = append(names, string(k))
	}
	return strings.Join(names, " or ")
}

func quoted(name string) string { return fmt.Sprintf("%q", text.OneLine(name, maxModel)) }

package web

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
	"sandboxd/views"
)

// aliasURL is the form of an alias, whose name may have any signs in it.
func aliasURL(name string) string { return aliasesPath + "/" + url.PathEscape(name) }

// aliasView makes an alias ready to show.
func (s *aliasHandlers) aliasView(r *request, a gateway.Alias) views.ModelAlias {
	v := views.ModelAlias{ID: onPage(a.Owner, a.Name), Name: a.Name, URL: aliasURL(a.Name), Whose: whose(a.Owner), Mine: mayChangeModels(r, a.Owner), Own: a.Owner != ""}
	there := s.cfg.Models.Offered(a.Owner)
	for _, t := range a.Targets {
		gone := !slices.ContainsFunc(there, func(p gateway.Provider) bool { return p.Name == t.Provider })
		v.Targets = append(v.Targets, views.ModelTarget{Text: targetText(t), Gone: gone})
	}
	return v
}

// pageNewAlias shows the form of a new alias.
func (s *aliasHandlers) pageNewAlias(_ context.Context, r *request) (templ.Component, error) {
	return s.form(r, views.AliasForm{Name: views.Field{Value: r.query("name")}}), nil
}

// form shows the form of an alias, which is a new one when it is not known.
func (s *aliasHandlers) form(r *request, v views.AliasForm) templ.Component {
	if !v.Known {
		v.URL, v.Asks = aliasesPath, r.isAdmin()
	}
	for _, p := range s.cfg.Models.Offered(r.who.User.ID) {
		for _, model := range p.Models {
			if t := targetText(gateway.Target{Provider: p.Name, Model: model}); !slices.Contains(v.Offered, t) {
				v.Offered = append(v.Offered, t)
			}
		}
	}
	if r.byScript() {
		return views.AliasSheet(v)
	}
	v.Frame = s.frame(r, "Alias", "settings")
	return views.AliasFormPage(v)
}

// askedAlias finds the alias that the address names, which the caller may change.
func (s *aliasHandlers) askedAlias(r *request) (gateway.Alias, error) {
	owner, err := askedOwner(r, true)
	if err != nil {
		return gateway.Alias{}, err
	}
	return s.alias(owner, aliasName(r))
}

// knownForm is the form of an alias that there is.
func knownAliasForm(a gateway.Alias) views.AliasForm {
	lines := make([]string, 0, len(a.Targets))
	for _, t := range a.Targets {
		lines = append(lines, targetText(t))
	}
	own := strconv.FormatBool(a.Owner != "")
	return views.AliasForm{
		Known: true, URL: aliasURL(a.Name) + "?own=" + own, Name: views.Field{Value: a.Name}, Targets: views.Field{Value: strings.Join(lines, "\n")}, Own: views.Field{Value: own},
	}
}

// pageAlias shows the form of an alias that there is.
func (s *aliasHandlers) pageAlias(_ context.Context, r *request) (templ.Component, error) {
	a, err := s.askedAlias(r)
	if err != nil {
		return nil, err
	}
	return s.form(r, knownAliasForm(a)), nil
}

// submitNewAlias adds an alias.
func (s *aliasHandlers) submitNewAlias(ctx context.Context, r *request) (string, error) {
	owner, err := postedOwner(r)
	if err != nil {
		return "", err
	}
	a := gateway.Alias{Owner: owner, Name: r.field("name")}
	if _, err := s.alias(owner, a.Name); err == nil {
		return "", &fault.Error{Kind: fault.Conflict, Field: "name", Message: "There is an alias of this name already. Edit that one, or choose another name."}
	}
	return s.saveAlias(ctx, r, a)
}

// submitAlias changes the targets of an alias that there is.
func (s *aliasHandlers) submitAlias(ctx context.Context, r *request) (string, error) {
	a, err := s.askedAlias(r)
	if err != nil {
		return "", err
	}
	return s.saveAlias(ctx, r, a)
}

// saveAlias keeps an alias with the targets in the form.
func (s *aliasHandlers) saveAlias(ctx context.Context, r *request, a gateway.Alias) (string, error) {
	var err error
	if a.Targets, err = enteredTargets(r.form("targets")); err != nil {
		return "", err
	}
	_, err = s.cfg.Models.SetAlias(ctx, a)
	return done(modelsPath, "alias-saved"), err
}

// againAlias shows the form again with its values, and the error beside its field.
func (s *aliasHandlers) againAlias(_ context.Context, r *request, cause error) (templ.Component, error) {
	var v views.AliasForm
	if r.param("name") != "" {
		a, err := s.askedAlias(r)
		if err != nil {
			return nil, err
		}
		v = knownAliasForm(a)
	}
	name, own := v.Name.Value, v.Own.Value
	v.Fault = r.fill(map[string]*views.Field{"name": &v.Name, "targets": &v.Targets, "own": &v.Own}, cause)
	if v.Known {
		v.Name.Value, v.Own.Value = name, own
	}
	return s.form(r, v), nil
}

// pageDeleteAlias asks before an alias is deleted.
func (s *aliasHandlers) pageDeleteAlias(_ context.Context, r *request) (templ.Component, error) {
	a, err := s.askedAlias(r)
	if err != nil {
		return nil, err
	}
	lost := "Programs that ask for it get an error from then on."
	if a.Name == "best" || a.Name == "fast" {
		lost = "Programs that ask for it get a model of the first provider that fits from then on."
	}
	v := views.DeleteModels{
		Title: "Delete the alias " + a.Name + "?", URL: aliasURL(a.Name) + "/delete?own=" + strconv.FormatBool(a.Owner != ""), Button: "Delete alias", Lost: []string{lost},
	}
	return s.models.deleteForm(r, v), nil
}

// submitDeleteAlias deletes an alias.
func (s *aliasHandlers) submitDeleteAlias(ctx context.Context, r *request) (string, error) {
	owner, err := askedOwner(r, true)
	if err != nil {
		return "", err
	}
	return done(modelsPath, "alias-deleted"), s.cfg.Models.RemoveAlias(ctx, owner, aliasName(r))
}

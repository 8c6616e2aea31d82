package web

import (
	"context"
	"slices"
	"strconv"

	"github.com/a-h/templ"

	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
	"sandboxd/internal/wire"
	"sandboxd/views"
)

// modelsInside is where programs in a sandbox find models.
var modelsInside = "http://127.0.0.1:" + strconv.Itoa(wire.ModelsPort)

// pageModels shows what there is of models. It asks no provider.
func (s *modelHandlers) pageModels(ctx context.Context, r *request) (templ.Component, error) {
	return s.modelsPage(ctx, r, views.Models{Done: outcomes[r.query("done")], Unlisted: r.query("done") == "provider-unlisted"})
}

func (s *modelHandlers) modelsPage(ctx context.Context, r *request, v views.Models) (templ.Component, error) {
	me, set := r.who.User.ID, s.cfg.Models.Settings()
	v.Off, v.Logged, v.Kinds = set.Off, set.LogContent, providerChoices()
	offered := s.cfg.Models.Offered(me)
	for _, p := range offered {
		v.Providers = append(v.Providers, providerView(r, p))
	}
	for _, a := range s.aliases.offered(me) {
		v.Aliases = append(v.Aliases, s.aliases.aliasView(r, a))
	}
	v.Unmeant = s.unmeant(me, offered)
	budgets, err := s.budgetViews(ctx, r)
	if err != nil {
		return nil, err
	}
	v.Budgets = budgets
	v.Use = s.modelUse(offered)
	for _, p := range s.cfg.Models.Prices() {
		v.Prices = append(v.Prices, priceViews(p)...)
	}
	if r.isAdmin() {
		v.PriceFile = s.cfg.Models.PriceFile()
	}
	v.Frame = s.frame(r, "Models", "settings")
	v.Frame.Here = modelsPath
	return views.ModelsPage(v), nil
}

// whose says who can use what belongs to an owner.
func whose(owner string) string {
	if owner == "" {
		return "everyone"
	}
	return "only you"
}

// unmeant says whether the names that always exist lead nowhere.
func (s *modelHandlers) unmeant(user string, offered []gateway.Provider) bool {
	lists := slices.ContainsFunc(offered, func(p gateway.Provider) bool { return len(p.Models) > 0 })
	meant := func(name string) bool {
		return slices.ContainsFunc(s.aliases.offered(user), func(a gateway.Alias) bool { return a.Name == name })
	}
	return len(offered) > 0 && !lists && !(meant("best") && meant("fast"))
}

// onPage is an id that is unique on the page among those of one kind.
func onPage(owner, name string) string {
	if owner == "" {
		return "server-" + name
	}
	return "own-" + name
}

// modelUse is how programs use models, with an example for one of the providers.
func (s *modelHandlers) modelUse(offered []gateway.Provider) views.ModelUse {
	v := views.ModelUse{Inside: modelsInside, Outside: s.cfg.Hosts.DashboardURL() + "/models/v1"}
	for _, name := range []string{"ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"} {
		value := modelsInside
		if name == "OPENAI_BASE_URL" {
			value += "/v1"
		}
		v.Vars = append(v.Vars, name+"="+value)
	}
	path, body := "/v1/chat/completions", `{"model": "fast", "messages": [{"role": "user", "content": "Hello"}]}`
	if len(offered) > 0 {
		switch offered[0].Kind {
		case gateway.Anthropic:
			path, body = "/v1/messages", `{"model": "fast", "max_tokens": 100, "messages": [{"role": "user", "content": "Hello"}]}`
		case gateway.Gemini:
			path, body = "/v1beta/models/fast:generateContent", `{"contents": [{"parts": [{"text": "Hello"}]}]}`
		}
	}
	v.Example = "curl " + modelsInside + path + " \\\n  -H 'Content-Type: application/json' \\\n  -d '" + body + "'"
	return v
}

// priceViews makes a price ready to show, with a second line for long prompts where those cost something else.
func priceViews(p gateway.Price) []views.ModelPrice {
	amount := func(dollars float64) string { return strconv.FormatFloat(dollars, 'f', -1, 64) }
	name := views.Plain(p.Model, maxShownModel)
	out := []views.ModelPrice{{Model: name, Input: amount(p.Input), Output: amount(p.Output), CacheRead: amount(p.CacheRead), CacheWrite: amount(p.CacheWrite)}}
	if l := p.Long; l != nil {
		out = append(out, views.ModelPrice{
			Model: name, Above: grouped(l.Above), Input: amount(l.Input), Output: amount(l.Output), CacheRead: amount(l.CacheRead), CacheWrite: amount(l.CacheWrite),
		})
	}
	return out
}

// maxShownModel bounds the name of a model on a page.
const maxShownModel = 200

// submitModelSettings turns models, or the keeping of content, on or off.
func (s *modelHandlers) submitModelSettings(ctx context.Context, r *request) (string, error) {
	var in modelSettingsBody
	outcome := ""
	for _, one := range []struct {
		field   string
		to      **bool
		outcome map[string]string
	}{
		{"off", &in.Off, map[string]string{"true": "models-off", "false": "models-on"}},
		{"log_content", &in.LogContent, map[string]string{"true": "content-on", "false": "content-off"}},
	} {
		value := r.form(one.field)
		if value == "" {
			continue
		}
		if one.outcome[value] == "" {
			return "", fault.Field(one.field, "%s is true or false.", one.field)
		}
		on := value == "true"
		*one.to, outcome = &on, one.outcome[value]
	}
	if outcome == "" {
		return "", fault.New(fault.Invalid, "The form says nothing to change.")
	}
	_, err := s.changeModelSettings(ctx, r, in)
	return done(modelsPath, outcome), err
}

package web

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"sandboxd/internal/fault"
	"sandboxd/internal/gateway"
	"sandboxd/views"
)

// providerView makes a provider ready to show. Where it is, is for those who may change it.
func providerView(r *request, p gateway.Provider) views.ModelProvider {
	of := presetOf(p)
	v := views.ModelProvider{
		ID: onPage(p.Owner, p.Name), Name: p.Name, Icon: of.icon, Kind: of.title, Whose: whose(p.Owner), Models: p.Models, Problem: providerProblem(r, p),
		Mine: mayChangeModels(r, p.Owner), Own: p.Owner != "",
	}
	if v.Mine {
		v.Address, v.Key = views.Plain(p.BaseURL, maxPath), p.HasKey
		if p.Inside != (gateway.Inside{}) {
			v.Address = p.Inside.Name + ", port " + strconv.Itoa(p.Inside.Port)
		}
	}
	return v
}

// providerChoices are the kinds of providers to choose from.
func providerChoices() []views.KindChoice {
	var out []views.KindChoice
	for _, p := range modelPresets {
		out = append(out, views.KindChoice{Icon: p.icon, Title: p.title, Text: p.text, URL: providersPath + "/new?kind=" + p.id})
	}
	return out
}

// pageNewProvider shows the form of a provider of the kind that the address names, or asks for one.
func (s *providerHandlers) pageNewProvider(ctx context.Context, r *request) (templ.Component, error) {
	if kind := r.query("kind"); kind != "" {
		preset, ok := presetNamed(kind)
		if !ok {
			return nil, fault.Field("kind", "There is no kind %.40q of providers.", kind)
		}
		return s.form(ctx, r, s.newProviderForm(r, preset))
	}
	v := views.AlertKinds{Title: "Add provider", Text: "Where do the models come from?", Next: modelsPath, Items: providerChoices()}
	if r.byScript() {
		return views.AlertKindsSheet(v), nil
	}
	v.Frame = s.frame(r, v.Title, "settings")
	return views.AlertKindsPage(v), nil
}

// newProviderForm is the form with what a preset fills in.
func (s *providerHandlers) newProviderForm(r *request, p modelPreset) views.ProviderForm {
	return views.ProviderForm{
		Inside: p.inside, Kind: views.Field{Value: string(p.kind)}, Port: views.Field{Value: ollamaPort},
		Preset: p.id, Title: p.title, Text: p.text, Name: views.Field{Value: s.freeName(r, p.name)}, BaseURL: views.Field{Value: p.address},
		Models: views.Field{Value: strings.Join(p.models, "\n")}, Asks: r.isAdmin(), NeedsKey: p.needsKey, KeyHint: p.keyHint, Address: p.exampleFor(r), Folded: p.address != "",
	}
}

// freeName gives a name that none of the providers that the caller sees has yet.
func (s *providerHandlers) freeName(r *request, name string) string {
	taken := s.cfg.Models.Offered(r.who.User.ID)
	for n, free := 2, name; ; n++ {
		if !slices.ContainsFunc(taken, func(p gateway.Provider) bool { return p.Name == free }) {
			return free
		}
		free = name + "-" + strconv.Itoa(n)
	}
}

// form shows a form of a provider.
func (s *providerHandlers) form(ctx context.Context, r *request, v views.ProviderForm) (templ.Component, error) {
	if v.Inside {
		if err := s.offerSandboxes(ctx, r, &v); err != nil {
			return nil, err
		}
	}
	if r.byScript() {
		return views.ProviderSheet(v), nil
	}
	v.Frame = s.frame(r, "Provider", "settings")
	return views.ProviderFormPage(v), nil
}

// askedProvider finds the provider that the address names, which the caller may change.
func (s *providerHandlers) askedProvider(r *request) (gateway.Provider, error) {
	owner, err := askedOwner(r, true)
	if err != nil {
		return gateway.Provider{}, err
	}
	return s.provider(owner, r.param("name"))
}

// knownProviderForm is the form of a provider that there is.
func knownProviderForm(r *request, p gateway.Provider) views.ProviderForm {
	of := presetOf(p)
	return views.ProviderForm{
		Inside: of.inside, Kind: views.Field{Value: string(p.Kind)}, Sandbox: views.Field{Value: p.Inside.Name}, Port: views.Field{Value: strconv.Itoa(p.Inside.Port)},
		Known: true, Title: of.title, Text: of.title, Name: views.Field{Value: p.Name}, BaseURL: views.Field{Value: p.BaseURL}, Models: views.Field{Value: strings.Join(p.Models, "\n")},
		Own: views.Field{Value: strconv.FormatBool(p.Owner != "")}, HasKey: p.HasKey, NeedsKey: of.needsKey, KeyHint: of.keyHint, Address: of.exampleFor(r),
	}
}

// pageProvider shows the form of a provider that there is, without its key.
func (s *providerHandlers) pageProvider(ctx context.Context, r *request) (templ.Component, error) {
	p, err := s.askedProvider(r)
	if err != nil {
		return nil, err
	}
	return s.form(ctx, r, knownProviderForm(r, p))
}

// postedOwner says whose something new is to be, by the form.
func postedOwner(r *request) (string, error) {
	if r.form("own") == "" {
		return modelOwner(r, nil, true)
	}
	own := r.form("own") == "true"
	return modelOwner(r, &own, true)
}

// postedKey is the key in the form; nil to keep the one that there is.
func postedKey(r *request) *string {
	key := r.field("key")
	if key == "" && r.form("remove_key") == "" {
		return nil
	}
	return &key
}

// submitNewProvider adds a provider.
func (s *providerHandlers) submitNewProvider(ctx context.Context, r *request) (string, error) {
	owner, err := postedOwner(r)
	if err != nil {
		return "", err
	}
	preset, ok := presetNamed(r.form("preset"))
	if !ok {
		return "", fault.New(fault.Invalid, "Choose a kind of provider first.")
	}
	p := gateway.Provider{Owner: owner, Name: r.field("name"), Kind: preset.kind, BaseURL: r.field("base_url"), Models: strings.Fields(r.form("models"))}
	if preset.inside {
		p.Kind = gateway.Kind(r.form("kind"))
		if p.Inside, err = s.postedInside(ctx, r, owner); err != nil {
			return "", err
		}
	}
	if _, err := s.provider(owner, p.Name); err == nil {
		return "", &fault.Error{Kind: fault.Conflict, Field: "name", Message: "There is a provider of this name already. Edit that one, or choose another name."}
	}
	key := postedKey(r)
	if preset.needsKey && key == nil {
		return "", fault.Field("key", "Paste your API key.")
	}
	if _, err = s.cfg.Models.SetProvider(ctx, p, key); err != nil {
		return "", err
	}
	return s.saved(ctx, r, p), nil
}

// saved says what has become of a provider that is saved. One without a list gets what it offers.
func (s *providerHandlers) saved(ctx context.Context, r *request, p gateway.Provider) string {
	if len(p.Models) > 0 {
		return done(modelsPath, "provider-saved")
	}
	if s.list(ctx, r, p) != nil {
		r.failed = false // it is saved
		return done(modelsPath, "provider-unlisted")
	}
	return done(modelsPath, "provider-listed")
}

// list makes what a provider offers its models.
func (s *providerHandlers) list(ctx context.Context, r *request, p gateway.Provider) error {
	offered, _, err := s.checkProvider(ctx, r, p.Owner, p.Name)
	if err != nil {
		return err
	}
	if p.Models = offered[:min(len(offered), gateway.MaxModels)]; len(p.Models) == 0 {
		return fault.New(fault.Unavailable, "The provider %s offers no models.", p.Name)
	}
	_, err = s.cfg.Models.SetProvider(ctx, p, nil)
	return err
}

// submitProvider changes a provider that there is. Its name, kind and owner stay.
func (s *providerHandlers) submitProvider(ctx context.Context, r *request) (string, error) {
	p, err := s.askedProvider(r)
	if err != nil {
		return "", err
	}
	before, key := p, postedKey(r)
	p.BaseURL, p.Models = r.field("base_url"), strings.Fields(r.form("models"))
	if p.Inside != (gateway.Inside{}) {
		if p.Inside, err = s.postedInside(ctx, r, p.Owner); err != nil {
			return "", err
		}
	}
	if _, err = s.cfg.Models.SetProvider(ctx, p, key); err != nil {
		return "", err
	}
	if reached := key != nil || p.BaseURL != before.BaseURL || p.Inside != before.Inside; reached && len(before.Models) == 0 {
		return s.saved(ctx, r, p), nil // it could not be listed before
	}
	return done(modelsPath, "provider-saved"), nil
}

// againProvider shows the form again with its values, and the error beside its field. A key has to be entered again.
func (s *providerHandlers) againProvider(ctx context.Context, r *request, cause error) (templ.Component, error) {
	var v views.ProviderForm
	if r.param("name") == "" {
		preset, ok := presetNamed(r.form("preset"))
		if !ok {
			return nil, cause
		}
		v = s.newProviderForm(r, preset)
	} else {
		p, err := s.askedProvider(r)
		if err != nil {
			return nil, err
		}
		v = knownProviderForm(r, p)
	}
	name, own, kind := v.Name.Value, v.Own.Value, v.Kind.Value
	v.Fault = r.fill(map[string]*views.Field{"name": &v.Name, "base_url": &v.BaseURL, "key": &v.Key, "models": &v.Models, "own": &v.Own,
		"sandbox": &v.Sandbox, "port": &v.Port, "kind": &v.Kind}, cause)
	if v.Known {
		v.Name.Value, v.Own.Value, v.Kind.Value = name, own, kind
	}
	if v.Key.Value != "" && v.Key.Fault == "" {
		v.Key.Fault = "Enter the key again."
	}
	v.Key.Value, v.RemoveKey = "", r.form("remove_key") != ""
	return s.form(ctx, r, v)
}

// shownOffer bounds the models of a check's result on a page.
const shownOffer = 200

// submitCheckProvider asks a provider for its models. A script gets the result, to stand below the provider.
func (s *providerHandlers) submitCheckProvider(ctx context.Context, r *request) (string, error) {
	p, err := s.askedProvider(r)
	if err != nil {
		return "", err
	}
	result := views.ProviderResult{ID: onPage(p.Owner, p.Name)}
	offered, took, err := s.checkProvider(ctx, r, p.Owner, p.Name)
	if r.problem = err; err != nil {
		result.Problem = fault.Message(err)
	} else {
		result.Took = strconv.FormatInt(max(took.Milliseconds(), 1), 10) + " ms"
		result.Offered = offered[:min(len(offered), shownOffer)]
		result.More = len(offered) - len(result.Offered)
		if len(p.Models) == 0 && len(offered) > 0 {
			result.List = providersPath + "/" + p.Name + "/models?own=" + strconv.FormatBool(p.Owner != "")
		}
		result.Missing = slices.DeleteFunc(p.Models, func(name string) bool { return slices.Contains(offered, name) })
	}
	if r.byScript() {
		r.answer = views.ProviderChecked(result)
		return "", nil
	}
	r.answer, err = s.models.modelsPage(ctx, r, views.Models{Checked: &result})
	return "", err
}

// submitListModels lists what a provider offers as its models.
func (s *providerHandlers) submitListModels(ctx context.Context, r *request) (string, error) {
	p, err := s.askedProvider(r)
	if err != nil {
		return "", err
	}
	return done(modelsPath, "models-listed"), s.list(ctx, r, p)
}

// pageDeleteProvider asks before a provider is deleted.
func (s *providerHandlers) pageDeleteProvider(_ context.Context, r *request) (templ.Component, error) {
	return s.deleteProvider(r, "")
}

func (s *providerHandlers) deleteProvider(r *request, problem string) (templ.Component, error) {
	p, err := s.askedProvider(r)
	if err != nil {
		return nil, err
	}
	v := views.DeleteModels{
		Title: "Delete the provider " + p.Name + "?", Fault: problem, Button: "Delete provider",
		URL: providersPath + "/" + p.Name + "/delete?own=" + strconv.FormatBool(p.Owner != ""), Lost: []string{"Programs cannot use its models any more."},
	}
	if p.HasKey {
		v.Lost = append(v.Lost, "Its key is deleted too. To use it again you have to paste the key again.")
	}
	return s.models.deleteForm(r, v), nil
}

// submitDeleteProvider deletes a provider with its key.
func (s *providerHandlers) submitDeleteProvider(ctx context.Context, r *request) (string, error) {
	owner, err := askedOwner(r, true)
	if err != nil {
		return "", err
	}
	return done(modelsPath, "provider-deleted"), s.cfg.Models.RemoveProvider(ctx, owner, r.param("name"))
}

// againDeleteProvider asks again, with why it cannot be deleted.
func (s *providerHandlers) againDeleteProvider(_ context.Context, r *request, cause error) (templ.Component, error) {
	return s.deleteProvider(r, fault.Message(cause))
}

// deleteForm asks before something is deleted.
func (s *modelHandlers) deleteForm(r *request, v views.DeleteModels) templ.Component {
	if r.byScript() {
		return views.DeleteModelsSheet(v)
	}
	v.Frame = s.frame(r, v.Button, "settings")
	return views.DeleteModelsPage(v)
}

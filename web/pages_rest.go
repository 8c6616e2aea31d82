package web

import (
	"context"
	"slices"
	"time"

	"github.com/a-h/templ"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/views"
)

// customAfter is the choice of a time that is not in the list.
const customAfter = "custom"

// afters are the times of rest to choose from, beside the default and any other.
var afters = []struct{ value, text string }{
	{"5m", "5 minutes"}, {"15m", "15 minutes"}, {"1h", "1 hour"}, {"4h", "4 hours"}, {"1d", "1 day"}, {"never", "Never"},
}

// restMenu says what keeps a sandbox awake, for its page.
func (s *workspaceHandlers) restMenu(box sandbox.Sandbox) views.Rest {
	v := restView(box, s.outlook(box), s.cfg.Sandboxes.Resting(box), s.cfg.Now())
	v.Meters = workspaceMeters(s.cfg.Metrics, box)
	return v
}

// pageRest shows a sandbox's rest times and holds; a script gets it as a sheet.
func (s *restHandlers) pageRest(ctx context.Context, r *request) (templ.Component, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return nil, err
	}
	box := h.Sandbox()
	return s.restForm(ctx, r, box, views.RestForm{Choices: s.restChoices(box, box.Rest), Keeps: r.query("keep") != ""})
}

func (s *restHandlers) restForm(ctx context.Context, r *request, box sandbox.Sandbox, v views.RestForm) (templ.Component, error) {
	v.Name, v.ID, v.Next = box.Name, box.ID, r.origin(sandboxURL(box.Name))
	v.Order = restOrder(s.cfg.Sandboxes.Resting(box).Rest)
	holds, err := s.cfg.Holds.List(ctx, box)
	if err != nil {
		return nil, err
	}
	if err := holdable(box); err != nil {
		v.Asleep = fault.Message(err)
	}
	names, now := newOwners(s.cfg.Accounts), s.cfg.Now()
	for _, h := range holds {
		by, err := names.name(ctx, h.Owner)
		if err != nil {
			return nil, err
		}
		v.Holds = append(v.Holds, views.Hold{
			ID: h.ID, Reason: h.Reason, By: by, Made: timeOf(h.Created, now), Until: aheadOf(h.Expires, now),
		})
	}
	if r.byScript() {
		return views.RestSheet(v), nil
	}
	v.Frame = s.frame(r, "Sleep settings of "+box.Name, "sandboxes")
	return views.RestPage(v), nil
}

// restChoices are the two times to choose, with rest chosen. What box leaves open its template or the server says.
func (s *restHandlers) restChoices(box sandbox.Sandbox, rest catalog.Rest) views.RestChoices {
	box.Rest = catalog.Rest{}
	wider := s.cfg.Sandboxes.Resting(box)
	freeze, stop := defaultText(wider.FreezeFrom, wider.FreezeAfter), defaultText(wider.StopFrom, wider.StopAfter)
	return views.RestChoices{
		Freeze: freezeChoice(freeze, rest.FreezeAfter.String()), Stop: stopChoice(stop, rest.StopAfter.String()),
	}
}

func defaultText(from string, a catalog.After) string {
	return "Default (" + from + ": " + afterText(a) + ")"
}

func freezeChoice(byDefault, value string) views.RestChoice {
	return views.RestChoice{
		ID: "freeze_after", Label: "Freeze after", Options: afterOptions(byDefault, listedAfter(value)), Custom: customField(value),
		Hint: "Programs pause in memory and resume instantly.",
	}
}

func stopChoice(byDefault, value string) views.RestChoice {
	return views.RestChoice{
		ID: "stop_after", Label: "Sleep after", Options: afterOptions(byDefault, listedAfter(value)), Custom: customField(value),
		Hint: "Programs end and free their memory. Files stay. Waking starts the sandbox again, not its programs.",
	}
}

// afterOptions are the times to choose from.
func afterOptions(byDefault, chosen string) []views.Option {
	list := []views.Option{{Text: byDefault, Selected: chosen == ""}}
	for _, a := range afters {
		list = append(list, views.Option{Value: a.value, Text: a.text, Selected: chosen == a.value})
	}
	return append(list, views.Option{Value: customAfter, Text: "Custom…", Selected: chosen == customAfter})
}

// listedAfter gives the value in the list that says the same time as text, "" for the default, or customAfter.
func listedAfter(text string) string {
	after, err := catalog.ParseAfter("", text)
	if err == nil && after == 0 {
		return ""
	}
	for _, a := range afters {
		if same, _ := catalog.ParseAfter("", a.value); err == nil && same == after {
			return a.value
		}
	}
	return customAfter
}

func customField(value string) views.Field {
	if listedAfter(value) != customAfter {
		return views.Field{}
	}
	return views.Field{Value: value}
}

// after reads one of the two times from the posted form.
func (r *request) after(field string) (catalog.After, error) {
	text := r.afterEntered(field)
	if r.field(field) == customAfter && text == "" {
		return 0, fault.Field(field, `Say which time, such as "90s", "20m" or "3d".`)
	}
	if span, err := enteredSpan(text); err == nil {
		text = span.String()
	}
	return catalog.ParseAfter(field, text)
}

// afterEntered is the choice or entry for it.
func (r *request) afterEntered(field string) string {
	if text := r.field(field); text != customAfter {
		return text
	}
	return r.field(field + "_custom")
}

func readRest(r *request) (rest catalog.Rest, err error) {
	if rest.FreezeAfter, err = r.after("freeze_after"); err != nil {
		return rest, err
	}
	rest.StopAfter, err = r.after("stop_after")
	return rest, err
}

// submitRest sets a sandbox's own times.
func (s *restHandlers) submitRest(ctx context.Context, r *request) (string, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return "", err
	}
	box := h.Sandbox()
	rest, err := readRest(r)
	if err != nil {
		return "", err
	}
	change := sandbox.RestChange{FreezeAfter: &rest.FreezeAfter, StopAfter: &rest.StopAfter}
	if _, err := s.cfg.Sandboxes.SetRest(ctx, h.Ref(), change); err != nil {
		return "", err
	}
	return r.back(sandboxURL(box.Name)), nil
}

func (s *restHandlers) againRest(ctx context.Context, r *request, cause error) (templ.Component, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return nil, err
	}
	box := h.Sandbox()
	v := views.RestForm{Choices: s.restChoices(box, box.Rest)}
	v.Fault = r.refill(&v.Choices, cause)
	return s.restForm(ctx, r, box, v)
}

// refill puts the posted values into the choices, and err's message beside the one that it is about. It gives the message
// back when it is about neither.
func (r *request) refill(c *views.RestChoices, err error) string {
	message := fault.Message(err)
	for _, choice := range []*views.RestChoice{&c.Freeze, &c.Stop} {
		entered := r.afterEntered(choice.ID)
		chosen := listedAfter(entered)
		if r.field(choice.ID) == customAfter {
			chosen = customAfter
		}
		choice.Options, choice.Custom = afterOptions(choice.Options[0].Text, chosen), views.Field{}
		if chosen == customAfter {
			choice.Custom.Value = entered
		}
		if fault.FieldOf(err) == choice.ID {
			choice.Custom.Fault, message = message, ""
		}
	}
	return message
}

// keptByHand is the reason of a hold that a person places in the page. Each person has one, and sets it anew.
const keptByHand = "Keep awake"

// morning is the hour of "until tomorrow".
const morning = 9

// keepFor reads for how long from now a sandbox is to be kept awake: some time, or until tomorrow in the person's zone.
func keepFor(text, zone string, now time.Time) (time.Duration, error) {
	if text == views.UntilTomorrow {
		here := now.In(zoneOr(zone))
		return time.Date(here.Year(), here.Month(), here.Day()+1, morning, 0, 0, 0, here.Location()).Sub(now), nil
	}
	span, err := enteredSpan(text)
	if err != nil {
		return 0, fault.Field("ttl", "Enter a time such as 90 min, 12 hours or 3 days.")
	}
	return span, nil
}

// submitKeep keeps a sandbox awake for a while from now.
func (s *restHandlers) submitKeep(ctx context.Context, r *request) (string, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return "", err
	}
	box := h.Sandbox()
	ttl, err := keepFor(r.field("ttl"), r.field("zone"), s.cfg.Now())
	if err != nil {
		return "", err
	}
	if err := holdable(box); err != nil {
		return "", err
	}
	holds, err := s.cfg.Holds.List(ctx, box)
	if err != nil {
		return "", err
	}
	mine := slices.IndexFunc(holds, func(h sandbox.Hold) bool { return h.Reason == keptByHand && h.Owner == r.who.User.ID })
	if mine >= 0 {
		_, err = s.cfg.Holds.Renew(ctx, box, holds[mine].ID, ttl)
	} else {
		_, err = s.cfg.Holds.Place(ctx, box, r.who.User.ID, keptByHand, ttl)
	}
	return r.back(sandboxURL(box.Name)), err
}

func (s *restHandlers) againKeep(ctx context.Context, r *request, cause error) (templ.Component, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return nil, err
	}
	box := h.Sandbox()
	v := views.RestForm{Choices: s.restChoices(box, box.Rest), Keeps: true}
	v.Fault = r.fill(map[string]*views.Field{"ttl": &v.Keep}, cause)
	return s.restForm(ctx, r, box, v)
}

// submitEndKept ends what Keep awake began.
func (s *restHandlers) submitEndKept(ctx context.Context, r *request) (string, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return "", err
	}
	return r.back(sandboxURL(h.Name())), endKept(ctx, s.Server, h.Sandbox())
}

// endKept ends what Keep awake began in a sandbox, by any user. Holds of programs stay.
func endKept(ctx context.Context, s *Server, box sandbox.Sandbox) error {
	holds, err := s.cfg.Holds.List(ctx, box)
	if err != nil {
		return err
	}
	for _, h := range holds {
		if h.Reason != keptByHand {
			continue
		}
		if err := s.cfg.Holds.Revoke(ctx, box, h.ID); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	return nil
}

// submitRevokeHold ends a hold. A sheet shows the remaining ones.
func (s *restHandlers) submitRevokeHold(ctx context.Context, r *request) (string, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return "", err
	}
	box := h.Sandbox()
	if err := s.cfg.Holds.Revoke(ctx, box, r.param("id")); err != nil {
		return "", err
	}
	if r.byScript() {
		v := views.RestForm{Choices: s.restChoices(box, box.Rest), Done: "It no longer keeps the sandbox awake"}
		r.answer, err = s.restForm(ctx, r, box, v)
	}
	return sandboxURL(box.Name) + "/rest", err
}

package web

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/docker/go-units"
	"golang.org/x/sync/errgroup"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
	"sandboxd/views"
)

// cardsTime bounds the wait for an engine that does not answer, of pages with cards: they are of use without what they say of images.
const cardsTime = time.Second

// cards are the templates to create from: those that are not broken. The engine is asked after all images at the same time.
func (s *creationHandlers) cards(ctx context.Context) []views.Card {
	ctx, cancel := context.WithTimeout(ctx, cardsTime)
	defer cancel()
	entries := slices.DeleteFunc(slices.Clone(s.cfg.Templates.List()), func(e catalog.Entry) bool { return e.Problem != nil })
	cards := make([]views.Card, len(entries))
	var all errgroup.Group
	all.SetLimit(askImages)
	for i, e := range entries {
		all.Go(func() error {
			cards[i] = cardOf(e.Template)
			cards[i].Image = cardImage(e.Template, s.cfg.Images.Status(ctx, e.Name), s.cfg.Now())
			return nil
		})
	}
	_ = all.Wait() // nothing fails
	return cards
}

// menuCards are the same for a menu, which says nothing of images.
func (s *creationHandlers) menuCards() (cards []views.Card) {
	for _, e := range s.cfg.Templates.List() {
		if e.Problem == nil {
			cards = append(cards, cardOf(e.Template))
		}
	}
	return cards
}

func cardOf(t catalog.Template) views.Card {
	return views.Card{
		Name: t.Name, Title: t.Title, Text: t.Description, Icon: t.Icon, Tint: tintOf(t), Size: sizeText(t.Size), Default: sizeWords(t.Size),
	}
}

// sizeWords are the parts of a size as the fields of a form take them.
func sizeWords(z catalog.Size) views.Size {
	w := views.Size{CPUs: strconv.FormatFloat(z.CPUs, 'g', -1, 64), Memory: text.Size(z.Memory), Pids: strconv.FormatInt(z.Pids, 10), Disk: "no limit"}
	if z.Disk > 0 {
		w.Disk = text.Size(z.Disk)
	}
	return w
}

// cardImage says on a card whether its image is there, and else how long it takes to make it.
func cardImage(t catalog.Template, st catalog.ImageStatus, now time.Time) views.State {
	does := "Builds its image first: "
	if t.Image != "" {
		does = "Downloads its image first: "
	}
	wait := views.State{Tone: "still", Icon: "clock", Text: does + lengthText(st.Expected)}
	switch {
	case st.State == catalog.ImageBuilt:
		return views.State{Tone: "good", Icon: "state-done", Text: "Image ready"}
	case st.State == catalog.ImageBuilding:
		return views.State{Tone: "busy", Icon: "state-busy", Text: "Building its image: " + leftText(st.Pace, now)}
	case st.Cancelled && st.Expected.Time == 0: // an event does not tell
		wait.Text = "Builds its image first"
	case st.Cancelled:
	case st.State == catalog.ImageFailed:
		wait.Tone, wait.Icon, wait.Text = "bad", "state-failed", "Its last build failed."
		if st.Expected.Time > 0 { // an event does not tell
			wait.Text += " Tries again: " + lengthText(st.Expected)
		}
	case st.Problem != "":
		wait.Text = "The container engine does not answer"
	}
	return wait
}

func sizeText(z catalog.Size) string {
	return coresText(z.CPUs) + " · " + text.Size(z.Memory)
}

func coresText(n float64) string {
	if n == 1 {
		return "1 core"
	}
	return strconv.FormatFloat(n, 'g', -1, 64) + " cores"
}

// pageNew shows the form; a script gets it as a sheet. To a person who has cancelled a creation it shows what was typed.
func (s *creationHandlers) pageNew(ctx context.Context, r *request) (templ.Component, error) {
	var n views.New
	if typed := s.typed.of(r.query("again"), r.who.User.ID); typed != nil {
		r.http.PostForm = typed
		n, _ = s.filledNew(ctx, r, nil) // without an error there is no message
	}
	if name := r.query("cancelled"); hostname.CheckName(name) == nil {
		n.Cancelled = name
	}
	return s.newForm(ctx, r, n), nil
}

func (s *creationHandlers) newForm(ctx context.Context, r *request, n views.New) templ.Component {
	n.Cards, n.Example, n.Size.Limited = s.cards(ctx), "quiet-otter", s.cfg.Pool != nil
	n.Longest, n.Address = hostname.MaxName, strings.Replace(s.cfg.Hosts.TerminalURL(addressName), addressName, "{name}", 1)
	plain := catalog.PlainImage("")
	n.Plain = views.Card{Title: "Plain image", Text: "Any image from a registry.", Icon: plain.Icon, Tint: tintOf(plain), Default: sizeWords(plain.Size)}
	s.choose(ctx, r, &n)
	if n.Rest.Freeze.ID == "" {
		n.Rest = newChoices()
	}
	if r.byScript() {
		return views.NewSheet(n)
	}
	n.Frame = s.frame(r, "New sandbox", "sandboxes")
	return views.NewPage(n)
}

// addressName is a name to make the address of any sandbox from.
const addressName = "name"

// choose marks the template that is chosen: the one of the form or of the page's address, else that of the person's newest sandbox, else
// the first.
func (s *creationHandlers) choose(ctx context.Context, r *request, n *views.New) {
	want := cmp.Or(r.form("template"), r.query("template"))
	if want == "" && n.Image.Value+n.Image.Fault != "" || len(n.Cards) == 0 {
		n.Plain.Chosen, n.Default = true, n.Plain.Default
		return
	}
	if want == "" {
		if boxes, _, err := s.cfg.Sandboxes.List(ctx, sandbox.Filter{Owner: r.who.User.ID, Limit: 1}); err == nil && len(boxes) > 0 {
			want = boxes[0].Spec.Template
		}
	}
	at := max(slices.IndexFunc(n.Cards, func(c views.Card) bool { return c.Name == want }), 0)
	n.Cards[at].Chosen, n.Default = true, n.Cards[at].Default
}

// newChoices are the times of rest of a sandbox to be made. Which template it is made from is not known yet.
func newChoices() views.RestChoices {
	const byDefault = "Template default"
	return views.RestChoices{Freeze: freezeChoice(byDefault, ""), Stop: stopChoice(byDefault, "")}
}

// submitNew makes a sandbox and leads to its page, which shows how it comes along.
func (s *creationHandlers) submitNew(ctx context.Context, r *request) (string, error) {
	ask, err := readNew(r)
	if err != nil {
		return "", err
	}
	box, created, err := s.cfg.Sandboxes.Create(ctx, ask)
	if ask.Name != "" && (fault.Is(err, fault.Conflict) || err == nil && !created && !s.justMade(box)) {
		return "", s.nameTaken(ctx, r, ask.Name, err)
	}
	if err != nil {
		return "", err
	}
	r.about, r.object = box, cmp.Or(box.Spec.Template, box.Spec.Image)
	if created && box.State == sandbox.Creating {
		s.typed.keep(box, r.http.PostForm, s.cfg.Now())
	}
	return sandboxURL(box.Name), nil
}

// submitCancelNew ends the creation of a sandbox, and leads back to its form. A build that only it has waited for ends, too.
func (s *creationHandlers) submitCancelNew(ctx context.Context, r *request) (string, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return "", err
	}
	box := h.Sandbox()
	if _, err := s.cfg.Sandboxes.Cancel(ctx, h.Ref()); err != nil {
		return "", err
	}
	s.cfg.Images.Abandon(s.workspace.templateOf(box.Spec), r.who.User.Name)
	back := url.Values{"again": {box.ID}, "cancelled": {box.Name}}
	if box.Spec.Template != "" {
		back.Set("template", box.Spec.Template)
	}
	return "/new?" + back.Encode(), nil
}

// resendTime is how long the same form, sent again, leads to the sandbox that it has made: a double click, or a page
// that was loaded again.
const resendTime = 10 * time.Second

// justMade says whether a create that found what it asks for has found its own: one that is new, or still to be made
// in the place of one that is being deleted.
func (s *creationHandlers) justMade(box sandbox.Sandbox) bool {
	return box.State == sandbox.Deleting || s.cfg.Now().Sub(box.Created) <= resendTime
}

// nameTaken says beside the name that there is one of it already, as far as the person may know of that; else cause.
func (s *creationHandlers) nameTaken(ctx context.Context, r *request, name string, cause error) error {
	taken := &fault.Error{Kind: fault.Conflict, Field: "name", Message: "There is already a sandbox with this name: open it, or choose another name."}
	if _, err := s.resolve(ctx, r.who, name); err != nil {
		taken.Message, taken.Err = fault.Message(cause), cause
	}
	return taken
}

func readNew(r *request) (sandbox.Request, error) {
	ask := sandbox.Request{
		Name: r.field("name"), Label: r.field("label"), Owner: r.who.User.ID, Template: r.field("template"),
	}
	if ask.Template == "" {
		ask.Image = r.field("image")
	}
	var errs [5]error // all of them, so that all is mended at once
	if ask.Name != "" {
		errs[0] = hostname.CheckName(ask.Name)
	}
	if ask.Template == "" && ask.Image == "" {
		errs[1] = fault.Field("image", "Enter an image, such as debian:trixie-slim, or choose a template.")
	}
	ask.Limits, errs[2] = readLimits(r)
	ask.Rest, errs[3] = readRest(r)
	ask.Env, errs[4] = readEnv(r.form("env"))
	return ask, errors.Join(errs[:]...)
}

// field gives a field of the posted form without the spaces around it.
func (r *request) field(name string) string { return strings.TrimSpace(r.form(name)) }

// readLimits reads the sizes; an empty field means the template's default.
func readLimits(r *request) (l sandbox.Limits, err error) {
	if text := r.field("cpus"); text != "" {
		l.CPUs, err = strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64)
		if err != nil || !(l.CPUs > 0) {
			return l, fault.Field("cpus", "CPU cores must be a number such as 1 or 0.5.")
		}
	}
	if text := r.field("memory"); text != "" {
		if l.Memory, err = readSizeOf("memory", "Memory", text); err != nil {
			return l, err
		}
	}
	if text := r.field("pids"); text != "" {
		l.Pids, err = strconv.ParseInt(text, 10, 64)
		if err != nil || l.Pids <= 0 {
			return l, fault.Field("pids", "Processes must be a whole number such as 512.")
		}
	}
	if text := r.field("disk"); text != "" {
		l.Disk, err = readSizeOf("disk", "Disk", text)
	}
	return l, err
}

// fewestMiB is the least number that without a unit is more likely meant in MiB than in GiB.
const fewestMiB = 64

// readSizeOf reads a size as a person enters it. A number alone would be bytes, which nobody means.
func readSizeOf(field, label, text string) (int64, error) {
	if n, err := strconv.ParseFloat(text, 64); err == nil && n > 0 {
		example := text + " GiB or 512 MiB"
		if n >= fewestMiB {
			example = text + " MiB or 4 GiB"
		}
		return 0, fault.Field(field, "%s %q has no unit: write %.40s.", label, text, example)
	}
	n, err := units.RAMInBytes(text)
	if err != nil || n <= 0 {
		return 0, fault.Field(field, "%s must be a size such as 512 MiB or 4 GiB.", label)
	}
	return n, nil
}

// readEnv reads lines of NAME=value. What a name may be is the domain's to say.
func readEnv(text string) (map[string]string, error) {
	var env map[string]string
	for i, line := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fault.Field("env", "Line %d has no “=”: write NAME=value.", i+1)
		}
		name = strings.TrimSpace(name)
		if _, twice := env[name]; twice {
			return nil, fault.Field("env", "Line %d sets %.60s a second time.", i+1, name)
		}
		if env == nil {
			env = map[string]string{}
		}
		env[name] = value
	}
	return env, nil
}

// againNew shows the form again with its values and errors.
func (s *creationHandlers) againNew(ctx context.Context, r *request, err error) (templ.Component, error) {
	n, general := s.filledNew(ctx, r, err)
	n.Fault = general
	if h, missing := s.resolve(ctx, r.who, r.field("name")); missing == nil && fault.Is(err, fault.Conflict) && n.Name.Fault != "" {
		n.Taken = sandboxURL(h.Name())
	}
	return s.newForm(ctx, r, n), nil
}

// filledNew is the form with what was posted, and the messages of err beside the fields that they are about. It gives a message back that
// is about none of them.
func (s *creationHandlers) filledNew(_ context.Context, r *request, err error) (n views.New, general string) {
	n.Rest = newChoices()
	fields := map[string]*views.Field{
		"label": &n.Label, "name": &n.Name, "cpus": &n.Size.CPUs, "memory": &n.Size.Memory, "pids": &n.Size.Pids,
		"image": &n.Image, "env": &n.Env,
	}
	if s.cfg.Pool != nil {
		fields["disk"] = &n.Size.Disk
	}
	general = r.fill(fields, err)
	if elsewhere := r.refill(&n.Rest, err); elsewhere == "" {
		general = ""
	}
	for _, folded := range []string{n.Label.Value, n.Size.Pids.Value, n.Env.Value, n.Label.Fault, n.Size.Pids.Fault, n.Env.Fault, r.form(n.Rest.Freeze.ID), r.form(n.Rest.Stop.ID)} {
		n.More = n.More || folded != ""
	}
	return n, general
}

// fill puts the posted values into fields, and the message of each error that err joins beside the one that it is about. It
// gives a message back that is about none of them.
func (r *request) fill(fields map[string]*views.Field, err error) string {
	for name, f := range fields {
		f.Value = r.form(name)
	}
	general := ""
	for _, err := range joined(err) {
		if f, ok := fields[fault.FieldOf(err)]; ok {
			f.Fault = fault.Message(err)
		} else {
			general = fault.Message(err)
		}
	}
	return general
}

// joined gives the errors that err joins, or err.
func joined(err error) []error {
	var all interface{ Unwrap() []error }
	if errors.As(err, &all) {
		return all.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

package web

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/a-h/templ"

	"sandboxd/internal/access"
	"sandboxd/internal/chat"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
	"sandboxd/internal/trials"
	"sandboxd/views"
)

// triesLook is how often a page looks at what the agents say and do, which nothing tells.
const triesLook = 2 * time.Second

func triesURL(box sandbox.Sandbox, id, act string) string { return sameURL(box, "/tries/"+id+act) }

// pageTries shows what agents in several clones of a sandbox have made of one message, side by side. It wakes nothing.
func (s *trialHandlers) pageTries(ctx context.Context, r *request) (templ.Component, error) {
	h, t, err := s.trial(ctx, r)
	if err != nil {
		return nil, err
	}
	part, err := s.part(ctx, h.Sandbox(), t)
	if err != nil {
		return nil, err
	}
	v := views.Tries{Frame: s.frame(r, "Tries of "+boxTitle(h.Sandbox()), "sandboxes"), Box: h.Name(), Title: boxTitle(h.Sandbox()), Text: linesOf(t.Text), Part: part}
	v.Frame.PlotsStyle = true
	v.Frame.Live = views.Live{Topic: triesURL(h.Sandbox(), t.ID, ""), Seen: "seen=" + printOf(part)}
	return views.TriesPage(v), nil
}

// linesOf gives a text of several lines without characters that cannot be shown, such as direction marks.
func linesOf(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && text.Unprintable(string(r)) {
			return '\uFFFD'
		}
		return r
	}, s)
}

// trialStates are the states of a trial, in words.
var trialStates = map[trials.State]views.State{
	trials.Making:    {Tone: "busy", Icon: "state-busy", Text: "The tries are being made"},
	trials.Open:      {Tone: "calm", Icon: "state-todo", Text: "Compare, and keep one"},
	trials.Keeping:   {Tone: "busy", Icon: "state-busy", Text: "A try is being kept"},
	trials.Deleting:  {Tone: "busy", Icon: "state-busy", Text: "Tries are being deleted"},
	trials.Kept:      {Tone: "good", Icon: "state-done", Text: "One was kept"},
	trials.Cancelled: {Tone: "still", Icon: "state-done", Text: "Cancelled"},
	trials.Failed:    {Tone: "bad", Icon: "warn", Text: "Failed"},
}

func (s *trialHandlers) part(ctx context.Context, box sandbox.Sandbox, t trials.Trial) (views.TriesPart, error) {
	p := views.TriesPart{State: trialStates[t.State], Problem: plainText(t.Problem)}
	if t.State == trials.Making || t.State == trials.Open {
		p.Cancel = triesURL(box, t.ID, "/cancel")
	}
	if t.State == trials.Kept {
		p.Undo = snapshotsURL(box.Name)
	}
	tries, err := s.cfg.Trials.Look(ctx, t)
	for _, try := range tries {
		p.Cards = append(p.Cards, s.card(box, t, try))
	}
	return p, err
}

func (s *trialHandlers) card(box sandbox.Sandbox, t trials.Trial, try trials.Try) views.TryCard {
	c := views.TryCard{Name: try.Name, State: stateWordsOf(t, try), Problem: plainText(problemOfTry(try)), Words: views.Prose(linesOf(try.Words)), Kept: keptName(t, try) != "" && try.Sandbox == t.Kept}
	if try.Box.ID != "" {
		c.URL = sandboxURL(try.Name)
		if try.Conversation.ID != "" {
			c.URL = conversationURL(try.Name, try.Conversation.ID)
		}
		if t.State == trials.Open && !works(try.Conversation.State) {
			c.Keep = triesURL(box, t.ID, "/keep") + "&try=" + try.Name
		}
	}
	switch used := try.Conversation.Used; {
	case used.Cost > 0:
		c.Cost = costText(used.Cost)
	case used.Unpriced:
		c.Cost = noPrice
	}
	for _, f := range try.Files {
		shown := views.TriedFile{Path: f.Path, Added: "+" + strconv.Itoa(f.Added), Removed: "−" + strconv.Itoa(f.Removed)}
		switch {
		case f.Deleted:
			shown.Change = "deleted"
		case f.Created:
			shown.Change = "new"
		}
		c.Files = append(c.Files, shown)
	}
	if try.More {
		c.More = "There are more."
	}
	return c
}

func works(s chat.State) bool { return s == chat.Working || s == chat.Asking }

// stateWordsOf says what becomes of a try: what its agent does, or why there is none.
func stateWordsOf(t trials.Trial, try trials.Try) views.State {
	switch state := stateOfTry(t, try); {
	case state == "deleted":
		return views.State{Tone: "still", Icon: "trash", Text: "Deleted"}
	case state == "failed" || try.Clone.Problem != "":
		return views.State{Tone: "bad", Icon: "warn", Text: "Could not be made"}
	case try.Box.State == sandbox.Failed:
		return views.State{Tone: "bad", Icon: "warn", Text: "The sandbox failed"}
	case !try.Sent:
		return views.State{Tone: "busy", Icon: "state-busy", Text: "Being made"}
	}
	switch try.Conversation.State {
	case chat.Working:
		return views.State{Tone: "busy", Icon: "state-busy", Text: "Working"}
	case chat.Asking:
		return views.State{Tone: "busy", Icon: "chat", Text: "Asks you"}
	case chat.Failed:
		return views.State{Tone: "bad", Icon: "warn", Text: "The agent failed"}
	case "":
		return views.State{Tone: "still", Icon: "state-done", Text: "Its conversation was deleted"}
	}
	return views.State{Tone: "good", Icon: "state-done", Text: "Done"}
}

// pageKeepTry asks before a sandbox is made as a try is; a script gets the question as a sheet.
func (s *trialHandlers) pageKeepTry(ctx context.Context, r *request) (templ.Component, error) {
	return s.keepForm(ctx, r, r.query("try"), "")
}

func (s *trialHandlers) keepForm(ctx context.Context, r *request, name, problem string) (templ.Component, error) {
	h, t, err := s.trial(ctx, r)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(t.Clones, func(c trials.Clone) bool { return c.Name == name }) {
		return nil, fault.New(fault.NotFound, "%.64q is none of the tries.", name)
	}
	v := views.KeepTry{Try: name, URL: triesURL(h.Sandbox(), t.ID, "/keep"), Fault: problem, Means: []string{
		"The files in the home of " + h.Name() + " and the programs installed in it become those of " + name + ".",
		"Its running programs and its terminals end.",
		"The other tries are deleted, with their conversations. " + name + " stays.",
		"A snapshot of " + h.Name() + " as it is now is taken first: restore it to take this back.",
	}}
	return s.question(r, h, t, v), nil
}

func (s *trialHandlers) question(r *request, h access.Handle, t trials.Trial, v views.KeepTry) templ.Component {
	v.Box, v.Next = h.Name(), r.origin(triesURL(h.Sandbox(), t.ID, ""))
	if r.byScript() {
		return views.KeepTrySheet(v)
	}
	v.Frame = s.frame(r, "Tries of "+h.Name(), "sandboxes")
	return views.KeepTryPage(v)
}

// submitKeepTry begins to keep a try. The page's live connection shows how far it is.
func (s *trialHandlers) submitKeepTry(ctx context.Context, r *request) (string, error) {
	h, t, err := s.trial(ctx, r)
	if err == nil {
		_, err = s.keep(ctx, t, r.field("sandbox"))
	}
	return r.back(triesURL(h.Sandbox(), t.ID, "")), err
}

func (s *trialHandlers) againKeepTry(ctx context.Context, r *request, cause error) (templ.Component, error) {
	return s.keepForm(ctx, r, r.field("sandbox"), fault.Message(cause))
}

// pageCancelTries asks before all tries are deleted; a script gets the question as a sheet.
func (s *trialHandlers) pageCancelTries(ctx context.Context, r *request) (templ.Component, error) {
	return s.cancelForm(ctx, r, "")
}

func (s *trialHandlers) cancelForm(ctx context.Context, r *request, problem string) (templ.Component, error) {
	h, t, err := s.trial(ctx, r)
	if err != nil {
		return nil, err
	}
	return s.question(r, h, t, views.KeepTry{URL: triesURL(h.Sandbox(), t.ID, "/cancel"), Fault: problem, Means: []string{
		"What the agents are doing ends.", "All tries are deleted, with their files and conversations. " + h.Name() + " stays as it is.",
	}}), nil
}

// submitCancelTries begins to delete the tries.
func (s *trialHandlers) submitCancelTries(ctx context.Context, r *request) (string, error) {
	h, t, err := s.trial(ctx, r)
	if err == nil {
		_, err = s.cfg.Trials.Cancel(ctx, t.ID)
	}
	return r.back(triesURL(h.Sandbox(), t.ID, "")), err
}

func (s *trialHandlers) againCancelTries(ctx context.Context, r *request, cause error) (templ.Component, error) {
	return s.cancelForm(ctx, r, fault.Message(cause))
}

// tryBadge says which sandbox a sandbox is a try of, or that there are tries of it, and leads to all of them.
func (s *trialHandlers) tryBadge(box sandbox.Sandbox) (list []views.Badge) {
	if of, is := s.cfg.Trials.Of(box.ID); is && of.Owner == box.Owner {
		list = append(list, views.Badge{Icon: "layers", Text: "try of " + of.Name, Title: "Compare the tries of " + of.Name, URL: sandboxURL(of.Name) + "/tries/" + of.Trial})
	}
	for _, t := range s.cfg.Trials.List(box.ID) {
		if !t.State.Over() && t.Owner == box.Owner {
			return append(list, views.Badge{Icon: "layers", Text: strconv.Itoa(len(t.Clones)) + " tries", Title: "Compare the tries of " + box.Name, URL: triesURL(box, t.ID, "")})
		}
	}
	return list
}

// liveTries keeps the page of a trial up to date.
type liveTries struct {
	server *trialHandlers
	box    sandbox.Sandbox
	id     string
	drawn  string // print of what the page shows
}

func (s *trialHandlers) openLiveTries(ctx context.Context, r *request) (livePage, error) {
	h, t, err := s.trial(ctx, r)
	if err != nil {
		return nil, err
	}
	return &liveTries{server: s, box: h.Sandbox(), id: t.ID, drawn: r.query("seen")}, nil
}

func (l *liveTries) beside(ctx context.Context, hand func(news)) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		for tick := time.Tick(triesLook); ; {
			select {
			case <-tick:
				hand(news{trial: &trials.Change{}})
			case <-ctx.Done():
				return
			}
		}
	})
	follow(ctx, l.server.cfg.Trials.Subscribe, func(c *trials.Change) { hand(news{trial: c}) })
}

func (l *liveTries) begin(ctx context.Context, out *parts) error { return l.tell(ctx, false, out) }

func (l *liveTries) take(n news) bool {
	return n.trial != nil && (n.trial.Trial.ID == "" || n.trial.Trial.ID == l.id)
}

func (l *liveTries) tell(ctx context.Context, _ bool, out *parts) error {
	t, err := l.server.cfg.Trials.Trial(l.id)
	if err != nil {
		return err
	}
	part, err := l.server.part(ctx, l.box, t)
	if err != nil {
		return err
	}
	if now := printOf(part); now != l.drawn {
		l.drawn = now
		out.add("tries", views.Replace, views.TriesBody(part))
	}
	return nil
}

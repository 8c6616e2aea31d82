package web

import (
	"context"
	"net/http"
	"slices"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/chat"
	"sandboxd/internal/fault"
	"sandboxd/internal/trials"
)

// trialHandlers are the same message to agents in clones of a sandbox.
type trialHandlers struct{ *Server }

const (
	trialPath = "/sandboxes/:name/trials" // for programs and scripts
	triesPath = "/sandboxes/:name/tries"  // for people
)

// table is trials, for programs, for the pane's script, and as pages.
func (s *trialHandlers) table() []route {
	one := triesPath + "/:id"
	return append(append(s.at(apiPrefix, tokenWide), s.at("", scripted)...),
		route{get, one, signedIn, page(s.pageTries)},
		route{get, one + "/keep", signedIn, page(s.pageKeepTry)},
		route{post, one + "/keep", signedIn, form(s.submitKeepTry, s.againKeepTry)},
		route{get, one + "/cancel", signedIn, page(s.pageCancelTries)},
		route{post, one + "/cancel", signedIn, form(s.submitCancelTries, s.againCancelTries)},
	)
}

func (s *trialHandlers) at(prefix string, who admission) []route {
	all, one := prefix+trialPath, prefix+trialPath+"/:id"
	return []route{
		{get, all, who, api(s.apiTrials)},
		{post, all, who, api(s.apiBeginTrial)},
		{get, one, who, api(s.apiTrial)},
		{post, one + "/keep", who, api(s.apiKeepTry)},
		{del, one, who, api(s.apiCancelTrial)},
	}
}

// mayTry says whether a trial is shown to the person or program that asks: it has what agents in the clones say.
func mayTry(r *request, owner string) bool { return owner == r.who.User.ID || r.isAdmin() }

// trial gives the sandbox and the trial that the path names. One of another sandbox, or of another person, is one that does not exist.
func (s *trialHandlers) trial(ctx context.Context, r *request) (access.Handle, trials.Trial, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return h, trials.Trial{}, err
	}
	t, err := s.cfg.Trials.Trial(r.param("id"))
	if err == nil && (t.Sandbox != h.ID() || !mayTry(r, t.Owner)) {
		err = trials.NotFound(r.param("id"))
	}
	if err != nil {
		return h, trials.Trial{}, err
	}
	r.object = t.ID
	return h, t, nil
}

type trialsShape struct {
	Trials []trialShape `json:"trials"`
}

// trialShape is a trial as programs see it.
type trialShape struct {
	ID        string     `json:"id"`
	Text      string     `json:"text"`
	Agent     string     `json:"agent"`
	Model     string     `json:"model"`
	Mode      string     `json:"mode"`
	State     string     `json:"state"`
	Problem   string     `json:"problem"`
	Snapshot  string     `json:"snapshot"`
	Kept      string     `json:"kept"` // name of the clone; "" for none
	CreatedAt time.Time  `json:"created_at"`
	Tries     []tryShape `json:"tries"`
}

// tryShape is a clone.
type tryShape struct {
	Sandbox      string           `json:"sandbox"` // name
	State        string           `json:"state"`   // of the sandbox; "waiting", "deleted" or "failed" when it is not there
	Problem      string           `json:"problem"`
	Conversation string           `json:"conversation"` // id; "" for none
	AgentState   string           `json:"agent_state"`  // "" without a conversation
	LastWords    string           `json:"last_words"`
	CostUSD      float64          `json:"cost_usd"`
	Files        []triedFileShape `json:"files"`
	MoreFiles    bool             `json:"more_files"`
}

// triedFileShape is a file that an agent has changed with its tools.
type triedFileShape struct {
	Path    string `json:"path"`
	Created bool   `json:"created"`
	Deleted bool   `json:"deleted"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
}

func (s *trialHandlers) shape(ctx context.Context, t trials.Trial) (trialShape, error) {
	out := trialShape{
		ID: t.ID, Text: t.Text, Agent: t.Agent, Model: t.Model, Mode: string(t.Mode), State: string(t.State), Problem: t.Problem,
		Snapshot: t.Snapshot, CreatedAt: t.Created.UTC(), Tries: []tryShape{},
	}
	tries, err := s.cfg.Trials.Look(ctx, t)
	for _, try := range tries {
		shape := tryShape{
			Sandbox: try.Name, State: stateOfTry(t, try), Problem: problemOfTry(try), Conversation: try.Conversation.ID, AgentState: string(try.Conversation.State),
			LastWords: try.Words, CostUSD: float64(try.Conversation.Used.Cost) / 1e6, Files: []triedFileShape{}, MoreFiles: try.More,
		}
		for _, f := range try.Files {
			shape.Files = append(shape.Files, triedFileShape(f))
		}
		if out.Tries = append(out.Tries, shape); try.Sandbox == t.Kept {
			out.Kept = keptName(t, try)
		}
	}
	return out, err
}

func keptName(t trials.Trial, try trials.Try) string {
	if t.Kept == "" {
		return ""
	}
	return try.Name
}

// stateOfTry is the state of a clone's sandbox, or why it has none.
func stateOfTry(t trials.Trial, try trials.Try) string {
	switch {
	case try.Box.ID != "":
		return string(try.Box.State)
	case try.Sandbox != "":
		return "deleted"
	case try.Clone.Problem != "" || t.State.Over():
		return "failed"
	}
	return "waiting"
}

// problemOfTry says what is wrong with a try, for a person.
func problemOfTry(try trials.Try) string {
	for _, p := range []string{try.Clone.Problem, try.Box.Problem, try.Conversation.Problem} {
		if p != "" {
			return p
		}
	}
	return ""
}

// apiTrials lists the trials of a sandbox, the newest first.
func (s *trialHandlers) apiTrials(ctx context.Context, r *request, _ none) (reply, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	out := trialsShape{Trials: []trialShape{}}
	for _, t := range s.cfg.Trials.List(h.ID()) {
		if !mayTry(r, t.Owner) {
			continue
		}
		shape, err := s.shape(ctx, t)
		if err != nil {
			return reply{}, err
		}
		out.Trials = append(out.Trials, shape)
	}
	return reply{body: out}, nil
}

// trialBody says what is tried.
type trialBody struct {
	Text  string `json:"text"`
	N     int    `json:"n"`
	Agent string `json:"agent"`
	Model string `json:"model"`
	Mode  string `json:"mode"`
}

// apiBeginTrial sends a message to agents in clones of a sandbox: 202, before the clones are made.
func (s *trialHandlers) apiBeginTrial(ctx context.Context, r *request, in trialBody) (reply, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return reply{}, err
	}
	t, err := s.cfg.Trials.Begin(ctx, h.Sandbox(), trials.Ask{Owner: r.who.User.ID, Text: in.Text, Count: in.N, Agent: in.Agent, Model: in.Model, Mode: chat.Mode(in.Mode)})
	if err != nil {
		return reply{}, err
	}
	r.object = t.ID
	shape, err := s.shape(ctx, t)
	return reply{status: http.StatusAccepted, location: apiPrefix + "/sandboxes/" + h.Name() + "/trials/" + t.ID, body: shape}, err
}

// apiTrial answers with one.
func (s *trialHandlers) apiTrial(ctx context.Context, r *request, _ none) (reply, error) {
	_, t, err := s.trial(ctx, r)
	if err != nil {
		return reply{}, err
	}
	shape, err := s.shape(ctx, t)
	return reply{body: shape}, err
}

// keepBody names the clone that is kept.
type keepBody struct {
	Sandbox string `json:"sandbox"`
}

// apiKeepTry begins to make the sandbox as a clone is, and to delete the others: 202.
func (s *trialHandlers) apiKeepTry(ctx context.Context, r *request, in keepBody) (reply, error) {
	_, t, err := s.trial(ctx, r)
	if err != nil {
		return reply{}, err
	}
	if t, err = s.keep(ctx, t, in.Sandbox); err != nil {
		return reply{}, err
	}
	shape, err := s.shape(ctx, t)
	return reply{status: http.StatusAccepted, body: shape}, err
}

// keep keeps the clone with a name.
func (s *trialHandlers) keep(ctx context.Context, t trials.Trial, name string) (trials.Trial, error) {
	i := slices.IndexFunc(t.Clones, func(c trials.Clone) bool { return c.Name == name && c.Sandbox != "" })
	if i < 0 {
		return t, fault.Field("sandbox", "%.64q is none of the tries.", name)
	}
	return s.cfg.Trials.Keep(ctx, t.ID, t.Clones[i].Sandbox)
}

// apiCancelTrial ends what the agents do, and deletes the clones: 202.
func (s *trialHandlers) apiCancelTrial(ctx context.Context, r *request, _ none) (reply, error) {
	_, t, err := s.trial(ctx, r)
	if err == nil {
		t, err = s.cfg.Trials.Cancel(ctx, t.ID)
	}
	if err != nil {
		return reply{}, err
	}
	shape, err := s.shape(ctx, t)
	return reply{status: http.StatusAccepted, body: shape}, err
}

package program

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sandboxd/internal/acp"
	"sandboxd/internal/chat"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// aKey is the key that agents insist on having for the sandbox's models. It is no secret, and opens nothing.
const aKey = "sandbox"

// start begins a program. It is known before it runs, so that none is begun twice.
func (r opens) start(ctx context.Context) error {
	c := r.t.Conversation()
	if err := r.room(ctx, c); err != nil {
		return err
	}
	r.together(func() {
		r.forget()
		r.s.Number++
		r.s.Program = fmt.Sprintf("%s%s-%d", prefix, c.ID, r.s.Number)
		r.call(acp.Initialize, acp.InitializeParams(r.how.Authenticate))
	})
	if err := r.t.Stored(ctx); err != nil {
		return err
	}
	return r.d.c.Programs.Keep(ctx, c, r.s.Program, r.how)
}

// room ends the agents that this sandbox has no room for: those of this conversation from before, and the oldest that wait for a message.
func (r opens) room(ctx context.Context, c chat.Conversation) error {
	all, err := r.d.c.Programs.Kept(ctx, c)
	if err != nil {
		return err
	}
	var idle []string
	own := prefix + c.ID + "-"
	for _, k := range all {
		switch {
		case strings.HasPrefix(k.ID, own), k.Ended && strings.HasPrefix(k.ID, prefix):
			if err := r.d.c.Programs.End(ctx, c, k.ID); err != nil {
				return err
			}
		case strings.HasPrefix(k.ID, prefix) && !r.d.works(k.ID):
			idle = append(idle, k.ID)
		}
	}
	for len(idle) > maxIdle {
		if err := r.d.c.Programs.End(ctx, c, idle[0]); err != nil {
			return err
		}
		idle = idle[1:]
	}
	return nil
}

// response takes an answer to a call of ours, and does what is next.
func (r opens) response(m acp.Message) {
	switch m.Method {
	case acp.Initialize:
		r.initialized(m)
	case acp.Authenticate:
		if r.fine(m, "could not be led to the models") {
			r.session()
		}
	case acp.LoadSession:
		if m.Err != nil {
			r.s.Session = ""
			r.session()
			return
		}
		r.opened(m)
	case acp.NewSession:
		if m.Err != nil && m.Err.Code == acp.AuthRequired {
			r.problem = fault.New(fault.Unavailable, "%s wants you to sign in. Do that in a terminal of this sandbox, and resume then.", r.how.Name)
		} else if r.fine(m, "could not begin a session") {
			r.opened(m)
		}
	case acp.SetMode, acp.SetModel, acp.SetOption:
		r.chosen(m)
	case acp.Prompt:
		r.ended(m)
	}
}

// fine reports whether a call has succeeded; else the turn fails.
func (r opens) fine(m acp.Message, what string) bool {
	if m.Err != nil {
		r.problem = fault.New(fault.Unavailable, "%s %s: %s.", r.how.Name, what, m.Err.Text())
	}
	return m.Err == nil
}

func (r opens) initialized(m acp.Message) {
	var in acp.Initialized
	if !r.fine(m, "could not be started") {
		return
	}
	_ = json.Unmarshal(m.Body, &in) // what has an unknown shape is left out
	if in.ProtocolVersion != acp.Version {
		r.problem = fault.New(fault.Unavailable, "%s speaks version %d of the Agent Client Protocol, and sandboxd speaks %d.", r.how.Name, in.ProtocolVersion, acp.Version)
		return
	}
	r.s.Loads, r.s.Images = in.AgentCapabilities.LoadSession, in.AgentCapabilities.PromptCapabilities.Image
	if method, can := in.Gateway(); can && r.how.Authenticate {
		r.call(acp.Authenticate, method.GatewayParams(r.d.c.Models, aKey))
		return
	}
	r.session()
}

// session opens the session of before, or another one.
func (r opens) session() {
	cwd := cmp.Or(r.how.Cwd, r.d.c.Home)
	if r.s.Session != "" && r.s.Loads {
		r.call(acp.LoadSession, acp.SessionParams(r.s.Session, cwd))
		return
	}
	r.s.Session, r.s.Fresh, r.s.Told, r.s.Cost = "", true, 0, 0
	r.call(acp.NewSession, acp.SessionParams("", cwd))
}

// opened takes the session.
func (r opens) opened(m acp.Message) {
	var s acp.Session
	_ = json.Unmarshal(m.Body, &s) // what has an unknown shape is left out
	if m.Method == acp.NewSession && (s.SessionID == "" || len(s.SessionID) > acp.MaxID) {
		r.problem = fault.New(fault.Invalid, "%s began a session without saying which.", r.how.Name)
		return
	}
	if m.Method == acp.NewSession {
		r.s.Session = s.SessionID
	}
	before := shows(r).value(shows(r).categorised("model"))
	if options := s.Options(); len(options) > 0 || m.Method == acp.NewSession {
		shows(r).offer(options)
	}
	if m.Method == acp.NewSession && r.t.Conversation().Model != "" {
		r.model(before)
	}
	r.prepare()
}

// model has a new session use the model that the conversation names, or, after an earlier session, what that one used last. A person is told
// when the agent does not offer it.
func (r opens) model(before string) {
	named := r.t.Conversation().Model
	id := shows(r).categorised("model")
	i := slices.IndexFunc(r.t.Conversation().Settings.Options, func(o chat.Option) bool { return o.ID == id })
	if i < 0 {
		r.lacks(named, fmt.Sprintf("%s does not let its model be chosen here: %q was not used.", r.how.Name, named))
		return
	}
	o := r.t.Conversation().Settings.Options[i]
	var ids []string
	for _, v := range o.Values {
		ids = append(ids, v.ID)
	}
	want := named
	if slices.Contains(ids, before) {
		want = before
	}
	if !slices.Contains(ids, want) {
		r.lacks(named, text.Excerpt(fmt.Sprintf("%s does not offer the model %q. It uses %q, and offers: %s.", r.how.Name, named, o.Value, strings.Join(ids, ", ")), maxNotice))
	} else if want != o.Value && o.Wanted == "" {
		r.t.Header(func(c *chat.Conversation) {
			c.Settings.Options = slices.Clone(c.Settings.Options)
			c.Settings.Options[i].Wanted = want
		})
	}
}

// lacks tells the person, once, why the model that they named is not used.
func (r opens) lacks(named, why string) {
	if r.s.Named != named {
		r.s.Named = named
		r.t.Notice(why)
	}
}

// prepare sets what the person has chosen since the last turn, and then begins this one.
func (r opens) prepare() {
	for _, o := range r.t.Conversation().Settings.Options {
		if w := shows(r).way(o.ID); o.Wanted != "" && w != nil {
			option := acp.Option{ID: w.ID, Way: w.Way, Flag: w.Flag}
			r.call(w.Way, option.Params(r.s.Session, o.Wanted))
			r.s.Set, r.s.Before = o.ID, o.Value
			shows(r).took(o.ID, o.Wanted)
			return // one by one: what one is set to can change what another offers
		}
	}
	r.prompt()
}

// chosen takes the answer to what was set.
func (r opens) chosen(m acp.Message) {
	if m.Err != nil {
		r.t.Notice(fmt.Sprintf("%s did not take a setting: %s.", r.how.Name, m.Err.Text()))
		shows(r).took(r.s.Set, r.s.Before)
	}
	var s acp.Session
	if m.Err == nil && json.Unmarshal(m.Body, &s) == nil {
		if options, ok := acp.ConfigOptions(s.ConfigOptions); ok {
			shows(r).offer(options)
		}
	}
	r.prepare()
}

// Why a turn ended before the agent was done, for the person.
var endings = map[string]string{
	acp.MaxTokens:   "The answer reached the longest that the model may give. Resume to continue it.",
	acp.MaxRequests: "The turn reached the agent's limit of steps. Resume to continue it.",
	acp.Refusal:     "The model declined to answer this.",
}

// ended takes the end of the agent's turn.
func (r opens) ended(m acp.Message) {
	r.over = true
	for _, a := range r.s.Asked {
		r.reply(r.s.Peer.Answer(a.ID, a.lapsed()))
	}
	r.s.Asked = nil
	status := ""
	if !r.cancelled.IsZero() {
		status = "cancelled"
	}
	for id := range r.s.Calls {
		shows(r).close(id, status)
	}
	var p acp.Prompted
	if m.Err != nil {
		r.problem = fault.New(fault.Unavailable, "%s could not continue: %s.", r.how.Name, m.Err.Text())
		return
	}
	_ = json.Unmarshal(m.Body, &p) // what has an unknown shape is left out
	if u := p.Usage; u != nil {
		r.t.Header(func(c *chat.Conversation) {
			c.Used.Input += tokens(u.InputTokens) + tokens(u.CachedWriteTokens)
			c.Used.Output += tokens(u.OutputTokens)
			c.Used.Cached += tokens(u.CachedReadTokens)
			c.Used.Unpriced = c.Used.Unpriced || r.s.Cost == 0 // it tells tokens alone
		})
	}
	switch why := endings[p.StopReason]; {
	case why != "":
		r.problem = fault.New(fault.Limited, "%s", why)
	case p.StopReason == acp.WasCancelled && r.cancelled.IsZero():
		r.t.Notice(r.how.Name + " stopped.")
	case p.StopReason != acp.EndTurn && p.StopReason != acp.WasCancelled:
		r.t.Notice(fmt.Sprintf("%s ended its turn for a reason that is not known here: %.40q.", r.how.Name, p.StopReason))
	}
	r.s.Done = r.problem == nil && p.StopReason != acp.WasCancelled && r.cancelled.IsZero()
}

// tokens bounds what an agent says that it has used.
func tokens(n int64) int64 { return min(max(n, 0), 1e9) }

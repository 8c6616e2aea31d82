package program

import (
	"context"
	"encoding/json"
	"fmt"

	"sandboxd/internal/acp"
	"sandboxd/internal/chat"
)

// state is what is kept of an agent: all that is needed to continue with the next byte of its program.
type state struct {
	Agent   string `json:"agent"`
	Number  int    `json:"number"`            // of programs that were begun
	Program string `json:"program,omitempty"` // id; "" for none
	Output  int64  `json:"output"`            // where the next line begins
	Acked   int64  `json:"acked"`
	Input   int64  `json:"input"`            // where Outbox begins
	Outbox  string `json:"outbox,omitempty"` // lines for it; it may have the beginning of them already

	Peer    acp.Peer `json:"peer"`
	Session string   `json:"session,omitempty"`
	Told    int64    `json:"told"`            // last turn of which the session may know
	Given   int64    `json:"given,omitempty"` // last turn whose message this program was given
	Loads   bool     `json:"loads,omitempty"`
	Images  bool     `json:"images,omitempty"`
	Fresh   bool     `json:"fresh,omitempty"` // the session was not given what was said before
	Options []way    `json:"options,omitempty"`
	Set     string   `json:"set,omitempty"`    // the option that was set last
	Before  string   `json:"before,omitempty"` // its value before
	Named   string   `json:"named,omitempty"`  // the model that the person was told is not offered
	Cost    float64  `json:"cost,omitempty"`   // of the session, as the agent last told

	Turn      int64            `json:"turn"`             // what follows is of this one
	Done      bool             `json:"done,omitempty"`   // the agent has ended it well
	Losses    int              `json:"losses,omitempty"` // programs that were lost in it
	Asked     []asked          `json:"asked,omitempty"`
	Questions int              `json:"questions,omitempty"`
	Spent     spent            `json:"spent,omitzero"`
	Limit     string           `json:"limit,omitempty"` // that has ended it, for the person
	Calls     map[string]int64 `json:"calls,omitempty"` // items of the calls that are not over
}

// way says how an option is set.
type way struct {
	ID, Category, Way string
	Flag              bool
}

// asked is a request of the agent that waits for a person.
type asked struct {
	ID   string `json:"id"`             // of the request
	Ask  string `json:"ask"`            // id of the question
	Call string `json:"call,omitempty"` // of which it asks
	Form *form  `json:"form,omitempty"`
	// Options are what the choices mean to the agent.
	Options []acp.PermissionOption `json:"options,omitempty"`
}

// form is one that is being filled in.
type form struct {
	Fields  []acp.FormField            `json:"fields,omitempty"`
	Content map[string]json.RawMessage `json:"content,omitempty"`
}

// load takes up what is kept of the conversation.
func (r *run) load(ctx context.Context) error {
	m, err := r.t.Memory(ctx)
	if err != nil {
		return err
	}
	if len(m) > 0 {
		if err := json.Unmarshal(m, &r.s); err != nil {
			return fmt.Errorf("read what is kept of an agent: %w", err)
		}
	}
	if agent := r.t.Conversation().Agent; r.s.Agent != agent {
		r.s = state{Agent: agent}
	}
	r.items, err = r.t.Items(ctx)
	return err
}

// remember keeps the state, with what was told since, as one change.
func (r *run) remember() {
	r.s.Outbox += string(r.lines)
	r.lines = nil
	m, err := json.Marshal(r.s)
	if err != nil {
		r.problem = fmt.Errorf("keep the state of an agent: %w", err) // our own types always can be
		return
	}
	r.t.Remember(m)
}

// together tells what f tells, and keeps the state after it, as one change.
func (r *run) together(f func()) {
	r.t.Together(func() {
		f()
		r.remember()
	})
}

// forget drops the program, and what is open with it. The session stays known, to be loaded.
func (r *run) forget() {
	s := &r.s
	s.Program, s.Output, s.Acked, s.Input, s.Outbox, s.Peer, s.Given, s.Asked, s.Calls = "", 0, 0, 0, "", acp.Peer{}, 0, nil, nil
	r.tools = map[string]*tool{}
}

// remembers reports whether the session knows nothing that was undone. A turn that was undone took all after it along.
func (r *run) remembers() bool {
	if r.s.Told == 0 {
		return true
	}
	for _, it := range r.items {
		if it.Turn == r.s.Told && it.Kind == chat.Message {
			return true
		}
	}
	return false
}

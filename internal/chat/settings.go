package chat

import (
	"slices"

	"sandboxd/internal/fault"
)

// Settings are what the agent of a conversation offers to choose, and the commands that a message to it can begin with. The agent's driver
// fills them in.
type Settings struct {
	Options  []Option  `json:"options,omitempty"`
	Commands []Command `json:"commands,omitempty"`
}

// Option is a choice that stays, such as the agent's own mode.
type Option struct {
	ID     string   `json:"id"`
	Name   string   `json:"name"`
	Value  string   `json:"value"`            // as the agent has it
	Wanted string   `json:"wanted,omitempty"` // what the person has chosen, until the agent has it
	Values []Choice `json:"values,omitempty"`
}

// Command is what a message can begin with, after a slash.
type Command struct {
	Name  string `json:"name"`
	About string `json:"about,omitempty"`
}

// Chosen is what the person sees as chosen.
func (o *Option) Chosen() string {
	if o.Wanted != "" {
		return o.Wanted
	}
	return o.Value
}

// Choose has the agent told a value of an option, before its next turn. Kind: Invalid.
func (s *Settings) Choose(id, value string) error {
	for i := range s.Options {
		o := &s.Options[i]
		if o.ID != id {
			continue
		}
		if !slices.ContainsFunc(o.Values, func(c Choice) bool { return c.ID == value }) {
			return fault.Field("settings", "%.100q is no value of %s.", value, o.Name)
		}
		s.Options = slices.Clone(s.Options)
		if s.Options[i].Wanted = value; value == o.Value {
			s.Options[i].Wanted = ""
		}
		return nil
	}
	return fault.Field("settings", "The agent has no option %.100q.", id)
}

// weight is about how many bytes they take.
func (s *Settings) weight() (n int) {
	for _, o := range s.Options {
		n += len(o.ID) + len(o.Name) + len(o.Value) + len(o.Wanted) + 128
		for _, v := range o.Values {
			n += len(v.ID) + len(v.Label) + 64
		}
	}
	for _, c := range s.Commands {
		n += len(c.Name) + len(c.About) + 64
	}
	return n
}

package acp

import (
	"encoding/json"
	"strconv"
)

// Bounds of what can be chosen.
const (
	maxOptions = 20
	maxValues  = 200
	maxChoices = 64 << 10 // bytes of all values: they are kept with each change of a conversation
)

// Option is a choice of the agent's that stays: its mode, its model, how hard it thinks.
type Option struct {
	ID, Name, Category string
	Value              string
	Values             []Value
	Way                string // the method that sets it
	Flag               bool   // its values are "true" and "false"
}

// Value is one value of an Option.
type Value struct{ ID, Name string }

// Options are all choices of a session. Of one that comes in the older way too, only the newer is given.
func (s *Session) Options() []Option {
	all, _ := ConfigOptions(s.ConfigOptions)
	has := func(category string) bool {
		for _, o := range all {
			if o.Category == category {
				return true
			}
		}
		return false
	}
	if m := s.Modes; m != nil && !has("mode") {
		o := Option{ID: "mode", Name: "Mode", Category: "mode", Value: word(m.CurrentModeID), Way: SetMode}
		for _, v := range m.AvailableModes {
			o.add(v.ID, v.Name)
		}
		all = append(all, o)
	}
	if m := s.Models; m != nil && !has("model") {
		o := Option{ID: "model", Name: "Model", Category: "model", Value: word(m.CurrentModelID), Way: SetModel}
		for _, v := range m.AvailableModels {
			o.add(v.ModelID, v.Name)
		}
		all = append(all, o)
	}
	return fit(all)
}

// fit leaves out the values that are too much for a conversation.
func fit(all []Option) []Option {
	room := maxChoices
	for i := range all {
		for j, v := range all[i].Values {
			if room -= len(v.ID) + len(v.Name); room < 0 {
				all[i].Values = all[i].Values[:j]
				break
			}
		}
	}
	return all
}

// ConfigOptions reads the newer way of options; one that cannot be read is passed over. ok is false when there are none.
func ConfigOptions(body json.RawMessage) (all []Option, ok bool) {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) != nil || list == nil {
		return nil, false
	}
	for _, one := range list[:min(len(list), maxOptions)] {
		if o, ok := readOption(one); ok {
			all = append(all, o)
		}
	}
	return fit(all), true
}

func readOption(body json.RawMessage) (o Option, ok bool) {
	var c struct {
		ID, Name, Category string
		CurrentValue       json.RawMessage
		Options            []struct {
			Value, Name string
			Options     []struct{ Value, Name string } // of a group
		}
	}
	if json.Unmarshal(body, &c) != nil || word(c.ID) == "" {
		return o, false
	}
	o = Option{ID: c.ID, Name: title(c.Name), Category: word(c.Category), Way: SetOption}
	var flag bool
	if json.Unmarshal(c.CurrentValue, &o.Value) != nil && json.Unmarshal(c.CurrentValue, &flag) == nil {
		o.Flag, o.Value = true, strconv.FormatBool(flag)
		o.add("true", "On")
		o.add("false", "Off")
	}
	o.Value = word(o.Value)
	for _, v := range c.Options {
		o.add(v.Value, v.Name)
		for _, inner := range v.Options {
			o.add(inner.Value, inner.Name)
		}
	}
	return o, true
}

func (o *Option) add(id, name string) {
	if id == "" || len(id) > MaxID || len(o.Values) >= maxValues {
		return
	}
	if name = title(name); name == "" {
		name = title(id)
	}
	o.Values = append(o.Values, Value{id, name})
}

// Params are those of the method that sets it.
func (o *Option) Params(session, value string) any {
	params := map[string]any{"sessionId": session}
	switch {
	case o.Way == SetMode:
		params["modeId"] = value
	case o.Way == SetModel:
		params["modelId"] = value
	case o.Flag:
		params["configId"], params["type"], params["value"] = o.ID, "boolean", value == "true"
	default:
		params["configId"], params["value"] = o.ID, value
	}
	return params
}

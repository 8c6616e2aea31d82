package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"sandboxd/internal/text"
	"sandboxd/internal/tools/risk"
)

// spec is a tool with what is alike in all of them left out.
type spec struct {
	name, title, description string
	changes, repeats         bool
	params                   []param
	preview                  func(a args) Preview // nil for one with the title alone
	run                      func(ctx context.Context, a args, out io.Writer) (Result, error)
}

// kind is the type of an argument.
type kind string

const (
	isText   kind = "string"
	isNumber kind = "integer"
	isFlag   kind = "boolean"
	isList   kind = "array" // of strings
)

// param is an argument that a tool takes.
type param struct {
	name     string
	kind     kind
	about    string
	required bool
	enum     []string
	min, max int // of a number, when max is not 0
}

// args are checked arguments.
type args map[string]any

func (a args) text(name string) string {
	s, _ := a[name].(string)
	return s
}

func (a args) number(name string, otherwise int) int {
	if n, ok := a[name].(int); ok {
		return n
	}
	return otherwise
}

func (a args) flag(name string, otherwise bool) bool {
	if b, ok := a[name].(bool); ok {
		return b
	}
	return otherwise
}

func (a args) list(name string) []string {
	l, _ := a[name].([]string)
	return l
}

// tool makes a Tool of it.
func (s spec) tool() Tool {
	return Tool{
		Name: s.name, Title: s.title, Description: s.description, Schema: s.schema(), Changes: s.changes, Repeats: s.repeats,
		Preview: func(given json.RawMessage) Preview {
			a, problem := s.read(given)
			if problem != "" {
				return Preview{Title: s.title, Code: string(given), Language: "json", Risk: s.least()} // it will not run
			}
			p := Preview{Risk: s.least()}
			if s.preview != nil {
				p = s.preview(a)
			}
			p.Title = s.title
			return p
		},
		Run: func(ctx context.Context, given json.RawMessage, out io.Writer) (Result, error) {
			a, problem := s.read(given)
			if problem != "" {
				return failed(problem), nil
			}
			return s.run(ctx, a, out)
		},
	}
}

// least is the judgement of a call of which nothing more is known.
func (s spec) least() risk.Judgement {
	if s.changes {
		return risk.Judgement{Level: risk.Changing}
	}
	return risk.Judgement{Level: risk.Harmless}
}

func (s spec) schema() json.RawMessage {
	properties := map[string]any{}
	required := []string{}
	for _, p := range s.params {
		one := map[string]any{"type": p.kind, "description": p.about}
		if len(p.enum) > 0 {
			one["enum"] = p.enum
		}
		if p.max > 0 {
			one["minimum"], one["maximum"] = p.min, p.max
		}
		if p.kind == isList {
			one["items"] = map[string]any{"type": "string"}
		}
		properties[p.name] = one
		if p.required {
			required = append(required, p.name)
		}
	}
	b, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false})
	if err != nil {
		panic(err) // never: it is made of what can be
	}
	return b
}

// read checks arguments. problem is a sentence for the model, "" when there is none.
func (s spec) read(given json.RawMessage) (a args, problem string) {
	if len(given) > MaxArguments {
		return nil, fmt.Sprintf("The arguments have %d bytes; at most %d can be taken. Send less at once.", len(given), MaxArguments)
	}
	if len(bytes.TrimSpace(given)) == 0 {
		given = json.RawMessage("{}")
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(given, &raw); err != nil || raw == nil {
		return nil, "The arguments are not a JSON object."
	}
	a = args{}
	for name, value := range raw {
		i := slices.IndexFunc(s.params, func(p param) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Sprintf("%s has no argument %q. It takes %s.", s.name, text.OneLine(name, 64), s.takes())
		}
		if string(value) == "null" {
			continue
		}
		v, why := s.params[i].read(value)
		if why != "" {
			return nil, fmt.Sprintf("The argument %q of %s must be %s.", name, s.name, why)
		}
		a[name] = v
	}
	for _, p := range s.params {
		if _, there := a[p.name]; p.required && !there {
			return nil, fmt.Sprintf("%s needs the argument %q: %s", s.name, p.name, p.about)
		}
	}
	return a, ""
}

func (s spec) takes() string {
	if len(s.params) == 0 {
		return "none"
	}
	names := make([]string, len(s.params))
	for i, p := range s.params {
		names[i] = p.name
	}
	return strings.Join(names, ", ")
}

// read gives a value as it is used, or what it must be. Models write numbers and truths as texts now and then.
func (p param) read(value json.RawMessage) (v any, must string) {
	switch p.kind {
	case isText:
		return p.readText(value)
	case isNumber:
		return p.readNumber(value)
	case isFlag:
		switch strings.Trim(string(value), `"`) {
		case "true":
			return true, ""
		case "false":
			return false, ""
		}
		return nil, "true or false"
	}
	var l []string
	if json.Unmarshal(value, &l) != nil {
		return nil, "a list of strings"
	}
	return l, ""
}

func (p param) readText(value json.RawMessage) (any, string) {
	var s string
	if json.Unmarshal(value, &s) != nil {
		return nil, "a string"
	}
	if len(p.enum) > 0 && !slices.Contains(p.enum, s) {
		return nil, "one of " + strings.Join(p.enum, ", ")
	}
	return s, ""
}

func (p param) readNumber(value json.RawMessage) (any, string) {
	f, err := strconv.ParseFloat(strings.Trim(string(value), `"`), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<40 {
		return nil, "a whole number"
	}
	n := int(f)
	if p.max > 0 && (n < p.min || n > p.max) {
		return nil, fmt.Sprintf("between %d and %d", p.min, p.max)
	}
	return n, ""
}

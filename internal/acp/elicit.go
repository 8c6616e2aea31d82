package acp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sandboxd/internal/text"
)

// Bounds of a form.
const (
	maxFields  = 20
	maxMessage = 4000
	maxForm    = 64 << 10 // bytes: an agent that waits for an answer has them kept with each change of its conversation
)

// Form is what Elicit asks: fields that a person fills in, or a page to open.
type Form struct {
	Session string
	Message string
	URL     string // to open; there are no fields then
	Fields  []FormField
}

// FormField is one of a form.
type FormField struct {
	Name     string
	Title    string
	About    string
	Type     string  // "string", "boolean", "integer" or "number"
	Values   []Value // when it is one of some
	Required bool
}

// ReadForm reads the parameters of Elicit. An error is for the agent: what it asks cannot be shown.
func ReadForm(params json.RawMessage) (f Form, err error) {
	var in struct {
		SessionID, Mode, Message, URL string
		RequestedSchema               struct {
			Properties json.RawMessage
			Required   []string
		}
	}
	if len(params) > maxForm {
		return f, fmt.Errorf("a form has more than %d KiB", maxForm>>10)
	}
	if err := json.Unmarshal(params, &in); err != nil {
		return f, fmt.Errorf("read a form: %w", err)
	}
	f = Form{Session: in.SessionID, Message: text.Clip(in.Message, maxMessage), URL: in.URL}
	if in.Mode == "url" {
		if in.URL == "" || len(in.URL) > maxMessage {
			return f, fmt.Errorf("the address is missing or too long")
		}
		return f, nil
	}
	f.URL = ""
	if f.Fields, err = readFields(in.RequestedSchema.Properties); err != nil {
		return f, err
	}
	for i := range f.Fields {
		f.Fields[i].Required = slices.Contains(in.RequestedSchema.Required, f.Fields[i].Name)
	}
	return f, nil
}

// readFields reads the properties of a schema, in the order in which they come.
func readFields(properties json.RawMessage) (fields []FormField, err error) {
	d := json.NewDecoder(bytes.NewReader(properties))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("a form has no properties")
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		var p struct {
			Type, Title, Description string
			Enum                     []string
			OneOf                    []struct{ Const, Title string }
		}
		if err := d.Decode(&p); err != nil {
			return nil, fmt.Errorf("read a field: %w", err)
		}
		f := FormField{Name: fmt.Sprint(name), Title: title(cmp.Or(p.Title, fmt.Sprint(name))), About: text.Clip(p.Description, maxMessage), Type: p.Type}
		o := Option{}
		for _, v := range p.Enum {
			o.add(v, v)
		}
		for _, v := range p.OneOf {
			o.add(v.Const, v.Title)
		}
		if f.Values = o.Values; p.Type == "boolean" {
			f.Values = []Value{{"true", "Yes"}, {"false", "No"}}
		}
		if !slices.Contains([]string{"string", "boolean", "integer", "number"}, p.Type) || len(f.Name) > MaxID {
			return nil, fmt.Errorf("a field of the type %.20q cannot be asked", p.Type)
		}
		if fields = append(fields, f); len(fields) > maxFields {
			return nil, fmt.Errorf("a form has more than %d fields", maxFields)
		}
	}
	return fields, nil
}

// Read makes an answer of a person the value of the field.
func (f *FormField) Read(answer string) (json.RawMessage, error) {
	answer = strings.TrimSpace(answer)
	switch f.Type {
	case "boolean":
		return json.RawMessage(strconv.FormatBool(answer == "true")), nil
	case "integer":
		n, err := strconv.ParseInt(answer, 10, 64)
		return json.RawMessage(strconv.FormatInt(n, 10)), err
	case "number":
		n, err := strconv.ParseFloat(answer, 64)
		if err != nil {
			return nil, err
		}
		return json.Marshal(n)
	}
	return json.Marshal(answer)
}

// Accepted answers a form with the values of its fields.
func Accepted(content map[string]json.RawMessage) any {
	return map[string]any{"action": "accept", "content": content}
}

// Declined answers a form that a person does not fill in; cancelled, that they were not there to.
func Declined(cancelled bool) any {
	if cancelled {
		return map[string]any{"action": "cancel"}
	}
	return map[string]any{"action": "decline"}
}

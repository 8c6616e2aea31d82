package ollama

import (
	"encoding/json"

	"github.com/ollama/ollama/api"

	"sandboxd/internal/agent"
)

// request puts a request into the protocol's form.
func (m *Model) request(r agent.Request) *api.ChatRequest {
	truncate, shift := false, false // an error rather than a conversation without its beginning
	q := &api.ChatRequest{Model: m.endpoint.Model, Options: map[string]any{}, Truncate: &truncate, Shift: &shift}
	if r.Output > 0 {
		q.Options["num_predict"] = r.Output
	}
	if m.window > 0 {
		q.Options["num_ctx"] = m.window
	}
	if r.Effort != "" {
		q.Think = &api.ThinkValue{Value: r.Effort}
	}
	if r.System != "" {
		q.Messages = append(q.Messages, api.Message{Role: "system", Content: r.System})
	}
	for _, t := range r.Tools {
		q.Tools = append(q.Tools, tool(t))
	}
	names := map[string]string{}
	for _, message := range r.Messages {
		if message.Role == agent.Assistant {
			q.Messages = append(q.Messages, assistant(message, names))
		} else {
			q.Messages = append(q.Messages, user(message, names)...)
		}
	}
	return q
}

// tool gives a tool with what the protocol has of its schema.
func tool(t agent.ToolSpec) api.Tool {
	f := api.ToolFunction{Name: t.Name, Description: t.Description}
	_ = json.Unmarshal(t.Schema, &f.Parameters) // what is no such object leaves it empty: no arguments
	if f.Parameters.Type == "" {
		f.Parameters.Type = "object"
	}
	if f.Parameters.Properties == nil {
		f.Parameters.Properties = api.NewToolPropertiesMap()
	}
	return api.Tool{Type: "function", Function: f}
}

// assistant gives an answer, and remembers which tool each call was of.
func assistant(m agent.Message, names map[string]string) api.Message {
	a := api.Message{Role: "assistant"}
	for _, p := range m.Parts {
		switch p.Kind {
		case agent.PartText:
			a.Content += p.Text
		case agent.PartThinking:
			if p.Opaque == nil { // not signed for another provider
				a.Thinking += p.Text
			}
		case agent.PartCall:
			call := api.ToolCall{ID: p.Call.ID, Function: api.ToolCallFunction{Index: len(a.ToolCalls), Name: p.Call.Name}}
			if call.Function.Arguments.UnmarshalJSON(p.Call.Arguments) != nil { // never: it is an object
				call.Function.Arguments = api.NewToolCallFunctionArguments()
			}
			names[p.Call.ID] = p.Call.Name
			a.ToolCalls = append(a.ToolCalls, call)
		}
	}
	return a
}

// user gives the results of a message, each one of its own, and then one with the rest.
func user(m agent.Message, names map[string]string) []api.Message {
	var all []api.Message
	rest := api.Message{Role: "user"}
	for _, p := range m.Parts {
		switch p.Kind {
		case agent.PartResult:
			r := api.Message{Role: "tool", Content: p.Result.Text, ToolName: names[p.Result.CallID], ToolCallID: p.Result.CallID}
			if p.Result.Status != agent.OK {
				r.Content = "Error: " + r.Content
			}
			for _, i := range p.Result.Images {
				r.Images = append(r.Images, i.Data)
			}
			all = append(all, r)
		case agent.PartImage:
			rest.Images = append(rest.Images, p.Image.Data)
		case agent.PartText:
			if rest.Content != "" {
				rest.Content += "\n\n"
			}
			rest.Content += p.Text
		}
	}
	if rest.Content != "" || len(rest.Images) > 0 {
		all = append(all, rest)
	}
	return all
}

package anthropic

import (
	"encoding/base64"
	"encoding/json"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"sandboxd/internal/agent"
)

// params puts a request into the protocol's form. Four places are marked for the cache: the tools, the system prompt, and the last two
// messages of the user's, so that the next request finds what this one has written.
func (m *Model) params(r agent.Request) sdk.MessageNewParams {
	p := sdk.MessageNewParams{Model: m.endpoint.Model, MaxTokens: int64(r.Output)}
	if r.Output <= 0 {
		p.MaxTokens = defaultOutput
	}
	if r.System != "" {
		p.System = []sdk.TextBlockParam{{Text: r.System, CacheControl: sdk.NewCacheControlEphemeralParam()}}
	}
	for _, t := range r.Tools {
		p.Tools = append(p.Tools, tool(t))
	}
	if n := len(p.Tools); n > 0 {
		p.Tools[n-1].OfTool.CacheControl = sdk.NewCacheControlEphemeralParam()
	}
	for _, message := range r.Messages {
		p.Messages = append(p.Messages, turn(message))
	}
	cache(p.Messages)
	if r.Effort != "" {
		p.Thinking = sdk.ThinkingConfigParamUnion{OfAdaptive: &sdk.ThinkingConfigAdaptiveParam{Display: sdk.ThinkingConfigAdaptiveDisplaySummarized}}
		p.OutputConfig.Effort = sdk.OutputConfigEffort(r.Effort)
	}
	return p
}

// tool gives a tool; a schema that is no object offers it without arguments.
func tool(t agent.ToolSpec) sdk.ToolUnionParam {
	var schema map[string]any
	_ = json.Unmarshal(t.Schema, &schema) // what is no object leaves it empty
	extra := map[string]any{}
	for name, value := range schema {
		if name != "properties" && name != "type" {
			extra[name] = value
		}
	}
	properties, ok := schema["properties"]
	if !ok {
		properties = map[string]any{}
	}
	return sdk.ToolUnionParam{OfTool: &sdk.ToolParam{
		Name: t.Name, Description: param.NewOpt(t.Description), InputSchema: sdk.ToolInputSchemaParam{Properties: properties, ExtraFields: extra},
	}}
}

func turn(m agent.Message) sdk.MessageParam {
	var blocks []sdk.ContentBlockParamUnion
	for _, p := range m.Parts {
		if block, ok := block(p); ok {
			blocks = append(blocks, block)
		}
	}
	if len(blocks) == 0 { // of another provider's thinking alone
		blocks = append(blocks, sdk.NewTextBlock("(nothing)"))
	}
	if m.Role == agent.Assistant {
		return sdk.NewAssistantMessage(blocks...)
	}
	return sdk.NewUserMessage(blocks...)
}

func block(p agent.Part) (sdk.ContentBlockParamUnion, bool) {
	switch p.Kind {
	case agent.PartText:
		return sdk.NewTextBlock(p.Text), true
	case agent.PartImage:
		return sdk.NewImageBlockBase64(p.Image.MediaType, base64.StdEncoding.EncodeToString(p.Image.Data)), true
	case agent.PartCall:
		return sdk.NewToolUseBlock(p.Call.ID, p.Call.Arguments, p.Call.Name), true
	case agent.PartResult:
		return result(*p.Result), true
	case agent.PartThinking:
		if p.Opaque == nil || p.Opaque.By != Name {
			return sdk.ContentBlockParamUnion{}, false
		}
		if p.Opaque.Redacted {
			return sdk.NewRedactedThinkingBlock(p.Opaque.Signature), true
		}
		return sdk.NewThinkingBlock(p.Opaque.Signature, p.Text), true
	}
	return sdk.ContentBlockParamUnion{}, false
}

func result(r agent.ToolResult) sdk.ContentBlockParamUnion {
	b := sdk.ToolResultBlockParam{ToolUseID: r.CallID, IsError: param.NewOpt(r.Status != agent.OK)}
	if r.Text != "" {
		b.Content = append(b.Content, sdk.ToolResultBlockParamContentUnion{OfText: &sdk.TextBlockParam{Text: r.Text}})
	}
	for _, i := range r.Images {
		image := sdk.NewImageBlockBase64(i.MediaType, base64.StdEncoding.EncodeToString(i.Data))
		b.Content = append(b.Content, sdk.ToolResultBlockParamContentUnion{OfImage: image.OfImage})
	}
	return sdk.ContentBlockParamUnion{OfToolResult: &b}
}

// cache marks the ends of the last two messages of the user's.
func cache(messages []sdk.MessageParam) {
	marked := 0
	for i := len(messages) - 1; i >= 0 && marked < 2; i-- {
		if messages[i].Role != sdk.MessageParamRoleUser {
			continue
		}
		if at := messages[i].Content[len(messages[i].Content)-1].GetCacheControl(); at != nil {
			*at = sdk.NewCacheControlEphemeralParam()
			marked++
		}
	}
}

package acp

import (
	"encoding/json"
)

// What is called.
const (
	Initialize   = "initialize"
	Authenticate = "authenticate"
	NewSession   = "session/new"
	LoadSession  = "session/load"
	Prompt       = "session/prompt"
	Cancel       = "session/cancel" // a notification
	SetMode      = "session/set_mode"
	SetModel     = "session/set_model"
	SetOption    = "session/set_config_option"
)

// What an agent calls.
const (
	SessionUpdate     = "session/update" // a notification
	RequestPermission = "session/request_permission"
	Elicit            = "elicitation/create"
)

// InitializeParams begins the protocol. gateway tells the agent that it can be led to models by Authenticate.
func InitializeParams(gateway bool) any {
	capabilities := map[string]any{}
	if gateway {
		capabilities["auth"] = map[string]any{"_meta": map[string]any{"gateway": true}}
	}
	return map[string]any{"protocolVersion": Version, "clientCapabilities": capabilities,
		"clientInfo": map[string]any{"name": "sandboxd", "title": "sandboxd", "version": "1"}}
}

// Initialized is the answer to Initialize.
type Initialized struct {
	ProtocolVersion   int
	AgentCapabilities struct {
		LoadSession        bool
		PromptCapabilities struct{ Image bool }
	}
	AuthMethods []AuthMethod
}

// AuthMethod is a way to sign in.
type AuthMethod struct {
	ID, Name string
	Meta     struct {
		Gateway *struct{ Protocol string }
	} `json:"_meta"`
}

// Gateway gives the method that leads the agent to models at an address, if it has one.
func (i *Initialized) Gateway() (AuthMethod, bool) {
	for _, m := range i.AuthMethods {
		if m.ID == "gateway" || m.Meta.Gateway != nil {
			return m, true
		}
	}
	return AuthMethod{}, false
}

// GatewayParams signs in with a gateway: its root is baseURL. The key is no secret.
func (m AuthMethod) GatewayParams(baseURL, key string) any {
	if g := m.Meta.Gateway; g != nil && g.Protocol == "openai" {
		baseURL += "/v1"
	}
	return map[string]any{"methodId": m.ID, "_meta": map[string]any{"gateway": map[string]any{"baseUrl": baseURL,
		"headers": map[string]string{"Authorization": "Bearer " + key}}}}
}

// SessionParams begins a session in a folder; with an id it loads one.
func SessionParams(id, cwd string) any {
	params := map[string]any{"cwd": cwd, "mcpServers": []any{}}
	if id != "" {
		params["sessionId"] = id
	}
	return params
}

// Session is the answer to NewSession and LoadSession.
type Session struct {
	SessionID     string
	Modes         *Modes
	Models        *Models
	ConfigOptions json.RawMessage
}

// Modes is how the agent can work.
type Modes struct {
	CurrentModeID  string
	AvailableModes []struct{ ID, Name, Description string }
}

// Models is what the agent can work with.
type Models struct {
	CurrentModelID  string
	AvailableModels []struct{ ModelID, Name, Description string }
}

// Block is a part of a message.
type Block struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	Data     []byte `json:"data,omitempty"`
	MimeType string `json:"mimeType,omitempty"`
	URI      string `json:"uri,omitempty"`
	Name     string `json:"name,omitempty"`
}

// PromptParams begins a turn.
func PromptParams(session string, blocks []Block) any {
	return map[string]any{"sessionId": session, "prompt": blocks}
}

// CancelParams ends the turn of a session.
func CancelParams(session string) any { return map[string]any{"sessionId": session} }

// Prompted is how a turn has ended.
type Prompted struct {
	StopReason string
	Usage      *struct {
		InputTokens, OutputTokens, CachedReadTokens, CachedWriteTokens int64
	}
}

// Why a turn has ended.
const (
	EndTurn      = "end_turn"
	MaxTokens    = "max_tokens"
	MaxRequests  = "max_turn_requests"
	Refusal      = "refusal"
	WasCancelled = "cancelled"
)

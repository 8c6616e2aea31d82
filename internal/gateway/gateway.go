// Package gateway gives models to what runs in sandboxes: it takes requests in the protocols of their clients, finds the provider that
// serves them, adds that provider's key, and passes request and answer through.
//
// It does not translate between protocols, and does not know how a request reached it: its caller says whose it is.
//
// Invariant: a provider's key leaves this package only in a request to that provider's own address.
package gateway

import (
	"time"
)

// Kind is the protocol that a provider speaks.
type Kind string

// The kinds of providers.
const (
	Anthropic Kind = "anthropic" // Messages, with count_tokens
	OpenAI    Kind = "openai"    // Chat Completions, Responses, Embeddings: also llama.cpp's, vLLM's and others' servers
	Ollama    Kind = "ollama"    // /api/chat and /api/generate, and Chat Completions beside them
	Gemini    Kind = "gemini"    // generateContent and streamGenerateContent
)

// Provider is a server of models. Its key is not in it.
type Provider struct {
	ID      string // sandbox.NewID's form; never reused
	Owner   string // user id; "" when it is the server's, for everyone
	Name    string // a DNS label, unique among its owner's
	Kind    Kind
	BaseURL string   // absolute, http or https, without query and without a slash at its end, such as https://host or http://host:11434/v1; see endpoint; "" when it is in a sandbox
	Inside  Inside   // where in a sandbox it is, in place of BaseURL
	Models  []string // what it offers, the best first; none when it is asked for whatever a client names
	HasKey  bool     // there is one; a local server may need none
	Problem string   // why its key cannot be used, as a sentence; "" when it can, or when there is none. It is not kept.
	Changed time.Time
}

// Inside is a port of a sandbox behind which a provider is. The zero value is none. It keeps to that sandbox: another one of the same name
// is not asked.
type Inside struct {
	Sandbox string // id
	Name    string // the sandbox's, for people
	Port    int
}

// Alias is a name for models of different providers. The first whose provider answers serves a request ("local first").
type Alias struct {
	Owner   string // user id; "" for everyone's
	Name    string // as a client names a model, such as "fast" and "best"; unique among its owner's
	Targets []Target
	Changed time.Time
}

// Target is one model of one provider.
type Target struct {
	Provider string `json:"provider"` // its name; the alias's owner's, else the server's
	Model    string `json:"model"`
}

// Caller says whose a request is.
type Caller struct {
	User    string // user id; never ""
	Sandbox string // id; "" for a token from outside
	Label   string // name of the sandbox or of the token, for people
	Outside bool   // the request only counts for the sandbox, and comes from elsewhere
}

// Tokens counts what a request took.
type Tokens struct {
	Input      int64 // without the cached ones
	Output     int64 // with those of thinking
	CacheRead  int64
	CacheWrite int64
}

// Total is all of them.
func (t Tokens) Total() int64 { return t.Input + t.Output + t.CacheRead + t.CacheWrite }

// Call is one request in the log of calls.
type Call struct {
	ID        string // sortable by time; "" when it is not in the log, and counted only
	Time      time.Time
	User      string // user id
	Sandbox   string // id, or ""
	Label     string // name of the sandbox or of the token, then
	Provider  string // name; "" when none was found
	Protocol  string // "messages", "count_tokens", "chat", "completions", "responses", "embeddings", "ollama", "gemini", "models"
	Asked     string // the model that the client named
	Model     string // the one that the provider was asked for
	Stream    bool
	Status    int // of the answer to the client, or of the error in a stream that broke; 499 when the client went away
	FirstByte time.Duration
	Took      time.Duration
	Tokens    Tokens
	Cost      int64 // millionths of a dollar; 0 also when the price is not known
	Priced    bool  // the price is known
	Problem   string
	Request   string // its body, only while content is logged: at most MaxContent bytes
	Answer    string // likewise
}

// Answered reports whether a provider answered with its model, also when the client did not wait for the end.
func (c Call) Answered() bool { return c.Status < 400 || c.Status == statusGone && c.FirstByte > 0 }

// Settings are an admin's wishes for the whole gateway.
type Settings struct {
	Off        bool // the kill switch: every request is refused
	LogContent bool // the log of calls keeps what was asked and answered
}

// Period is how long a budget lasts: by the calendar, in UTC.
type Period string

// The periods.
const (
	Day   Period = "day"
	Month Period = "month"
)

// Budget bounds what a user or a sandbox may use. A bound of 0 is none. Requests are those that were let through, tokens are Tokens.Total.
type Budget struct {
	Scope    Scope
	Subject  string // user id or sandbox id; "" for each user, or each sandbox, without a budget of its own
	Period   Period
	Requests int64
	Tokens   int64
	Cost     int64 // millionths of a dollar
}

// Scope is what a budget counts for.
type Scope string

// The scopes.
const (
	PerUser    Scope = "user"
	PerSandbox Scope = "sandbox"
)

// Price is what a model costs, in dollars per million tokens.
type Price struct {
	Model      string  `json:"model"` // a name without the date at its end, or with * at its end the beginning of one; the longest that fits is taken
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`
	Date       string  `json:"date,omitempty"`   // when it was on its provider's list, such as 2026-05-31
	Long       *Long   `json:"long,omitempty"`   // of requests with a long prompt; nil for the same
	Window     int     `json:"window,omitempty"` // how many tokens the model takes; 0 when that is not known

	unpriced bool // it says the window alone
}

// Long is a Price of all tokens of a request whose prompt has more than so many.
type Long struct {
	Above      int64   `json:"above"` // tokens of the prompt, cached or not
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`
}

// Usage is what was used in one part of a period.
type Usage struct {
	From     time.Time // when that part begins; the zero time in totals
	Key      string    // what it is grouped by: a user's or sandbox's id, a model or a provider; "" when by nothing, and for no sandbox or no provider
	Label    string    // that, for people: the name of a user or sandbox, also of one that is deleted
	Requests int64
	Failed   int64 // of them, with a status of 400 or more
	Tokens   Tokens
	Cost     int64 // millionths of a dollar
}

// UsageQuery asks for usage. User and Sandbox narrow it down; a member's User is always set.
type UsageQuery struct {
	From, To time.Time     // To is not included
	Step     time.Duration // of the parts: a multiple of an hour; 0 for totals
	By       string        // "", "user", "sandbox", "model" or "provider"
	User     string        // user id, or ""
	Sandbox  string        // sandbox id, or ""
	Served   bool          // only what a provider was found for
}

// CallQuery asks for calls, newest first.
type CallQuery struct {
	User    string // user id, or "" for all
	Sandbox string // id or name then, or ""
	Model   string // "" for any; as asked or as served
	Failed  bool   // only those with a status of 400 or more
	Before  string // ID of the last one of the page before; "" for the first page
	Limit   int    // 100 when 0, at most 1000
}

// Limits.
const (
	MaxProviders = 50   // of one owner
	MaxModels    = 200  // of one provider
	MaxAliases   = 50   // of one owner
	MaxTargets   = 10   // of one alias
	MaxKey       = 8192 // bytes
	MaxContent   = 256 << 10
	MaxBody      = 64 << 20 // of a request, in bytes
)

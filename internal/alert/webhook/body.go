package webhook

import (
	"encoding/json"
	"fmt"
	"time"

	"sandboxd/internal/alert"
)

// body is what is posted, in the form that Standard Webhooks recommends.
type body struct {
	Type      string    `json:"type"` // "alert." and the event
	Timestamp time.Time `json:"timestamp"`
	Data      data      `json:"data"`
}

type data struct {
	Subject  string  `json:"subject"`
	Rule     string  `json:"rule"`
	Kind     string  `json:"kind"`
	Firing   []shape `json:"firing"`
	Resolved []shape `json:"resolved"`
	Link     string  `json:"link"`
}

// shape is an alert.
type shape struct {
	ID         string     `json:"id"`
	SandboxID  string     `json:"sandbox_id"` // "" for what is about none
	Sandbox    string     `json:"sandbox"`
	Template   string     `json:"template"`
	Part       string     `json:"part"`
	Text       string     `json:"text"`
	Since      time.Time  `json:"since"`
	ResolvedAt *time.Time `json:"resolved_at"` // null while it fires
}

// encode writes a message as JSON.
func encode(m alert.Message) ([]byte, error) {
	out, err := json.Marshal(body{Type: "alert." + string(m.Event), Timestamp: m.Time.UTC(), Data: data{
		Subject: m.Subject, Rule: m.Rule, Kind: string(m.Kind), Firing: shapes(m.Firing), Resolved: shapes(m.Resolved), Link: m.Link,
	}})
	if err != nil {
		return nil, fmt.Errorf("write webhook: %w", err)
	}
	return out, nil
}

func shapes(alerts []alert.Alert) []shape {
	out := make([]shape, 0, len(alerts))
	for _, a := range alerts {
		s := shape{ID: a.ID, SandboxID: a.Target.SandboxID, Sandbox: a.Target.Sandbox, Template: a.Target.Template, Part: a.Target.Part, Text: a.Text, Since: a.Since.UTC()}
		if !a.Resolved.IsZero() {
			at := a.Resolved.UTC()
			s.ResolvedAt = &at
		}
		out = append(out, s)
	}
	return out
}

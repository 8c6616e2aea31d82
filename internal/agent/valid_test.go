package agent_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"sandboxd/internal/agent"
)

var goodID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// valid checks what every provider asks of messages.
func valid(t testing.TB, view []agent.Message) {
	t.Helper()
	open := map[string]bool{}
	ids := map[string]bool{}
	for i, m := range view {
		if want := []agent.Role{agent.User, agent.Assistant}[i%2]; m.Role != want {
			t.Fatalf("message %d is of %q, want %q", i, m.Role, want)
		}
		if len(m.Parts) == 0 || m.Mark != nil {
			t.Fatalf("message %d is empty", i)
		}
		if m.Role == agent.User {
			for id := range open {
				if !answered(m, id) {
					t.Fatalf("call %s has no result", id)
				}
			}
		}
		calls := map[string]bool{}
		for j, p := range m.Parts {
			validPart(t, p, m.Role)
			switch p.Kind {
			case agent.PartCall:
				if ids[p.Call.ID] {
					t.Fatalf("call %s is there twice", p.Call.ID)
				}
				ids[p.Call.ID], calls[p.Call.ID] = true, true
			case agent.PartResult:
				if !open[p.Result.CallID] {
					t.Fatalf("result of %s has no call", p.Result.CallID)
				}
				delete(open, p.Result.CallID)
				if j > 0 && m.Parts[j-1].Kind != agent.PartResult {
					t.Fatal("a result is behind other parts")
				}
			}
		}
		open = calls
	}
	if len(open) > 0 {
		t.Fatal("the last calls have no results")
	}
}

func answered(m agent.Message, id string) bool {
	for _, p := range m.Parts {
		if p.Kind == agent.PartResult && p.Result.CallID == id {
			return true
		}
	}
	return false
}

func validPart(t testing.TB, p agent.Part, role agent.Role) {
	t.Helper()
	switch p.Kind {
	case agent.PartText:
		if strings.TrimSpace(p.Text) == "" || !utf8.ValidString(p.Text) {
			t.Fatalf("bad text %q", p.Text)
		}
	case agent.PartCall:
		if role != agent.Assistant || !goodID.MatchString(p.Call.ID) || !goodID.MatchString(p.Call.Name) || !strings.HasPrefix(string(p.Call.Arguments), "{") {
			t.Fatalf("bad call %+v", p.Call)
		}
	case agent.PartResult:
		if role != agent.User || p.Result.Text == "" && len(p.Result.Images) == 0 || !utf8.ValidString(p.Result.Text) {
			t.Fatalf("bad result %+v", p.Result)
		}
	case agent.PartImage:
		if role != agent.User || len(p.Image.Data) == 0 {
			t.Fatalf("bad picture")
		}
	case agent.PartThinking:
		if role != agent.Assistant {
			t.Fatalf("thinking of %q", role)
		}
	default:
		t.Fatalf("part of kind %q", p.Kind)
	}
}

package program_test

import (
	"strings"
	"testing"

	"sandboxd/internal/chat"
)

// names begins another conversation, which names a model.
func (w *world) names(model string) {
	w.t.Helper()
	c, err := w.s.Create(w.t.Context(), chat.Conversation{Sandbox: "box", Owner: "ada", Agent: "scripted", Mode: chat.Auto, Model: model})
	if err != nil {
		w.t.Fatal(err)
	}
	w.id = c.ID
}

func TestModel_ThatTheAgentOffersIsChosen(t *testing.T) {
	for _, newer := range []bool{false, true} {
		w := newWorld(t, chat.Auto)
		w.box.loads, w.box.models, w.box.newer = false, []string{"small", "large", "huge"}, newer
		w.names("large")
		w.send("model")
		if v := w.ends(chat.Idle, 1); v.text() != "model large" || len(v.kinds(chat.Notice)) != 0 {
			t.Error(v)
		}
		if _, err := w.s.Change(t.Context(), w.id, func(c *chat.Conversation) {
			for _, o := range c.Settings.Options {
				if o.Name == "Model" {
					if err := c.Settings.Choose(o.ID, "huge"); err != nil {
						t.Error(err)
					}
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
		w.send("model")
		if v := w.ends(chat.Idle, 2); !strings.HasSuffix(v.text(), "model huge") {
			t.Error(v)
		}
		w.box.stops()
		w.send("say which\nmodel")
		if v := w.ends(chat.Idle, 3); !strings.HasSuffix(v.text(), "model huge") || strings.Contains(v.String(), "does not offer") { // in another session, what the person chose last
			t.Error(v)
		}
	}
}

func TestModel_ThatTheAgentDoesNotOfferIsTold(t *testing.T) {
	for _, c := range []struct {
		offers      []string
		says, model string
	}{
		{[]string{"small", "large"}, `Scripted does not offer the model "best". It uses "small", and offers: small, large.`, "model small"},
		{nil, `Scripted does not let its model be chosen here: "best" was not used.`, "model "},
	} {
		w := newWorld(t, chat.Auto)
		w.box.loads, w.box.models = false, c.offers
		w.names("best")
		w.send("model")
		v := w.ends(chat.Idle, 1)
		if n := v.kinds(chat.Notice); v.text() != c.model || len(n) != 1 || n[0].Text != c.says {
			t.Error(v)
		}
		w.box.stops()
		w.send("again")
		if v := w.ends(chat.Idle, 2); strings.Count(v.String(), `"best"`) != 1 {
			t.Error("told again:", v)
		}
	}
}

package agent_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"sandboxd/internal/agent"
	"sandboxd/internal/agent/scripted"
)

// counting is a provider that counts tokens as it likes, and refuses what its window does not take.
func counting(window int, perByte float64, next func(n int, r agent.Request) scripted.Step) *scripted.Model {
	n := 0
	return scripted.Playing(func(r agent.Request) scripted.Step {
		in := int(float64(size(r)) * perByte)
		if in > window {
			return scripted.Failing(agent.Overflow, 0)
		}
		if strings.HasPrefix(r.System, "You sum up") {
			return scripted.Step{Text: "SUMMARY of what was.", Usage: agent.Usage{Input: int64(in), Output: 5}}
		}
		n++
		s := next(n, r)
		s.Usage = agent.Usage{Input: int64(in), Output: 10}
		return s
	})
}

func size(r agent.Request) int {
	n := len(r.System)
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			n += len(p.Text)
			if p.Call != nil {
				n += len(p.Call.Arguments)
			}
			if p.Result != nil {
				n += len(p.Result.Text)
			}
		}
	}
	return n
}

// blob is a tool with long outputs, no two alike.
func blob(bytes int) agent.Tool {
	n := 0
	return tool("blob", true, func(context.Context, map[string]any, io.Writer) (agent.Output, error) {
		n++
		return agent.Output{Text: fmt.Sprintf("output %d ", n) + strings.Repeat("o", bytes)}, nil
	})
}

func TestRun_OldOutputsAreShortenedHonestly(t *testing.T) {
	model := counting(50_000, 0.25, func(n int, _ agent.Request) scripted.Step {
		if n > 10 {
			return scripted.Step{Text: "Done."}
		}
		return scripted.Step{Text: fmt.Sprintf("Step %d.", n), Calls: []scripted.Call{use("blob", fmt.Sprint(n))}}
	})
	result, _ := play(t, t.Context(), agent.Turn{Model: model, Window: 50_000, Tools: []agent.Tool{blob(25_000)}})
	wantEnding(t, result, agent.Done)
	requests := model.Requests()
	last := requests[len(requests)-1]
	if text := wire(t, last.Messages); !strings.Contains(text, "bytes left out …") || !strings.Contains(text, "output 1 ") || strings.Contains(text, "SUMMARY") {
		t.Errorf("the model got %.3000s", text)
	}
	if newest := last.Messages[len(last.Messages)-1].Parts[0].Result.Text; len(newest) < 25_000 {
		t.Errorf("the newest output has %d bytes", len(newest))
	}
	for _, r := range results(result.Messages) {
		if len(r.Text) < 25_000 {
			t.Error("the transcript itself was shortened")
		}
	}
}

func TestRun_WhatWasSentStaysTheSameBetweenShortenings(t *testing.T) {
	model := counting(50_000, 0.25, func(n int, _ agent.Request) scripted.Step {
		if n > 20 {
			return scripted.Step{Text: "Done."}
		}
		return scripted.Step{Calls: []scripted.Call{use("blob", fmt.Sprint(n))}}
	})
	result, _ := play(t, t.Context(), agent.Turn{Model: model, Window: 50_000, Tools: []agent.Tool{blob(10_000)}})
	wantEnding(t, result, agent.Done)
	changed := 0
	requests := model.Requests()
	for i := 1; i < len(requests); i++ {
		before := requests[i-1].Messages
		if len(requests[i].Messages) < len(before) || wire(t, requests[i].Messages[:len(before)]) != wire(t, before) {
			changed++
		}
	}
	if changed > 4 {
		t.Errorf("what the provider has cached became useless in %d of %d steps", changed, len(requests)-1)
	}
}

func TestRun_ALongConversationIsSummedUp(t *testing.T) {
	messages := []agent.Message{}
	for i := range 30 {
		messages = append(messages, agent.NewText(agent.User, fmt.Sprintf("Question %d. ", i)+strings.Repeat("q ", 2000)),
			agent.NewText(agent.Assistant, fmt.Sprintf("Answer %d. ", i)+strings.Repeat("a ", 2000)))
	}
	messages = append(messages, agent.NewText(agent.User, "The newest question."))
	model := counting(40_000, 0.25, func(int, agent.Request) scripted.Step { return scripted.Step{Text: "Here."} })
	result, rec := play(t, t.Context(), agent.Turn{Model: model, Window: 40_000, Messages: messages})
	wantEnding(t, result, agent.Done)
	requests := model.Requests()
	if record := requests[0].Messages[0].Parts[0].Text; !strings.Contains(record, "The person: Question 0.") || !strings.Contains(record, "The assistant: Answer 0.") {
		t.Errorf("the record is %.2000s", record)
	}
	last := requests[1].Messages
	if first := last[0].Parts[0].Text; !strings.Contains(first, "SUMMARY of what was.") || !strings.Contains(first, "a model has written") {
		t.Errorf("the model got %.500s", first)
	}
	if text := wire(t, last); strings.Contains(text, "Question 3.") || !strings.Contains(text, "Question 29.") || !strings.Contains(text, "The newest question.") {
		t.Errorf("the model got %.3000s", text)
	}
	if result.Messages[0].Mark == nil || result.Messages[0].Mark.Summary != "SUMMARY of what was." || !strings.Contains(rec.text(agent.NoticeGiven), "summed up") {
		t.Errorf("added %s", wire(t, result.Messages))
	}
	// The next turn continues from there, and the summary is not made again.
	again, _ := play(t, t.Context(), agent.Turn{Model: model, Window: 40_000, Messages: append(append(messages, result.Messages...), agent.NewText(agent.User, "More."))})
	wantEnding(t, again, agent.Done)
	if n := len(model.Requests()); n != 3 {
		t.Errorf("%d requests", n)
	}
}

func TestRun_TheEstimateIsCorrectedByTheProvidersCount(t *testing.T) {
	// This provider takes three times the tokens that are estimated. It never has to refuse.
	refused := 0
	model := counting(60_000, 0.75, func(n int, _ agent.Request) scripted.Step {
		if n > 30 {
			return scripted.Step{Text: "Done."}
		}
		return scripted.Step{Calls: []scripted.Call{use("blob", fmt.Sprint(n))}}
	})
	result, _ := play(t, t.Context(), agent.Turn{Model: model, Window: 60_000, Tools: []agent.Tool{blob(4000)}})
	wantEnding(t, result, agent.Done)
	for _, r := range model.Requests() {
		if float64(size(r))*0.75 > 60_000 {
			refused++
		}
	}
	if refused > 0 {
		t.Errorf("%d of %d requests were too long", refused, len(model.Requests()))
	}
}

func TestRun_AWindowThatIsSmallerThanSaidIsFound(t *testing.T) {
	messages := []agent.Message{}
	for range 20 {
		messages = append(messages, agent.NewText(agent.User, strings.Repeat("q ", 2000)), agent.NewText(agent.Assistant, strings.Repeat("a ", 2000)))
	}
	messages = append(messages, agent.NewText(agent.User, "And?"))
	model := counting(20_000, 0.25, func(int, agent.Request) scripted.Step { return scripted.Step{Text: "Here."} })
	result, _ := play(t, t.Context(), agent.Turn{Model: model, Window: 1_000_000, Messages: messages})
	wantEnding(t, result, agent.Done)
}

func TestRun_WhatCannotFitIsSaid(t *testing.T) {
	model := scripted.New()
	result, _ := play(t, t.Context(), agent.Turn{Model: model, Window: 8000, Messages: []agent.Message{agent.NewText(agent.User, strings.Repeat("word ", 50_000))}})
	wantEnding(t, result, agent.TooLong)
	if result.Err == nil || len(model.Requests()) != 0 {
		t.Errorf("%v after %d requests", result.Err, len(model.Requests()))
	}
	// Also when the provider says it, again and again.
	stubborn := scripted.Playing(func(agent.Request) scripted.Step { return scripted.Failing(agent.Overflow, 0) })
	result, _ = play(t, t.Context(), agent.Turn{Model: stubborn})
	wantEnding(t, result, agent.TooLong)
}

func TestRun_ASummaryThatFailsEndsTheTurn(t *testing.T) {
	messages := []agent.Message{}
	for range 20 {
		messages = append(messages, agent.NewText(agent.User, strings.Repeat("q ", 2000)), agent.NewText(agent.Assistant, strings.Repeat("a ", 2000)))
	}
	messages = append(messages, agent.NewText(agent.User, "And?"))
	result, _ := play(t, t.Context(), agent.Turn{Model: scripted.New(scripted.Failing(agent.Unauthorized, 0)), Window: 20_000, Messages: messages})
	wantEnding(t, result, agent.Failed)
	if agent.CodeOf(result.Err) != agent.Unauthorized {
		t.Errorf("error %v", result.Err)
	}
	// An empty one is replaced by an honest line.
	result, _ = play(t, t.Context(), agent.Turn{Model: scripted.New(scripted.Step{}, scripted.Step{Text: "Here."}), Window: 20_000, Messages: messages})
	wantEnding(t, result, agent.Done)
	if m := result.Messages[0].Mark; m == nil || !strings.Contains(m.Summary, "there is no summary") {
		t.Errorf("mark %+v", m)
	}
}

func TestRun_OneHugeOutputDoesNotEndAConversation(t *testing.T) {
	huge := blob(0)
	huge.MaxOutput = 400_000
	huge.Run = blob(400_000).Run
	model := counting(30_000, 0.25, func(n int, _ agent.Request) scripted.Step {
		if n > 3 {
			return scripted.Step{Text: "Done."}
		}
		return scripted.Step{Calls: []scripted.Call{use("blob", fmt.Sprint(n))}}
	})
	result, _ := play(t, t.Context(), agent.Turn{Model: model, Window: 30_000, Tools: []agent.Tool{huge}})
	wantEnding(t, result, agent.Done)
}

func TestView_OldPicturesAreReplacedByALine(t *testing.T) {
	messages := []agent.Message{
		{ID: "a", Role: agent.User, Parts: []agent.Part{{Kind: agent.PartImage, Image: &agent.Image{MediaType: "image/png", Data: make([]byte, 2048)}}}},
		{ID: "b", Role: agent.User, Mark: &agent.Mark{Until: "a"}},
	}
	if view := agent.View(messages, false); !strings.Contains(view[0].Parts[0].Text, "A picture, image/png, 2 KiB: left out") {
		t.Errorf("%s", wire(t, view))
	}
}

func TestRun_AWindowThatIsFullInTheMiddleOfAnAnswerIsMadeRoomIn(t *testing.T) {
	messages := []agent.Message{}
	for range 20 {
		messages = append(messages, agent.NewText(agent.User, strings.Repeat("q ", 2000)), agent.NewText(agent.Assistant, strings.Repeat("a ", 2000)))
	}
	messages = append(messages, agent.NewText(agent.User, "And?"))
	model := scripted.New(scripted.Step{Text: "It is", Stop: agent.StopWindow}, scripted.Step{Text: "They spoke."}, scripted.Step{Text: "so."})
	result, _ := play(t, t.Context(), agent.Turn{Model: model, Messages: messages})
	wantEnding(t, result, agent.Done)
	last := model.Requests()[2].Messages
	if text := wire(t, last); !strings.Contains(text, "They spoke.") || !strings.Contains(text, "It is") || !strings.Contains(text, "Continue") {
		t.Errorf("the model got %.3000s", text)
	}
}

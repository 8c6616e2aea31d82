package tools

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// Question is put to the person.
type Question struct {
	Text    string   `json:"text"`
	Choices []string `json:"choices,omitempty"` // none for an answer in words
}

// Answer is what the person says.
type Answer struct {
	Choice string `json:"choice,omitempty"` // one of the choices; "" for none of them
	Text   string `json:"text,omitempty"`
}

// Bounds of a question.
const (
	maxQuestion = 4000 // bytes
	maxChoices  = 8
	maxChoice   = 200
)

func (t *table) askPerson() spec {
	return spec{
		name: "ask_person", title: "Ask you",
		description: "Ask the person a question and wait for the answer. Use it when something is theirs to decide and a wrong guess would cost them work; otherwise decide yourself and say what you chose.",
		params: []param{
			{name: "question", kind: isText, required: true, about: "The question, short and whole."},
			{name: "choices", kind: isList, about: "Two to eight answers to choose from; the person can always answer in words too."},
		},
		run: func(ctx context.Context, a args, _ io.Writer) (Result, error) {
			q := Question{Text: plain(a.text("question")), Choices: a.list("choices")}
			for i, c := range q.Choices {
				q.Choices[i] = plain(shorten(c, maxChoice))
			}
			switch {
			case strings.TrimSpace(q.Text) == "":
				return failed("The question is empty."), nil
			case len(q.Text) > maxQuestion || len(q.Choices) > maxChoices:
				return failed(fmt.Sprintf("A question has at most %d bytes and %d choices.", maxQuestion, maxChoices)), nil
			}
			answer, err := t.seat.Ask(ctx, q)
			if err != nil {
				return ended(ctx, err)
			}
			r := Result{Data: Data{Choice: answer.Choice}}
			switch {
			case answer.Choice != "" && answer.Text != "":
				r.Text = fmt.Sprintf("They chose %q and say: %s", answer.Choice, shorten(answer.Text, maxText))
			case answer.Choice != "":
				r.Text = fmt.Sprintf("They chose %q.", answer.Choice)
			case answer.Text != "":
				r.Text = "They say: " + shorten(answer.Text, maxText)
			default:
				r.Text = "They did not answer. Go on without, as you think best."
			}
			return r, nil
		},
	}
}

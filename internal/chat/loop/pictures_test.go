package loop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"image/png"
	"io"
	"strings"
	"testing"

	"sandboxd/internal/agent"
	"sandboxd/internal/agent/scripted"
	"sandboxd/internal/chat"
	"sandboxd/internal/chat/loop"
	"sandboxd/internal/tools"
)

// TestPictures_OfThePersonAndOfToolsReachTheModelAndThePage sends one, and has a tool make one.
func TestPictures_OfThePersonAndOfToolsReachTheModelAndThePage(t *testing.T) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	for _, blind := range []bool{false, true} {
		w := &world{t: t, model: scripted.New(scripted.Step{Calls: []scripted.Call{scripted.Use("shot", struct{}{})}}, scripted.Step{Text: "I see."})}
		shot := tools.Tool{Name: "shot", Schema: json.RawMessage(`{"type":"object"}`), Run: func(context.Context, json.RawMessage, io.Writer) (tools.Result, error) {
			return tools.Result{Text: "The page.", Images: []tools.Image{{MIME: "image/png", Bytes: b.Bytes()}, {MIME: "image/svg+xml", Bytes: []byte("<svg>")}}}, nil
		}}
		w.start(chat.Auto, loop.Config{
			Model: func(context.Context, chat.Conversation) (loop.Model, error) {
				return loop.Model{Model: w.model, NoImages: blind}, nil
			},
			Tools: func(context.Context, chat.Conversation, loop.Ask) ([]tools.Tool, error) {
				return []tools.Tool{shot}, nil
			},
		})
		sent := chat.Queued{User: "ada", Files: []chat.File{{Name: "a.png", Type: "image/png", Path: ".attachments/a.png", Data: b.Bytes()}, {Name: "b.txt", Type: "text/plain", Path: "b.txt"}}}
		if _, err := w.s.Send(t.Context(), w.id, sent); err != nil {
			t.Fatal(err)
		}
		v := w.ends(chat.Idle)
		var call chat.Call
		if err := json.Unmarshal(v.Items[1].Data, &call); err != nil || len(call.Pictures) != 1 || !bytes.Equal(call.Pictures[0].Data, b.Bytes()) {
			t.Errorf("the page shows %+v, %v", call.Pictures, err)
		}
		asked := w.model.Requests()[1].Messages
		said, result := asked[0].Parts, asked[2].Parts[0].Result
		text := said[len(said)-1].Text
		if !strings.Contains(text, ".attachments/a.png") || !strings.Contains(text, "b.txt") || !strings.Contains(result.Text, "A picture was left out") {
			t.Errorf("the model got %q, %q", text, result.Text)
		}
		seen := said[0].Kind == agent.PartImage && bytes.Equal(said[0].Image.Data, b.Bytes()) && len(result.Images) == 1
		told := strings.Contains(said[0].Text, "you cannot see pictures") && strings.Contains(result.Text, "you cannot see pictures") && len(result.Images) == 0
		if seen == blind || told != blind {
			t.Errorf("blind %v: it got %+v and %+v", blind, said[0], result)
		}
	}
}

package agent_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"

	"sandboxd/internal/agent"
	"sandboxd/internal/agent/scripted"
)

// picture is a PNG of a size.
func picture(t testing.TB, width, height int) agent.Image {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return agent.Image{MediaType: "image/png", Data: b.Bytes()}
}

// shows is a message of the person's with a picture.
func shows(id string, i agent.Image) agent.Message {
	return agent.Message{ID: id, Role: agent.User, Parts: []agent.Part{{Kind: agent.PartImage, Image: &i}, {Kind: agent.PartText, Text: "See " + id + "."}}}
}

func TestProblem_OfWhatProvidersRefuse(t *testing.T) {
	good := picture(t, 3, 3)
	for name, c := range map[string]struct {
		image agent.Image
		says  string
	}{
		"a picture":       {good, ""},
		"webp":            {agent.Image{MediaType: "image/webp", Data: []byte("RIFF\x00\x00\x00\x00WEBPVP8 ")}, ""},
		"svg":             {agent.Image{MediaType: "image/svg+xml", Data: []byte("<svg>")}, "no PNG"},
		"empty":           {agent.Image{MediaType: "image/png"}, "empty"},
		"large":           {agent.Image{MediaType: "image/png", Data: make([]byte, 5<<20+1)}, "too large"},
		"another type":    {agent.Image{MediaType: "image/jpeg", Data: good.Data}, "not of the type"},
		"cut":             {agent.Image{MediaType: "image/png", Data: good.Data[:20]}, "damaged"},
		"webp that lies":  {agent.Image{MediaType: "image/webp", Data: good.Data}, "no WebP"},
		"as high as can":  {picture(t, 1, 8000), ""},
		"higher than can": {picture(t, 1, 8001), "1 × 8001 pixels"},
	} {
		if got := c.image.Problem(); (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q", name, got)
		}
	}
	repaired := agent.Repair([]agent.Message{shows("a", agent.Image{MediaType: "image/png", Data: []byte("<html>")})})
	if got := repaired[0].Parts[0]; got.Kind != agent.PartText || !strings.Contains(got.Text, "left out") {
		t.Errorf("a bad picture becomes %+v", got)
	}
}

// seen gives the pictures of a request.
func seen(r agent.Request) (n int) {
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			if p.Kind == agent.PartImage {
				n++
			}
		}
	}
	return n
}

func TestRun_ARequestThatIsRefusedWithPicturesIsSentWithoutThem(t *testing.T) {
	model := scripted.Playing(func(r agent.Request) scripted.Step {
		if seen(r) > 0 {
			return scripted.Failing(agent.Rejected, 0)
		}
		return scripted.Step{Text: "I cannot see it."}
	})
	result, rec := play(t, t.Context(), agent.Turn{Model: model, Messages: []agent.Message{shows("one", picture(t, 2, 2))}})
	wantEnding(t, result, agent.Done)
	if said := rec.text(agent.NoticeGiven); !strings.Contains(said, "without the pictures") {
		t.Errorf("told %q", said)
	}
	if last := wire(t, model.Requests()[1].Messages); len(model.Requests()) != 2 || !strings.Contains(last, "you cannot see pictures") || !strings.Contains(last, "See one.") {
		t.Errorf("asked %d times, last %s", len(model.Requests()), last)
	}
	always := scripted.Playing(func(agent.Request) scripted.Step { return scripted.Failing(agent.Rejected, 0) })
	result, _ = play(t, t.Context(), agent.Turn{Model: always, Messages: []agent.Message{shows("one", picture(t, 2, 2))}})
	if wantEnding(t, result, agent.Failed); len(always.Requests()) != 2 {
		t.Errorf("asked %d times", len(always.Requests()))
	}
}

func TestView_OfManyPicturesTheNewestAreSent(t *testing.T) {
	var messages []agent.Message
	for i := range 45 {
		messages = append(messages, shows(fmt.Sprintf("u%d", i), picture(t, 2, 2)), agent.Message{ID: fmt.Sprintf("a%d", i), Role: agent.Assistant, Parts: []agent.Part{{Kind: agent.PartText, Text: "Yes."}}})
		n := seen(agent.Request{Messages: agent.View(messages, false)})
		if n > 20 || n < min(i+1, 11) {
			t.Errorf("of %d pictures %d are sent", i+1, n)
		}
	}
	view := agent.View(messages, false)
	if first, last := view[0].Parts[0], view[88].Parts[0]; first.Kind != agent.PartText || !strings.Contains(first.Text, "many after it") || last.Kind != agent.PartImage {
		t.Errorf("the first is %+v, the last %s", first, last.Kind)
	}
}

func TestView_LargePicturesFitIntoARequest(t *testing.T) {
	large := picture(t, 2, 2)
	large.Data = append(large.Data, make([]byte, 3<<20)...)
	var messages []agent.Message
	before, changes := 0, 0
	for i := range 30 {
		messages = append(messages, shows(fmt.Sprintf("u%d", i), large), agent.Message{ID: fmt.Sprintf("a%d", i), Role: agent.Assistant, Parts: []agent.Part{{Kind: agent.PartText, Text: "Yes."}}})
		view := agent.View(messages, false)
		n := seen(agent.Request{Messages: view})
		if n > 3 || n < 1 || view[2*i].Parts[0].Kind != agent.PartImage {
			t.Errorf("of %d pictures %d are sent", i+1, n)
		}
		if i+1-n != before {
			before, changes = i+1-n, changes+1
		}
	}
	if changes > 15 {
		t.Errorf("what was sent before was changed %d times", changes)
	}
	largest := large
	largest.Data = append(largest.Data, make([]byte, 2<<20-100)...) // one alone is always sent
	if n := seen(agent.Request{Messages: agent.View([]agent.Message{shows("x", largest)}, false)}); n != 1 {
		t.Errorf("of one %d are sent", n)
	}
}

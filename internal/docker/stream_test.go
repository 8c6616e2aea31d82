package docker

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/docker/docker/pkg/jsonmessage"
	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
)

func stream(t testing.TB, messages ...any) *strings.Reader {
	t.Helper()
	var b strings.Builder
	for _, m := range messages {
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
		b.WriteString("\r\n")
	}
	return strings.NewReader(b.String())
}

type said map[string]any

func TestBuildReader_StepsAndLines(t *testing.T) {
	var got []catalog.BuildEvent
	err := newBuildReader(func(e catalog.BuildEvent) { got = append(got, e) }).read(stream(t,
		said{"stream": "Step 1/2 : FROM x\n"}, said{"stream": " ---> Using cache\n"}, said{"stream": " ---> abc\n"}, said{"stream": "Step 2/2 : RUN a &&   b\n"},
		said{"stream": "half a "}, said{"stream": "line\nprogress 1%\rprogress 2%\r\n\n"}, said{"stream": "no end"},
		said{"aux": said{"ID": "sha256:1"}},
	))
	if err != nil {
		t.Fatal(err)
	}
	want := []catalog.BuildEvent{
		{Step: 1, Steps: 2, Line: "Step 1/2 : FROM x"}, {Step: 1, Steps: 2, Line: " ---> Using cache", Cached: true}, {Step: 1, Steps: 2, Line: " ---> abc"},
		{Step: 2, Steps: 2, Line: "Step 2/2 : RUN a &&   b"}, {Step: 2, Steps: 2, Line: "half a line"},
		{Step: 2, Steps: 2, Line: "progress 1%"}, {Step: 2, Steps: 2, Line: "progress 2%"}, {Step: 2, Steps: 2, Line: "no end"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestBuildReader_FailureTellsTheLastLines(t *testing.T) {
	messages := []any{said{"stream": "Step 3/9 : RUN make\n"}}
	for n := range 50 {
		messages = append(messages, said{"stream": fmt.Sprintf("line %d \x1b[31mred\n", n)})
	}
	messages = append(messages, said{"error": "old", "errorDetail": said{"code": 2, "message": "make returned 2"}})
	err := newBuildReader(func(catalog.BuildEvent) {}).read(stream(t, messages...))
	message := fault.Message(err)
	if !fault.Is(err, fault.Invalid) || !strings.HasPrefix(message, "Step 3 of 9 has failed (RUN make): make returned 2.\n") {
		t.Errorf("got %q", message)
	}
	if strings.Count(message, "\n") != tailLines || !strings.HasSuffix(message, "line 49 red") || strings.Contains(message, "\x1b") {
		t.Errorf("got %q", message)
	}
}

func TestBuildReader_BrokenOffIsNoSuccess(t *testing.T) {
	for name, s := range map[string]*strings.Reader{
		"early end": stream(t, said{"stream": "Step 1/2 : FROM x\n"}),
		"nothing":   strings.NewReader(""),
		"torn":      strings.NewReader(`{"stream":"Step 1/`),
	} {
		err := classify(newBuildReader(func(catalog.BuildEvent) {}).read(s), "build the image")
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestLineSplitter_BoundsALine(t *testing.T) {
	var got []string
	s := lineSplitter{emit: func(l string) { got = append(got, l) }}
	s.write(strings.Repeat("x", 3*longestLine))
	s.write("\nshort\n\xff\n")
	if len(got) != 3 || len(got[0]) != longestLine || got[1] != "short" || got[2] != "?" {
		t.Errorf("got %d lines, the first of %d bytes", len(got), len(got[0]))
	}
}

func TestPullProgress_AddsUpTheLayers(t *testing.T) {
	p := pullProgress{layers: map[string]*layer{}}
	var lines []string
	var last catalog.BuildEvent
	for _, m := range []*jsonmessage.JSONMessage{
		{Status: "Pulling from x", ID: "1"},
		{Status: "Pulling fs layer", ID: "a"},
		{Status: "Downloading", ID: "a", Progress: &jsonmessage.JSONProgress{Current: 10, Total: 100}},
		{Status: "Downloading", ID: "b", Progress: &jsonmessage.JSONProgress{Current: 5, Total: 50}},
		{Status: "Downloading", ID: "a", Progress: &jsonmessage.JSONProgress{Current: 60, Total: 100}},
		{Status: "Download complete", ID: "a"},
		{Status: "Extracting", ID: "a", Progress: &jsonmessage.JSONProgress{Current: 1, Total: 100}},
		{Status: "Status: done"},
	} {
		last = p.take(m)
		if last.Line != "" {
			lines = append(lines, last.Line)
		}
	}
	if last.Done != 105 || last.Total != 150 {
		t.Errorf("got %d of %d, want 105 of 150", last.Done, last.Total)
	}
	want := []string{"Pulling from x", "a: Pulling fs layer", "a: Downloading", "b: Downloading", "a: Download complete", "a: Extracting", "Status: done"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}

func FuzzBuildReader(f *testing.F) {
	f.Add(`{"stream":"Step 1/2 : FROM x\n"}{"errorDetail":{"message":"no"}}`)
	f.Add(`{"aux":null}{"status":"x","progressDetail":{"current":-1}}`)
	f.Fuzz(func(t *testing.T, text string) {
		_ = newBuildReader(func(e catalog.BuildEvent) {
			if len(e.Line) > longestLine || strings.ContainsAny(e.Line, "\r\n") {
				t.Errorf("line %q", e.Line)
			}
		}).read(strings.NewReader(text))
	})
}

func FuzzPullProgress(f *testing.F) {
	f.Add(`{"status":"Downloading","id":"a","progressDetail":{"current":5,"total":9}}{"status":"Download complete","id":"a"}`)
	f.Fuzz(func(t *testing.T, text string) {
		p := pullProgress{layers: map[string]*layer{}}
		_ = readMessages(strings.NewReader(text), func(m *jsonmessage.JSONMessage) error {
			if e := p.take(m); len(e.Line) > longestLine+4 {
				t.Errorf("got %+v", e)
			}
			return nil
		})
	})
}

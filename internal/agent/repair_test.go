package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/agent"
	"sandboxd/internal/agent/scripted"
)

func call(id string) agent.Part {
	return agent.Part{Kind: agent.PartCall, Call: &agent.Call{ID: id, Name: "look", Arguments: json.RawMessage(`{"x":1}`)}}
}

func result(id string) agent.Part {
	return agent.Part{Kind: agent.PartResult, Result: &agent.ToolResult{CallID: id, Status: agent.OK, Text: "seen " + id}}
}

func text(s string) agent.Part { return agent.Part{Kind: agent.PartText, Text: s} }

// talk makes messages, the roles by the first letter of their IDs.
func talk(id string, parts ...agent.Part) agent.Message {
	role := agent.User
	if id[0] == 'a' {
		role = agent.Assistant
	}
	return agent.Message{ID: id, Role: role, Parts: parts}
}

func TestRepair_LeavesAGoodTranscriptAsItIs(t *testing.T) {
	good := []agent.Message{
		talk("u1", text("Hi.")), talk("a1", text("I look."), call("c1"), call("c2")), talk("u2", result("c1"), result("c2"), text("Hurry.")),
		{ID: "m", Role: agent.User, Mark: &agent.Mark{Until: "a1"}}, talk("u3", text("More.")), talk("a2", text("Done.")),
	}
	if diff := cmp.Diff(wire(t, good), wire(t, agent.Repair(good))); diff != "" {
		t.Error(diff)
	}
}

func TestRepair_AnswersCallsWithoutResults(t *testing.T) {
	for name, broken := range map[string][]agent.Message{
		"at the end":           {talk("u1", text("Hi.")), talk("a1", call("c1"), call("c2"))},
		"one of two":           {talk("u1", text("Hi.")), talk("a1", call("c1"), call("c2")), talk("u2", result("c2"))},
		"before a question":    {talk("u1", text("Hi.")), talk("a1", call("c1"), call("c2")), talk("u2", text("Well?"))},
		"before an answer":     {talk("u1", text("Hi.")), talk("a1", call("c1"), call("c2")), talk("a2", text("So."))},
		"behind a question":    {talk("u1", text("Hi.")), talk("a1", call("c1"), call("c2")), talk("u2", text("Well?")), talk("u3", result("c2"))},
		"behind a mark":        {talk("u1", text("Hi.")), talk("a1", call("c1"), call("c2")), {ID: "m", Mark: &agent.Mark{Until: "u1"}}, talk("u3", result("c2"))},
		"result of another":    {talk("u1", text("Hi.")), talk("a1", call("c1"), call("c2")), talk("u2", result("c9"), result("c2"), result("c2"))},
		"results before calls": {talk("u1", text("Hi."), result("c1")), talk("a1", call("c1"), call("c2"))},
	} {
		repaired := agent.Repair(broken)
		view := agent.View(repaired, false)
		valid(t, view)
		r := results(view)
		if len(r) != 2 || r[0].CallID != "c1" || r[0].Status != agent.Interrupted || !strings.Contains(r[0].Text, "interrupted") {
			t.Errorf("%s: %s", name, wire(t, repaired))
		}
		if known := strings.Contains(wire(t, broken), "seen c2"); known != (r[1].Status == agent.OK) {
			t.Errorf("%s: %s", name, wire(t, repaired))
		}
		if name == "before a question" && view[2].Parts[2].Text != "Well?" {
			t.Errorf("%s: %s", name, wire(t, view))
		}
	}
}

func TestRepair_DropsWhatIsEmptyOrOrphaned(t *testing.T) {
	repaired := agent.Repair([]agent.Message{
		talk("u0", text(" \n")), talk("u1", text("Hi."), result("c9")), talk("a1"), talk("a2", text("")), {ID: "s", Role: "system", Parts: []agent.Part{text("Obey.")}},
		talk("a3", agent.Part{Kind: "video"}, text("Yes.")), talk("u3", agent.Part{Kind: agent.PartImage, Image: &agent.Image{MediaType: "text/html", Data: []byte("x")}}),
	})
	if diff := cmp.Diff(wire(t, []agent.Message{talk("u1", text("Hi.")), talk("a3", text("Yes.")),
		talk("u3", text("(A picture was left out: it is no PNG, JPEG, GIF or WebP.)"))}), wire(t, repaired)); diff != "" {
		t.Error(diff)
	}
}

func TestRepair_MakesIDsUniqueAndTheBeginningThePersons(t *testing.T) {
	repaired := agent.Repair([]agent.Message{talk("a1", call("c1")), talk("u1", result("c1")), talk("a1", call("c1")), talk("u1", result("c1"))})
	valid(t, agent.View(repaired, false))
	if r := results(repaired); len(r) != 2 || r[0].CallID == r[1].CallID || r[1].Text != "seen c1" {
		t.Errorf("%s", wire(t, repaired))
	}
}

// FuzzRepair finds transcripts that would not be accepted. The text is a program: each character adds a message or a part.
func FuzzRepair(f *testing.F) {
	for _, program := range []string{"uTaTC1C2uR1R2", "aC1aC1uR1R1", "uR1aTHC1MuTuR1aC1", "aMaC1MMuIRuT", "uT?aC1_uR1", "aC1uTR1TR2aC2C1aTuR2", "MMM", "aH"} {
		f.Add(program)
	}
	f.Fuzz(func(t *testing.T, program string) {
		program = program[:min(len(program), 200)]                // each character adds all that follow it
		messages := transcript(strings.ToValidUTF8(program, "?")) // what is stored as JSON is valid
		before := wire(t, messages)
		repaired := agent.Repair(messages)
		if wire(t, messages) != before {
			t.Fatal("the messages given were changed")
		}
		if diff := cmp.Diff(wire(t, repaired), wire(t, agent.Repair(repaired))); diff != "" {
			t.Fatalf("repairing again changes: %s", diff)
		}
		valid(t, agent.View(repaired, false))
		valid(t, agent.View(repaired, true))
		ids := map[string]bool{}
		for _, m := range repaired {
			if m.ID == "" || ids[m.ID] {
				t.Fatalf("ID %q is there twice", m.ID)
			}
			ids[m.ID] = true
		}
		var stored []agent.Message
		if err := json.Unmarshal([]byte(wire(t, repaired)), &stored); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wire(t, repaired), wire(t, agent.Repair(stored))); diff != "" {
			t.Fatalf("storing it changes: %s", diff)
		}
	})
}

// transcript makes messages from a program.
func transcript(program string) []agent.Message {
	messages := []agent.Message{}
	add := func(p agent.Part) {
		if n := len(messages); n > 0 {
			messages[n-1].Parts = append(messages[n-1].Parts, p)
		}
	}
	number := func(i int) string {
		if i+1 < len(program) {
			return "c" + program[i+1:i+2]
		}
		return ""
	}
	for i, c := range []byte(program) {
		id := fmt.Sprint("m", len(messages))
		switch c {
		case 'u':
			messages = append(messages, agent.Message{ID: id, Role: agent.User})
		case 'a':
			messages = append(messages, agent.Message{ID: id, Role: agent.Assistant})
		case '?':
			messages = append(messages, agent.Message{ID: "m0", Role: agent.Role(program[:i])})
		case 'M':
			messages = append(messages, agent.Message{ID: id, Role: agent.Role(program[:i]), Mark: &agent.Mark{Until: fmt.Sprint("m", i/2), Summary: strings.Repeat("S", i%2)}})
		case 'T':
			add(text("text " + program[i:]))
		case '_':
			add(text(" "))
		case 'H':
			add(agent.Part{Kind: agent.PartThinking, Text: "hm", Opaque: &agent.Opaque{By: "x", Signature: program[:i]}})
		case 'I':
			add(agent.Part{Kind: agent.PartImage, Image: &agent.Image{MediaType: "image/png", Data: []byte(program[:i])}})
		case 'C':
			add(agent.Part{Kind: agent.PartCall, Call: &agent.Call{ID: number(i), Name: program[i:], Arguments: json.RawMessage(`{"x":1}`)}})
		case 'R':
			add(agent.Part{Kind: agent.PartResult, Result: &agent.ToolResult{CallID: number(i), Status: agent.OK, Text: program[i+1:]}})
		}
	}
	return messages
}

func TestFold_AfterACrashTheTranscriptCanBeRepaired(t *testing.T) {
	model := scripted.New(
		scripted.Step{Thinking: "Hm.", Text: "I look at two things.", Calls: []scripted.Call{use("look", "1"), use("look", "2")}},
		scripted.Step{Text: "And one more.", Calls: []scripted.Call{use("look", "3")}}, scripted.Step{Text: "All is well."},
	)
	messages := []agent.Message{agent.NewText(agent.User, "Look.")}
	full, rec := play(t, t.Context(), agent.Turn{Model: model, Messages: messages, Tools: []agent.Tool{echo("look", false)}})
	for n := range rec.events {
		folded := agent.Fold(messages, rec.events[:n+1]...)
		if wire(t, folded) != wire(t, agent.Fold(messages, rec.events[:n+1]...)) {
			t.Fatalf("after %d events: folding again gives something else", n)
		}
		repaired := agent.Repair(folded)
		valid(t, agent.View(repaired, false))
		for i, m := range repaired[1:] {
			if i+1 < len(repaired)-2 && m.ID != full.Messages[i].ID {
				t.Fatalf("after %d events, message %d is another one", n, i)
			}
		}
	}
}

func TestShorten_SaysHowMuchIsMissing(t *testing.T) {
	long := strings.Repeat("ä", 10_000) + "END"
	s := agent.Shorten(long, 999)
	if !strings.Contains(s, "\n… 19,004 bytes left out …\n") || !strings.HasSuffix(s, "END") || !utf8.ValidString(s) || len(s) > 1100 {
		t.Errorf("%d bytes: %q", len(s), s)
	}
	if s := agent.Shorten("a\xffb", 100); s != "a\uFFFDb" {
		t.Errorf("%q", s)
	}
}

func TestRun_LiveOutputIsBoundedAndWhole(t *testing.T) {
	flood := tool("flood", true, func(_ context.Context, _ map[string]any, out io.Writer) (agent.Output, error) {
		for i := range 300 {
			piece := []byte(fmt.Sprintf("%d é", i) + strings.Repeat("漢", 20_000))
			for len(piece) > 0 { // cut without regard to characters
				n := min(len(piece), 1001)
				if _, err := out.Write(piece[:n]); err != nil {
					t.Error(err)
				}
				piece = piece[n:]
			}
		}
		return agent.Output{}, io.ErrUnexpectedEOF
	})
	model := scripted.New(scripted.Step{Calls: []scripted.Call{use("flood", "1")}})
	r, rec := play(t, t.Context(), agent.Turn{Model: model, Tools: []agent.Tool{flood}})
	shown := rec.text(agent.ToolOutput)
	if strings.Contains(shown, "\uFFFD") || len(shown) > 1<<20+1100 || strings.Count(shown, "not shown while it runs") != 1 {
		t.Errorf("shown %d bytes, ending in %q", len(shown), shown[len(shown)-100:])
	}
	kept := results(r.Messages)[0].Text
	if !strings.HasPrefix(kept, "0 é漢") || !strings.Contains(kept, "bytes left out") || len(kept) > 34_000 {
		t.Errorf("kept %d bytes: %.50q", len(kept), kept)
	}
}

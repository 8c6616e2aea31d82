package program_test

import (
	"fmt"
	"strings"
	"testing"

	"sandboxd/internal/chat"
)

// ask is a line of the agent that asks for leave for a call.
func ask(call string) string {
	return `raw {"id":"p1","method":"session/request_permission","params":{"sessionId":"s1","toolCall":` + call + `,"options":[{"optionId":"y","name":"Allow","kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}]}}`
}

// TestRisky_IsAskedAndShownWhole has calls that a model could choose so that they look like less than they are.
func TestRisky_IsAskedAndShownWhole(t *testing.T) {
	diff := func(path string) string { return `{"type":"diff","path":"` + path + `","newText":"x"}` }
	many := strings.Repeat(diff("/home/agent/a")+",", 50)
	for call, shows := range map[string]string{ // "" for what is not asked
		`"kind":"execute","rawInput":{"command":"ls"}`:                                                "",
		`"kind":"execute","rawInput":{"command":["bash","-lc","ls"],"cwd":"/etc"}`:                    "",
		`"kind":"execute","rawInput":{"command":"touch x","cwd":"/home/agent/x"}`:                     "",
		`"kind":"execute","rawInput":{"command":"touch x","cwd":"/etc"}`:                              "outside of the home",
		`"kind":"execute","rawInput":{"command":"touch x","cwd":"/home/agent","workdir":"../../etc"}`: "/home/agent, ../../etc",
		`"kind":"execute","rawInput":{"command":["/tmp/bash","-c","ls"]}`:                             "/tmp/bash -c ls",
		`"kind":"execute","rawInput":{"command":["find",".","#","-delete"]}`:                          "find . '#' -delete",
		`"kind":"execute","rawInput":{"command":"rm -rf x","Command":"ls"}`:                           "rm -rf x",
		`"kind":"execute","rawInput":{"command":"ls","cmd":"rm -rf x"}`:                               "rm -rf x",
		`"kind":"execute","rawInput":{"command":"ls","env":{"PATH":"/tmp"}}`:                          `/tmp`,
		`"kind":"execute","rawInput":{"command":"ls","args":["x"]}`:                                   "more input",
		`"kind":"execute","rawInput":{"command":"ls \u202e"}`:                                         "turn the order",
		`"kind":"execute","title":"echo ` + strings.Repeat("x", 400) + `\nrm y"`:                      `x\nrm y`, // as Gemini asks
		`"kind":"other","rawInput":{"command":"ls","target":"prod"}`:                                  "ls",
		`"rawInput":{"command":"ls"}`:                                                                 "ls",
		`"kind":"read","rawInput":{"command":"rm -rf x"}`:                                             "rm -rf x",
		`"kind":"read","rawInput":{"path":"/etc/passwd"}`:                                             "",
		`"kind":"fetch","rawInput":{"url":"http://x"}`:                                                "http://x",
		`"kind":"edit","content":[` + diff("a.txt") + `]`:                                             "",
		`"kind":"edit"`: "which files",
		`"kind":"edit","content":[` + diff("/home/agent/../x") + `]`:                                       "outside of the home",
		`"kind":"edit","content":[` + many + diff("/etc/passwd") + `]`:                                     "not all that it does",
		`"kind":"edit","content":[` + diff("a.txt") + `,{"type":"diff","path":7}]`:                         "not all that it does",
		`"kind":"edit","rawInput":{"file_path":"/home/agent/a","File_path":"b"},"locations":[{}]`:          "",
		`"kind":"edit","rawInput":{"file_path":"/etc/a","File_path":"b"},"locations":[{"path":"x"}]`:       "/etc/a",
		`"kind":"edit","content":[` + diff(`a\nb`) + `]`:                                                   `\"a\\nb\"`,
		`"kind":"move","rawInput":{"source":"a","destination":"b"}`:                                        "moves files",
		`"kind":"delete","rawInput":{"path":"a"}`:                                                          "deletes files",
		`"kind":"edit","content":[` + diff("a.txt") + `],"locations":[{"path":"/home/agent/.ssh/config"}]`: ".ssh/config",
	} {
		w := newWorld(t, chat.AskRisky)
		w.send(ask(`{"toolCallId":"c","title":"Look",`+call+`}`) + "\nend")
		v := w.ends(chat.Idle, 1)
		questions := v.kinds(chat.Question)
		if len(questions) != min(len(shows), 1) || len(questions) > 0 && !strings.Contains(string(questions[0].Data), shows) {
			t.Errorf("%s\n%+v", call, questions)
		}
		w.end()
	}
}

// TestRisky_IsWhatWasBegunBeforeARestart asks for leave for a call of which sandboxd knows only what it shows.
func TestRisky_IsWhatWasBegunBeforeARestart(t *testing.T) {
	w := newWorld(t, chat.AskRisky)
	w.send(`raw {"method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"tool_call","toolCallId":"c","kind":"edit","title":"Edit","content":[{"type":"diff","path":"/home/agent/a","newText":"x"},{"type":"diff","path":"/etc/b","newText":"x"}]}}}` +
		"\nstart\nslowly 20\n" + ask(`{"toolCallId":"c"}`))
	w.sees("it works", func(v *view) bool { return strings.Contains(v.text(), "start") })
	w.restart()
	if v := w.ends(chat.Idle, 1); len(v.kinds(chat.Question)) != 1 {
		t.Error(v)
	}
}

// TestAnswer_OfAStoppedTurnIsNo has an agent ask for leave after the person has stopped it, in a mode that asks nothing.
func TestAnswer_OfAStoppedTurnIsNo(t *testing.T) {
	w := newWorld(t, chat.Auto)
	w.send("start\nlate rm -rf x")
	w.sees("it works", func(v *view) bool { return strings.Contains(v.text(), "start") })
	if err := w.s.Cancel(t.Context(), w.id); err != nil {
		t.Fatal(err)
	}
	if v := w.ends(chat.Idle, 1); len(w.box.runs) > 0 || !strings.Contains(v.text(), "(cancelled failed)") {
		t.Error(v, w.box.runs)
	}
}

// TestForm_TakesWordsThatAreChoicesElsewhere answers fields with what could be taken for a choice.
func TestForm_TakesWordsThatAreChoicesElsewhere(t *testing.T) {
	for _, word := range []string{"decline", "skip", "o0", "yes"} {
		w := newWorld(t, chat.Auto)
		w.send("form")
		for _, said := range []string{word, "Small", "Skip", "Skip"} {
			w.answers(w.asks(), said)
		}
		if v, want := w.ends(chat.Idle, 1), fmt.Sprintf(`filled {"action":"accept","content":{"name":%q,"size":"s"}}`, word); v.text() != want {
			t.Errorf("%s\n%s", v.text(), want)
		}
	}
}

// TestOutput_InPiecesIsShown has an agent tell the output of a command piece by piece, as Codex does.
func TestOutput_InPiecesIsShown(t *testing.T) {
	w := newWorld(t, chat.Auto)
	update := func(kind, more string) string {
		return `raw {"method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"` + kind + `","toolCallId":"c","kind":"execute","title":"Run"` + more + `}}}`
	}
	piece := func(s string) string { return `,"_meta":{"terminal_output_delta":{"data":"` + s + `"}}` }
	w.send(strings.Join([]string{update("tool_call", `,"_meta":5`), update("tool_call_update", piece(`one\n`)), update("tool_call_update", piece(`two\n`)+`,"status":"completed"`), "end"}, "\n"))
	calls := w.ends(chat.Idle, 1).kinds(chat.CallItem)
	if len(calls) != 1 || calls[0].Output != "one\ntwo\n" || calls[0].Open {
		t.Errorf("%+v", calls)
	}
}

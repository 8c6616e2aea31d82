package tools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/access/accesstest"
	"sandboxd/internal/catalog"
	"sandboxd/internal/exec"
	"sandboxd/internal/fault"
	"sandboxd/internal/files"
	"sandboxd/internal/guest"
	"sandboxd/internal/link"
	"sandboxd/internal/logs"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/services"
	"sandboxd/internal/snapshot"
	"sandboxd/internal/tools"
	"sandboxd/internal/tools/risk"
	"sandboxd/internal/wire"
)

// patience bounds every wait of a test.
const patience = time.Minute

// bench is the tools of one sandbox over a real link to a real guest, which is this very process.
type bench struct {
	t     *testing.T
	home  string
	seat  tools.Seat
	tools *tools.Service
	snaps *snaps
	logs  *lines

	declared *declared
}

func live(t *testing.T) *bench {
	t.Helper()
	hub := link.NewHub(filepath.Join(t.TempDir(), "link"), nil)
	home := t.TempDir()
	folder, err := hub.Expect("box", wire.Setup{Name: "box"})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, home: home, snaps: &snaps{}, logs: &lines{}, declared: &declared{}}
	g := guest.New(guest.Config{Socket: filepath.Join(folder, wire.SocketName), Home: b.home, Passwd: accesstest.Passwd(t, home), Version: "test"})
	box := accesstest.Linked("box", "box", access.FromHub(hub))
	b.tools = tools.New(tools.Config{Exec: exec.New(exec.Config{Starter: exec.InGuest()}), Files: files.New(t.TempDir()), Services: services.New(b.declared), Snapshots: b.snaps, Logs: b.logs})
	accesstest.Run(t, hub.Run, g.Run)
	accesstest.Run(t, b.tools.Run) // ends first
	b.seat = tools.Seat{Handle: box.Handle(t), Key: "chat", Folder: home}
	return b
}

// declared says that there is one service, and a browser if that has a port.
type declared struct {
	services.Boxes
	port int
}

func (d *declared) Services(sandbox.Sandbox) []catalog.Service {
	all := []catalog.Service{{Name: "web", Command: []string{"serve"}, Port: 80}}
	if d.port > 0 {
		all = append(all, catalog.Service{Name: tools.BrowserService, Command: []string{"start-browser"}, Port: d.port})
	}
	return all
}

// snaps has the snapshots that were taken.
type snaps struct {
	mu       sync.Mutex
	all      []snapshot.Snapshot
	restored []string
}

func (s *snaps) Begin(_ context.Context, box sandbox.Sandbox, a snapshot.Ask) (snapshot.Snapshot, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := snapshot.Snapshot{ID: "aaaa000000000001", SandboxID: box.ID, Name: a.Name, Kind: snapshot.Manual, State: snapshot.Ready}
	s.all = append(s.all, one, snapshot.Snapshot{ID: "bbbb000000000002", SandboxID: "another"})
	return one, true, nil
}

func (s *snaps) Wait(context.Context, string) (snapshot.Snapshot, error) { return s.all[0], nil }

func (s *snaps) List(wanted func(snapshot.Snapshot) bool) (l []snapshot.Snapshot) {
	for _, one := range s.all {
		if wanted(one) {
			l = append(l, one)
		}
	}
	return l
}

func (s *snaps) Restore(_ context.Context, _ sandbox.Sandbox, id string) (snapshot.Snapshot, error) {
	s.restored = append(s.restored, id)
	return snapshot.Snapshot{ID: "cccc000000000003"}, nil
}

// lines is a log of two lines.
type lines struct{ asked logs.Query }

func (l *lines) Search(_ context.Context, q logs.Query) (logs.Result, error) {
	l.asked = q
	return logs.Result{Lines: []logs.Line{{ID: 2, Service: "web", Text: "\x1b[31msecond"}, {ID: 1, Service: "web", Text: "first"}}}, nil
}

func (b *bench) tool(name string) tools.Tool {
	b.t.Helper()
	for _, t := range b.tools.Table(b.seat) {
		if t.Name == name {
			return t
		}
	}
	b.t.Fatalf("there is no tool %s", name)
	return tools.Tool{}
}

type in map[string]any

func encoded(t *testing.T, a in) json.RawMessage {
	t.Helper()
	j, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// do calls a tool, which must work.
func (b *bench) do(name string, a in) tools.Result {
	b.t.Helper()
	r := b.call(name, a)
	if r.Failed {
		b.t.Fatalf("%s: %s", name, r.Text)
	}
	return r
}

// fails calls a tool, which must fail and say something.
func (b *bench) fails(name string, a in, says string) {
	b.t.Helper()
	if r := b.call(name, a); !r.Failed || !strings.Contains(r.Text, says) {
		b.t.Errorf("%s %v: failed %v: %q does not say %q", name, a, r.Failed, r.Text, says)
	}
}

func (b *bench) call(name string, a in) tools.Result {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	r, err := b.tool(name).Run(ctx, encoded(b.t, a), io.Discard)
	if err != nil {
		b.t.Fatalf("%s: %v", name, err)
	}
	return r
}

func (b *bench) put(name, content string) {
	b.t.Helper()
	path := filepath.Join(b.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) has(name, content string) {
	b.t.Helper()
	got, err := os.ReadFile(filepath.Join(b.home, name))
	if err != nil || string(got) != content {
		b.t.Errorf("%s has %q, want %q (%v)", name, got, content, err)
	}
}

func TestTable_IsWhole(t *testing.T) {
	b := live(t)
	b.seat.Ask = func(context.Context, tools.Question) (tools.Answer, error) { return tools.Answer{}, nil }
	seen := map[string]bool{}
	for _, tool := range b.tools.Table(b.seat) {
		var schema struct {
			Type       string
			Properties map[string]struct{ Type, Description string }
			Required   []string
		}
		if err := json.Unmarshal(tool.Schema, &schema); err != nil || schema.Type != "object" {
			t.Errorf("%s: %v: %s", tool.Name, err, tool.Schema)
		}
		for name, p := range schema.Properties {
			if p.Description == "" || p.Type == "" {
				t.Errorf("%s: the argument %s is not described", tool.Name, name)
			}
		}
		if tool.Description == "" || tool.Title == "" || seen[tool.Name] || tool.Preview == nil || tool.Run == nil {
			t.Errorf("%s is not whole", tool.Name)
		}
		seen[tool.Name] = true
		if level := tool.Preview(json.RawMessage(`{}`)).Risk.Level; tool.Changes == (level == risk.Harmless) {
			t.Errorf("%s: changes %v, and is judged %v", tool.Name, tool.Changes, level)
		}
		for _, bad := range []string{`[]`, `{`, `"x"`, `null`, `{"no_such":1}`, strings.Repeat(" ", tools.MaxArguments+1)} {
			r, err := tool.Run(t.Context(), json.RawMessage(bad), io.Discard)
			if err != nil || !r.Failed || r.Text == "" {
				t.Errorf("%s %.20q: %+v, %v", tool.Name, bad, r, err)
			}
			tool.Preview(json.RawMessage(bad))
		}
	}
	for _, name := range []string{"run_command", "command_output", "stop_command", "send_input", "run_code", "read_file", "write_file", "edit_file", "apply_patch", "list_folder",
		"search_files", "list_ports", "list_services", "control_service", "service_log", "take_snapshot", "list_snapshots", "restore_snapshot", "ask_person"} {
		if !seen[name] {
			t.Errorf("there is no %s", name)
		}
	}
	b.fails("run_command", in{}, "needs the argument \"command\"")
	b.fails("run_command", in{"cmd": "ls"}, "has no argument \"cmd\". It takes command")
	b.fails("run_command", in{"command": 7}, "must be a string")
	b.fails("run_command", in{"command": "ls", "wait_seconds": 600}, "between 0 and 60")
	b.fails("search_files", in{"query": "x", "in": "odd"}, "one of contents, names")
	if r := b.do("run_command", in{"command": "echo x", "wait_seconds": "20", "interactive": "false", "folder": nil}); !strings.HasPrefix(r.Text, "x\n") {
		t.Errorf("numbers as texts: %q", r.Text)
	}
}

func TestRunCommand_GivesOutputAndExitCode(t *testing.T) {
	b := live(t)
	var shown bytes.Buffer
	r, err := b.tool("run_command").Run(t.Context(), encoded(t, in{"command": "echo out; echo err >&2; printf '\\033[31mred\\033[0m 50%%\\r100%%\\n'; pwd; exit 3", "folder": "/usr"}), &shown)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Failed || r.Data.Exit == nil || *r.Data.Exit != 3 || r.Data.Running || !strings.Contains(r.Text, "[exit code 3 after ") {
		t.Errorf("got %+v", r)
	}
	for _, want := range []string{"out\n", "err\n", "100%\n", "/usr\n"} {
		if !strings.Contains(r.Text, want) {
			t.Errorf("%q is missing in %q", want, r.Text)
		}
	}
	if strings.Contains(r.Text, "50%") || strings.Contains(r.Text, "\x1b") || !strings.Contains(shown.String(), "out\n") {
		t.Errorf("got %q, shown %q", r.Text, shown.String())
	}
	b.fails("run_command", in{"command": " "}, "empty")
	b.fails("run_command", in{"command": "true", "folder": "/no/such"}, "no folder")
	b.fails("run_command", in{"command": "no-such-program-here"}, "exit code 127")
}

func TestRunCommand_LongOutputIsCutInTheMiddleAndSaysSo(t *testing.T) {
	b := live(t)
	r := b.do("run_command", in{"command": "echo first; seq 1 200000; echo last"})
	if !strings.HasPrefix(r.Text, "first\n") || !strings.Contains(r.Text, "bytes left out …") || !strings.Contains(r.Text, "last\n[exit code 0") || len(r.Text) > 30_000 || r.Data.LeftOut == 0 {
		t.Errorf("%d bytes, left out %d: %.100q", len(r.Text), r.Data.LeftOut, r.Text)
	}
}

func TestRunCommand_YieldsAndIsWatchedAndStopped(t *testing.T) {
	b := live(t)
	r := b.do("run_command", in{"command": "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo went on; sleep 300", "wait_seconds": 0})
	if !r.Data.Running || r.Data.Handle != "cmd-1" || !strings.Contains(r.Text, "still running") || strings.Contains(r.Text, "send_input") {
		t.Fatalf("got %+v", r)
	}
	b.put("go", "")
	var all string
	for !strings.Contains(all, "went on\n") {
		r = b.do("command_output", in{"handle": "cmd-1", "wait_seconds": 1})
		all += r.Text
	}
	if strings.Count(all, "begun") > 1 {
		t.Errorf("output comes twice: %q", all)
	}
	b.fails("send_input", in{"handle": "cmd-1", "text": "x"}, "interactive")
	if r = b.do("stop_command", in{"handle": "cmd-1"}); r.Data.Running || !strings.Contains(r.Text, "exit code 143") {
		t.Errorf("got %+v", r)
	}
	b.fails("command_output", in{"handle": "cmd-2"}, "no command")
	other := *b
	other.seat.Key = "another conversation"
	other.fails("command_output", in{"handle": "cmd-1"}, "no command")
}

func TestRunCommand_EndsWithItsCall(t *testing.T) {
	b := live(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for b.t.Context().Err() == nil {
			if _, err := os.Stat(filepath.Join(b.home, "begun")); err == nil {
				break
			}
			<-time.After(10 * time.Millisecond)
		}
		cancel()
	}()
	_, err := b.tool("run_command").Run(ctx, encoded(t, in{"command": "touch begun; sleep 300", "wait_seconds": 60}), io.Discard)
	if err == nil || ctx.Err() == nil {
		t.Errorf("got %v", err)
	}
	if r := b.call("command_output", in{"handle": "cmd-1"}); !r.Failed || r.Data.Running || !strings.Contains(r.Text, "stopped") {
		t.Errorf("got %+v", r)
	}
}

func TestRunCommand_OnlySoManyRunAndLeaveEndsThem(t *testing.T) {
	b := live(t)
	for range 16 {
		b.do("run_command", in{"command": "sleep 300", "wait_seconds": 0})
	}
	b.fails("run_command", in{"command": "sleep 300", "wait_seconds": 0}, "still running")
	b.tools.Leave(b.seat.Handle.ID(), b.seat.Key)
	b.fails("command_output", in{"handle": "cmd-1"}, "no command")
	b.do("run_command", in{"command": "true"})
}

func TestSendInput_TypesIntoATerminal(t *testing.T) {
	b := live(t)
	b.do("run_command", in{"command": "tty >/dev/null && read -p 'name? ' n; echo \"hello $n\"; cat", "interactive": true, "wait_seconds": 1})
	all := ""
	r := b.do("send_input", in{"handle": "cmd-1", "text": "ann", "wait_seconds": 0})
	for all += r.Text; !strings.Contains(all, "hello ann"); all += r.Text {
		r = b.do("command_output", in{"handle": "cmd-1", "wait_seconds": 1})
	}
	r = b.do("send_input", in{"handle": "cmd-1", "key": "ctrl-d", "wait_seconds": 20})
	if r.Data.Running || r.Data.Exit == nil || *r.Data.Exit != 0 {
		t.Errorf("got %+v", r)
	}
	b.fails("send_input", in{"handle": "cmd-1", "key": "F13"}, "one of ctrl-c")
}

func TestRunCode_RunsAndShowsPictures(t *testing.T) {
	b := live(t)
	r := b.do("run_code", in{"language": "bash", "code": "echo \"it is $0\"; cp picture.png \"$OUTPUT/\" 2>/dev/null; pwd"})
	if !strings.Contains(r.Text, b.home) || len(r.Images) != 0 {
		t.Errorf("got %q, %d pictures", r.Text, len(r.Images))
	}
	var pic bytes.Buffer
	png.Encode(&pic, image.NewGray(image.Rect(0, 0, 2, 2)))
	b.put("picture.png", pic.String())
	r = b.do("run_code", in{"language": "SH", "code": "cp picture.png \"$OUTPUT/\"; echo text > \"$OUTPUT/a.txt\""})
	if len(r.Images) != 1 || r.Images[0].MIME != "image/png" || !bytes.Equal(r.Images[0].Bytes, pic.Bytes()) {
		t.Errorf("got %d pictures", len(r.Images))
	}
	if r = b.do("run_code", in{"language": "bash", "code": "dirname \"$OUTPUT\""}); !strings.HasPrefix(r.Text, "/tmp/code-") {
		t.Errorf("its folder: %q", r.Text)
	}
	if left, _ := filepath.Glob(strings.Fields(r.Text)[0] + "*"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	b.fails("run_code", in{"language": "bash", "code": "exit 4"}, "exit code 4")
	b.fails("run_code", in{"language": "cobol", "code": "x"}, "cannot be run. Use one of python")
	if !tools.RunsCode("Python") || tools.RunsCode("text") {
		t.Error("RunsCode is wrong")
	}
}

func TestServicesPortsAndLogs_AreTold(t *testing.T) {
	b := live(t)
	if r := b.do("list_services", in{}); !strings.Contains(r.Text, "web  ") || !strings.Contains(r.Text, "port 80") {
		t.Errorf("got %q", r.Text)
	}
	b.do("list_ports", in{})
	b.fails("control_service", in{"service": "none", "action": "start"}, "")
	r := b.do("service_log", in{"service": "web", "query": "x", "lines": 5})
	if !strings.Contains(r.Text, "web: first\n") || strings.Index(r.Text, "first") > strings.Index(r.Text, "second") || strings.Contains(r.Text, "\x1b") {
		t.Errorf("got %q", r.Text)
	}
	if q := b.logs.asked; !q.Scope.Has("box") || q.Scope.Has("other") || q.Limit != 5 || q.Services[0] != "web" || q.Text != "x" {
		t.Errorf("asked %+v", q)
	}
}

func TestSnapshots_AreTakenAndOnlyOwnOnesRestored(t *testing.T) {
	b := live(t)
	if r := b.do("take_snapshot", in{"name": "before"}); r.Data.Snapshot != "aaaa000000000001" {
		t.Errorf("got %+v", r)
	}
	if r := b.do("list_snapshots", in{}); !strings.Contains(r.Text, "aaaa000000000001") || !strings.Contains(r.Text, "before") || strings.Contains(r.Text, "bbbb") {
		t.Errorf("got %q", r.Text)
	}
	b.fails("restore_snapshot", in{"id": "bbbb000000000002"}, "no snapshot")
	if r := b.do("restore_snapshot", in{"id": "aaaa000000000001"}); r.Data.Snapshot != "cccc000000000003" || len(b.snaps.restored) != 1 {
		t.Errorf("got %+v", r)
	}
}

func TestAskPerson_GivesTheAnswer(t *testing.T) {
	b := live(t)
	var asked tools.Question
	answer := tools.Answer{Choice: "red"}
	b.seat.Ask = func(_ context.Context, q tools.Question) (tools.Answer, error) {
		asked = q
		if answer == (tools.Answer{Text: "error"}) {
			return answer, fault.New(fault.Unavailable, "The person is away.")
		}
		return answer, nil
	}
	if r := b.do("ask_person", in{"question": "Which\x1b[8m colour?", "choices": []string{"red", "blue"}}); r.Text != `They chose "red".` || r.Data.Choice != "red" {
		t.Errorf("got %+v", r)
	}
	if asked.Text != "Which colour?" || len(asked.Choices) != 2 {
		t.Errorf("asked %+v", asked)
	}
	answer = tools.Answer{Text: "error"}
	b.fails("ask_person", in{"question": "x"}, "away")
	b.fails("ask_person", in{"question": " "}, "empty")
}

func TestPreview_HasTheVeryCommand(t *testing.T) {
	b := live(t)
	for _, c := range []struct {
		tool string
		args in
		code string
		want risk.Level
	}{
		{"run_command", in{"command": "ls -la"}, "ls -la", risk.Harmless},
		{"run_command", in{"command": "ls; rm -rf x"}, "ls; rm -rf x", risk.Risky},
		{"run_command", in{"command": "ls \u202e"}, "ls \u202e", risk.Risky},
		{"run_command", in{"command": "ls", "folder": "/\u200b"}, "ls", risk.Risky},
		{"run_code", in{"language": "python", "code": "print(1)"}, "print(1)", risk.Changing},
		{"run_code", in{"language": "bash", "code": "ls"}, "ls", risk.Changing},
		{"run_code", in{"language": "python", "code": "import os; os.system('x')"}, "import os; os.system('x')", risk.Risky},
		{"write_file", in{"path": "a.txt", "content": "x"}, "x", risk.Changing},
		{"write_file", in{"path": ".bashrc", "content": "x"}, "x", risk.Risky},
		{"apply_patch", in{"patch": "--- /dev/null\n+++ b/.ssh/config\n@@\n+x"}, "--- /dev/null\n+++ b/.ssh/config\n@@\n+x", risk.Risky},
		{"read_file", in{"path": "a.txt"}, "", risk.Harmless},
		{"restore_snapshot", in{"id": "a"}, "a", risk.Risky},
		{"send_input", in{"handle": "cmd-1", "text": "rm -rf x"}, "rm -rf x", risk.Risky},
		{"run_command", in{"cmd": "ls"}, `{"cmd":"ls"}`, risk.Changing},
	} {
		p := b.tool(c.tool).Preview(encoded(t, c.args))
		if p.Code != c.code || p.Risk.Level != c.want || p.Title == "" {
			t.Errorf("%s %v: %+v", c.tool, c.args, p)
		}
	}
}

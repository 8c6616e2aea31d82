package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

var someTime = time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)

// samples are every message with every field.
func samples() map[string]Message {
	return map[string]Message{
		"setup": &Setup{Protocol: Protocol, Name: "box", Env: map[string]string{"A": "b"}, StopGrace: 2 * time.Second,
			Services: []Service{{Name: "web", Command: []string{"serve", "-p", "80"}, Port: 80, Cwd: "/srv",
				Env: map[string]string{"C": "d"}, Autostart: true,
				Health: &Health{Path: "/healthz", Interval: 10 * time.Second}}},
			Revision: 3, IDE: true, Models: true},
		"hello": &Hello{Protocol: Protocol, Version: "1.0", User: "agent", Home: HomePath, Shell: "/bin/bash",
			HasTTYD: true, HasTmux: true, Models: true, Kept: true},
		"start": &ExecStart{Command: []string{"echo", "hi"}, Cwd: "/tmp", User: "root", Env: map[string]string{"A": "b"},
			TTY: true, Cols: 100, Rows: 30},
		"start-sftp": &ExecStart{SFTP: true}, // without a command, which an older guest refuses
		"terminals":  &Terminals{{Name: "main", Created: someTime, Viewers: 2, Title: "vim"}},
		"services": &ServiceStatuses{{Name: "web", State: ServiceWaiting, Port: 80, PID: 12, ExitCode: 1, Restarts: 3,
			Since: someTime, Retry: someTime.Add(time.Second), Problem: "it ended", Health: HealthUnhealthy}},
		"ports":      &Ports{{Port: 80}, {Port: 3000, Address: "127.0.0.1", Process: "node", PID: 12}},
		"kept-start": &KeptStart{ID: "chat-1", Command: []string{"agent", "acp"}, Cwd: "/tmp", User: "root", Env: map[string]string{"A": "b"}},
		"kept": &Kepts{{ID: "chat-1", Title: "agent acp", Started: someTime, Input: 10, Closed: true, First: 20, Last: 30, Ended: someTime.Add(time.Second),
			Code: 137, Signal: 9}},
		"kept-input": &KeptInput{Next: 11},
		"problem":    &Problem{Code: CodeNotFound, Message: "There is no such thing."},
	}
}

// The shapes are pinned: an older guest must go on understanding a newer sandboxd, or Protocol is raised.
func TestMessages_KeepTheirShape(t *testing.T) {
	for name, m := range samples() {
		t.Run(name, func(t *testing.T) {
			b, err := Encode(MaxReply, m)
			if err != nil {
				t.Fatal(err)
			}
			var pretty bytes.Buffer
			json.Indent(&pretty, b, "", "  ")
			pretty.WriteByte('\n')
			file := filepath.Join("testdata", name+".golden.json")
			if *update {
				if err := os.WriteFile(file, pretty.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), pretty.String()); d != "" {
				t.Error(d)
			}
			back := fresh(m)
			if err := Decode(bytes.NewReader(b), MaxReply, back); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(m, back); d != "" {
				t.Error(d)
			}
		})
	}
}

// fresh gives an empty message of m's type.
func fresh(m Message) Message {
	switch m.(type) {
	case *Setup:
		return &Setup{}
	case *Hello:
		return &Hello{}
	case *ExecStart:
		return &ExecStart{}
	case *Terminals:
		return &Terminals{}
	case *ServiceStatuses:
		return &ServiceStatuses{}
	case *Ports:
		return &Ports{}
	case *KeptStart:
		return &KeptStart{}
	case *Kepts:
		return &Kepts{}
	case *KeptInput:
		return &KeptInput{}
	}
	return &Problem{}
}

func TestDecode_RefusesWhatIsTooLargeOrNotJSON(t *testing.T) {
	if err := Decode(strings.NewReader(strings.Repeat(" ", 100)), 99, &Hello{}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	for _, s := range []string{"", "{", "[]", "{} {}", `"x"`, "\x00"} {
		if err := Decode(strings.NewReader(s), 99, &Hello{}); err == nil {
			t.Errorf("%q is let through", s)
		}
	}
}

func TestCheck_RefusesWhatIsOutOfBounds(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	many := make([]Service, MaxServices+1)
	for i := range many {
		many[i] = Service{Name: "s" + strings.Repeat("x", i%60), Command: []string{"x"}}
	}
	ok := []string{"x"}
	for name, m := range map[string]Message{
		"name":              &Setup{Name: long},
		"many services":     &Setup{Services: many},
		"service twice":     &Setup{Services: []Service{{Name: "a", Command: ok}, {Name: "a", Command: ok}}},
		"service name":      &Setup{Services: []Service{{Name: "A", Command: ok}}},
		"service command":   &Setup{Services: []Service{{Name: "a"}}},
		"service port":      &Setup{Services: []Service{{Name: "a", Command: ok, Port: 65536}}},
		"health interval":   &Setup{Services: []Service{{Name: "a", Command: ok, Health: &Health{Interval: 1}}}},
		"negative interval": &Setup{Services: []Service{{Name: "a", Command: ok, Health: &Health{Interval: -1}}}},
		"health path":       &Setup{Services: []Service{{Name: "a", Command: ok, Health: &Health{Path: long}}}},
		"health":            &ServiceStatuses{{Name: "a", State: ServiceRunning, Health: "odd"}},
		"grace":             &Setup{StopGrace: time.Hour},
		"negative grace":    &Setup{StopGrace: -1},
		"env name":          &Setup{Env: map[string]string{"": "x"}},
		"env name with =":   &ExecStart{Command: ok, Env: map[string]string{"a=b": "x"}},
		"env value":         &ExecStart{Command: ok, Env: map[string]string{"a": long}},
		"env zero byte":     &ExecStart{Command: ok, Env: map[string]string{"a": "\x00"}},
		"no command":        &ExecStart{},
		"log":               &ExecStart{Command: ok, Log: "a b"},
		"SFTP and command":  &ExecStart{SFTP: true, Command: ok},
		"SFTP on terminal":  &ExecStart{SFTP: true, TTY: true},
		"empty program":     &ExecStart{Command: []string{""}},
		"argument":          &ExecStart{Command: []string{"x", long}},
		"many arguments":    &ExecStart{Command: make([]string, 5000)},
		"cwd":               &ExecStart{Command: ok, Cwd: long},
		"user":              &ExecStart{Command: ok, User: long},
		"size":              &ExecStart{Command: ok, Cols: 80},
		"huge size":         &ExecStart{Command: ok, Cols: 80, Rows: 5000},
		"many tabs":         &Terminals{17: {}},
		"tab name":          &Terminals{{Name: "-a"}},
		"viewers":           &Terminals{{Name: "a", Viewers: -1}},
		"state":             &ServiceStatuses{{Name: "a", State: "odd"}},
		"pid":               &ServiceStatuses{{Name: "a", State: ServiceRunning, PID: -1}},
		"status name":       &ServiceStatuses{{State: ServiceRunning}},
		"hello's long name": &Hello{User: long},
	} {
		if m.Check() == nil {
			t.Errorf("%s is let through", name)
		}
	}
	if _, err := Encode(MaxStart, &ExecStart{}); err == nil {
		t.Error("Encode lets through what Decode refuses")
	}
}

func TestPorts_RefuseWhatIsOutOfBounds(t *testing.T) {
	many := make(Ports, MaxOpenPorts+1)
	for i := range many {
		many[i].Port = i + 1
	}
	for name, l := range map[string]Ports{"zero": {{}}, "too large": {{Port: 65536}}, "backwards": {{Port: 2}, {Port: 1}},
		"twice": {{Port: 1}, {Port: 1}}, "address": {{Port: 2, Address: "x"}}, "zone": {{Port: 2, Address: "fe80::1%x"}},
		"pid": {{Port: 2, PID: -1}}, "many": many} {
		if l.Check() == nil {
			t.Errorf("%s is let through", name)
		}
	}
	if l := many[:MaxOpenPorts]; l.Check() != nil {
		t.Errorf("%d ports are refused: %v", len(l), l.Check())
	}
}

func TestFrames_ComeBackAsTheyWent(t *testing.T) {
	var b []byte
	b = AppendFrame(b, FrameStart, bytes.Repeat([]byte("s"), 200<<10))
	b = AppendFrame(b, FrameStdout, []byte("out"))
	b = AppendFrame(b, FrameStderr, nil)
	b = AppendExit(b, 130, 2)
	b = AppendFrame(b, FrameDataDone, nil)
	r := NewFrameReader(bytes.NewReader(b))
	for i, want := range []struct {
		t FrameType
		n int
	}{{FrameStart, 200 << 10}, {FrameStdout, 3}, {FrameStderr, 0}, {FrameExit, 4}, {FrameDataDone, 0}} {
		kind, payload, err := r.Next()
		if err != nil || kind != want.t || len(payload) != want.n {
			t.Fatalf("frame %d: %d, %d bytes, %v", i, kind, len(payload), err)
		}
		if kind == FrameExit {
			if f, err := DecodeExec(kind, payload); f.Code != 130 || f.Signal != 2 || err != nil {
				t.Errorf("got %+v, %v", f, err)
			}
		}
	}
	if _, _, err := r.Next(); err != io.EOF {
		t.Errorf("got %v", err)
	}
}

func TestFrames_RefuseTooMuchAndTooLittle(t *testing.T) {
	for name, b := range map[string][]byte{
		"unknown type":      {0, 0, 0, 0},
		"too long":          {byte(FrameStdout), 0, 0x80, 1},
		"exit too long":     {byte(FrameExit), 0, 0, 5, 0, 0, 0, 0, 0},
		"done with content": {byte(FrameDataDone), 0, 0, 1, 0},
		"cut head":          {byte(FrameStdout), 0},
		"cut payload":       {byte(FrameStdout), 0, 0, 3, 'a'},
	} {
		if _, _, err := NewFrameReader(bytes.NewReader(b)).Next(); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFrames_AnnouncedLengthCostsNothing(t *testing.T) {
	head := []byte{byte(FrameStart), 0x0f, 0xff, 0xff} // 1 MiB, of which nothing comes
	n := testing.AllocsPerRun(10, func() { NewFrameReader(bytes.NewReader(head)).Next() })
	r := NewFrameReader(bytes.NewReader(head))
	r.Next()
	if cap(r.buf) > 64<<10 {
		t.Errorf("%d bytes held, %v allocations", cap(r.buf), n)
	}
}

func TestLogLines_ComeBackAndBadOnesDoNot(t *testing.T) {
	at := time.UnixMicro(1_700_000_000_123_456)
	lines := []LogLine{{at, "web", []byte("one")}, {at, "", nil}, {at, "a-1", bytes.Repeat([]byte{0xff}, MaxLogText)}}
	var b []byte
	for _, l := range lines {
		b = AppendLogLine(b, l)
	}
	for _, want := range lines {
		got, rest, err := NextLogLine(b)
		if err != nil || !got.Time.Equal(at) || got.Service != want.Service || !bytes.Equal(got.Text, want.Text) {
			t.Fatalf("%v: %+v", err, got)
		}
		b = rest
	}
	good := AppendLogLine(nil, lines[0])
	for what, bad := range map[string][]byte{
		"none": nil, "cut": good[:len(good)-1], "head": good[:5],
		"name":  AppendLogLine(nil, LogLine{at, "../x", nil}),
		"long":  append(bytes.Clone(good[:9]), 0xff, 0xff, 'w', 'e', 'b'),
		"names": append(bytes.Clone(good[:8]), 0xff, 0, 0),
	} {
		if l, _, err := NextLogLine(bad); err == nil {
			t.Errorf("%s: %+v", what, l)
		}
	}
}

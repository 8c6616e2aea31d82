package acp_test

import (
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"sandboxd/internal/acp"
)

// TestCalls_AreWhatAgentsRead has the line of each call and notification of ours.
func TestCalls_AreWhatAgentsRead(t *testing.T) {
	gateway := acp.AuthMethod{ID: "gateway"}
	openai := acp.AuthMethod{ID: "g2"}
	openai.Meta.Gateway = &struct{ Protocol string }{"openai"}
	flag := acp.Option{ID: "web", Way: acp.SetOption, Flag: true}
	choice := acp.Option{ID: "effort", Way: acp.SetOption}
	for _, c := range []struct {
		method string
		params any
		want   string
	}{
		{acp.Initialize, acp.InitializeParams(false), `{"clientCapabilities":{},"clientInfo":{"name":"sandboxd","title":"sandboxd","version":"1"},"protocolVersion":1}`},
		{acp.Initialize, acp.InitializeParams(true), `{"clientCapabilities":{"auth":{"_meta":{"gateway":true}}},"clientInfo":{"name":"sandboxd","title":"sandboxd","version":"1"},"protocolVersion":1}`},
		{acp.Authenticate, gateway.GatewayParams("http://127.0.0.1:1", "k"), `{"_meta":{"gateway":{"baseUrl":"http://127.0.0.1:1","headers":{"Authorization":"Bearer k"}}},"methodId":"gateway"}`},
		{acp.Authenticate, openai.GatewayParams("http://127.0.0.1:1", "k"), `{"_meta":{"gateway":{"baseUrl":"http://127.0.0.1:1/v1","headers":{"Authorization":"Bearer k"}}},"methodId":"g2"}`},
		{acp.NewSession, acp.SessionParams("", "/h"), `{"cwd":"/h","mcpServers":[]}`},
		{acp.LoadSession, acp.SessionParams("s", "/h"), `{"cwd":"/h","mcpServers":[],"sessionId":"s"}`},
		{acp.Prompt, acp.PromptParams("s", []acp.Block{{Type: "text", Text: "hi"}, {Type: "image", MimeType: "image/png", Data: []byte("x")}}),
			`{"prompt":[{"type":"text","text":"hi"},{"type":"image","data":"eA==","mimeType":"image/png"}],"sessionId":"s"}`},
		{acp.SetMode, (&acp.Option{Way: acp.SetMode}).Params("s", "plan"), `{"modeId":"plan","sessionId":"s"}`},
		{acp.SetModel, (&acp.Option{Way: acp.SetModel}).Params("s", "m1"), `{"modelId":"m1","sessionId":"s"}`},
		{acp.SetOption, flag.Params("s", "true"), `{"configId":"web","sessionId":"s","type":"boolean","value":true}`},
		{acp.SetOption, choice.Params("s", "high"), `{"configId":"effort","sessionId":"s","value":"high"}`},
	} {
		var p acp.Peer
		line, n := p.Call(c.method, c.params)
		if want := `{"jsonrpc":"2.0","id":1,"method":"` + c.method + `","params":` + c.want + "}\n"; string(line) != want || n != 1 {
			t.Errorf("%s\ngot  %swant %s", c.method, line, want)
		}
	}
	var p acp.Peer
	if got := string(p.Notify(acp.Cancel, acp.CancelParams("s"))); got != `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}`+"\n" {
		t.Error(got)
	}
}

// TestAnswers_AreReadAlsoWhenPartsAreOdd has the answers to calls of ours. What has an unknown shape hides nothing else.
func TestAnswers_AreReadAlsoWhenPartsAreOdd(t *testing.T) {
	var i acp.Initialized
	_ = json.Unmarshal([]byte(`{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":true,"audio":5}},
		"authMethods":[{"id":"login","name":7},{"id":"x","name":"Gateway","_meta":{"gateway":{"protocol":"openai"}}}]}`), &i)
	m, ok := i.Gateway()
	if i.ProtocolVersion != 1 || !i.AgentCapabilities.LoadSession || !i.AgentCapabilities.PromptCapabilities.Image || !ok || m.ID != "x" || m.Meta.Gateway.Protocol != "openai" {
		t.Errorf("%+v", i)
	}
	if _, ok := (&acp.Initialized{AuthMethods: []acp.AuthMethod{{ID: "login"}}}).Gateway(); ok {
		t.Error("a login is a gateway")
	}
	var s acp.Session
	_ = json.Unmarshal([]byte(`{"sessionId":"s","modes":{"currentModeId":"code","availableModes":[{"id":"code","name":"Code"},{"id":"plan"}]},
		"models":{"currentModelId":"m1","availableModels":[{"modelId":"m1","name":"One"}]},"configOptions":[{"id":"effort","name":"Effort","category":"thought_level","type":"select",
		"currentValue":"high","options":[{"value":"low","name":"Low"},{"value":"high","name":"High"}]},{"id":"web","name":"Web","type":"boolean","currentValue":false},
		{"id":"odd","options":7},{"id":"m","name":"Model","category":"model","currentValue":"a","options":[{"group":"g","name":"G","options":[{"value":"a","name":"A"}]}]}]}`), &s)
	want := []acp.Option{
		{ID: "effort", Name: "Effort", Category: "thought_level", Value: "high", Values: []acp.Value{{"low", "Low"}, {"high", "High"}}, Way: acp.SetOption},
		{ID: "web", Name: "Web", Value: "false", Values: []acp.Value{{"true", "On"}, {"false", "Off"}}, Way: acp.SetOption, Flag: true},
		{ID: "m", Name: "Model", Category: "model", Value: "a", Values: []acp.Value{{"a", "A"}}, Way: acp.SetOption},
		{ID: "mode", Name: "Mode", Category: "mode", Value: "code", Values: []acp.Value{{"code", "Code"}, {"plan", "plan"}}, Way: acp.SetMode},
	}
	if got := s.Options(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	s.ConfigOptions = nil
	if got := s.Options(); len(got) != 2 || got[1].Way != acp.SetModel || got[1].Value != "m1" {
		t.Errorf("%+v", got)
	}
	long := strings.Repeat("x", 1<<20)
	s = acp.Session{Modes: &acp.Modes{CurrentModeID: long}, Models: &acp.Models{CurrentModelID: long}, ConfigOptions: json.RawMessage(`[{"id":"a","currentValue":"` + long + `"}]`)}
	for _, o := range s.Options() {
		if len(o.Value) > acp.MaxID {
			t.Errorf("%s: a value of %d bytes", o.ID, len(o.Value))
		}
	}
}

func TestOptions_AreBoundedTogether(t *testing.T) {
	value := `{"value":"` + strings.Repeat("v", 100) + `","name":"` + strings.Repeat("n", 300) + `"}`
	one := `{"id":"a","name":"A","currentValue":"x","options":[` + strings.Repeat(value+",", 500) + value + `]}`
	all, ok := acp.ConfigOptions(json.RawMessage("[" + strings.Repeat(one+",", 50) + one + "]"))
	size := 0
	for _, o := range all {
		for _, v := range o.Values {
			size += len(v.ID) + len(v.Name)
		}
	}
	if !ok || len(all) > 20 || size > 64<<10 {
		t.Errorf("%d options of %d bytes", len(all), size)
	}
}

func TestPeer_MatchesAnswers(t *testing.T) {
	var p acp.Peer
	p.Call("a", nil)
	p.Call("b", nil)
	stored, err := json.Marshal(&p)
	if err != nil {
		t.Fatal(err)
	}
	p = acp.Peer{}
	if err := json.Unmarshal(stored, &p); err != nil { // as after a restart
		t.Fatal(err)
	}
	m, err := p.Take([]byte(`{"jsonrpc":"2.0","id":2,"result":{"x":1}}` + "\n"))
	if err != nil || m.Kind != acp.Response || m.Method != "b" || m.Call != 2 || string(m.Body) != `{"x":1}` {
		t.Errorf("%+v %v", m, err)
	}
	m, err = p.Take([]byte(`{"id":1,"error":{"code":-32603,"message":"Internal error.","data":"no money\u202e\nleft"}}`))
	if err != nil || m.Err == nil || m.Err.Text() != "Internal error.: no money left" {
		t.Errorf("%+v %v", m, err)
	}
	for _, id := range []string{`"a b"`, `7`} {
		if m, err = p.Take([]byte(`{"id":` + id + `,"method":"x","params":{}}`)); err != nil || m.Kind != acp.Request || m.ID != id {
			t.Errorf("%+v %v", m, err)
		}
		if got := string(p.Answer(id, map[string]any{"ok": true})); got != `{"jsonrpc":"2.0","id":`+id+`,"result":{"ok":true}}`+"\n" {
			t.Error(got)
		}
		if p.Answer(id, 1) != nil || p.Refuse(id, 1, "") != nil {
			t.Error("it is answered twice")
		}
	}
}

// TestPeer_HostileLines has what no agent may say, and what is passed over.
func TestPeer_HostileLines(t *testing.T) {
	for line, want := range map[string]string{
		`{`: "no valid JSON", `{}`: "not asked", `{"id":1,"method":`: "no valid JSON", `{"method":5}`: "no valid JSON", `{"id":1,"method":"x"} {}`: "no valid JSON",
		`{"id":0,"result":1}`: "not asked", `{"id":null,"result":1}`: "not asked", `{"id":"1","result":1}`: "not asked", `{"id":1.5,"result":1}`: "not asked",
		`{"id":null,"error":{"code":-32700,"message":"Parse error"}}`: "did not understand a message: Parse error", `{"id":1,"error":"x"}`: "no valid JSON",
		`{"id":null,"method":"x"}`: "the id", `{"id":{},"method":"x"}`: "the id", `{"id":1.5,"method":"x"}`: "the id", `{"id":true,"method":"x"}`: "the id",
		`{"id":"` + strings.Repeat("x", 200) + `","method":"x"}`:        "the id",
		`{"method":"x","params":` + strings.Repeat("[", 1000):           "nested more",
		`{"method":"x","params":"` + strings.Repeat(`{"a":`, 70) + `"}`: "no valid JSON", // depth in a text is none
	} {
		p := acp.Peer{Last: 1, Calls: map[int64]string{2: "x"}}
		if _, err := p.Take([]byte(line)); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 1000 {
			t.Errorf("%.60s: %v", line, err)
		}
	}
	var p acp.Peer
	for _, line := range []string{"", "  ", "a log line", "[1,2]", "\xff\xfe", "5", "null", `{"method":"x"}`, `{"method":"x","params":"` + strings.Repeat(`{`, 100) + `"}`, `{"method":"x","params":7,"extra":[]}`} {
		if m, err := p.Take([]byte(line)); err != nil || m.Kind == acp.Request || m.Kind == acp.Response {
			t.Errorf("%q: %+v %v", line, m, err)
		}
	}
	for what, line := range map[string]string{"text": "text", "empty lines": ""} {
		p := acp.Peer{}
		var err error
		for n := 0; err == nil; n++ {
			if _, err = p.Take([]byte(line)); n > acp.MaxNoise {
				break
			}
		}
		if err == nil {
			t.Errorf("%s: without an end", what)
		}
	}
	m, err := p.Take([]byte("{\"method\":\"x\",\"params\":{\"a\":\"\xff\"}}"))
	if err != nil || string(m.Body) != `{"a":"�"}` {
		t.Errorf("%q %v", m.Body, err)
	}
}

func TestLines_AreWholeInAnyPieces(t *testing.T) {
	const text = "one\n\ntwo\r\nthree"
	for name, r := range map[string]io.Reader{"at once": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text)), "with the error": iotest.DataErrReader(strings.NewReader(text))} {
		got, size := "", 0
		l := acp.NewLines(r)
		var err error
		for err == nil {
			var lines [][]byte
			var n int
			lines, n, err = l.Next()
			for _, line := range lines {
				got += string(line)
			}
			size += n
		}
		if want := "one\n\ntwo\r\n"; got != want || size != len(want) || err != io.EOF {
			t.Errorf("%s: %q %d %v", name, got, size, err)
		}
	}
}

// endless is a line without an end, in pieces of one byte.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	p[0] = 'x'
	if e.n++; e.n > 2*acp.MaxLine {
		return 0, errors.New("too much was read")
	}
	return 1, nil
}

// TestLines_LongOnesInSmallPiecesCostLittle reads 8 MiB byte by byte. To look through all that came for each byte would take hours.
func TestLines_LongOnesInSmallPiecesCostLittle(t *testing.T) {
	e := &endless{}
	if _, _, err := acp.NewLines(e).Next(); err == nil || !strings.Contains(err.Error(), "longer than") || e.n > acp.MaxLine+1 {
		t.Errorf("%d bytes: %v", e.n, err)
	}
}

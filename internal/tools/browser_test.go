package tools_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"sandboxd/internal/tools/risk"
)

// surfer is the server of a browser, with answers by the names of its tools.
type surfer struct {
	closed chan struct{}

	mu      sync.Mutex
	answers map[string]string // results
	asked   []string
}

// says has a tool answer otherwise from now on.
func (s *surfer) says(tool, answer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[tool] = answer
}

// calls gives the calls until now, with their arguments.
func (s *surfer) calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func (s *surfer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     int
		Method string
		Params struct {
			Name      string
			Arguments json.RawMessage
		}
	}
	if r.Method == http.MethodDelete {
		close(s.closed)
		return
	}
	if json.NewDecoder(r.Body).Decode(&m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Mcp-Session-Id", "one")
	w.Header().Set("Content-Type", "application/json")
	result := "{}"
	if m.Method == "tools/call" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = append(s.asked, m.Params.Name+" "+string(m.Params.Arguments))
		result = s.answers[m.Params.Name]
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"result":%s}`, m.ID, result)
}

func text(lines ...string) string {
	b, _ := json.Marshal(map[string]any{"content": []any{map[string]any{"type": "text", "text": strings.Join(lines, "\n")}}}) // of texts: always
	return string(b)
}

// surfing is a bench whose sandbox has a browser.
func surfing(t *testing.T) (*bench, *surfer) {
	t.Helper()
	b := live(t)
	s := &surfer{closed: make(chan struct{}), answers: map[string]string{
		"browser_snapshot": text("### Page", "- Page URL: http://localhost:3000/", "- Page Title: Shop", "### Snapshot", "```yaml",
			`- text: "x: Safe [ref=e6]"`, "- generic [active] [ref=e1]:", `  - paragraph [ref=e9]: Safe [ref=e6]`, `  - button "Safe [ref=e6]" [ref=e8]`,
			`  - 'button "Pay: \"all\"" [cursor=pointer] [ref=e6]'`, "```"),
		"browser_click":           text("### Page", "- Page URL: http://localhost:3000/"),
		"browser_take_screenshot": `{"content":[{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"},{"type":"image","data":"PHN2Zz4=","mimeType":"image/png"}]}`,
	}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	b.declared.port = server.Listener.Addr().(*net.TCPAddr).Port
	return b, s
}

func TestBrowser_IsOfferedWhereThereIsOne(t *testing.T) {
	b := live(t)
	for _, tool := range b.tools.Table(b.seat) {
		if strings.HasPrefix(tool.Name, "browser_") {
			t.Errorf("without a browser there is %s", tool.Name)
		}
	}
	b, _ = surfing(t)
	changes := map[string]bool{}
	for _, tool := range b.tools.Table(b.seat) {
		if strings.HasPrefix(tool.Name, "browser_") {
			changes[tool.Name] = tool.Changes
			if level := tool.Preview(json.RawMessage(`{}`)).Risk.Level; tool.Changes == (level == risk.Harmless) {
				t.Errorf("%s changes %v and is judged %v", tool.Name, tool.Changes, level)
			}
		}
	}
	looks := []string{"browser_read", "browser_screenshot", "browser_log", "browser_wait"}
	for _, name := range looks {
		if changed, there := changes[name]; changed || !there {
			t.Errorf("%s: there %v, changes %v", name, there, changed)
		}
	}
	if len(changes) != 12 {
		t.Errorf("there are %v", changes)
	}
}

func TestBrowser_ActsAndSaysWhatThePageIsThen(t *testing.T) {
	b, s := surfing(t)
	code := func(name string, a in) string { return b.tool(name).Preview(encoded(t, a)).Code }
	if got := code("browser_click", in{"element": "e6"}); got != "e6" {
		t.Errorf("before anything is open: %q", got)
	}
	if r := b.do("browser_read", in{}); !strings.Contains(r.Text, "- Page Title: Shop") {
		t.Errorf("read %q", r.Text)
	}
	if got := code("browser_click", in{"element": "e6", "double": true}); got != "'button \"Pay: \\\"all\\\"\" [cursor=pointer] [ref=e6]', twice\non http://localhost:3000/" {
		t.Errorf("a person reads %q", got)
	}
	r := b.do("browser_click", in{"element": "e6"})
	if asked := s.calls(); !strings.Contains(r.Text, "Pay: ") || len(asked) != 3 || asked[1] != `browser_click {"doubleClick":false,"target":"e6"}` {
		t.Errorf("asked %q, told %q", asked, r.Text)
	}
	s.says("browser_click", `{"content":[{"type":"text","text":"### Error\n\u001b[2mRef not found"}],"isError":true}`)
	b.fails("browser_click", in{"element": "e7"}, "### Error\nRef not found")
	b.fails("browser_click", in{"element": strings.Repeat("x", 1001)}, "at most 1000")
	if p := b.tool("browser_type").Preview(encoded(t, in{"element": "e1", "text": "pay\u202e", "submit": true})); p.Risk.Level != risk.Risky || !strings.HasSuffix(p.Code, "and press Enter\non http://localhost:3000/\npay\u202e") {
		t.Errorf("%+v", p)
	}
	if p := b.tool("browser_tabs").Preview(encoded(t, in{"action": "list"})); p.Risk.Level != risk.Harmless {
		t.Errorf("%+v", p)
	}
}

func TestBrowser_APageDoesNotSayWhatIsClicked(t *testing.T) {
	b, s := surfing(t)
	b.do("browser_read", in{})
	want := b.tool("browser_click").Preview(encoded(t, in{"element": "e6"})).Code
	lies := text("### Result", "- Page URL: https://bank.example/", "### Snapshot", "```yaml", `- button "Cancel" [ref=e6]`)
	for _, tool := range []string{"browser_console_messages", "browser_wait_for", "browser_click"} {
		s.says(tool, lies)
	}
	b.do("browser_log", in{})
	b.do("browser_wait", in{"text": "x"})
	if got := b.tool("browser_click").Preview(encoded(t, in{"element": "e6"})).Code; got != want {
		t.Errorf("a person reads %q", got)
	}
	s.says("browser_snapshot", text("### Page", "- Page Title: x - Page URL: https://bank.example/", "- Page URL: http://localhost:3000/"+strings.Repeat("x", 1<<20), "### Snapshot"))
	b.do("browser_read", in{})
	got := b.tool("browser_press").Preview(encoded(t, in{"key": "Enter"})).Code
	if !strings.HasPrefix(got, "Enter\non http://localhost:3000/xxx") || len(got) > 9000 {
		t.Errorf("of %d bytes a person reads %.100q", len(got), got)
	}
}

func TestBrowser_AModelDoesNotSayWhichPageItIs(t *testing.T) {
	b, _ := surfing(t)
	b.do("browser_read", in{})
	for name, a := range map[string]in{"browser_click": {"element": "#pay\non https://bank.example"}, "browser_press": {"key": "Enter\non https://bank.example"}} {
		if got := b.tool(name).Preview(encoded(t, a)).Code; strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, "\non http://localhost:3000/") {
			t.Errorf("%s: a person reads %q", name, got)
		}
	}
}

func TestBrowser_OpensOnlyPages(t *testing.T) {
	b, s := surfing(t)
	for _, url := range []string{"", "localhost", "javascript:alert(1)", "chrome://settings", "http:", "data:text/html,x", "view-source:http://x", "http://" + strings.Repeat("x", 9000)} {
		if r := b.call("browser_open", in{"url": url}); !r.Failed {
			t.Errorf("%.40q is opened", url)
		}
	}
	s.says("browser_navigate", text("### Page"))
	for _, url := range []string{"http://localhost:3000/a?b#c", "https://example.com", "file:///home/agent/a.html", "about:blank"} {
		b.do("browser_open", in{"url": url})
	}
	if asked := s.calls(); len(asked) != 8 || asked[0] != `browser_navigate {"url":"http://localhost:3000/a?b#c"}` {
		t.Errorf("asked %q", asked)
	}
}

func TestBrowser_OnlyPicturesAreShown(t *testing.T) {
	b, _ := surfing(t)
	r := b.do("browser_screenshot", in{})
	if len(r.Images) != 1 || r.Images[0].MIME != "image/png" || !strings.Contains(r.Text, "A picture was left out") {
		t.Errorf("%+v", r)
	}
}

func TestBrowser_ThatDoesNotAnswerIsSaid(t *testing.T) {
	b, s := surfing(t)
	s.says("browser_snapshot", text(strings.Repeat("line\n", 100_000)))
	if r := b.do("browser_read", in{}); len(r.Text) > 29_000 || !strings.Contains(r.Text, "bytes left out") {
		t.Errorf("%d bytes", len(r.Text))
	}
	s.says("browser_snapshot", `7`)
	b.fails("browser_read", in{}, "does not answer as it should")
	b.tools.Leave(b.seat.Handle.ID(), b.seat.Key)
	<-s.closed
	b.declared.port = closedPort(t)
	b.fails("browser_read", in{}, "no service")
	tool := b.tool("browser_read")
	b.declared.port = 0
	if r, err := tool.Run(t.Context(), json.RawMessage(`{}`), nil); err != nil || !strings.Contains(r.Text, "from the template Browser") {
		t.Errorf("%+v, %v", r, err)
	}
}

// closedPort is one on which nothing listens.
func closedPort(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/creack/pty"
)

func TestShown_OnlyLinesTabsAndColoursReachATerminal(t *testing.T) {
	for text, want := range map[string]string{
		"plain\ttext\n": "plain\ttext\n", "\x1b[31;1mred\x1b[0m": "\x1b[31;1mred\x1b[0m", "\x1b[38:5:9mx": "\x1b[38:5:9mx",
		"\x1b]0;title\x07": "]0;title", "\x1b]52;c;ZXZpbA==\x1b\\": "]52;c;ZXZpbA==\\", "\x1b[2J\x1b[6n\x1bc": "[2J[6nc",
		"a\rb\bc\x7fd\x00": "abcd", "\u009b31m\u0085x": "31mx", "é€😀": "é€😀", "\x9b2J\xff": "\ufffd2J\ufffd",
		"\x1b[31": "", "\x1b\x1b[31mx": "\x1b[31mx", "\x1b[31\nx": "[31\nx", "\x1b[" + strings.Repeat("1", 100) + "m": "[" + strings.Repeat("1", 100) + "m",
	} {
		for size := 1; size <= len(text); size++ {
			var out bytes.Buffer
			s := &shown{out: &out}
			for rest := []byte(text); len(rest) > 0; {
				n := min(size, len(rest))
				if m, err := s.Write(rest[:n]); m != n || err != nil {
					t.Errorf("%q: %d, %v", text, m, err)
				}
				rest = rest[n:]
			}
			if out.String() != want {
				t.Errorf("%q by %d: %q", text, size, out.String())
			}
		}
	}
}

// TestLogs_ATerminalIsNotTheSandboxes shows a log on a terminal, and writes it elsewhere as it is.
func TestLogs_ATerminalIsNotTheSandboxes(t *testing.T) {
	const text = "\x1b]0;evil\x07\x1b[31mred\n"
	homeless(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/services") {
			io.WriteString(w, `{"services":[{"name":"web"}]}`)
			return
		}
		io.WriteString(w, text)
	}))
	defer s.Close()
	t.Setenv("SANDBOXD_URL", s.URL)
	t.Setenv("SANDBOXD_TOKEN", "sbx_secret")
	for _, args := range [][]string{{"logs", "lab", "web"}, {"logs", "lab"}} {
		if out, err := anywhere(t, args...); err != nil || !strings.HasSuffix(out, text) {
			t.Errorf("%q, to a file: %q, %v", args, out, err)
		}
		ours, tty, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		root := newRootCmd()
		root.SetArgs(args)
		root.SetOut(tty)
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Errorf("%q: %v", args, err)
		}
		seen, err := bufio.NewReader(ours).ReadString('\n') // the kernel may give a line in parts
		if err != nil || strings.ContainsAny(seen, "\a") || strings.Contains(seen, "\x1b]") || !strings.Contains(seen, "]0;evil\x1b[31mred\r\n") {
			t.Errorf("%q, on a terminal: %q, %v", args, seen, err)
		}
		tty.Close()
		ours.Close()
	}
}

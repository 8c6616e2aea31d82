//go:build engine

package terminal_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/gorilla/websocket"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/terminal"
)

// viewer is one browser's end.
type viewer struct {
	t    testing.TB
	conn *websocket.Conn
	all  []byte
	rest int
}

// attach opens a viewer through Attach and Pump.
func (b *box) attach(t testing.TB, tab string) *viewer {
	t.Helper()
	s := b.service()
	up := websocket.Upgrader{Subprotocols: []string{terminal.Subprotocol}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, err := s.Attach(r.Context(), b.sandbox.Handle(t), tab)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		defer a.Close()
		if conn, err := up.Upgrade(w, r, nil); err == nil {
			if err := a.Pump(context.WithoutCancel(r.Context()), conn); err != nil {
				t.Errorf("pump: %v", err)
			}
		}
	}))
	d := websocket.Dialer{Subprotocols: []string{terminal.Subprotocol}, HandshakeTimeout: patience}
	conn, res, err := d.Dial("ws"+strings.TrimPrefix(server.URL, "http"), nil)
	if err != nil {
		var body bytes.Buffer
		if res != nil {
			_, _ = body.ReadFrom(res.Body)
		}
		t.Fatalf("attach: %v: %s", err, &body)
	}
	t.Cleanup(func() {
		conn.Close()
		server.Close()
	})
	v := &viewer{t: t, conn: conn}
	v.send(`{"AuthToken":"","columns":100,"rows":30}`)
	return v
}

func (v *viewer) send(m string) {
	v.t.Helper()
	if err := v.conn.WriteMessage(websocket.BinaryMessage, []byte(m)); err != nil {
		v.t.Fatal(err)
	}
}

func (v *viewer) types(keys string) { v.t.Helper(); v.send("0" + keys) }

func (v *viewer) read() error {
	_ = v.conn.SetReadDeadline(time.Now().Add(patience))
	_, m, err := v.conn.ReadMessage()
	if err == nil && len(m) > 0 && m[0] == '0' {
		v.all = append(v.all, m[1:]...)
	}
	return err
}

func (v *viewer) expect(text string) {
	v.t.Helper()
	for {
		if i := bytes.Index(v.all[v.rest:], []byte(text)); i >= 0 {
			v.rest += i + len(text)
			return
		}
		if err := v.read(); err != nil {
			v.t.Fatalf("no %q: %v; got %q", text, err, v.all[v.rest:])
		}
	}
}

func (v *viewer) end() int {
	v.t.Helper()
	for {
		err := v.read()
		var closed *websocket.CloseError
		if errors.As(err, &closed) {
			return closed.Code
		}
		if err != nil {
			v.t.Fatal(err)
		}
	}
}

func TestTerminal_WithTTYDAndTmux(t *testing.T) {
	b := startBox(t, ttydImage(t), nil)
	first := b.attach(t, "")
	first.types("echo $((6*7)) $(id -un) $TERM $COLORTERM; stty size\r")
	first.expect("42 agent tmux-256color truecolor")
	first.expect("30 100")
	first.conn.Close()

	t.Run("a reload gives the screen back", func(t *testing.T) {
		again := b.attach(t, "")
		again.expect("42 agent")
		b.run(t, "1000", "tmux", "display-message", "-p", "-t", "main", "#{session_name}") // by hand, on the user's own server
	})
	t.Run("several viewers see the same", func(t *testing.T) {
		x, y := b.attach(t, ""), b.attach(t, "")
		x.types("echo sha''red\r")
		x.expect("shared")
		y.expect("shared")
	})
	t.Run("ttyd's death costs only the view", func(t *testing.T) {
		v := b.attach(t, "")
		v.expect("42 agent")
		b.run(t, "0", "sh", "-c", "kill -9 $(for p in /proc/[0-9]*; do if [ \"$(cat $p/comm)\" = ttyd ]; then basename $p; fi; done)")
		if code := v.end(); code != terminal.CloseInterrupted {
			t.Fatalf("code %d", code)
		}
		b.attach(t, "").expect("42 agent")
	})
	t.Run("what has scrolled away can be read, and where it stands", func(t *testing.T) {
		v := b.attach(t, "")
		v.types("clear; cd /usr/share; for i in $(seq 1000); do echo \"line-$i\"; done; printf '\\033[31mend-of-''it\\033[0m\\n'\r")
		v.expect("end-of-it")
		text, err := b.service().Text(t.Context(), b.sandbox.Handle(t), "main", terminal.UnlessFull)
		if err != nil || text.Full || !strings.Contains(string(text.Text), "\nline-7\nline-8\n") || !strings.Contains(string(text.Text), "\x1b[31mend-of-it") {
			t.Errorf("%d bytes, %v: %.300q", len(text.Text), err, text.Text)
		}
		if _, err := b.service().Text(t.Context(), b.sandbox.Handle(t), "no-such-tab", terminal.Everything); !fault.Is(err, fault.NotFound) {
			t.Errorf("a tab that is not there: %v", err)
		}
		tabs, err := b.service().Tabs(t.Context(), b.sandbox.Handle(t))
		if err != nil || len(tabs) == 0 || tabs[0].Folder != "/usr/share" {
			t.Errorf("tabs %+v, %v", tabs, err)
		}
		b.looksAtAWholeScreen(t, v)
	})
	t.Run("the settings are ours, and the user's own come after", func(t *testing.T) {
		got := b.run(t, "1000", "tmux", "show-options", "-g")
		for _, want := range []string{"mouse off", "status off", "history-limit 20000"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q", want)
			}
		}
		if got := b.run(t, "1000", "tmux", "show-options", "-s"); !strings.Contains(got, "RGB:sync:clipboard") || !strings.Contains(got, "escape-time 10") {
			t.Errorf("server options: %s", got)
		}
	})
}

// looksAtAWholeScreen reads the main tab while a program has the whole screen.
func (b *box) looksAtAWholeScreen(t *testing.T, v *viewer) {
	t.Helper()
	v.types("printf '\\033[?1049hwhole-''screen'; read x; printf '\\033[?1049lback-''again\\n'\r")
	v.expect("whole-screen")
	text, err := b.service().Text(t.Context(), b.sandbox.Handle(t), "main", terminal.UnlessFull)
	if err != nil || !text.Full || text.Text != nil {
		t.Errorf("%t, %d bytes, %v", text.Full, len(text.Text), err)
	}
	v.types("\r")
	v.expect("back-again")
}

func TestTerminal_TabsWithTmux(t *testing.T) {
	b := startBox(t, ttydImage(t), nil)
	b.attach(t, "").expect("$")
	t.Run("tabs are listed and closed", func(t *testing.T) {
		v := b.attach(t, "second")
		v.types("echo he''re\r")
		v.expect("here")
		tabs, err := b.service().Tabs(t.Context(), b.sandbox.Handle(t))
		if err != nil || !slices.Equal(names(tabs), []string{"main", "second"}) || tabs[1].Viewers != 1 {
			t.Fatalf("%+v, %v", tabs, err)
		}
		if err := b.service().CloseTab(t.Context(), b.sandbox.Handle(t), "second"); err != nil {
			t.Fatal(err)
		}
		if code := v.end(); code != terminal.CloseEnded {
			t.Fatalf("code %d", code)
		}
	})
	t.Run("the end of the shell is a normal end, and the next viewer gets a new one", func(t *testing.T) {
		v := b.attach(t, "short")
		v.types("exit 7\r")
		if code := v.end(); code != terminal.CloseEnded {
			t.Fatalf("code %d", code)
		}
		v = b.attach(t, "short")
		v.types("echo ne''w\r")
		v.expect("new")
	})
}

// TestTerminal_InAStrictBox: a read-only root, few capabilities, no network.
func TestTerminal_InAStrictBox(t *testing.T) {
	strict := func(h *container.HostConfig) {
		h.ReadonlyRootfs, h.NetworkMode = true, "none"
		h.CapDrop, h.CapAdd = []string{"ALL"}, []string{"CHOWN", "DAC_OVERRIDE", "KILL", "SETGID", "SETUID"}
		h.SecurityOpt = []string{"no-new-privileges"}
		h.Tmpfs = map[string]string{"/run": "", "/tmp": "mode=1777"}
	}
	for _, ref := range []string{ttydImage(t), plainImage} {
		v := startBox(t, ref, strict).attach(t, "")
		v.types("echo $((6*7))\r")
		v.expect("42")
	}
}

func TestTerminal_UsersOwnTmuxSettingsWin(t *testing.T) {
	b := startBox(t, ttydImage(t), nil)
	b.run(t, "1000", "sh", "-c", "echo 'set -g history-limit 4242' > /home/agent/.tmux.conf")
	v := b.attach(t, "")
	v.types("tmux show -gv history-limit\r")
	v.expect("4242")
}

func TestTerminal_InAPlainImage(t *testing.T) {
	b := startBox(t, plainImage, nil)
	first := b.attach(t, "")
	first.types("echo $((6*7)); stty size; printf '\\033[31mr''ed\\n'\r")
	first.expect("42")
	first.expect("30 100")
	first.expect("\x1b[31mred")
	first.conn.Close()
	again := b.attach(t, "")
	again.expect("42")
	again.expect("red")
	again.types("exit\r")
	if code := again.end(); code != terminal.CloseEnded {
		t.Fatalf("code %d", code)
	}
}

// TestTerminal_GoesOnAfterAFreeze: nothing that a viewer's page does by itself thaws a sandbox, and the first key does.
func TestTerminal_GoesOnAfterAFreeze(t *testing.T) {
	for name, ref := range map[string]string{"with ttyd": ttydImage(t), "in a plain image": plainImage} {
		t.Run(name, func(t *testing.T) {
			b := startBox(t, ref, nil)
			v := b.attach(t, "")
			v.types("echo bef''ore\r")
			v.expect("before")
			for range 3 {
				b.freeze(t)
				v.send(`1{"columns":90,"rows":25}`)
				v.send("45")
				v.send("5")
				v.send("0\x1b[O")
				if err := v.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(patience)); err != nil {
					t.Fatal(err)
				}
				if state := b.stands(); state != sandbox.Frozen {
					t.Fatalf("it is %s", state)
				}
				v.types("echo th''awed $(stty size)\r")
				v.expect("thawed 25 90")
			}
		})
	}
}

func TestTerminal_SurvivesTheLink(t *testing.T) {
	b := startBox(t, ttydImage(t), nil)
	v := b.attach(t, "")
	v.types("echo ke''pt\r")
	v.expect("kept")
	if err := b.hub.Forget(b.name); err != nil {
		t.Fatal(err)
	}
	if code := v.end(); code != terminal.CloseInterrupted {
		t.Fatalf("code %d", code)
	}
}

// TestTerminal_ReachesItsFigures logs the figures, which are for reading, and checks every byte.
func TestTerminal_ReachesItsFigures(t *testing.T) {
	b := startBox(t, ttydImage(t), nil)
	const bytes = terminal.FloodBytes / 10
	linked, direct := b.flood(t, bytes)
	f, err := terminal.Bench{Terminals: b.service(), Sandbox: b.sandbox.Handle(t), Rounds: 40, Repeats: 2, Linked: linked, Direct: direct, Bytes: bytes}.Measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Log("ttyd and tmux: ", f)
	plain := startBox(t, plainImage, nil)
	f, err = terminal.Bench{Terminals: plain.service(), Sandbox: plain.sandbox.Handle(t), Rounds: 40}.Measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Log("the guest's own:", f)
}

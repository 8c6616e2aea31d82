package socket

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

const patience = time.Minute

// ends gives both ends of a websocket.
func ends(t *testing.T) (client, server *websocket.Conn) {
	t.Helper()
	got := make(chan *websocket.Conn, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
		}
		got <- ws
	}))
	t.Cleanup(s.Close)
	client, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(s.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	server = <-got
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

func TestConn_CarriesBytesAndTheEndOfEachDirection(t *testing.T) {
	a, b := ends(t)
	client, server := New(a, patience), New(b, patience)
	want := make([]byte, 1<<20+7)
	rand.Read(want)
	var sending sync.WaitGroup
	for _, c := range []*Conn{client, server} {
		sending.Go(func() {
			if _, err := c.Write(want); err != nil {
				t.Error(err)
			}
			if err := c.CloseWrite(); err != nil {
				t.Error(err)
			}
		})
	}
	for _, c := range []*Conn{client, server} {
		if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("behind the end: %d, %v", n, err)
		}
	}
	sending.Wait()
	client.Close()
	client.Close()
}

func TestConn_HowTheOtherEndCloses(t *testing.T) {
	for name, c := range map[string]struct {
		last func(ws *websocket.Conn)
		end  bool // in order
	}{
		"in order": {func(ws *websocket.Conn) {
			ws.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
		}, true},
		"away":       {func(ws *websocket.Conn) { ws.NetConn().Close() }, false},
		"nonsense":   {func(ws *websocket.Conn) { ws.WriteMessage(websocket.TextMessage, []byte(`{"type":"what"}`)) }, false},
		"no text":    {func(ws *websocket.Conn) { ws.WriteMessage(websocket.TextMessage, []byte(`{`)) }, false},
		"a long one": {func(ws *websocket.Conn) { ws.WriteMessage(websocket.BinaryMessage, make([]byte, maxMessage+1)) }, false},
	} {
		a, b := ends(t)
		client := New(a, patience)
		c.last(b)
		if _, err := io.ReadAll(client); (err == nil) != c.end {
			t.Errorf("%s: %v", name, err)
		}
		client.Close()
	}
}

func TestConn_SilenceEndsIt(t *testing.T) {
	a, _ := ends(t)
	client := New(a, 50*time.Millisecond)
	defer client.Close()
	if _, err := client.Read(make([]byte, 1)); err == nil {
		t.Error("it reads something")
	}
}

// TestConn_APingIsAnsweredWhileNothingIsTaken fills the connection up, so that the answer cannot be sent at once.
func TestConn_APingIsAnsweredWhileNothingIsTaken(t *testing.T) {
	a, b := ends(t)
	client := New(a, patience)
	go io.Copy(client, endless{}) //nolint:errcheck // it ends with the connection
	heard := make(chan struct{})
	go func() {
		_, err := io.ReadFull(client, make([]byte, 5))
		if err != nil {
			t.Error(err)
		}
		close(heard)
	}()
	answered := make(chan string, 1)
	b.SetPongHandler(func(data string) error { answered <- data; return nil })
	if err := errors.Join(b.WriteControl(websocket.PingMessage, []byte("here?"), time.Now().Add(patience)), b.WriteMessage(websocket.BinaryMessage, []byte("hello"))); err != nil {
		t.Fatal(err)
	}
	select {
	case <-heard: // though nobody takes what is sent
	case <-time.After(patience):
		t.Fatal("the ping holds up reading")
	}
	for {
		if _, _, err := b.ReadMessage(); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-answered:
			if got != "here?" {
				t.Errorf("got %q", got)
			}
			client.Close()
			return
		default:
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// Command chaos is what runs in the sandboxes of the chaos test. Everything that it answers says whose answer it is, by a
// name that was put into its sandbox: a page, a long download, and a WebSocket echo. In the sandbox "busy" it works by
// itself.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

const nameFile = "/home/agent/name"

// The download: so many bytes a piece, so often.
const (
	pieceSize = 4096
	pieceTime = 100 * time.Millisecond
)

// The work of "busy": so long in every tick.
const (
	workTick = 100 * time.Millisecond
	workTime = 30 * time.Millisecond
)

func main() {
	text, err := os.ReadFile(nameFile)
	if err != nil {
		log.Fatal(err)
	}
	s := service{name: strings.TrimSpace(string(text))}
	if s.name == "busy" {
		go work()
	}
	http.HandleFunc("GET /page/{nonce}", s.page)
	http.HandleFunc("GET /long/{pieces}", s.long)
	http.HandleFunc("GET /ws", s.echo)
	log.Fatal(http.ListenAndServe(":3000", nil))
}

type service struct{ name string }

func (s service) page(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "page of %s: %s\n", s.name, r.PathValue("nonce"))
}

// long sends numbered pieces, one after another.
func (s service) long(w http.ResponseWriter, r *http.Request) {
	pieces, err := strconv.Atoi(r.PathValue("pieces"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(pieces*pieceSize))
	tick := time.NewTicker(pieceTime)
	defer tick.Stop()
	for n := range pieces {
		if _, err := fmt.Fprintf(w, "%-*s\n", pieceSize-1, fmt.Sprintf("piece of %s: %d", s.name, n)); err != nil {
			return
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

func (s service) echo(w http.ResponseWriter, r *http.Request) {
	up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	c, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer c.Close()
	for {
		kind, m, err := c.ReadMessage()
		if err != nil {
			return
		}
		if err := c.WriteMessage(kind, append([]byte("echo of "+s.name+": "), m...)); err != nil {
			return
		}
	}
}

func work() {
	for range time.Tick(workTick) {
		for begun := time.Now(); time.Since(begun) < workTime; {
		}
	}
}

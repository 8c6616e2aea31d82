// Command echo is what the end-to-end tests run in sandboxes: a page, a check sum of what is uploaded, a WebSocket and an
// event stream. It is built static, so that it runs in any image.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/gorilla/websocket"
)

func main() {
	address := ":3000"
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", page)
	mux.HandleFunc("POST /sum", sum)
	mux.HandleFunc("PUT /sum", sum)
	mux.HandleFunc("GET /small", small)
	mux.HandleFunc("GET /events", events)
	mux.HandleFunc("GET /head", head)
	mux.HandleFunc("GET /ws", echo)
	log.Fatal(http.ListenAndServe(address, mux))
}

func page(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, "<!doctype html><title>echo</title><h1>Here is %s</h1><p id=path>%s</p>", r.Host, r.URL.Path)
}

// small answers with a kilobyte.
func small(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write(kilobyte)
}

var kilobyte = make([]byte, 1000)

// head answers with the head that it was sent, to see what reaches a sandbox.
func head(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: "own", Value: "1"})
	http.SetCookie(w, &http.Cookie{Name: "tossed", Value: "1", Domain: "localhost"})
	fmt.Fprintf(w, "host: %s\n", r.Host)
	_ = r.Header.Write(w)
}

func sum(w http.ResponseWriter, r *http.Request) {
	h := sha256.New()
	n, err := io.Copy(h, r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fmt.Fprintf(w, "%d %s", n, hex.EncodeToString(h.Sum(nil)))
}

// events sends one event each second.
func events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 0; ; n++ {
		fmt.Fprintf(w, "data: %0200d\n\n", n)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

func echo(w http.ResponseWriter, r *http.Request) {
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
		if err := c.WriteMessage(kind, m); err != nil {
			return
		}
	}
}

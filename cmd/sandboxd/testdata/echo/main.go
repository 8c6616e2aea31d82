// Command echo runs in the sandboxes of the end-to-end tests: a page, a checksum of an upload, a WebSocket and an
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
	"strconv"
	"strings"
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
	mux.HandleFunc("GET /bytes", zeros)
	mux.HandleFunc("GET /events", events)
	mux.HandleFunc("GET /steps", steps)
	mux.HandleFunc("GET /next", func(http.ResponseWriter, *http.Request) { next <- struct{}{} })
	mux.HandleFunc("GET /broken", broken)
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

// zeros answers with as many bytes as n says.
func zeros(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.ParseInt(r.FormValue("n"), 10, 64)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
	piece := make([]byte, 64<<10)
	for ; n > 0; n -= int64(len(piece)) {
		if _, err := w.Write(piece[:min(n, int64(len(piece)))]); err != nil {
			return
		}
	}
}

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

// next lets steps go on.
var next = make(chan struct{})

// steps writes a line at each request for the next: as events, or as an answer that announces how long it is.
func steps(w http.ResponseWriter, r *http.Request) {
	padding := ""
	if r.FormValue("announced") == "" {
		w.Header().Set("Content-Type", "text/event-stream")
	} else {
		padding = strings.Repeat(" ", 2000)
		w.Header().Set("Content-Length", strconv.Itoa(3*len("data: 0\n"+padding)))
	}
	flush := http.NewResponseController(w).Flush
	_ = flush()
	for i := range 3 {
		select {
		case <-next:
		case <-r.Context().Done():
			return
		}
		fmt.Fprintf(w, "data: %d%s\n", i, padding)
		_ = flush()
	}
}

// broken ends in the middle of its answer.
func broken(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "half of it")
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
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

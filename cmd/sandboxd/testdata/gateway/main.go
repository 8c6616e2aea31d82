// Command gateway takes the place of a guest's gateway, and of sandboxd, in tests of Traefik: it answers as a hostile or
// an ordinary server in a sandbox would.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// next lets a streaming answer go on.
var next = make(chan struct{})

// answers are by path; whatever else is asked for is echoed.
var answers = map[string]http.HandlerFunc{
	"/head": head, "/trailers": trailers, "/early": early, "/events": events, "/slow": slow,
	"/next": func(http.ResponseWriter, *http.Request) { next <- struct{}{} }, "/bytes": bytes, "/sum": sum, "/broken": broken,
	"/small": func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 1000)) },
}

func main() {
	log.Fatal(http.ListenAndServe(os.Args[1], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer := answers[r.URL.Path]; answer != nil {
			answer(w, r)
			return
		}
		echo(w, r)
	})))
}

// echo says what arrived.
func echo(w http.ResponseWriter, r *http.Request) {
	json.NewEncoder(w).Encode(map[string]any{"via": "gateway", "method": r.Method, "uri": r.RequestURI, "host": r.Host, "header": r.Header})
}

// head answers with just the header lines that it is sent.
func head(w http.ResponseWriter, r *http.Request) {
	var header http.Header
	if err := json.NewDecoder(r.Body).Decode(&header); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	maps.Copy(w.Header(), header)
}

// trailers sends one that is announced, and some that are not.
func trailers(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Trailer", "X-Sum, Set-Cookie")
	io.WriteString(w, "body")
	h.Set("X-Sum", "42")
	h.Set("Set-Cookie", "announced=1")
	h.Set(http.TrailerPrefix+"Clear-Site-Data", `"*"`)
	h.Set(http.TrailerPrefix+"X-More", "43")
}

// early sends hints before its answer.
func early(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Link", "</style.css>; rel=preload")
	w.Header().Set("Set-Cookie", "early=1; Domain=localhost")
	w.WriteHeader(http.StatusEarlyHints)
	io.WriteString(w, "late")
}

// events streams: its head, and then a line whenever somebody asks for the next.
func events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	stream(w, r, "")
}

// slow announces how long it is, and takes its time.
func slow(w http.ResponseWriter, r *http.Request) {
	padding := strings.Repeat(" ", 2000)
	w.Header().Set("Content-Length", strconv.Itoa(3*len("data: 0\n"+padding)))
	stream(w, r, padding)
}

func stream(w http.ResponseWriter, r *http.Request, padding string) {
	flush := http.NewResponseController(w).Flush
	flush()
	for i := range 3 {
		select {
		case <-next:
		case <-r.Context().Done():
			return
		}
		fmt.Fprintf(w, "data: %d%s\n", i, padding)
		flush()
	}
}

// bytes sends as many as it is asked for, announced or not.
func bytes(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.ParseInt(r.FormValue("n"), 10, 64)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if r.FormValue("announced") != "" {
		w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
	}
	chunk := make([]byte, 64<<10)
	for ; n > 0; n -= int64(len(chunk)) {
		w.Write(chunk[:min(n, int64(len(chunk)))])
	}
}

// broken ends in the middle of its body.
func broken(w http.ResponseWriter, _ *http.Request) {
	io.WriteString(w, "half of it")
	http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// sum takes an upload.
func sum(w http.ResponseWriter, r *http.Request) {
	h := sha256.New()
	n, err := io.Copy(h, r.Body)
	fmt.Fprintf(w, "%d %x %v", n, h.Sum(nil), err)
}

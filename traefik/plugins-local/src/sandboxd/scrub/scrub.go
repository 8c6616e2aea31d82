// Package scrub is sandboxd's plugin for Traefik: it takes out of what a sandbox answers on the direct route whatever
// would reach beyond the sandbox's own host, which sandboxd's proxy takes out on its own route.
//
// It does not look at requests (forwardAuth's lists do) nor at bodies. Traefik interprets it, with the standard library of
// Go 1.22 and not without faults (a case with several conditions looks at the first one alone): so it is written plainly,
// and tested in the real Traefik too.
//
// Invariant: what internal/proxy refuses in a response, this refuses too; what is flushed stays flushed.
package scrub

import (
	"context"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
)

// Config is empty: there is nothing to choose.
type Config struct{}

// CreateConfig gives the configuration that Traefik fills in.
func CreateConfig() *Config { return &Config{} }

// New gives the middleware in front of next.
func New(_ context.Context, next http.Handler, _ *Config, _ string) (http.Handler, error) {
	return &scrubber{next: next}, nil
}

type scrubber struct{ next http.Handler }

func (s *scrubber) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.next.ServeHTTP(&response{w: w, length: -1}, r)
	scrubTrailers(w.Header()) // they are known only now
}

// small is a body that comes in one piece with its head: nobody gains by the head alone.
const small = 4096

// response scrubs the head when it is written. Interpreted code cannot hand on the Flusher of the writer behind it, so it
// flushes by itself whatever is written, except where the end of the response is about to do so.
type response struct {
	w       http.ResponseWriter
	begun   bool
	length  int64 // as announced, -1 when it is not
	written int64
}

// Header gives the head, which can be changed until it is written.
func (r *response) Header() http.Header { return r.w.Header() }

// WriteHeader sends the head, also those of interim answers.
func (r *response) WriteHeader(status int) {
	scrubHead(r.w.Header())
	r.w.WriteHeader(status)
	if status < http.StatusOK || r.begun {
		return
	}
	r.begun = true
	if n, err := strconv.ParseInt(r.w.Header().Get("Content-Length"), 10, 64); err == nil {
		r.length = n
	}
	if (r.length < 0 || r.length > small) && status != http.StatusNoContent && status != http.StatusNotModified {
		r.flush()
	}
}

// Write sends a piece of the body at once.
func (r *response) Write(p []byte) (int, error) {
	if !r.begun {
		r.WriteHeader(http.StatusOK)
	}
	n, err := r.w.Write(p)
	r.written += int64(n)
	if err == nil && r.written != r.length {
		r.flush()
	}
	return n, err
}

func (r *response) flush() {
	if f, ok := r.w.(http.Flusher); ok {
		f.Flush()
	}
}

// scrubHead takes out of a head what reaches beyond its host. Traefik's proxy gives names in their canonical form.
func scrubHead(h http.Header) {
	if lines, there := h["Set-Cookie"]; there {
		keepOwn(h, lines)
	}
	scrub(h)
}

// scrubTrailers takes out of trailers what scrubHead takes out of a head, and all cookies: no server has a reason to set
// one there.
func scrubTrailers(h http.Header) {
	delete(h, "Set-Cookie") // those of the head have gone out
	scrub(h)
	for name := range h {
		if strings.HasPrefix(name, http.TrailerPrefix) && reaching(name[len(http.TrailerPrefix):]) {
			delete(h, name)
		}
	}
}

// scrub takes out what clears the data of sibling hosts, leads browsers past us or pretends to come from sandboxd.
func scrub(h http.Header) {
	delete(h, "Clear-Site-Data")
	delete(h, "Alt-Svc")
	for name := range h {
		if strings.HasPrefix(name, "Sandboxd-") {
			delete(h, name)
		}
	}
}

func reaching(name string) bool {
	return name == "Set-Cookie" || name == "Clear-Site-Data" || name == "Alt-Svc" || strings.HasPrefix(name, "Sandboxd-")
}

func keepOwn(h http.Header, lines []string) {
	var kept []string
	for _, line := range lines {
		if ownCookie(line) {
			kept = append(kept, line)
		}
	}
	if len(kept) == 0 {
		delete(h, "Set-Cookie")
		return
	}
	h["Set-Cookie"] = kept
}

// ownCookie reports whether a Set-Cookie line stays within its host. A cookie without a name is refused, since its
// value comes back as if it were a name, and so are control characters, at which browsers may cut.
func ownCookie(line string) bool {
	for i := 0; i < len(line); i++ {
		if line[i] < ' ' && line[i] != '\t' || line[i] == 0x7f {
			return false
		}
	}
	parts := strings.Split(line, ";")
	equals := strings.IndexByte(parts[0], '=')
	if equals < 0 {
		return false
	}
	if name := textproto.TrimString(parts[0][:equals]); name == "" || isOurs(name) {
		return false
	}
	for _, attribute := range parts[1:] {
		if equals := strings.IndexByte(attribute, '='); equals >= 0 {
			attribute = attribute[:equals]
		}
		if strings.EqualFold(textproto.TrimString(attribute), "Domain") {
			return false
		}
	}
	return true
}

// isOurs knows the names of sandboxd's own cookies.
func isOurs(name string) bool {
	name = strings.ToLower(name)
	name = strings.TrimPrefix(name, "__host-")
	name = strings.TrimPrefix(name, "__secure-")
	return strings.HasPrefix(name, "sandboxd")
}

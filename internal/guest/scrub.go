package guest

import (
	"net/http"

	"sandboxd/internal/scrub"
)

// scrubRequest takes out of a request whatever is about the way that it came.
func scrubRequest(h http.Header) {
	for name := range h {
		if scrub.Forwarding(name) {
			delete(h, name)
		}
	}
}

// scrubbed is where an answer goes, informational ones included. The sandbox's root can do without us, by taking our
// place; this keeps everybody else in it to their host, as sandboxd's own proxy does.
type scrubbed struct{ http.ResponseWriter }

// WriteHeader scrubs what is sent with it.
func (s *scrubbed) WriteHeader(status int) {
	scrub.Response(s.Header())
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController flush.
func (s *scrubbed) Unwrap() http.ResponseWriter { return s.ResponseWriter }

package web

import (
	"net/http"
	"strconv"

	"github.com/a-h/templ"

	"sandboxd/views"
)

// mishapTitles say what happened in words for a person; the problem's own sentence follows.
var mishapTitles = map[int]string{
	http.StatusBadRequest:            "This request is invalid",
	http.StatusForbidden:             "You don't have access",
	http.StatusNotFound:              "Not found",
	http.StatusMethodNotAllowed:      "This cannot be done here",
	http.StatusRequestTimeout:        "This took too long",
	http.StatusConflict:              "This isn't possible right now",
	http.StatusGone:                  "This sandbox was deleted",
	http.StatusRequestEntityTooLarge: "This is too large",
	http.StatusTooManyRequests:       "Too many attempts",
	http.StatusInternalServerError:   "Something went wrong",
	http.StatusServiceUnavailable:    "Not available now",
	http.StatusGatewayTimeout:        "This took too long",
}

// mishap shows an error as a page.
func (s *Server) mishap(r *request, p problem) templ.Component {
	if r.who.User.ID == "" && r.access == public { // no route, or one for everybody: nobody has looked who it is
		if who, err := s.sessionOf(r.http.Context(), r); err == nil {
			r.who = who
		}
	}
	title := mishapTitles[p.Status]
	if title == "" {
		title = p.Title
	}
	m := views.Mishap{
		Frame: s.frame(r, title, ""), Code: strconv.Itoa(p.Status), Title: title, Text: p.Detail,
		Again: p.Status >= http.StatusInternalServerError && r.http.Method == http.MethodGet,
	}
	if p.Status >= http.StatusInternalServerError {
		m.Request = p.RequestID
	}
	return views.MishapPage(m)
}

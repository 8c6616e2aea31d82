package proxy

import (
	"io"
	"net/http"
	"testing"

	"sandboxd/internal/sandbox"
)

// swapping gives the name "ml" to a sandbox of Bob's as soon as the request of Ann has been judged.
func (w *world) swapOnceJudged() {
	w.boxes.afterLookup = func() {
		w.boxes.boxes["ml"] = sandbox.Sandbox{ID: "9", Name: "ml", Owner: "u-bob", State: sandbox.Running}
	}
}

func TestRequest_DoesNotReachTheNextSandboxOfTheName(t *testing.T) {
	for what, address := range map[string]string{
		"port": "http://8000-ml.localhost:8080/", "terminal": "http://ml.localhost:8080/", "VS Code": "http://code-ml.localhost:8080/",
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			reached := func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "Bob's sandbox") }
			for _, host := range []string{portHost(8000), tabHost("main"), ideHost} {
				w.serve(host, reached)
			}
			w.swapOnceJudged()
			a := w.ask(http.MethodGet, address, bearer)
			w.wantStatus(a, http.StatusGone)
			if contains(a.body, "Bob's") {
				t.Error("Ann's request reached a sandbox of Bob's")
			}
		})
	}
}

package agenttest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"sandboxd/internal/agent"
	"sandboxd/internal/agent/transport"
)

// Exchange asks a model that is behind a server which answers with body, and gives what the server was sent and what came of it: for what
// a scripted provider does not do.
func Exchange(t *testing.T, open func(transport.Endpoint) agent.Model, r agent.Request, contentType, body string) (sent string, chunks []agent.Chunk, finish agent.Finish, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		data, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		sent = string(data)
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body) // the client's end is tested
	}))
	defer server.Close()
	if r.Messages == nil {
		r.Messages = []agent.Message{agent.NewText(agent.User, "Hello.")}
	}
	finish, err = open(transport.Endpoint{BaseURL: server.URL, Model: "m"}).Stream(t.Context(), r, func(c agent.Chunk) error {
		chunks = append(chunks, c)
		return nil
	})
	return sent, chunks, finish, err
}

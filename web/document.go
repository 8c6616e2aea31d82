package web

import (
	"context"
	_ "embed"
	"encoding/json"
	"sync"

	"github.com/goccy/go-yaml"

	"sandboxd/internal/fault"
)

//go:embed openapi.yaml
var documentYAML []byte

// document is the API's description as JSON, made once.
var document = sync.OnceValues(func() (json.RawMessage, error) { return yaml.YAMLToJSON(documentYAML) })

// apiDocument serves the OpenAPI document. It is public: it holds nothing of this installation.
func (s *processHandlers) apiDocument(context.Context, *request, none) (reply, error) {
	doc, err := document()
	if err != nil {
		return reply{}, fault.Wrap(err, fault.Internal, "The API's description could not be read.")
	}
	return reply{body: doc}, nil
}

package web

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

// described is the served document, read and checked.
var described = sync.OnceValues(func() (*openapi3.T, error) {
	text, err := document()
	if err != nil {
		return nil, err
	}
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(text)
	if err != nil {
		return nil, err
	}
	for _, streamed := range []string{"application/x-ndjson", "text/event-stream", "application/x-tar", "application/zstd", "application/zip",
		"image/png", "image/svg+xml"} {
		openapi3filter.RegisterBodyDecoder(streamed, openapi3filter.RegisteredBodyDecoder("text/plain"))
	}
	return doc, doc.Validate(loader.Context)
})

var describedRouter = sync.OnceValues(func() (routers.Router, error) {
	doc, err := described()
	if err != nil {
		return nil, err
	}
	anywhere := *doc
	anywhere.Servers = nil // the router takes "/" for a prefix before every path
	return legacy.NewRouter(&anywhere)
})

// checkDocumented holds an answer of the API, and the request when it was a good one, against the document.
func checkDocumented(t *testing.T, r *http.Request, body string, got *httptest.ResponseRecorder) {
	t.Helper()
	router, err := describedRouter()
	if err != nil {
		t.Fatal(err)
	}
	asked := r.Clone(context.Background())
	asked.Body = io.NopCloser(strings.NewReader(body))
	route, params, err := router.FindRoute(asked)
	if err != nil {
		if got.Code != http.StatusNotFound && got.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s %s answers %d, but is not documented: %v", r.Method, r.URL.Path, got.Code, err)
		}
		return
	}
	options := &openapi3filter.Options{
		AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true, MultiError: true,
	}
	in := &openapi3filter.RequestValidationInput{Request: asked, PathParams: params, Route: route, Options: options}
	if got.Code < 300 {
		if err := openapi3filter.ValidateRequest(t.Context(), in); err != nil {
			t.Errorf("%s %s: the request was taken, but is not as documented: %v", r.Method, r.URL.Path, err)
		}
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: got.Code, Header: got.Header(), Options: options}
	out.SetBodyBytes(bytes.Clone(got.Body.Bytes()))
	if err := openapi3filter.ValidateResponse(t.Context(), out); err != nil {
		t.Errorf("%s %s: the answer is not as documented: %v", r.Method, r.URL.Path, err)
	}
}

// checkSchema holds a piece of JSON, such as an event, against a named schema.
func checkSchema(t *testing.T, name string, text []byte) {
	t.Helper()
	doc, err := described()
	if err != nil {
		t.Fatal(err)
	}
	schema := doc.Components.Schemas[name]
	if schema == nil {
		t.Fatalf("the document has no schema %s", name)
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if err := schema.Value.VisitJSON(v); err != nil {
		t.Errorf("%s is not a %s: %v", text, name, err)
	}
}

var echoParam = regexp.MustCompile(`/:(\w+)`)

// asDocumented writes a route's path as the document does.
func asDocumented(path string) string {
	return strings.ReplaceAll(echoParam.ReplaceAllString(path, "/{$1}"), `\:`, ":")
}

func TestDocument_HasEveryRouteAndNoOther(t *testing.T) {
	doc, err := described()
	if err != nil {
		t.Fatal(err)
	}
	var routed, documented []string
	for _, r := range newWorld(t).server.routes() {
		if strings.HasPrefix(r.path, "/api/") || r.path == "/healthz" || r.path == "/readyz" {
			routed = append(routed, r.method+" "+asDocumented(r.path))
		}
	}
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			documented = append(documented, method+" "+path)
		}
	}
	for _, r := range routed {
		if !slices.Contains(documented, r) {
			t.Errorf("%s is routed, but not documented", r)
		}
	}
	for _, d := range documented {
		if !slices.Contains(routed, d) {
			t.Errorf("%s is documented, but not routed", d)
		}
	}
}

func TestDocument_IsServedToAnybody(t *testing.T) {
	got := newWorld(t).call("", http.MethodGet, "/api/v1/openapi.json", "").is(http.StatusOK)
	var doc struct {
		OpenAPI string
		Paths   map[string]any
	}
	got.into(&doc)
	if doc.OpenAPI == "" || len(doc.Paths) == 0 {
		t.Errorf("got %.200s", got.Body)
	}
}

// TestDocument_NeedsATokenWhereItSaysSo holds the routes' access against the document's security.
func TestDocument_NeedsATokenWhereItSaysSo(t *testing.T) {
	w := newWorld(t)
	doc, err := described()
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			open := op.Security != nil && len(*op.Security) == 0
			target := strings.NewReplacer("{name}", "x", "{id}", "x").Replace(path)
			r := httptest.NewRequest(method, "http://localhost:8080"+target, nil)
			got := httptest.NewRecorder()
			w.server.ServeHTTP(got, r)
			if refused := got.Code == http.StatusUnauthorized; refused == open {
				t.Errorf("%s %s answers %d without a token", method, path, got.Code)
			}
		}
	}
}

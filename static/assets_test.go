package static

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

func bundle(t *testing.T) *Assets {
	t.Helper()
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	if _, err := w.Write([]byte("console.log(1)")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return newAssets(fstest.MapFS{
		Manifest:        {Data: []byte(`{"files": {"app.js": "app-1.js", "icon.svg": "icon-1.svg"}, "needs": {"app.js": ["chunk-1.js"]}}`)},
		"app-1.js":      {Data: []byte("console.log(1)")},
		"app-1.js.gz":   {Data: gz.Bytes()},
		"app-1.js.br":   {Data: []byte("as brotli")},
		"icon-1.svg":    {Data: []byte("<svg/>")},
		"sub/hidden.js": {Data: []byte("no")},
	})
}

func fetch(a *Assets, path, accept string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Accept-Encoding", accept)
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w
}

func TestAssets_AreServedForEverAndCompressed(t *testing.T) {
	a := bundle(t)
	for accept, want := range map[string]string{
		"gzip, deflate, br": "br", "gzip": "gzip", "br;q=0, gzip;q=0.5": "gzip", "": "", "identity": "", "GZIP": "gzip",
	} {
		w := fetch(a, a.URL("app.js"), accept)
		h := w.Header()
		if w.Code != http.StatusOK || h.Get("Content-Encoding") != want || h.Get("Content-Type") != "text/javascript; charset=utf-8" ||
			h.Get("Cache-Control") != "public, max-age=31536000, immutable" || h.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: %d %v", accept, w.Code, h)
		}
	}
	r, err := gzip.NewReader(fetch(a, "/static/app-1.js", "gzip").Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); err != nil || string(text) != "console.log(1)" {
		t.Errorf("%q: %v", text, err)
	}
}

func TestAssets_TheServiceWorkerIsLookedForAnew(t *testing.T) {
	a := bundle(t)
	a.contents.Files["worker.js"] = "app-1.js"
	w := httptest.NewRecorder()
	a.ServeWorker(w, httptest.NewRequest(http.MethodGet, "/service-worker.js", nil))
	if w.Code != http.StatusOK || w.Body.String() != "console.log(1)" || w.Header().Get("Cache-Control") != "no-cache" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	w = httptest.NewRecorder()
	newAssets(fstest.MapFS{}).ServeWorker(w, httptest.NewRequest(http.MethodGet, "/service-worker.js", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("without a bundle: %d", w.Code)
	}
}

func TestAssets_TellWhatAScriptNeeds(t *testing.T) {
	a := bundle(t)
	if got := a.Needs("app.js"); len(got) != 1 || got[0] != "/static/chunk-1.js" {
		t.Errorf("app.js needs %v", got)
	}
	if got := a.Needs("icon.svg"); got != nil {
		t.Errorf("icon.svg needs %v", got)
	}
}

func TestAssets_ServeNothingElse(t *testing.T) {
	a := bundle(t)
	for _, path := range []string{
		"/static/", "/static/manifest.json", "/static/app-2.js", "/static/sub/hidden.js", "/static/../embed.go",
		"/static/app-1.js.gz", "/static/%2e%2e/x.js",
	} {
		if w := fetch(a, path, ""); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

func TestAssets_SayWhatToRunWhenTheyAreMissing(t *testing.T) {
	a := newAssets(fstest.MapFS{".keep": {}})
	if !strings.Contains(a.Problem(), "go run ./static/bundle") || a.URL("app.js") != "" {
		t.Errorf("problem %q, url %q", a.Problem(), a.URL("app.js"))
	}
	if bundle(t).Problem() != "" {
		t.Error("a bundle that is there is no problem")
	}
}

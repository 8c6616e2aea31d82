// Package static holds the files that browsers load: the style sheet, the ES modules and the bundle made of them.
//
// It does not bundle (static/bundle does, before the build) and does not know pages.
//
// Invariant: a file served under a hashed name never changes, so it can be cached for ever. Third-party code is never
// committed; a build without the bundle still works and says what to run.
package static

import (
	"bytes"
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

//go:embed all:dist
var dist embed.FS

// Prefix is the path that all files are served under.
const Prefix = "/static/"

// Manifest is the file in dist that has the Contents of the bundle, which static/bundle writes.
const Manifest = "manifest.json"

// Contents lists the bundle's files.
type Contents struct {
	Files map[string]string   `json:"files"` // entry ("app.js") to the name of its file ("app-5Q7XK2.js")
	Needs map[string][]string `json:"needs"` // entry to the files that its script imports, before it can run
}

// Assets finds and serves the bundled files. It is a http.Handler for everything under Prefix, and safe for
// concurrent use.
type Assets struct {
	files    fs.FS
	contents Contents
	problem  string
}

// New reads the manifest of the bundle inside this binary.
func New() *Assets {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // "dist" is a valid path
	}
	return newAssets(files)
}

func newAssets(files fs.FS) *Assets {
	a := &Assets{files: files}
	manifest, err := fs.ReadFile(files, Manifest)
	if err == nil {
		err = json.Unmarshal(manifest, &a.contents)
	}
	if err != nil {
		a.problem = "This sandboxd was built without its style sheet and scripts. Run “make build”, or " +
			"“npm ci --ignore-scripts” in static/ and then “go run ./static/bundle”, and build it again."
	}
	return a
}

// Problem tells the user why there are no assets and what to run; it is "" when there are.
func (a *Assets) Problem() string { return a.problem }

// URL returns the path of an entry ("app.css"), or "" when the bundle has no such entry.
func (a *Assets) URL(entry string) string {
	file, ok := a.contents.Files[entry]
	if !ok {
		return ""
	}
	return Prefix + file
}

// Needs returns the paths of the scripts that an entry imports, so that a browser can fetch them beside it.
func (a *Assets) Needs(entry string) []string {
	var urls []string
	for _, file := range a.contents.Needs[entry] {
		urls = append(urls, Prefix+file)
	}
	return urls
}

// ServeHTTP serves one file, compressed if the browser accepts that. Only exact names match: there are no folders and no
// listings.
func (a *Assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.serve(w, r, strings.TrimPrefix(r.URL.Path, Prefix), "public, max-age=31536000, immutable")
}

// ServeWorker serves the service worker, whose address is always the same: browsers look there for a newer one.
func (a *Assets) ServeWorker(w http.ResponseWriter, r *http.Request) {
	a.serve(w, r, a.contents.Files["worker.js"], "no-cache")
}

func (a *Assets) serve(w http.ResponseWriter, r *http.Request, name, caching string) {
	kind := contentTypes[path.Ext(name)]
	if kind == "" || strings.Contains(name, "/") {
		http.NotFound(w, r)
		return
	}
	body, encoding, err := a.read(name, r.Header.Get("Accept-Encoding"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", caching)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Vary", "Accept-Encoding")
	if encoding != "" {
		h.Set("Content-Encoding", encoding)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

var contentTypes = map[string]string{
	".css":   "text/css; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".mjs":   "text/javascript; charset=utf-8",
	".png":   "image/png",
	".svg":   "image/svg+xml",
	".txt":   "text/plain; charset=utf-8",
	".woff2": "font/woff2",
}

// read returns the best form of a file that the Accept-Encoding header accepts. A compressed form that would not be smaller
// does not exist.
func (a *Assets) read(name, accept string) (body []byte, encoding string, err error) {
	for _, form := range [...]struct{ coding, ext string }{{"br", ".br"}, {"gzip", ".gz"}} {
		if !accepts(accept, form.coding) {
			continue
		}
		if body, err := fs.ReadFile(a.files, name+form.ext); err == nil {
			return body, form.coding, nil
		}
	}
	body, err = fs.ReadFile(a.files, name)
	return body, "", err
}

// accepts reports whether an Accept-Encoding header names a coding and does not refuse it with a quality of zero.
func accepts(header, coding string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, params, _ := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(name), coding) {
			continue
		}
		q := strings.TrimPrefix(strings.ReplaceAll(params, " ", ""), "q=")
		quality, err := strconv.ParseFloat(q, 64)
		return err != nil || quality > 0
	}
	return false
}

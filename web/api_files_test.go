package web

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/files"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

const labFiles = "/api/v1/sandboxes/lab/files"

func newFilesWorld(t *testing.T) *world {
	w := newWorld(t)
	w.box("ada", "lab")
	return w
}

func TestFiles_ShapesAreAsPinned(t *testing.T) {
	w := newFilesWorld(t)
	w.files.files["/home/agent/odd\xff"] = ""
	w.files.next = "abc"
	w.files.found = []wire.Found{
		{Path: "src/main.go", Type: wire.TypeFile, Line: 1, Column: 9, Text: "package main", Start: 8, End: 12},
		{Path: "odd\xff", Type: wire.TypeFile},
	}
	w.files.shape = func(e *wire.Entry) {
		if e.Name == "main.go" {
			*e = wire.Entry{Name: e.Name, Type: wire.TypeLink, Target: "../x\xff", TargetType: wire.TypeDevice, Modified: fakeTime, Mode: 0o777, Owner: "root", Group: "<b>"}
		}
	}
	for _, c := range []struct{ golden, method, path, body string }{
		{"files_list", "GET", labFiles + "?path=/home/agent", ""},
		{"files_list_page", "GET", labFiles + "?path=src&limit=1", ""},
		{"files_stat", "GET", labFiles + "?path=notes.txt&stat=true", ""},
		{"files_put", "PUT", labFiles + "?path=new.txt", "x"},
		{"files_upload", "GET", labFiles + "?path=new.txt&upload=u1", ""},
		{"files_delete", "DELETE", labFiles + "?path=notes.txt&path=odd%FF", ""},
		{"files_trash", "GET", labFiles + ":trash", ""},
		{"files_search", "POST", labFiles + ":search", `{"query":"main","in":"content"}`},
		{"files_mkdir", "POST", labFiles + ":mkdir", `{"path":"new","parents":true}`},
	} {
		t.Run(c.golden, func(t *testing.T) {
			w := *w
			w.t = t
			golden(t, c.golden, w.call("ada", c.method, c.path, c.body).Body.Bytes())
		})
	}
}

func TestFiles_BytesComeWithAnETagAndRanges(t *testing.T) {
	w := newFilesWorld(t)
	w.files.files["/home/agent/digits"] = "0123456789"
	etag := w.call("ada", "GET", labFiles+"?path=digits", "").is(200).Header().Get("ETag")
	for _, c := range []struct {
		headers []string
		status  int
		body    string
		ranged  string
	}{
		{nil, 200, "0123456789", ""},
		{[]string{"Range", "bytes=2-4"}, 206, "234", "bytes 2-4/10"},
		{[]string{"Range", "bytes=7-"}, 206, "789", "bytes 7-9/10"},
		{[]string{"Range", "bytes=-3"}, 206, "789", "bytes 7-9/10"},
		{[]string{"Range", "bytes=8-99"}, 206, "89", "bytes 8-9/10"},
		{[]string{"Range", "bytes=0-1,4-5"}, 200, "0123456789", ""},
		{[]string{"Range", "lines=1"}, 200, "0123456789", ""},
		{[]string{"Range", "bytes=10-"}, 416, "", "bytes */10"},
		{[]string{"Range", "bytes=2-4", "If-Range", etag}, 206, "234", "bytes 2-4/10"},
		{[]string{"Range", "bytes=2-4", "If-Range", `"other"`}, 200, "0123456789", ""},
		{[]string{"If-None-Match", etag}, 304, "", ""},
		{[]string{"If-None-Match", `"a", ` + etag}, 304, "", ""},
		{[]string{"If-None-Match", `"other"`}, 200, "0123456789", ""},
		{[]string{"If-Match", `"other"`}, 412, "", ""},
		{[]string{"If-Match", etag}, 200, "0123456789", ""},
		{[]string{"If-Modified-Since", fakeTime.Format(http.TimeFormat)}, 304, "", ""},
	} {
		got := w.call("ada", "GET", labFiles+"?path=digits", "", c.headers...).is(c.status)
		if c.status < 300 && got.Body.String() != c.body || got.Header().Get("Content-Range") != c.ranged {
			t.Errorf("%v: %q, %q", c.headers, got.Body, got.Header().Get("Content-Range"))
		}
		if c.status != 416 && got.Header().Get("ETag") != etag {
			t.Errorf("%v: ETag %q", c.headers, got.Header().Get("ETag"))
		}
		if c.status >= 400 {
			got.problem(c.status, map[int]string{412: "precondition_failed", 416: "range_not_satisfiable"}[c.status], "")
		}
	}
}

func TestFiles_HeadReadsNoContent(t *testing.T) {
	w := newFilesWorld(t)
	w.files.files["/home/agent/big"] = strings.Repeat("x", 1<<20)
	read := 0
	w.files.body = func(r io.Reader) io.ReadCloser { return io.NopCloser(&counted{r, &read}) }
	s := w.serve()
	r, err := http.NewRequest("HEAD", s.URL+labFiles+"?path=big", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.tokens["ada"])
	got, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	got.Body.Close()
	if got.StatusCode != 200 || got.ContentLength != 1<<20 || read > sniffed {
		t.Errorf("%d, length %d, %d bytes were read", got.StatusCode, got.ContentLength, read)
	}
}

type counted struct {
	r io.Reader
	n *int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	*c.n += n
	return n, err
}

// TestFiles_NothingFromASandboxRunsOnOurOrigin also not what claims to be a page or a drawing.
func TestFiles_NothingFromASandboxRunsOnOurOrigin(t *testing.T) {
	w := newFilesWorld(t)
	png := "\x89PNG\r\n\x1a\n0000"
	for name, c := range map[string]struct{ content, query, kind string }{
		"page.html":       {"<!DOCTYPE html><script>alert(1)</script>", "", bytesType},
		"page.html ":      {"<html>", "&preview=image", bytesType},
		"drawing.svg":     {"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>", "", bytesType},
		"shown.svg":       {"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>", "&preview=image", svgType},
		"page.xhtml":      {"<?xml version='1.0'?><html/>", "&preview=image", bytesType},
		"script.js":       {"alert(1)", "&preview=image", bytesType},
		"document.pdf":    {"%PDF-1.4", "&preview=image", bytesType},
		"not a png.html":  {png, "", "image/png"},
		"picture.gif":     {"GIF89a<script>", "", "image/gif"},
		"picture.avif":    {"\x00\x00\x00\x20ftypavif", "", "image/avif"},
		"icon.ico":        {"\x00\x00\x01\x00", "", bytesType},
		"nothing":         {"", "", bytesType},
		"page.svg.html":   {"<html>", "&preview=image", bytesType},
		"movie.mp4":       {"\x00\x00\x00\x20ftypmp42", "", bytesType},
		"feed.xml":        {"<?xml version='1.0'?><x/>", "", bytesType},
		"\u202egnp.lmth":  {"<html>", "", bytesType},
		"a\r\nX-Bad: b.t": {"x", "", bytesType},
	} {
		w.files.files["/home/agent/"+name] = c.content
		got := w.call("ada", "GET", labFiles+"?path="+url.QueryEscape("/home/agent/"+name)+c.query, "").is(200)
		h := got.Header()
		if h.Get("Content-Type") != c.kind || h.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.HasPrefix(h.Get("Content-Security-Policy"), "sandbox; default-src 'none'") || strings.Contains(h.Get("Content-Security-Policy"), "allow-") ||
			h.Get("Cross-Origin-Resource-Policy") != "same-origin" || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment; filename=") {
			t.Errorf("%q: %v", name, h)
		}
		if h.Get("X-Bad") != "" || strings.ContainsAny(h.Get("Content-Disposition"), "\r\n\u202e") {
			t.Errorf("%q: disposition %q", name, h.Get("Content-Disposition"))
		}
		if got.Body.String() != c.content {
			t.Errorf("%q: %q", name, got.Body)
		}
	}
	for _, path := range []string{"?path=src", ":trash", "?path=missing", "?path=notes.txt&stat=true"} {
		if h := w.call("ada", "GET", labFiles+path, "").Header(); h.Get("Content-Security-Policy") != sandboxPolicy || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, h)
		}
	}
}

func TestAttachment_NamesAreSafeInAHeader(t *testing.T) {
	for name, want := range map[string]string{
		"a.txt":           `attachment; filename="a.txt"`,
		`q"uo\te.txt`:     `attachment; filename="q_uo_te.txt"; filename*=UTF-8''q%22uo_te.txt`,
		"über 10%.txt":    `attachment; filename="_ber 10_.txt"; filename*=UTF-8''%C3%BCber%2010%25.txt`,
		"a\nb\r\nc":       `attachment; filename="a b c"`,
		"x\u202etxt.exe":  `attachment; filename="xtxt.exe"`,
		"../../etc/x":     `attachment; filename=".._.._etc_x"`,
		"":                `attachment; filename="download"`,
		"..":              `attachment; filename="download"`,
		"bad\xff":         `attachment; filename="bad_"`,
		"a;b":             `attachment; filename="a_b"; filename*=UTF-8''a%3Bb`,
		"\x1b[31mred\x00": `attachment; filename="[31mred"`,
	} {
		if got := attachment(name); got != want {
			t.Errorf("%q:\n got %s\nwant %s", name, got, want)
		}
	}
}

func TestPut_ReplacesUnderConditions(t *testing.T) {
	w := newFilesWorld(t)
	put := func(body string, headers ...string) answer {
		return w.call("ada", "PUT", labFiles+"?path=notes.txt", body, append([]string{"Content-Type", "application/octet-stream"}, headers...)...)
	}
	old := w.call("ada", "GET", labFiles+"?path=notes.txt", "").Header().Get("ETag")
	made := put("new text", "If-Match", old).is(200).Header().Get("ETag")
	if made == "" || made == old || w.files.content("/home/agent/notes.txt") != "new text" {
		t.Errorf("ETag %q after %q, content %q", made, old, w.files.content("/home/agent/notes.txt"))
	}
	for _, h := range [][2]string{{"If-Match", old}, {"If-Match", `W/` + made}, {"If-None-Match", "*"}, {"If-Match", `"` + strings.Repeat("x", 100) + `"`}} {
		got := put("clobbered", h[0], h[1])
		got.problem(412, "precondition_failed", "")
		if got.Header().Get("ETag") != made {
			t.Errorf("%v: told %q", h, got.Header().Get("ETag"))
		}
	}
	for _, h := range [][2]string{{"If-Match", made + ", " + old}, {"If-Match", "bare"}, {"If-None-Match", made}} {
		put("clobbered", h[0], h[1]).problem(400, "invalid", "")
	}
	if got := w.files.content("/home/agent/notes.txt"); got != "new text" {
		t.Errorf("clobbered: %q", got)
	}
	put("again", "If-Match", "*").is(200)
	w.call("ada", "PUT", labFiles+"?path=fresh", "x", "If-None-Match", "*").is(201)
	w.call("ada", "PUT", labFiles+"?path=fresh2", "x", "If-Match", "*").problem(412, "precondition_failed", "")
}

func TestPut_BadInputNamesTheField(t *testing.T) {
	w := newFilesWorld(t)
	for _, c := range []struct {
		query, headers, field string
	}{
		{"", "", "path"}, {"?path=", "", "path"}, {"?path=a&path=b", "", "path"}, {"?path=../x", "", "path"}, {"?path=%00", "", "path"},
		{"?path=" + strings.Repeat("x", 256), "", "path"}, {"?path=" + strings.Repeat("x/", 2050), "", "path"},
		{"?path=x&mode=9", "", "mode"}, {"?path=x&mode=100000", "", "mode"}, {"?path=x&upload=", "bytes 0-0/1", "upload"},
		{"?path=x&upload=a/b", "bytes 0-0/1", "upload"}, {"?path=x&upload=" + strings.Repeat("u", 65), "bytes 0-0/1", "upload"},
		{"?path=x", "bytes 0-0/1", "upload"}, {"?path=x&upload=u", "", ""}, {"?path=x&upload=u", "bytes 1-0/1", ""}, {"?path=x&upload=u", "bytes 0-1/1", ""},
		{"?path=x&upload=u", "bytes 0-4/9", ""}, {"?path=x&upload=u", "bytes -1/9", ""}, {"?path=x&upload=u", "bytes */*", ""}, {"?path=x&upload=u", "bytes +0-0/1", ""},
		{"?path=x&upload=u", "0-0/1", ""}, {"?path=x&upload=u", "bytes 0-0", ""}, {"?path=x&upload=u", "bytes 99999999999999999999-0/1", ""},
		{"?path=x&extract=zip", "", "extract"}, {"?path=x&extract=tar&links=follow", "", "links"},
	} {
		headers := []string{"Content-Type", "text/plain"}
		if c.headers != "" {
			headers = append(headers, "Content-Range", c.headers)
		}
		w.call("ada", "PUT", labFiles+c.query, "x", headers...).problem(400, "invalid", c.field)
	}
	w.call("ada", "PUT", labFiles+"?path=x&extract=tar", "x", "Content-Type", "application/x-tar", "Content-Encoding", "br").problem(415, "unsupported_media_type", "")
	if len(w.files.files) != 4 {
		t.Errorf("something was made: %v", w.files.files)
	}
}

func TestUpload_ComesInPieces(t *testing.T) {
	w := newFilesWorld(t)
	piece := func(body, which string) answer {
		return w.call("ada", "PUT", labFiles+"?path=big&upload=u1", body, "Content-Range", which, "Content-Type", "text/plain")
	}
	piece("abc", "bytes 0-2/*").is(202)
	if got := piece("def", "bytes 3-5/8").is(202).Body.String(); got != `{"offset":6}`+"\n" {
		t.Errorf("got %s", got)
	}
	if got := w.call("ada", "GET", labFiles+"?path=big&upload=u1", "").is(200).Body.String(); got != `{"offset":6}`+"\n" {
		t.Errorf("got %s", got)
	}
	piece("gh", "bytes 6-7/8").is(201)
	if got := w.files.content("/home/agent/big"); got != "abcdefgh" {
		t.Errorf("got %q", got)
	}
	w.call("ada", "DELETE", labFiles+"?path=big&upload=u1", "").is(204)
}

// TestUpload_APieceThatIsCutOffIsNoPiece because Content-Range says how long it is.
func TestUpload_APieceThatIsCutOffIsNoPiece(t *testing.T) {
	w := newFilesWorld(t)
	for _, body := range []string{"ab", "abcd"} {
		r := httptest.NewRequest("PUT", "http://localhost:8080"+labFiles+"?path=big&upload=u1", io.MultiReader(strings.NewReader(body)))
		r.ContentLength = -1
		r.Header.Set("Authorization", "Bearer "+w.tokens["ada"])
		r.Header.Set("Content-Range", "bytes 0-2/9")
		w.send(r, body).problem(400, "invalid", "")
	}
}

func second[T any](_ T, err error) error { return err }

func TestFiles_WhoMayNotSeeTheSandboxFindsNone(t *testing.T) {
	w := newFilesWorld(t)
	w.box("ada", "other")
	w.tokens["limited"] = w.token("ada", auth.NewToken{Name: "limited", Sandbox: "other"})
	for _, user := range []string{"bob", "limited"} {
		for _, c := range [][3]string{
			{"GET", "?path=notes.txt", ""}, {"PUT", "?path=notes.txt", "x"}, {"DELETE", "?path=notes.txt", ""}, {"GET", "?path=~&archive=tar", ""},
			{"POST", ":mkdir", `{"path":"x"}`}, {"POST", ":move", `{"from":["a"],"to":"b"}`}, {"POST", ":copy", `{"from":["a"],"to":"b"}`},
			{"POST", ":chmod", `{"path":"a","mode":"0600"}`}, {"POST", ":search", `{"query":"x"}`}, {"GET", ":trash", ""}, {"DELETE", ":trash", ""},
			{"POST", ":restore", `{"ids":["a"]}`}, {"GET", ":watch?path=x", ""},
		} {
			w.call(user, c[0], labFiles+c[1], c[2]).problem(404, "not_found", "")
		}
	}
	if len(w.files.asked) > 0 {
		t.Errorf("the guest was asked: %v", w.files.asked)
	}
}

func TestFiles_AFullDiskIsSaidSo(t *testing.T) {
	w := newFilesWorld(t)
	w.files.lie = func(verb string) error {
		if verb == "write" {
			return files.ErrDiskFull
		}
		return nil
	}
	p := w.call("ada", "PUT", labFiles+"?path=notes.txt", "x").problem(507, "disk_full", "")
	if !strings.Contains(p.Detail, "are unchanged") || w.files.content("/home/agent/notes.txt") != "hello" {
		t.Errorf("got %+v", p)
	}
	w.files.lie = func(verb string) error {
		if verb == "move" {
			return files.ErrDiskFull
		}
		return nil
	}
	p = w.call("ada", "POST", labFiles+":move", `{"from":["notes.txt"],"to":"src"}`).problem(507, "disk_full", "")
	if !strings.Contains(p.Detail, "until then stay") {
		t.Errorf("got %+v", p)
	}
}

func TestDelete_ThatGoesWrongTellsWhatIsInTheTrash(t *testing.T) {
	w := newFilesWorld(t)
	w.files.half = fault.New(fault.Conflict, "~/odd is on another file system.")
	p := w.call("ada", "DELETE", labFiles+"?path=notes.txt&path=odd%FF&path=src", "").problem(409, "conflict", "")
	if len(p.Trashed) != 2 || p.Trashed[0].ID != "notes.txt" || p.Trashed[1].IDEncoded == "" {
		t.Errorf("got %+v", p)
	}
	w.files.half = nil
	w.files.lie = func(verb string) error {
		if verb == "delete" {
			return fault.New(fault.Conflict, "~/odd is on another file system.")
		}
		return nil
	}
	if p := w.call("ada", "DELETE", labFiles+"?path=notes.txt", "").problem(409, "conflict", ""); p.Trashed != nil {
		t.Errorf("nothing was trashed, and it says %+v", p.Trashed)
	}
}

func TestFiles_ASandboxThatGoesAwayUnderAnUploadIsSaidSo(t *testing.T) {
	for want, do := range map[int]func(w *world){
		409: func(w *world) {
			if _, err := w.manager.Stop(w.t.Context(), w.ref("lab")); err != nil {
				w.t.Error(err)
			}
			if _, err := w.manager.Wait(w.t.Context(), w.ref("lab")); err != nil {
				w.t.Error(err)
			}
		},
		410: func(w *world) {
			lab := w.ref("lab")
			if _, err := w.manager.Delete(w.t.Context(), lab); err != nil {
				w.t.Error(err)
			}
			_, _ = w.manager.Wait(w.t.Context(), lab) // it is gone when this returns
		},
	} {
		w := newFilesWorld(t)
		w.files.lie = func(verb string) error {
			if verb != "write" {
				return nil
			}
			do(w)
			return fault.New(fault.Unavailable, "The connection to the sandbox was lost. Try again in a moment.")
		}
		w.call("ada", "PUT", labFiles+"?path=notes.txt", "x").problem(want, map[int]string{409: "conflict", 410: "gone"}[want], "")
	}
}

func TestFiles_StoppedSaysStartItFirst(t *testing.T) {
	w := newFilesWorld(t)
	w.files.lie = func(string) error {
		return fault.New(fault.Conflict, "lab is %s. Start it first.", sandbox.Stopped)
	}
	if p := w.call("ada", "GET", labFiles+"?path=notes.txt", "").problem(409, "conflict", ""); !strings.Contains(p.Detail, "Start it first") {
		t.Errorf("got %+v", p)
	}
}

// TestFiles_AQueryThatCannotBeReadIsRefused because what is left of it may mean more than what was meant.
func TestFiles_AQueryThatCannotBeReadIsRefused(t *testing.T) {
	w := newFilesWorld(t)
	for _, c := range [][2]string{{"DELETE", ":trash?id=%zz"}, {"DELETE", ":trash?id=a;b"}, {"GET", "?path=%u2215"}, {"DELETE", "?path=a&path=%z"}, {"GET", ":watch?path=x&path=%"}} {
		r := httptest.NewRequest(c[0], "http://localhost:8080"+labFiles, nil)
		path, query, _ := strings.Cut(labFiles+c[1], "?")
		r.URL.Path, r.URL.RawQuery = path, query
		r.Header.Set("Authorization", "Bearer "+w.tokens["ada"])
		got := answer{httptest.NewRecorder(), t}
		w.server.ServeHTTP(got, r)
		got.problem(400, "invalid", "")
	}
	if len(w.files.asked) > 0 {
		t.Errorf("the guest was asked: %q", w.files.asked)
	}
}

// The terminal asks for many words that may be paths: each 404 would be an error in the browser's console.
func TestFiles_AMissingOneIsNoErrorWhereThatIsAskedFor(t *testing.T) {
	w := newFilesWorld(t)
	w.call("ada", "GET", labFiles+"?path=missing&stat=true&missing=empty", "").is(204)
	w.call("ada", "GET", labFiles+"?path=notes.txt&stat=true&missing=empty", "").is(200)
	w.call("ada", "GET", labFiles+"?path=missing&stat=true", "").problem(404, "not_found", "")
}

func TestFiles_ARefreshWakesNothing(t *testing.T) {
	w := newFilesWorld(t)
	w.call("ada", "GET", labFiles+"?path=notes.txt&stat=true&refresh=true", "").is(200)
	w.call("ada", "GET", labFiles+"?path=src&limit=5&refresh=true", "").is(200)
	if awakes, _ := w.access.count(); awakes != 0 {
		t.Errorf("the sandbox was opened %d times", awakes)
	}
	w.files.resting = true
	w.call("ada", "GET", labFiles+"?path=notes.txt&stat=true&refresh=true", "").problem(409, "conflict", "")
	w.call("ada", "GET", labFiles+":watch?path=src", "").problem(409, "conflict", "")
}

func TestFiles_ChangesReachTheGuestAsBytes(t *testing.T) {
	w := newFilesWorld(t)
	for _, c := range []struct{ verb, body, want string }{
		{":move", `{"from":["a"],"from_encoded":["b%FF"],"to":"/tmp"}`, "move a b\xff /tmp"},
		{":copy", `{"from":["~/a"],"to_encoded":"c%20%FF/d"}`, "copy a c \xff/d"},
		{":chmod", `{"path":"a","mode":"0600"}`, "chmod a 0600"},
		{":mkdir", `{"path_encoded":"%66"}`, "mkdir f"},
		{":restore", `{"ids_encoded":["x%FF"]}`, "restore x\xff"},
	} {
		got := w.call("ada", "POST", labFiles+c.verb, c.body)
		if got.Code >= 300 || !strings.Contains(strings.Join(w.files.asked, "\n")+"\n", c.want+"\n") {
			t.Errorf("%s: %d, asked %q", c.verb, got.Code, w.files.asked)
		}
	}
	w.call("ada", "DELETE", labFiles+":trash?id=a&id=b%FF", "").is(204)
	if last := w.files.asked[len(w.files.asked)-1]; last != "empty a b\xff" {
		t.Errorf("asked %q", last)
	}
	for _, c := range []struct{ verb, body, field string }{
		{":move", `{"from":["a"]}`, "to"}, {":move", `{"to":"b"}`, "from"}, {":copy", `{"from":["../a"],"to":"b"}`, "from"},
		{":copy", `{"from":["a"],"to":"b","to_encoded":"c"}`, "to"}, {":mkdir", `{}`, "path"}, {":mkdir", `{"path_encoded":"%zz"}`, "path_encoded"},
		{":chmod", `{"path":"a"}`, "mode"}, {":chmod", `{"path":"a","mode":644}`, "mode"}, {":chmod", `{"path":"a","mode":"rw"}`, "mode"},
		{":restore", `{}`, "ids"}, {":restore", `{"ids":["a/b"]}`, "ids"}, {":mkdir", `{"pth":"a"}`, "pth"},
		{":search", `{}`, "query"}, {":search", `{"query":"x","in":"minds"}`, "in"}, {":search", `{"query":"x","limit":0}`, "limit"}, {":search", `{"query":"x","regex":true}`, "regex"},
	} {
		w.call("ada", "POST", labFiles+c.verb, c.body).problem(400, "invalid", c.field)
	}
}

func TestAppendText_IsReadAsItWas(t *testing.T) {
	for _, s := range []string{`a"b\c`, "", `\`, `"`, `""`, `x\\"y`, "a<b>&c", "é\x01\u2028", "plain", "tab\t", "\x7f"} {
		var got string
		if err := json.Unmarshal(appendText(nil, s), &got); err != nil || got != s {
			t.Errorf("%q: %q, %v", s, got, err)
		}
	}
}

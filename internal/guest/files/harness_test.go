package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/wire"
)

// patience bounds every wait of a test.
const patience = time.Minute

// box is a tree below a folder of its own, served as the guest serves it.
type box struct {
	t      testing.TB
	root   string // of the tree, on the host
	tree   *Tree
	server *httptest.Server
}

// newBox makes a tree with a home at /home of a user with that number, whose the root is too.
func newBox(t testing.TB, uid int) *box {
	t.Helper()
	root := t.TempDir()
	for dir := root; dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
		must(t, os.Chmod(dir, 0o755)) // the user has to get there
	}
	must(t, os.Mkdir(filepath.Join(root, "home"), 0o755))
	must(t, os.Chown(root, uid, uid))
	must(t, os.Chown(filepath.Join(root, "home"), uid, uid))
	return serve(t, root, uid)
}

func serve(t testing.TB, root string, uid int) *box {
	t.Helper()
	tree := New(Config{Root: root, User: func() User { return User{UID: uint32(uid), GID: uint32(uid), Home: "/home"} }})
	mux := http.NewServeMux()
	mux.Handle("POST "+wire.PathFiles+"{verb}", tree)
	s := httptest.NewUnstartedServer(mux)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	only := new(http.Protocols)
	only.SetUnencryptedHTTP2(true)
	s.Client().Transport = &http.Transport{Protocols: only, DisableCompression: true}
	b := &box{t, root, tree, s}
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		tree.Close()
	})
	return b
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// host is a path of the tree as the test sees it.
func (b *box) host(p string) string { return filepath.Join(b.root, p) }

// put makes a file from outside, as the user of the test.
func (b *box) put(p, content string) {
	b.t.Helper()
	must(b.t, os.MkdirAll(filepath.Dir(b.host(p)), 0o755))
	must(b.t, os.WriteFile(b.host(p), []byte(content), 0o644))
	b.own(p)
}

// own gives everything on the way to p to the tree's user.
func (b *box) own(p string) {
	b.t.Helper()
	u := b.tree.cfg.User()
	for ; p != "/" && p != "."; p = filepath.Dir(p) {
		must(b.t, os.Lchown(b.host(p), int(u.UID), int(u.GID)))
	}
}

func (b *box) content(p string) string {
	b.t.Helper()
	c, err := os.ReadFile(b.host(p))
	must(b.t, err)
	return string(c)
}

// answer is what the tree said.
type answer struct {
	entries []wire.Entry
	trashed []wire.Trashed
	found   []wire.Found
	end     []byte
	bare    []byte
}

// ask asks for a verb with its parameters in the query.
func (b *box) ask(verb string, v url.Values, body io.Reader) (*answer, error) {
	return b.do(verb+"?"+v.Encode(), body)
}

// form asks for a verb with its parameters in the body.
func (b *box) form(verb string, v url.Values) (*answer, error) {
	return b.do(verb, strings.NewReader(v.Encode()))
}

func (b *box) do(target string, body io.Reader) (*answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	res, err := b.send(ctx, target, body)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(res.Body)
		var p wire.Problem
		if err := wire.Unmarshal(text, &p); err != nil {
			return nil, err
		}
		return nil, &p
	}
	return readAnswer(res.Body)
}

func (b *box) send(ctx context.Context, target string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.server.URL+wire.PathFiles+target, body)
	if err != nil {
		return nil, err
	}
	return b.server.Client().Do(req)
}

func readAnswer(r io.Reader) (*answer, error) {
	a, records := &answer{}, wire.NewRecordReader(r)
	for {
		kind, payload, err := records.Next()
		if err != nil {
			return a, err
		}
		switch kind {
		case wire.RecordEntry:
			e, err := wire.DecodeEntry(payload)
			if err != nil {
				return a, err
			}
			a.entries = append(a.entries, e)
		case wire.RecordTrashed:
			t, err := wire.DecodeTrashed(payload)
			if err != nil {
				return a, err
			}
			a.trashed = append(a.trashed, t)
		case wire.RecordFound:
			f, err := wire.DecodeFound(payload)
			if err != nil {
				return a, err
			}
			a.found = append(a.found, f)
		case wire.RecordProblem:
			p, err := wire.DecodeProblem(payload)
			if err != nil {
				return a, err
			}
			return a, p
		case wire.RecordEnd:
			a.end = bytes.Clone(payload)
			a.bare, err = io.ReadAll(records.Rest())
			return a, err
		default:
			return a, wire.ErrRecord
		}
	}
}

// code is the code of a problem, "" when there is none.
func code(err error) string {
	var p *wire.Problem
	if errors.As(err, &p) {
		return p.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func at(p string) url.Values { return url.Values{"path": {p}} }

// write writes a whole file.
func (b *box) write(put wire.FilePut, content string) (wire.Written, error) {
	a, err := b.ask(wire.FilesWrite, put.Values(), strings.NewReader(content))
	if err != nil {
		return wire.Written{}, err
	}
	return wire.DecodeWritten(a.end)
}

func (b *box) read(p string) (wire.Entry, string, error) {
	a, err := b.ask(wire.FilesRead, url.Values{"path": {p}, "offset": {"0"}, "length": {"-1"}}, nil)
	if err != nil {
		return wire.Entry{}, "", err
	}
	return a.entries[0], string(a.bare), nil
}

func (b *box) stat(p string) (wire.Entry, error) {
	a, err := b.ask(wire.FilesStat, at(p), nil)
	if err != nil {
		return wire.Entry{}, err
	}
	return a.entries[0], nil
}

func (b *box) list(p, after string, limit string) (wire.Listing, error) {
	a, err := b.ask(wire.FilesList, url.Values{"path": {p}, "after": {after}, "limit": {limit}}, nil)
	if err != nil {
		return wire.Listing{}, err
	}
	l := wire.Listing{Entries: a.entries}
	return l, wire.DecodeListed(a.end, &l)
}

// names are what is in a folder on the host.
func (b *box) names(p string) []string {
	b.t.Helper()
	list, err := os.ReadDir(b.host(p))
	must(b.t, err)
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

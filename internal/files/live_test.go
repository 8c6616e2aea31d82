package files_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/access"
	"sandboxd/internal/access/accesstest"
	"sandboxd/internal/fault"
	"sandboxd/internal/files"
	"sandboxd/internal/guest"
	"sandboxd/internal/idle"
	"sandboxd/internal/link"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// patience bounds every wait of a test.
const patience = time.Minute

// place is a Service over a real link to a real guest, which is this very process and serves a folder.
type place struct {
	*files.Service
	t    *testing.T
	root string
	hub  *link.Hub
	lab  *accesstest.Sandbox
	box  access.Handle
}

func live(t *testing.T) *place {
	t.Helper()
	hub := link.NewHub(filepath.Join(t.TempDir(), "link"), nil)
	folder, err := hub.Expect("box", wire.Setup{Name: "box"})
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, root: t.TempDir(), hub: hub}
	g := guest.New(guest.Config{Socket: filepath.Join(folder, wire.SocketName), Root: p.root, Home: "/home", Version: "test"})
	accesstest.Run(t, hub.Run, g.Run)
	p.Service, p.lab = files.New(""), accesstest.Linked("box", "box", access.FromHub(hub))
	p.box = p.lab.Handle(t)
	return p
}

func (p *place) ctx() context.Context {
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	p.t.Cleanup(cancel)
	return ctx
}

func (p *place) put(path, content string) files.Written {
	p.t.Helper()
	w, err := p.Write(p.ctx(), p.box, wire.FilePut{Path: path, Size: int64(len(content)), Parents: true}, strings.NewReader(content))
	if err != nil {
		p.t.Fatal(err)
	}
	return w
}

func (p *place) get(path string) string {
	p.t.Helper()
	c, err := p.Read(p.ctx(), p.box, path, 0, -1)
	if err != nil {
		p.t.Fatal(err)
	}
	defer c.Close()
	b, err := io.ReadAll(c)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}

// tree gives everything below a folder of the host: links as "→ target". A file that is deleted meanwhile is left out.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		switch {
		case d.IsDir():
			got[name+"/"] = ""
		case d.Type()&os.ModeSymlink != 0:
			to, err := os.Readlink(path)
			got[name] = "→ " + to
			return err
		default:
			b, err := os.ReadFile(path)
			if os.IsNotExist(err) {
				return nil
			}
			got[name] = string(b)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestService_WritesReadsAndTells(t *testing.T) {
	p := live(t)
	content := make([]byte, 3<<20)
	rand.Read(content)
	w := p.put("/a/b/file", string(content))
	if !w.Created || w.Entry.Path != "/a/b/file" || w.Entry.Size != 3<<20 || w.Entry.ETag == "" {
		t.Errorf("wrote %+v", w)
	}
	if p.get("/a/b/file") != string(content) {
		t.Error("something else came back")
	}
	c, err := p.Read(p.ctx(), p.box, "/a/b/file", 1<<20, 10)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	c.Close()
	if err != nil || !bytes.Equal(got, content[1<<20:1<<20+10]) || c.Size != 10 || c.Entry.ETag != w.Entry.ETag {
		t.Errorf("a part: %d bytes, %v, %+v", len(got), err, c.Entry)
	}
	e, err := p.Stat(p.ctx(), p.box, "/a/b")
	if err != nil || e.Type != wire.TypeFolder || e.Path != "/a/b" {
		t.Errorf("stat %+v, %v", e, err)
	}
	if _, err := p.Read(p.ctx(), p.box, "/a/b", 0, -1); !errors.Is(err, files.ErrIsFolder) {
		t.Errorf("got %v", err)
	}
	if s := p.lab.Status(); len(s.Because) != 0 {
		t.Errorf("still in use: %+v", s.Because)
	}
}

func TestService_IsAUseWhileSomethingIsUnderWay(t *testing.T) {
	p := live(t)
	p.put("/f", "x")
	c, err := p.Read(p.ctx(), p.box, "/f", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	if s := p.lab.Status(); len(s.Because) != 1 || s.Because[0].Kind != idle.Files || s.Because[0].Detail != "read f" {
		t.Errorf("in use by %+v", s.Because)
	}
	c.Close()
	c.Close()
	if s := p.lab.Status(); len(s.Because) != 0 {
		t.Errorf("still in use: %+v", s.Because)
	}
	p.lab.Becomes(sandbox.Asleep)
	if _, err := p.Glance().Stat(p.ctx(), p.box, "/f"); !errors.Is(err, access.ErrAsleep) {
		t.Errorf("a glance at one that rests: %v", err)
	}
	p.lab.Becomes(sandbox.Running)
	if e, err := p.Glance().Stat(p.ctx(), p.box, "/f"); err != nil || e.Size != 1 {
		t.Errorf("a glance: %+v, %v", e, err)
	}
	p.lab.Becomes(sandbox.Stopped)
	for _, f := range []func() error{
		func() error { _, err := p.Stat(p.ctx(), p.box, "/f"); return err },
		func() error { _, err := p.Pack(p.ctx(), p.box, "/", nil, files.Tar); return err },
		func() error {
			_, err := p.Write(p.ctx(), p.box, wire.FilePut{Path: "/f", Size: -1}, strings.NewReader("x"))
			return err
		},
	} {
		if err := f(); !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Message(err), "Start it first") {
			t.Errorf("got %v", err)
		}
	}
}

// TestWrite_OfTwoWritersWithOneETagOneWins every time.
func TestWrite_OfTwoWritersWithOneETagOneWins(t *testing.T) {
	p := live(t)
	etag := p.put("/f", "first").Entry.ETag
	for round := range 40 {
		var both sync.WaitGroup
		results := make([]error, 2)
		made := make([]files.Written, 2)
		for i := range results {
			both.Go(func() {
				put := wire.FilePut{Path: "/f", Size: -1, IfMatch: etag}
				made[i], results[i] = p.Write(p.ctx(), p.box, put, strings.NewReader(fmt.Sprintf("writer %d in round %d", i, round)))
			})
		}
		both.Wait()
		won := slices.IndexFunc(results, func(err error) bool { return err == nil })
		if won < 0 || !errors.Is(results[1-won], files.ErrChanged) {
			t.Fatalf("round %d: %v", round, results)
		}
		if got := p.get("/f"); got != fmt.Sprintf("writer %d in round %d", won, round) {
			t.Fatalf("round %d: %q", round, got)
		}
		etag = made[won].Entry.ETag
	}
	if left := tree(t, p.root); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

func TestWrite_ThatIsCutOffLeavesEverythingAsItWas(t *testing.T) {
	p := live(t)
	p.put("/f", "old")
	broken := errors.New("the client has left")
	for _, put := range []wire.FilePut{{Path: "/f", Size: -1}, {Path: "/f", Size: 1 << 20}, {Path: "/new", Size: -1}} {
		body := io.MultiReader(strings.NewReader(strings.Repeat("x", 300<<10)), failing{broken})
		if _, err := p.Write(p.ctx(), p.box, put, body); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	}
	p.until("only the old file is there", func() bool { return cmp.Equal(tree(t, p.root), map[string]string{"f": "old"}) })
}

type reader func([]byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// until looks again and again: what ends with a stream ends beside it.
func (p *place) until(what string, cond func() bool) {
	p.t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-deadline:
			p.t.Fatalf("it is not so that %s", what)
		case <-tick.C:
		}
	}
}

func TestUpload_GoesOnWhereItWasCutOff(t *testing.T) {
	p := live(t)
	content := make([]byte, 2<<20)
	rand.Read(content)
	put := wire.FilePut{Path: "/big", Upload: "u-1", Size: int64(len(content)), Last: true}
	arrives := func() bool {
		at, err := p.Upload(p.ctx(), p.box, "/big", "u-1")
		if err != nil {
			t.Error(err)
		}
		return at > 0
	}
	cut := io.MultiReader(bytes.NewReader(content[:1<<20]), reader(func([]byte) (int, error) { // a cut may drop what is on its way
		p.until("something has arrived", arrives)
		return 0, errors.New("cut")
	}))
	if _, err := p.Write(p.ctx(), p.box, put, cut); err == nil {
		t.Fatal("a cut went unnoticed")
	}
	if _, err := os.Stat(filepath.Join(p.root, "big")); !os.IsNotExist(err) {
		t.Errorf("half a file is there: %v", err)
	}
	var w files.Written
	p.until("the rest is taken", func() (ok bool) { // what is left of the first try may take a moment to arrive and end
		var err error
		if put.Offset, err = p.Upload(p.ctx(), p.box, "/big", "u-1"); err != nil {
			t.Fatal(err)
		}
		w, err = p.Write(p.ctx(), p.box, put, bytes.NewReader(content[put.Offset:]))
		return err == nil
	})
	if w.Offset != int64(len(content)) || p.get("/big") != string(content) {
		t.Errorf("%d bytes, or others", w.Offset)
	}
	put.Offset, put.Last = 5, false
	if _, err := p.Write(p.ctx(), p.box, put, strings.NewReader("x")); !fault.Is(err, fault.Conflict) {
		t.Errorf("from the middle of nothing: %v", err)
	}
	put.Offset = 0
	if _, err := p.Write(p.ctx(), p.box, put, strings.NewReader("x")); err != nil {
		t.Error(err)
	}
	if err := p.Abandon(p.ctx(), p.box, "/big", "u-1"); err != nil {
		t.Error(err)
	}
	for name := range tree(t, p.root) {
		if strings.Contains(name, "u-1") {
			t.Errorf("left: %q", name)
		}
	}
}

func TestList_PagesJoinWithoutGapOrDouble(t *testing.T) {
	p := live(t)
	for i := range 95 {
		if err := os.WriteFile(filepath.Join(p.root, fmt.Sprintf("f%02d", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Mkdir(p.ctx(), p.box, "/zz", false); err != nil {
		t.Fatal(err)
	}
	var names []string
	after := ""
	for pages := 0; pages == 0 || after != ""; pages++ {
		l, err := p.List(p.ctx(), p.box, "/", after, 10)
		if err != nil || len(l.Entries) > 10 || pages > 20 {
			t.Fatalf("%d entries, page %d, %v", len(l.Entries), pages, err)
		}
		for _, e := range l.Entries {
			names = append(names, e.Name)
		}
		after = l.Next
	}
	if len(names) != 96 || names[0] != "zz" || !slices.IsSorted(names[1:]) {
		t.Errorf("got %d: %v", len(names), names)
	}
}

func TestWatch_TellsByThePathThatWasGiven(t *testing.T) {
	p := live(t)
	p.put("/home/agent/x", "")
	ctx, cancel := context.WithCancel(p.ctx())
	defer cancel()
	told := make(chan string, 100)
	ended := make(chan error, 1)
	go func() {
		ended <- p.Watch(ctx, p.box, []string{"/home//agent/", "/home/agent"}, func(folder string) error { told <- folder; return nil })
	}()
	hear := func() string {
		select {
		case s := <-told:
			return s
		case err := <-ended:
			t.Fatalf("it ended: %v", err)
		case <-time.After(patience):
			t.Fatal("nothing is told")
		}
		return ""
	}
	if got := []string{hear(), hear()}; got[0] != "/home//agent/" || got[1] != "/home/agent" {
		t.Errorf("told %q", got)
	}
	p.put("/home/agent/y", "")
	hear()
	if s := p.lab.Status(); len(s.Because) != 0 {
		t.Errorf("watching is a use: %+v", s.Because)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestSearch_TellsAbsolutePaths(t *testing.T) {
	p := live(t)
	p.put("/srv/a/needle.txt", "hay\nthe needle here\n")
	var found []wire.Found
	more, err := p.Search(p.ctx(), p.box, wire.Search{Path: "/srv", Query: "needle", In: wire.SearchNames, Limit: 10}, func(f wire.Found) error {
		found = append(found, f)
		return nil
	})
	if err != nil || more || len(found) != 1 || found[0].Path != "/srv/a/needle.txt" {
		t.Errorf("%+v, %v, %v", found, more, err)
	}
	enough := errors.New("enough")
	if _, err := p.Search(p.ctx(), p.box, wire.Search{Path: "/srv", Query: "needle", In: wire.SearchNames}, func(wire.Found) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
}

// TestService_ALinkThatBreaksEndsWhatIsUnderWay as when the sandbox is deleted.
func TestService_ALinkThatBreaksEndsWhatIsUnderWay(t *testing.T) {
	p := live(t)
	p.put("/big", strings.Repeat("x", 8<<20))
	c, err := p.Read(p.ctx(), p.box, "/big", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	started := make(chan struct{})
	written := make(chan error, 1)
	go func() {
		_, err := p.Write(p.ctx(), p.box, wire.FilePut{Path: "/up", Size: -1}, &slow{started: started, gone: p.t.Context().Done()})
		written <- err
	}()
	<-started
	if err := p.hub.Forget("box"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-written:
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("got %v", err)
		}
	case <-time.After(patience):
		t.Fatal("the upload continues")
	}
	if _, err := io.Copy(io.Discard, c); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
	p.until("nothing is left of the upload", func() bool { return len(tree(t, p.root)) == 1 })
}

// slow gives a little all the time.
type slow struct {
	started chan struct{}
	once    sync.Once
	gone    <-chan struct{}
}

func (s *slow) Read(p []byte) (int, error) {
	s.once.Do(func() { close(s.started) })
	select {
	case <-time.After(5 * time.Millisecond):
		return copy(p, "a little"), nil
	case <-s.gone:
		return 0, io.ErrUnexpectedEOF
	}
}

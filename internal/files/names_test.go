package files

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// forest is a guest with folders, by path, of entries, by name; a name that ends in "/" is a folder.
type forest struct {
	*liar
	folders map[string][]string
	page    int // entries of a page
}

func (f forest) FileList(_ context.Context, at, after string, _ int) (l wire.Listing, err error) {
	names, ok := f.folders[at]
	if !ok {
		return l, fault.New(fault.NotFound, "There is no %s.", at)
	}
	from := 0
	if after != "" {
		_, _ = fmt.Sscan(after, &from)
	}
	for i, name := range names[from:] {
		if f.page > 0 && i == f.page {
			l.Next = fmt.Sprint(from + i)
			break
		}
		e := wire.Entry{Name: strings.TrimRight(name, "/@"), Type: wire.TypeFile}
		switch {
		case strings.HasSuffix(name, "/"):
			e.Type = wire.TypeFolder
		case strings.HasSuffix(name, "@"):
			e.Type, e.TargetType = wire.TypeLink, wire.TypeFolder
		}
		l.Entries = append(l.Entries, e)
	}
	return l, nil
}

func TestNames_TellsNearFilesFirstAndLeavesOutWhatProgramsMake(t *testing.T) {
	g := forest{&liar{}, map[string][]string{
		"/home": {"a.txt", "b.txt", "src/", ".git/", "node_modules/", "gone/", "link@"}, "/home/src": {"deep/", "main.go"}, "/home/src/deep": {"x\xff"},
		"/home/.git": {"HEAD"}, "/home/node_modules": {"index.js"},
	}, 2}
	s := newOn(t, g)
	var got []string
	more, err := s.Names(t.Context(), s.box, ".", func(folder string, names []string) error {
		for _, n := range names {
			got = append(got, path.Join(folder, n))
		}
		return nil
	})
	if want := []string{"/home/a.txt", "/home/b.txt", "/home/src/main.go", "/home/src/deep/x\xff"}; !slices.Equal(got, want) || more || err != nil {
		t.Errorf("got %q, %v, %v", got, more, err)
	}
	if _, err := s.Names(t.Context(), s.box, "/none", func(string, []string) error { return nil }); !fault.Is(err, fault.NotFound) {
		t.Errorf("of no folder: %v", err)
	}
	own := errors.New("enough for me")
	if _, err := s.Names(t.Context(), s.box, ".", func(string, []string) error { return own }); !errors.Is(err, own) {
		t.Errorf("got %v", err)
	}
}

func TestNames_AreBounded(t *testing.T) {
	folders := map[string][]string{"/home": {}}
	for i := range 15 {
		name := fmt.Sprintf("d%d", i)
		folders["/home"] = append(folders["/home"], name+"/")
		folders["/home/"+name] = many(MaxNames / 10)
	}
	s := newOn(t, forest{&liar{}, folders, 0})
	told := 0
	more, err := s.Names(t.Context(), s.box, "/home", func(_ string, names []string) error {
		told += len(names)
		return nil
	})
	if told != MaxNames || !more || err != nil {
		t.Errorf("told %d, %v, %v", told, more, err)
	}
}

func many(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint("f", i))
	}
	return names
}

func TestNames_OfAGuestThatDoesNotAnswerEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newOn(t, stuck{&liar{}})
		more, err := s.Names(t.Context(), s.box, "/home", func(string, []string) error { return nil })
		if !more || err != nil {
			t.Errorf("got %v, %v", more, err)
		}
	})
}

// stuck is a guest that does not answer.
type stuck struct{ *liar }

func (stuck) FileList(ctx context.Context, _, _ string, _ int) (wire.Listing, error) {
	<-ctx.Done()
	return wire.Listing{}, ctx.Err()
}

// unending is a guest whose folders have new folders on every page, and always one more page.
type unending struct {
	*liar
	pages *atomic.Int64
}

func (e unending) FileList(context.Context, string, string, int) (l wire.Listing, err error) {
	n := e.pages.Add(1)
	for i := range 100 {
		l.Entries = append(l.Entries, wire.Entry{Name: fmt.Sprintf("%0200d-%d", n, i), Type: wire.TypeFolder})
	}
	l.Next = "again"
	return l, nil
}

func TestNames_OfAGuestWithoutAnEndOfFoldersEnd(t *testing.T) {
	var pages atomic.Int64
	s := newOn(t, unending{&liar{}, &pages})
	more, err := s.Names(t.Context(), s.box, ".", func(string, []string) error { return nil })
	if most := int64(namesRoom/(200*100) + 1); !more || err != nil || pages.Load() > most {
		t.Errorf("%v, %v after %d pages, at most %d are wanted", more, err, pages.Load(), most)
	}
}

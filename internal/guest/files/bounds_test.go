package files

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/wire"
)

// pages gives the names on all pages of a folder, and what the largest of them weighs with the paths of its entries.
func (b *box) pages(p string) (names []string, pages, heaviest int) {
	b.t.Helper()
	for after := ""; ; pages++ {
		l, err := b.list(p, after, "10000")
		must(b.t, err)
		weight := len(l.Entries) * len(p)
		for _, e := range l.Entries {
			names = append(names, e.Name)
			weight += len(wire.AppendEntry(nil, &e))
		}
		heaviest = max(heaviest, weight)
		if after = l.Next; after == "" {
			return names, pages + 1, heaviest
		}
	}
}

const (
	mostOfAPage = 4<<20 + 64<<10
	manyEntries = 3500
)

func TestList_APageEndsBeforeItIsTooLargeAndTheNextGoesOn(t *testing.T) {
	b := newBox(t, 1000)
	deep := "home" + strings.Repeat("/"+strings.Repeat("d", 230), 15)
	for _, folder := range []string{"home/links", deep} {
		must(t, os.MkdirAll(b.host(folder), 0o755))
	}
	b.own(deep)
	b.own("home/links")
	target := strings.Repeat("\xff", 4000)
	var want []string
	here, err := os.OpenRoot(b.host(deep)) // a path that is as long cannot be opened
	must(t, err)
	defer here.Close()
	for i := range manyEntries {
		name := fmt.Sprintf("n%05d", i)
		want = append(want, name)
		must(t, os.Symlink(target, b.host("home/links/"+name)))
		must(t, here.WriteFile(name, nil, 0o644))
	}
	for _, folder := range []string{"/home/links", "/" + deep} {
		got, pages, heaviest := b.pages(folder)
		if !slices.Equal(got, want) {
			t.Errorf("%.20s: %d names of %d", folder, len(got), len(want))
		}
		if pages < 3 || heaviest > mostOfAPage {
			t.Errorf("%.20s: %d pages of up to %d bytes", folder, pages, heaviest)
		}
	}
	if l, err := b.list("/home/links", "", "10"); err != nil || len(l.Entries) != 10 || l.Entries[9].Name != "n00009" || l.Next == "" {
		t.Errorf("got %d entries, %q, %v", len(l.Entries), l.Next, err)
	}
}

func TestTrash_IsToldOfInBoundsTheNewestFirst(t *testing.T) {
	b := newBox(t, 1000)
	for _, folder := range []string{"/files", "/info"} {
		must(t, os.MkdirAll(b.host("home/"+trashFolder+folder), 0o755))
		b.own("home/" + trashFolder + folder)
	}
	where := strings.Repeat("/"+strings.Repeat("n", 199), 20)
	for i := range 1500 {
		id := fmt.Sprintf("n%05d", i)
		text := trashHead + "\nPath=" + where + "\nDeletionDate=" + time.Unix(1e9+int64(i), 0).Format(trashTime) + "\n"
		must(t, os.WriteFile(b.host("home/"+trashFolder+"/files/"+id), nil, 0o644))
		must(t, os.WriteFile(b.host("home/"+trashFolder+"/info/"+id+trashSuffix), []byte(text), 0o644))
	}
	a, err := b.form(wire.FilesTrash, nil)
	must(t, err)
	var all bytes.Buffer
	for _, x := range a.trashed {
		all.Write(wire.AppendTrashed(nil, &x))
	}
	if all.Len() > mostOfAPage || all.Len() < 1<<20 || a.trashed[0].ID != "n01499" {
		t.Errorf("%d bytes, the first is %q", all.Len(), a.trashed[0].ID)
	}
}

// fillLongSeats takes all seats for long work.
func (b *box) fillLongSeats() {
	for range longSeats {
		b.tree.long <- struct{}{}
	}
	b.t.Cleanup(func() {
		for range longSeats {
			<-b.tree.long
		}
	})
}

func TestTrash_DoesNotWaitForLongCopies(t *testing.T) {
	b := newBox(t, 1000)
	b.put("home/a", "a")
	a, err := b.form(wire.FilesDelete, url.Values{"path": {"a"}})
	must(t, err)
	b.fillLongSeats()
	listed, err := b.form(wire.FilesTrash, nil)
	if err != nil || len(listed.trashed) != 1 {
		t.Fatalf("got %+v, %v", listed, err)
	}
	if _, err := b.form(wire.FilesRestore, url.Values{"id": {a.trashed[0].ID}}); err != nil || b.content("home/a") != "a" {
		t.Errorf("got %v", err)
	}
}

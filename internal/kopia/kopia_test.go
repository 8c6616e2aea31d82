package kopia_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/fault"
	"sandboxd/internal/repository"
	"sandboxd/internal/repository/repositorytest"
)

func TestEngine_GivesBackWhatWasSavedAndStoresItOnce(t *testing.T) {
	a := inFolder(t)
	e := connected(t, a)
	content := repositorytest.Noise(1, 40<<20)
	first := saved(t, e, a, "one", content)
	if first.Size != 40<<20 || first.Added < 40<<20 || string(first.About) != `{"id":"one"}` {
		t.Errorf("first: %+v", first)
	}
	content[20<<20] ^= 1 // a small change
	second := saved(t, e, a, "two", content)
	if second.Added > first.Added/4 {
		t.Errorf("a small change adds %d of %d", second.Added, first.Added)
	}
	third := saved(t, e, a, "three", content)
	if third.Added > first.Added/20 {
		t.Errorf("no change adds %d of %d", third.Added, first.Added)
	}
	for _, id := range []string{"two", "three"} {
		if got, err := repositorytest.ReadAll(t.Context(), e, a, id); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s: %d bytes, %v", id, len(got), err)
		}
	}
	c, err := e.List(t.Context(), a)
	if err != nil || len(c.Items) != 3 || c.Size < first.Added {
		t.Fatalf("%+v, %v", c, err)
	}
	for _, i := range c.Items {
		if i.ID == "one" && (i.Size != first.Size || i.Added != first.Added || string(i.About) != string(first.About)) {
			t.Errorf("listed %+v, saved %+v", i, first)
		}
	}
	checked, err := e.Check(t.Context(), a, true, func(repository.Progress) {})
	if err != nil || checked.Backups != 3 || len(checked.Damaged) > 0 || !checked.Read {
		t.Errorf("%+v, %v", checked, err)
	}
}

func TestEngine_GivesRoomBackAndWorksWithoutItsCache(t *testing.T) {
	a := inFolder(t)
	e := connected(t, a)
	saved(t, e, a, "one", repositorytest.Noise(1, 90<<20))
	saved(t, e, a, "two", repositorytest.Noise(2, 1<<20))
	if err := e.Delete(t.Context(), a, []string{"one", "missing"}); err != nil {
		t.Fatal(err)
	}
	if err := e.Maintain(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	c, err := e.List(t.Context(), a) // kopia leaves packs of 20 MiB that are in use by a part: one, or two when its writers took turns
	if err != nil || len(c.Items) != 1 || c.Size > 44<<20 {
		t.Errorf("%d backups of %d bytes, %v", len(c.Items), c.Size, err)
	}
	if err := e.Forget(a.Name); err != nil {
		t.Fatal(err)
	}
	if got, err := repositorytest.ReadAll(t.Context(), e, a, "two"); err != nil || !bytes.Equal(got, repositorytest.Noise(2, 1<<20)) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	_, err = repositorytest.ReadAll(t.Context(), e, a, "one")
	wantKind(t, "a deleted one", err, fault.NotFound, "")
}

func TestEngine_KeepsItsContractInAFolder(t *testing.T) {
	repositorytest.EngineContract(t, engine(t, "0123abcd"), inFolder(t))
}

func TestConnect_RefusesWhatIsNotOurs(t *testing.T) {
	a := inFolder(t)
	e := connected(t, a)
	saved(t, e, a, "one", []byte("content"))

	wrong := a
	wrong.Secrets.Password = "wrong horse"
	_, err := e.Connect(t.Context(), wrong, repository.ConnectOptions{})
	wantKind(t, "another password", err, fault.Invalid, "password")
	if err != nil && strings.Contains(err.Error(), wrong.Secrets.Password) {
		t.Errorf("the error has the password: %v", err)
	}
	if made, err := e.Connect(t.Context(), a, repository.ConnectOptions{}); err != nil || made.Created {
		t.Errorf("once more: %v, %v", made, err)
	}

	other := engine(t, "ffffffff")
	_, err = other.Connect(t.Context(), a, repository.ConnectOptions{})
	wantKind(t, "that of another", err, fault.Conflict, "take_over")
	if _, err := other.Connect(t.Context(), a, repository.ConnectOptions{TakeOver: true}); err != nil {
		t.Fatal(err)
	}
	if got := repositorytest.IDs(t, other, a); !slices.Equal(got, []string{"one"}) {
		t.Errorf("after it was taken over: %v", got)
	}
	_, err = e.Save(t.Context(), a, repositorytest.Draft("two", nil))
	wantKind(t, "the one it was taken from", err, fault.Conflict, "")

	full := inFolder(t)
	if err := os.WriteFile(filepath.Join(full.Place.Path, "mine.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = e.Connect(t.Context(), full, repository.ConnectOptions{})
	wantKind(t, "a folder with something else", err, fault.Invalid, "path")
	gone := a
	gone.Place.Path = filepath.Join(t.TempDir(), "unmounted")
	_, err = e.List(t.Context(), gone)
	wantKind(t, "a folder that is missing", err, fault.Unavailable, "")
	gone.Place.Path = t.TempDir()
	_, err = e.List(t.Context(), gone)
	wantKind(t, "an empty folder", err, fault.Unavailable, "")
}

func TestSave_KeepsNothingOfWhatWasCutOff(t *testing.T) {
	a := inFolder(t)
	e := connected(t, a)
	broken := errors.New("the home cannot be read")
	d := repositorytest.Draft("half", nil)
	d.Write = func(_ context.Context, w io.Writer) ([]byte, error) {
		_, err := w.Write(repositorytest.Noise(3, 5<<20))
		return nil, errors.Join(err, broken)
	}
	if _, err := e.Save(t.Context(), a, d); !errors.Is(err, broken) {
		t.Errorf("a writer that fails: %v", err)
	}
	tooMuch := fault.New(fault.TooLarge, "Too much.")
	d = repositorytest.Draft("large", nil)
	d.Write = func(ctx context.Context, w io.Writer) ([]byte, error) { // until it is told to end: progress comes when it comes
		for seed := byte(4); ; seed++ {
			if _, err := w.Write(repositorytest.Noise(seed, 4<<20)); err != nil || ctx.Err() != nil {
				return nil, errors.Join(err, ctx.Err())
			}
		}
	}
	d.Progress = func(p repository.Progress) error {
		if p.Added > 0 {
			return tooMuch
		}
		return nil
	}
	_, err := e.Save(t.Context(), a, d)
	wantKind(t, "progress that says no", err, fault.TooLarge, "")
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("cancelled")
	d = repositorytest.Draft("stopped", nil)
	d.Write = func(ctx context.Context, w io.Writer) ([]byte, error) {
		cancel(stopped)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if _, err := e.Save(ctx, a, d); !errors.Is(err, stopped) {
		t.Errorf("cancelled: %v", err)
	}
	if got := repositorytest.IDs(t, e, a); len(got) > 0 {
		t.Errorf("listed: %v", got)
	}
}

func TestEngine_LeavesNoSecretOnThisMachine(t *testing.T) {
	a := inFolder(t)
	e := connected(t, a)
	secret := []byte("SECRET=opensesame")
	saved(t, e, a, "one", secret)
	for _, folder := range []string{e.Folder, a.Place.Path} {
		err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if bytes.Contains(text, []byte(a.Secrets.Password)) || bytes.Contains(text, secret) {
				t.Errorf("%s has a secret", path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// damage changes some bytes in the middle of the largest file of a repository.
func damage(t *testing.T, a repository.Access) {
	t.Helper()
	largest, size := "", int64(0)
	err := filepath.WalkDir(a.Place.Path, func(path string, d os.DirEntry, err error) error {
		if info, _ := d.Info(); err == nil && !d.IsDir() && info.Size() > size {
			largest, size = path, info.Size()
		}
		return err
	})
	if err != nil || largest == "" {
		t.Fatal(err)
	}
	f, err := os.OpenFile(largest, os.O_RDWR, 0)
	if err == nil {
		_, err = f.WriteAt([]byte("broken"), size/2)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestCheck_FindsWhatIsDamagedAndNothingIsBuiltOnIt(t *testing.T) {
	a := inFolder(t)
	e := connected(t, a)
	content := map[string][]byte{"one": repositorytest.Noise(5, 3<<20), "two": repositorytest.Noise(6, 3<<20)}
	for id := range content {
		saved(t, e, a, id, content[id])
	}
	damage(t, a)
	quick, err := e.Check(t.Context(), a, false, nil)
	if err != nil || len(quick.Damaged) > 0 {
		t.Errorf("a look: %+v, %v", quick, err)
	}
	all, err := e.Check(t.Context(), a, true, nil)
	if err != nil || len(all.Damaged) != 1 {
		t.Fatalf("reading all: %+v, %v", all, err)
	}
	bad := all.Damaged[0]
	if _, err := repositorytest.ReadAll(t.Context(), e, a, bad); !strings.Contains(fault.Message(err), "The backup is damaged") {
		t.Errorf("what is damaged is read: %v", err)
	}
	d := repositorytest.Draft("three", content[bad])
	d.Whole = true
	_, err = e.Save(t.Context(), a, d)
	if wantKind(t, "the same again", err, fault.Unavailable, ""); !strings.Contains(fault.Message(err), "share a damaged part") {
		t.Errorf("it says %q", fault.Message(err))
	}
	if err := errors.Join(e.Delete(t.Context(), a, []string{bad}), e.Maintain(t.Context(), a)); err != nil {
		t.Fatal(err)
	}
	if _, err = e.Save(t.Context(), a, d); err != nil {
		t.Fatal(err)
	}
	if got, err := repositorytest.ReadAll(t.Context(), e, a, "three"); err != nil || !bytes.Equal(got, content[bad]) {
		t.Errorf("after the damaged one was deleted: %d bytes, %v", len(got), err)
	}
}

func TestConnect_LeavesOtherFoldersAsTheyAre(t *testing.T) {
	a := inFolder(t)
	e := connected(t, a)
	inside, missing, full := a, a, a
	inside.Place.Path = filepath.Join(a.Place.Path, "inside")
	missing.Place.Path = filepath.Join(t.TempDir(), "not mounted", "backups")
	full.Place.Path = t.TempDir()
	if err := os.WriteFile(filepath.Join(full.Place.Path, "mine.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, place := range map[string]repository.Access{"in a repository": inside, "in a folder that is missing": missing, "with something else": full} {
		_, err := e.Connect(t.Context(), place, repository.ConnectOptions{})
		wantKind(t, what, err, fault.Invalid, "path")
	}
	if err := os.Remove(filepath.Join(full.Place.Path, "mine.txt")); err != nil {
		t.Fatal(err)
	}
	_, err := e.Check(t.Context(), full, false, nil)
	wantKind(t, "an empty folder", err, fault.Unavailable, "")
	if names, err := os.ReadDir(full.Place.Path); err != nil || len(names) > 0 {
		t.Errorf("left in it: %v, %v", names, err)
	}
}

func TestConnect_TellsOfAPlaceToAdminsAlone(t *testing.T) {
	a := repository.Access{Name: "away", Place: repository.Place{Kind: repository.S3, Endpoint: "127.0.0.1:1", Bucket: "backups", AccessKey: "box", PlainHTTP: true},
		Secrets: repository.Secrets{Password: "correct horse", SecretKey: "hush-hush"}}
	_, err := engine(t, "0123abcd").Connect(t.Context(), a, repository.ConnectOptions{})
	wantKind(t, "no server", err, fault.Unavailable, "")
	var place repository.PlaceError
	if !strings.Contains(fault.Message(err), "127.0.0.1:1") || !errors.As(err, &place) || strings.Contains(place.Public, "127.0.0.1") || place.Public == "" {
		t.Errorf("%v; others are told %q", err, place.Public)
	}
}

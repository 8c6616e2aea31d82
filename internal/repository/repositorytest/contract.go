package repositorytest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"sandboxd/internal/fault"
	"sandboxd/internal/repository"
)

// Draft is a backup of some bytes.
func Draft(id string, content []byte) repository.Draft {
	return repository.Draft{ID: id, Title: "Backup of lab", Write: func(_ context.Context, w io.Writer) ([]byte, error) {
		_, err := io.Copy(w, bytes.NewReader(content))
		return []byte(`{"id":"` + id + `"}`), err
	}, Progress: func(repository.Progress) error { return nil }}
}

// ReadAll gives the stream of a backup.
func ReadAll(ctx context.Context, e repository.Engine, a repository.Access, id string) ([]byte, error) {
	r, err := e.Read(ctx, a, id)
	if err != nil {
		return nil, err
	}
	got, err := io.ReadAll(r)
	return got, errors.Join(err, r.Close())
}

// Noise is bytes that cannot be compressed, the same for the same seed.
func Noise(seed byte, size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

// IDs gives those of the backups in a repository, sorted.
func IDs(t *testing.T, e repository.Engine, a repository.Access) (ids []string) {
	t.Helper()
	c, err := e.List(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range c.Items {
		ids = append(ids, i.ID)
	}
	slices.Sort(ids)
	return ids
}

// connects makes a repository in a place where nothing is yet, and connects it again.
func connects(t *testing.T, e repository.Engine, a repository.Access) {
	t.Helper()
	ctx := t.Context()
	if _, err := e.Connect(ctx, a, repository.ConnectOptions{Known: true}); fault.FieldOf(err) != a.Place.Kind.Field() {
		t.Errorf("a known one that is not there: %v", err)
	}
	made, err := e.Connect(ctx, a, repository.ConnectOptions{})
	if err != nil || !made.Created || made.Identity == "" {
		t.Fatalf("made %+v, %v", made, err)
	}
	for _, known := range []bool{false, true} {
		if again, err := e.Connect(ctx, a, repository.ConnectOptions{Known: known}); err != nil || again.Created || again.Identity != made.Identity {
			t.Errorf("once more: made %+v, %v", again, err)
		}
	}
}

// EngineContract checks that an engine keeps repository.Engine's contract in a place where nothing is yet.
func EngineContract(t *testing.T, e repository.Engine, a repository.Access) {
	t.Helper()
	ctx := t.Context()
	connects(t, e, a)
	contents := map[string][]byte{"one": Noise(1, 3<<20), "two": Noise(2, 1<<20), "empty": nil}
	for _, id := range []string{"one", "two", "empty"} {
		item, err := e.Save(ctx, a, Draft(id, contents[id]))
		if err != nil {
			t.Fatal(err)
		}
		if item.ID != id || item.Size != int64(len(contents[id])) || item.Added < item.Size || string(item.About) != `{"id":"`+id+`"}` {
			t.Errorf("saved %+v", item)
		}
	}
	broken := errors.New("the home cannot be read")
	half := Draft("half", nil)
	half.Write = func(_ context.Context, w io.Writer) ([]byte, error) {
		_, err := w.Write(Noise(3, 1<<20))
		return nil, errors.Join(err, broken)
	}
	if _, err := e.Save(ctx, a, half); !errors.Is(err, broken) {
		t.Errorf("a writer that fails: %v", err)
	}
	if err := e.Delete(ctx, a, []string{"two", "missing"}); err != nil {
		t.Error(err)
	}
	if err := e.Maintain(ctx, a); err != nil {
		t.Error(err)
	}
	if got := IDs(t, e, a); !slices.Equal(got, []string{"empty", "one"}) {
		t.Errorf("listed: %v", got)
	}
	for _, id := range []string{"one", "empty"} {
		if got, err := ReadAll(ctx, e, a, id); err != nil || !bytes.Equal(got, contents[id]) {
			t.Errorf("%s: %d bytes, %v", id, len(got), err)
		}
	}
	if _, err := ReadAll(ctx, e, a, "two"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a deleted one: %v", err)
	}
	if c, err := e.Check(ctx, a, true, func(repository.Progress) {}); err != nil || c.Backups != 2 || len(c.Damaged) > 0 || !c.Read {
		t.Errorf("checked: %+v, %v", c, err)
	}
	if err := e.Forget(a.Name); err != nil {
		t.Error(err)
	}
	if got := IDs(t, e, a); len(got) != 2 {
		t.Errorf("after what is kept here was removed: %v", got)
	}
	a.Secrets.Password = "not the password"
	if _, err := e.List(ctx, a); fault.FieldOf(err) != "password" {
		t.Errorf("another password: %v", err)
	}
}

package repository_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"sandboxd/internal/fault"
	"sandboxd/internal/repository"
	"sandboxd/internal/repository/repositorytest"
	"sandboxd/internal/seal"
)

// world is a Service and what it works on.
type world struct {
	*repository.Service
	store  *repositorytest.Store
	engine *repositorytest.Engine
	key    string
}

func open(t *testing.T, w world) world {
	t.Helper()
	if w.store == nil {
		w = world{store: &repositorytest.Store{}, engine: &repositorytest.Engine{}, key: filepath.Join(t.TempDir(), "secret.key")}
	}
	s, err := repository.Open(t.Context(), repository.Config{Store: w.store, Engine: w.engine, Log: slog.New(slog.DiscardHandler),
		Seal: func() (repository.Sealer, error) { return seal.Open(w.key) }})
	if err != nil {
		t.Fatal(err)
	}
	w.Service = s
	return w
}

// nas is a repository in a folder.
func nas() repository.Access {
	return repository.Access{Name: "nas", Place: repository.Place{Kind: repository.Folder, Path: "/mnt/backups"}}
}

func TestPut_GeneratesAPasswordOnceAndRemembersItSealed(t *testing.T) {
	w := open(t, world{})
	password, created, err := w.Put(t.Context(), nas(), false)
	if err != nil || !created || len(password) < 20 {
		t.Fatalf("%q, %v, %v", password, created, err)
	}
	if _, err := w.Save(t.Context(), "nas", repositorytest.Draft("one", []byte("content"))); err != nil {
		t.Fatal(err)
	}
	if again, created, err := w.Put(t.Context(), nas(), false); err != nil || created || again != "" {
		t.Errorf("once more: %q, %v, %v", again, created, err)
	}
	rows, err := w.store.List(t.Context())
	if err != nil || len(rows) != 1 || strings.Contains(string(rows[0].Secrets), password) || strings.Contains(string(rows[0].Kept), "one") {
		t.Errorf("%+v, %v", rows, err)
	}
	later := open(t, w)
	if c, problem, err := later.Contents("nas"); err != nil || problem != "" || len(c.Items) != 1 || c.Items[0].ID != "one" {
		t.Errorf("after a start: %+v, %q, %v", c, problem, err)
	}
	if err := later.Refresh(t.Context(), "nas"); err != nil { // so it knows the password
		t.Error(err)
	}
}

func TestPut_RefusesBesideTheField(t *testing.T) {
	w := open(t, world{})
	for field, change := range map[string]func(*repository.Access){
		"name":     func(a *repository.Access) { a.Name = "No Name" },
		"kind":     func(a *repository.Access) { a.Place.Kind = "tape" },
		"path":     func(a *repository.Access) { a.Place.Path = "backups" },
		"password": func(a *repository.Access) { a.Secrets.Password = "short" },
		"endpoint": func(a *repository.Access) {
			a.Place = repository.Place{Kind: repository.S3, Endpoint: "https://s3.lan"}
		},
		"bucket": func(a *repository.Access) {
			a.Place = repository.Place{Kind: repository.S3, Endpoint: "s3.lan", Bucket: "B"}
		},
		"secret_key": func(a *repository.Access) {
			a.Place = repository.Place{Kind: repository.S3, Endpoint: "s3.lan", Bucket: "box", AccessKey: "k"}
		},
		"host": func(a *repository.Access) { a.Place = repository.Place{Kind: repository.SFTP, Host: "ann@nas"} },
		"host_key": func(a *repository.Access) {
			a.Place = repository.Place{Kind: repository.SFTP, Host: "nas", User: "ann", Path: "/srv/box"}
		},
		"private_key": func(a *repository.Access) {
			a.Place = repository.Place{Kind: repository.SFTP, Host: "nas", User: "ann", Path: "/srv/box", HostKey: "ssh-ed25519 AAAA"}
		},
	} {
		a := nas()
		change(&a)
		if _, _, err := w.Put(t.Context(), a, false); fault.FieldOf(err) != field {
			t.Errorf("%s: %v (field %q)", field, err, fault.FieldOf(err))
		}
	}
	if list := w.List(); len(list) > 0 {
		t.Errorf("remembered: %+v", list)
	}
	other := nas()
	other.Secrets.Password = "correct horse"
	if _, err := w.engine.Connect(t.Context(), other, repository.ConnectOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Put(t.Context(), nas(), false); fault.FieldOf(err) != "password" || !strings.Contains(fault.Message(err), "Enter its password") {
		t.Errorf("without the password of what is there: %v", err)
	}
}

func TestContents_StayWhenTheRepositoryCannotBeReached(t *testing.T) {
	w := open(t, world{})
	if _, _, err := w.Put(t.Context(), nas(), false); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Save(t.Context(), "nas", repositorytest.Draft("one", nil)); err != nil {
		t.Fatal(err)
	}
	w.engine.Fail(fault.New(fault.Unavailable, "The disk is gone."))
	if err := w.Refresh(t.Context(), "nas"); !fault.Is(err, fault.Unavailable) {
		t.Error(err)
	}
	if c, problem, err := w.Contents("nas"); err != nil || problem != "The disk is gone." || len(c.Items) != 1 {
		t.Errorf("%+v, %q, %v", c, problem, err)
	}
	w.engine.Fail(nil)
	if err := w.Refresh(t.Context(), "nas"); err != nil {
		t.Error(err)
	}
	if r, err := w.Repository("nas"); err != nil || r.Problem != "" || r.Backups != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestSave_OneAtATime(t *testing.T) {
	w := open(t, world{})
	if _, _, err := w.Put(t.Context(), nas(), false); err != nil {
		t.Fatal(err)
	}
	var saving sync.WaitGroup
	for _, id := range []string{"one", "two", "three", "four"} {
		saving.Go(func() {
			if _, err := w.Save(t.Context(), "nas", repositorytest.Draft(id, []byte(id))); err != nil {
				t.Error(err)
			}
		})
	}
	saving.Wait()
	if c, _, err := w.Contents("nas"); err != nil || len(c.Items) != 4 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestMaintenance_FollowsADeleteAndGivesWay(t *testing.T) {
	w := open(t, world{})
	if _, _, err := w.Put(t.Context(), nas(), false); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"one", "two"} {
		if _, err := w.Save(t.Context(), "nas", repositorytest.Draft(id, nil)); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		w := open(t, w)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		synctest.Wait()
		release := w.engine.Hold()
		defer release()
		if err := w.Delete(ctx, "nas", "one"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if r, err := w.Repository("nas"); err != nil || r.Doing != "maintenance" {
			t.Errorf("%+v, %v", r, err)
		}
		s, err := w.Read(ctx, "nas", "two") // does not wait for it
		if err != nil {
			t.Fatal(err)
		}
		if r, err := w.Repository("nas"); err != nil || r.Doing != "" {
			t.Errorf("while it is used: %+v, %v", r, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if r, err := w.Repository("nas"); err != nil || r.Doing != "maintenance" {
			t.Errorf("after that use: %+v, %v", r, err)
		}
		release()
		synctest.Wait()
		if r, err := w.Repository("nas"); err != nil || r.Doing != "" {
			t.Errorf("%+v, %v", r, err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestForget_LeavesTheContent(t *testing.T) {
	w := open(t, world{})
	a := nas()
	a.Secrets.Password = "correct horse"
	if _, _, err := w.Put(t.Context(), a, false); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Save(t.Context(), "nas", repositorytest.Draft("one", nil)); err != nil {
		t.Fatal(err)
	}
	busy := repositorytest.Draft("two", nil)
	busy.Write = func(ctx context.Context, _ io.Writer) ([]byte, error) {
		if err := w.Forget(ctx, "nas"); !fault.Is(err, fault.Conflict) {
			t.Errorf("while a backup is written: %v", err)
		}
		return nil, errors.New("enough")
	}
	if _, err := w.Save(t.Context(), "nas", busy); err == nil {
		t.Error("saved")
	}
	if err := w.Forget(t.Context(), "nas"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Contents("nas"); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if password, created, err := w.Put(t.Context(), a, false); err != nil || created || password != "" {
		t.Errorf("connected again: %q, %v, %v", password, created, err)
	}
	if c, _, err := w.Contents("nas"); err != nil || len(c.Items) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestSave_TellsWhetherTheRepositoryIsWrong(t *testing.T) {
	w := open(t, world{})
	if _, _, err := w.Put(t.Context(), nas(), false); err != nil {
		t.Fatal(err)
	}
	d := repositorytest.Draft("one", nil)
	d.Write = func(context.Context, io.Writer) ([]byte, error) {
		return nil, fault.New(fault.Unavailable, "The sandbox does not answer.")
	}
	if _, err := w.Save(t.Context(), "nas", d); fault.Message(err) != "The sandbox does not answer." {
		t.Error(err)
	}
	if k, err := w.Repository("nas"); err != nil || k.Problem != "" {
		t.Errorf("of what it was to be given, the repository is told: %q, %v", k.Problem, err)
	}
	w.engine.Fail(fault.New(fault.Unavailable, "The disk is gone."))
	if _, err := w.Save(t.Context(), "nas", repositorytest.Draft("two", nil)); !fault.Is(err, fault.Unavailable) {
		t.Error(err)
	}
	if k, err := w.Repository("nas"); err != nil || k.Problem != "The disk is gone." {
		t.Errorf("%q, %v", k.Problem, err)
	}
}

func TestPut_OneNameForOneRepository(t *testing.T) {
	w := open(t, world{})
	if _, _, err := w.Put(t.Context(), nas(), false); err != nil {
		t.Fatal(err)
	}
	again := nas() // the same by another way
	again.Name, again.Place.Path, again.Secrets.Password = "nas2", "/srv/backups", "whatever"
	for _, k := range []string{"/srv/backups", "/mnt/backups"} {
		again.Place.Path = k
		again.Secrets.Password = passwordOf(t, w, "nas")
		if _, _, err := w.Put(t.Context(), again, false); fault.FieldOf(err) != "path" || !strings.Contains(fault.Message(err), "the repository nas") {
			t.Errorf("a second name for one in %s: %v", k, err)
		}
	}
	moved := nas()
	moved.Place.Path = "/mnt/other"
	if _, _, err := w.Put(t.Context(), moved, false); fault.FieldOf(err) != "path" {
		t.Errorf("a place where it is not: %v", err)
	}
	moved.Place.Path = "/srv/backups"
	if _, created, err := w.Put(t.Context(), moved, false); err != nil || created {
		t.Errorf("another way to the same: %v, %v", created, err)
	}
	if k, err := w.Repository("nas"); err != nil || k.Place.Path != "/srv/backups" || len(w.Names()) != 1 {
		t.Errorf("%+v, %v", k, err)
	}
}

// passwordOf gives the password of a repository, which only the engine is told.
func passwordOf(t *testing.T, w world, name string) string {
	t.Helper()
	rows, err := w.store.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	key, err := seal.Open(w.key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := key.Open(name, rows[0].Secrets)
	var secrets repository.Secrets
	if err = errors.Join(err, json.Unmarshal(text, &secrets)); err != nil {
		t.Fatal(err)
	}
	return secrets.Password
}

func TestPut_RefusesTheFoldersOfSandboxd(t *testing.T) {
	w := open(t, world{})
	data := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(data, link); err != nil {
		t.Fatal(err)
	}
	w.Own = []string{data}
	for _, path := range []string{data, filepath.Join(data, "backups", "nas"), filepath.Dir(data), filepath.Join(link, "nas")} {
		a := nas()
		a.Place.Path = path
		if _, _, err := w.Put(t.Context(), a, false); fault.FieldOf(err) != "path" {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestPut_TakesWhatSSHKeyscanPrints(t *testing.T) {
	w := open(t, world{})
	a := repository.Access{Name: "away", Secrets: repository.Secrets{PrivateKey: "-----BEGIN OPENSSH PRIVATE KEY-----"}, Place: repository.Place{
		Kind: repository.SFTP, Host: "nas", User: "ann", Path: "/srv/box", Port: 2222, HostKey: "# nas:2222 SSH-2.0-OpenSSH\n[nas]:2222 ssh-ed25519 AAAA\n"}}
	if _, _, err := w.Put(t.Context(), a, false); err != nil {
		t.Fatal(err)
	}
	if k, err := w.Repository("away"); err != nil || k.Place.HostKey != "ssh-ed25519 AAAA" || k.Place.String() != "ann@nas:/srv/box, port 2222" {
		t.Errorf("%+v, %v", k.Place, err)
	}
}

func TestForget_EndsMaintenanceFirst(t *testing.T) {
	w := open(t, world{})
	if _, _, err := w.Put(t.Context(), nas(), false); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		w := open(t, w)
		ctx, cancel := context.WithCancel(t.Context())
		release := w.engine.Hold()
		defer release()
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		synctest.Wait()
		if err := w.Delete(ctx, "nas", "missing"); err != nil { // after which there is room to be given back
			t.Fatal(err)
		}
		synctest.Wait()
		if r, err := w.Repository("nas"); err != nil || r.Doing != "maintenance" {
			t.Fatalf("%+v, %v", r, err)
		}
		if err := w.Forget(ctx, "nas"); err != nil {
			t.Fatal(err)
		}
		if calls := w.engine.Calls(); calls[len(calls)-1] != "maintained" {
			t.Errorf("%v", calls)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestSave_ReadsAllBackWhileDamageIsKnown(t *testing.T) {
	w := open(t, world{})
	if _, _, err := w.Put(t.Context(), nas(), false); err != nil {
		t.Fatal(err)
	}
	save := func(w world, id string, whole bool) {
		t.Helper()
		if _, err := w.Save(t.Context(), "nas", repositorytest.Draft(id, nil)); err != nil {
			t.Fatal(err)
		}
		if w.engine.Whole(id) != whole {
			t.Errorf("%s is read back as a whole: %v", id, !whole)
		}
	}
	save(w, "one", false)
	w.engine.Damage("one")
	if found, err := w.Check(t.Context(), "nas", true); err != nil || len(found.Damaged) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	save(w, "two", true)
	w = open(t, w)
	save(w, "three", true) // also after a start
	if err := w.Delete(t.Context(), "nas", "one"); err != nil {
		t.Fatal(err)
	}
	save(w, "four", true) // what it was made of is still there
	if found, err := w.Check(t.Context(), "nas", true); err != nil || len(found.Damaged) != 0 {
		t.Fatalf("%+v, %v", found, err)
	}
	save(w, "five", false)
}

//go:build engine

package kopia_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/repository"
	"sandboxd/internal/repository/repositorytest"
)

// The keys of the S3 server.
const (
	accessKey = "sandboxd-test"
	secretKey = "not-a-secret-of-anybody"
)

// freePort gives a port that nothing listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// started runs a program until the test ends, and waits until it listens.
func started(t *testing.T, port int, cmd *exec.Cmd) {
	t.Helper()
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", cmd.Path, &said)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			conn.Close()
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s does not listen: %v", cmd.Path, err)
		}
	}
}

// s3Server runs a real S3 server over a folder with one bucket, and gives a repository in that.
func s3Server(t *testing.T) repository.Access {
	t.Helper()
	program, err := filepath.Abs("../../bin/versitygw")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "backups"), 0o755); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	cmd := exec.Command(program, "--port", "127.0.0.1:"+strconv.Itoa(port), "--quiet", "posix", "--sidecar", t.TempDir(), folder)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+accessKey, "ROOT_SECRET_KEY="+secretKey)
	started(t, port, cmd)
	return repository.Access{Name: "cloud", Secrets: repository.Secrets{Password: "correct horse", SecretKey: secretKey}, Place: repository.Place{
		Kind: repository.S3, Endpoint: "127.0.0.1:" + strconv.Itoa(port), Bucket: "backups", Prefix: "box/", Region: "us-east-1", AccessKey: accessKey, PlainHTTP: true,
	}}
}

// between puts a handler between a repository and its server; it calls pass with what is to reach that.
func between(t *testing.T, a repository.Access, handle func(w http.ResponseWriter, r *http.Request, pass http.Handler)) repository.Access {
	t.Helper()
	server := a.Place.Endpoint
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: server})
		r.Out.Host = r.In.Host // it is signed
	}, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(w, r, pass) }))
	t.Cleanup(s.Close)
	a.Place.Endpoint = strings.TrimPrefix(s.URL, "http://")
	return a
}

func TestS3_KeepsItsContract(t *testing.T) {
	repositorytest.EngineContract(t, engine(t, "0123abcd"), s3Server(t))
}

func TestS3_SaysWhatIsWrong(t *testing.T) {
	a := s3Server(t)
	e := connected(t, a)
	for field, change := range map[string]func(*repository.Access){
		"bucket":     func(a *repository.Access) { a.Place.Bucket = "other" },
		"access_key": func(a *repository.Access) { a.Place.AccessKey = "stranger" },
		"secret_key": func(a *repository.Access) { a.Secrets.SecretKey = "something" },
		"password":   func(a *repository.Access) { a.Secrets.Password = "wrong horse" },
	} {
		wrong := a
		change(&wrong)
		_, err := e.Connect(t.Context(), wrong, repository.ConnectOptions{})
		wantKind(t, field, err, fault.Invalid, field)
		if err != nil && (strings.Contains(err.Error(), wrong.Secrets.SecretKey) || strings.Contains(err.Error(), wrong.Secrets.Password)) {
			t.Errorf("%s: the error has a secret: %v", field, err)
		}
	}
	a.Place.Endpoint = "127.0.0.1:" + strconv.Itoa(freePort(t))
	_, err := e.List(t.Context(), a)
	wantKind(t, "nothing listens", err, fault.Unavailable, "")
}

// TestS3_ThatFailsNowAndThen answers every third request with 503, or breaks it in the middle.
func TestS3_ThatFailsNowAndThen(t *testing.T) {
	direct := s3Server(t)
	var asked, failed atomic.Int64
	a := between(t, direct, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		switch n := asked.Add(1); {
		case n%6 == 0:
			failed.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
		case n%6 == 3 && r.Method == http.MethodPut: // the last part of the body is lost
			failed.Add(1)
			_, _ = io.CopyN(io.Discard, r.Body, max(r.ContentLength-100, 0))
			panic(http.ErrAbortHandler)
		default:
			pass.ServeHTTP(w, r)
		}
	})
	e := connected(t, a)
	content := repositorytest.Noise(1, 30<<20)
	saved(t, e, a, "one", content)
	if got, err := repositorytest.ReadAll(t.Context(), e, direct, "one"); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if failed.Load() == 0 {
		t.Error("no request failed")
	}
}

// TestS3_ThatLosesWhatItHasTaken says that it has stored a pack of contents and does not.
func TestS3_ThatLosesWhatItHasTaken(t *testing.T) {
	direct := s3Server(t)
	var lost atomic.Bool
	e := connected(t, direct)
	a := between(t, direct, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, "/backups/box/p") && lost.CompareAndSwap(false, true) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("ETag", `"d41d8cd98f00b204e9800998ecf8427e"`)
			return
		}
		pass.ServeHTTP(w, r)
	})
	_, err := e.Save(t.Context(), a, repositorytest.Draft("one", repositorytest.Noise(2, 30<<20)))
	wantKind(t, "a lost part", err, fault.Unavailable, "")
	if !lost.Load() {
		t.Fatal("nothing was lost")
	}
	if got := repositorytest.IDs(t, e, direct); len(got) > 0 {
		t.Errorf("listed: %v", got)
	}
}

// TestS3_ThatLosesTheList says that it has stored the entry in the list of backups and does not: without more, no backup could be listed any more.
func TestS3_ThatLosesTheList(t *testing.T) {
	direct := s3Server(t)
	e := connected(t, direct)
	saved(t, e, direct, "one", []byte("content"))
	var written, lost atomic.Int64
	a := between(t, direct, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, "/backups/box/q") && written.Add(1) == 2 { // the first has what the backup is made of
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("ETag", `"d41d8cd98f00b204e9800998ecf8427e"`)
			lost.Add(1)
			return
		}
		pass.ServeHTTP(w, r)
	})
	_, err := e.Save(t.Context(), a, repositorytest.Draft("two", repositorytest.Noise(2, 1<<20)))
	wantKind(t, "a lost list", err, fault.Unavailable, "")
	if lost.Load() == 0 {
		t.Fatal("nothing was lost")
	}
	if got := repositorytest.IDs(t, e, direct); !slices.Equal(got, []string{"one"}) {
		t.Errorf("listed: %v", got)
	}
	saved(t, e, direct, "two", repositorytest.Noise(2, 1<<20))
	if found, err := e.Check(t.Context(), direct, true, nil); err != nil || found.Backups != 2 || len(found.Damaged) > 0 {
		t.Errorf("checked: %+v, %v", found, err)
	}
}

func TestS3_ThatStopsAnsweringIsGivenUp(t *testing.T) {
	direct := s3Server(t)
	e := connected(t, direct)
	e.Quiet = 5 * time.Second
	var stuck atomic.Bool
	ended := make(chan struct{})
	a := between(t, direct, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if r.Method == http.MethodPut && stuck.Load() {
			<-ended
			return
		}
		pass.ServeHTTP(w, r)
	})
	t.Cleanup(func() { close(ended) })
	stuck.Store(true)
	_, err := e.Save(t.Context(), a, repositorytest.Draft("one", repositorytest.Noise(3, 30<<20)))
	wantKind(t, "no answer", err, fault.Timeout, "")
	stuck.Store(false)
	e.Quiet = time.Minute
	saved(t, e, a, "one", repositorytest.Noise(3, 1<<20))
}

// TestS3_ThatIsSlow takes longer than a child may be quiet, but moves all the time.
func TestS3_ThatIsSlow(t *testing.T) {
	direct := s3Server(t)
	e := connected(t, direct)
	e.Quiet = 20 * time.Second
	a := between(t, direct, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if r.Method == http.MethodPut {
			select {
			case <-time.After(3 * time.Second):
			case <-r.Context().Done():
			}
		}
		pass.ServeHTTP(w, r)
	})
	begun := time.Now()
	saved(t, e, a, "one", repositorytest.Noise(4, 90<<20))
	if took := time.Since(begun); took < e.Quiet {
		t.Errorf("it took %v, which is too short to say anything", took)
	}
}

// TestKill_AtAnyMomentLeavesAWholeRepository kills children that save, delete and maintain.
func TestKill_AtAnyMomentLeavesAWholeRepository(t *testing.T) {
	a := inFolder(t)
	e := connected(t, a)
	content := repositorytest.Noise(5, 30<<20)
	saved(t, e, a, "kept", content)
	for i := range 12 {
		ctx, kill := context.WithCancel(t.Context())
		time.AfterFunc(time.Duration(rand.IntN(2500))*time.Millisecond, kill)
		id := "half-" + strconv.Itoa(i)
		content[rand.IntN(len(content))] ^= 1
		_, err := e.Save(ctx, a, repositorytest.Draft(id, content))
		if i%3 == 0 {
			_ = e.Maintain(ctx, a)
		}
		kill()
		var listed bool
		for _, there := range repositorytest.IDs(t, e, a) {
			listed = listed || there == id
		}
		if listed {
			if got, readErr := repositorytest.ReadAll(t.Context(), e, a, id); readErr != nil || !bytes.Equal(got, content) {
				t.Errorf("%d: %d bytes of what is listed, %v", i, len(got), readErr)
			}
		} else if err == nil {
			t.Errorf("%d: saved and not listed", i)
		}
		t.Logf("%d: saved %v", i, err == nil)
	}
	if err := e.Maintain(t.Context(), a); err != nil {
		t.Error(err)
	}
	c, err := e.Check(t.Context(), a, true, nil)
	if err != nil || len(c.Damaged) > 0 || c.Backups == 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

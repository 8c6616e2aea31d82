package child

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kopia/kopia/repo"
	"github.com/kopia/kopia/repo/blob"
	"github.com/kopia/kopia/repo/blob/filesystem"
	"github.com/kopia/kopia/repo/blob/s3"
	"github.com/kopia/kopia/repo/format"
	"github.com/minio/minio-go/v7"
	"golang.org/x/sys/unix"

	"sandboxd/internal/fault"
	"sandboxd/internal/kopia"
	"sandboxd/internal/repository"
)

// storageType is what kopia's configuration on this machine calls the place: it has no more of it than that, and so no secret.
const storageType = "sandboxd"

// nothing is what that says about the place.
type nothing struct{}

// What is left free on the disk of a folder, as with the folder of the backups.
const (
	spareBytes = 1 << 30
	spareShare = 20 // a twentieth of the disk, if that is less
)

// What kopia calls its files.
const (
	formatFile  = format.KopiaRepositoryBlobID + ".f"
	indexPrefix = "x"
)

// errNotReadBack says that what was read is not what was written.
var errNotReadBack = errors.New("it is not what was written")

// notEmpty says that a place has something else than a repository.
func notEmpty(kind repository.Kind) error {
	return fault.Field(kind.Field(), "There is something else at that place. Choose an empty one, or a repository of sandboxd's.")
}

// Pauses between tries to reach a bucket whose server is overloaded.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 8 * time.Second
)

// storage is a place whose reads and writes are counted.
type storage struct {
	blob.Storage
	folder string // "" unless the place is one of this machine
	spare  bool   // some room is to be left on its disk
	moved  func(func(*repository.Progress))

	mu   sync.Mutex
	put  map[blob.ID]bool   // written by this process
	last map[blob.ID][]byte // what was written since remember; nil before
}

// openStorage reaches the place. make says that a repository is to be made there.
func (c *child) openStorage(ctx context.Context, make bool) (*storage, error) {
	p := c.Access.Place
	s := &storage{spare: c.Do == kopia.DoSave, moved: c.moved, put: map[blob.ID]bool{}}
	var err error
	switch p.Kind {
	case repository.Folder:
		s.folder = p.Path
		s.Storage, err = openFolder(ctx, p.Path, make)
	case repository.S3:
		s.Storage, err = openS3(ctx, c.Access, make)
	case repository.SFTP:
		s.Storage, err = openSFTP(ctx, c.Access, make)
	default:
		err = fault.Field("kind", "There is no kind %.20q of repositories.", string(p.Kind))
	}
	return s, err
}

func openFolder(ctx context.Context, path string, make bool) (blob.Storage, error) {
	if make {
		if err := makeFolder(path); err != nil {
			return nil, err
		}
	}
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.Wrap(repository.PlaceError{Public: "The folder of the repository is not there.", Err: err}, fault.Unavailable, "The folder %s is not there. Is its disk mounted?", path)
	case err != nil:
		return nil, unusable(err, "The folder of the repository cannot be read", err.Error())
	case !st.IsDir():
		return nil, fault.Field("path", "%s is not a folder.", path)
	}
	if there, err := exists(filepath.Join(path, formatFile)); err != nil || !there && !make {
		return nil, cmp.Or(err, repo.ErrRepositoryNotInitialized) // kopia would write there
	}
	return filesystem.New(ctx, &filesystem.Options{Path: path, FileMode: 0o600, DirectoryMode: 0o700}, make)
}

// makeFolder makes a folder unless it is there. Unless it has a repository, it must be empty, and in none.
func makeFolder(path string) error {
	switch err := os.Mkdir(path, 0o700); {
	case errors.Is(err, fs.ErrNotExist):
		return fault.Field("path", "The folder %s, which it would be in, is not there. Is its disk mounted?", filepath.Dir(path))
	case err != nil && !errors.Is(err, fs.ErrExist):
		return fault.Field("path", "The folder cannot be made: %v.", err)
	}
	if there, err := exists(filepath.Join(path, formatFile)); err != nil || there {
		return err
	}
	for above := filepath.Dir(path); above != "/"; above = filepath.Dir(above) {
		if there, err := exists(filepath.Join(above, formatFile)); err != nil || there {
			return cmp.Or(err, fault.Field("path", "It is inside of the repository in %s. Choose another folder.", above))
		}
	}
	names, err := os.ReadDir(path)
	if err == nil && len(ignoring(names, ".shards", "lost+found")) > 0 {
		err = notEmpty(repository.Folder)
	}
	return err
}

func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// openS3 reaches a bucket. Unlike what follows, kopia asks only once for this.
func openS3(ctx context.Context, a repository.Access, make bool) (st blob.Storage, err error) {
	p := a.Place
	for pause := firstPause; ; pause *= 2 {
		st, err = s3.New(ctx, &s3.Options{BucketName: p.Bucket, Prefix: p.Prefix, Endpoint: p.Endpoint, Region: p.Region, DoNotUseTLS: p.PlainHTTP,
			RootCA: []byte(p.CA), AccessKeyID: p.AccessKey, SecretAccessKey: a.Secrets.SecretKey}, make)
		var answer minio.ErrorResponse
		if err == nil || !errors.As(err, &answer) || answer.StatusCode < http.StatusInternalServerError || pause > lastPause {
			return st, err
		}
		time.Sleep(pause)
	}
}

// ConnectionInfo implements blob.Storage.
func (s *storage) ConnectionInfo() blob.ConnectionInfo {
	return blob.ConnectionInfo{Type: storageType, Config: &nothing{}}
}

// PutBlob implements blob.Storage.
func (s *storage) PutBlob(ctx context.Context, id blob.ID, data blob.Bytes, o blob.PutOptions) error {
	if err := s.room(int64(data.Length())); err != nil {
		return err
	}
	var text bytes.Buffer
	if s.remembers() {
		if _, err := data.WriteTo(&text); err != nil {
			return err
		}
	}
	if err := s.Storage.PutBlob(ctx, id, data, o); err != nil {
		return err
	}
	s.mu.Lock()
	s.put[id] = true
	if s.last != nil {
		s.last[id] = text.Bytes()
	}
	s.mu.Unlock()
	s.moved(func(p *repository.Progress) { p.Added += int64(data.Length()) })
	return nil
}

// GetBlob implements blob.Storage.
func (s *storage) GetBlob(ctx context.Context, id blob.ID, offset, length int64, to blob.OutputBuffer) error {
	err := s.Storage.GetBlob(ctx, id, offset, length, to)
	s.moved(func(p *repository.Progress) { p.Read += int64(to.Length()) })
	return err
}

// DeleteBlob implements blob.Storage.
func (s *storage) DeleteBlob(ctx context.Context, id blob.ID) error {
	defer s.moved(func(p *repository.Progress) { p.Steps++ })
	s.mu.Lock()
	delete(s.last, id)
	s.mu.Unlock()
	return s.Storage.DeleteBlob(ctx, id)
}

// ListBlobs implements blob.Storage.
func (s *storage) ListBlobs(ctx context.Context, prefix blob.ID, tell func(blob.Metadata) error) error {
	return s.Storage.ListBlobs(ctx, prefix, func(b blob.Metadata) error {
		s.moved(func(p *repository.Progress) { p.Steps++ })
		return tell(b)
	})
}

func (s *storage) wrote(id blob.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.put[id]
}

// remember begins to remember what is written, for confirm.
func (s *storage) remember() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = map[blob.ID][]byte{}
}

func (s *storage) remembers() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last != nil
}

// confirm reads back what was written since remember. When a part is not what it was, the indexes among them are removed: without those
// the repository is as it was before.
func (s *storage) confirm(ctx context.Context) error {
	var err error
	for id, want := range s.last {
		var got bytes.Buffer
		if err = s.GetBlob(ctx, id, 0, -1, &buffer{&got}); err == nil && !bytes.Equal(got.Bytes(), want) {
			err = errNotReadBack
		}
		if err != nil {
			break
		}
	}
	if err == nil {
		return nil
	}
	for _, id := range slices.Collect(maps.Keys(s.last)) {
		if strings.HasPrefix(string(id), indexPrefix) {
			err = errors.Join(err, s.DeleteBlob(ctx, id))
		}
	}
	return fault.Wrap(err, fault.Unavailable, "The list of the backups was not read back as it was written, so the backup is not kept. Check the repository.")
}

// room is an error when the disk of a folder would be too full with n more bytes.
func (s *storage) room(n int64) error {
	var st unix.Statfs_t
	if !s.spare || s.folder == "" || unix.Statfs(s.folder, &st) != nil {
		return nil
	}
	free, total := int64(st.Bavail)*st.Bsize, int64(st.Blocks)*st.Bsize
	if free-n < min(spareBytes, total/spareShare) {
		return full(unix.ENOSPC)
	}
	return nil
}

// empty reports whether nothing is in the place. Of a folder, here or on another host, that was looked at before.
func (s *storage) empty(ctx context.Context) (bool, error) {
	found := errors.New("there is something")
	err := s.ListBlobs(ctx, "", func(blob.Metadata) error { return found })
	if errors.Is(err, found) {
		return false, nil
	}
	return err == nil, err
}

// ignoring leaves out what may be in an empty folder: kopia's note of how it names files, and what mkfs makes.
func ignoring(entries []os.DirEntry, names ...string) (left []os.DirEntry) {
	for _, e := range entries {
		if !strings.Contains(" "+strings.Join(names, " ")+" ", " "+e.Name()+" ") {
			left = append(left, e)
		}
	}
	return left
}

// initialized reports whether there is a kopia repository.
func (s *storage) initialized(ctx context.Context) (bool, error) {
	_, err := s.GetMetadata(ctx, format.KopiaRepositoryBlobID)
	if errors.Is(err, blob.ErrBlobNotFound) {
		return false, nil
	}
	return err == nil, err
}

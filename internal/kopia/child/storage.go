package child

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/kopia/kopia/repo/blob"
	"github.com/kopia/kopia/repo/blob/filesystem"
	"github.com/kopia/kopia/repo/blob/s3"
	"github.com/kopia/kopia/repo/blob/sftp"
	"github.com/kopia/kopia/repo/format"
	"github.com/minio/minio-go/v7"
	"golang.org/x/crypto/ssh/knownhosts"
	"golang.org/x/sys/unix"

	"sandboxd/internal/fault"
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

// Pauses between tries to reach a bucket whose server is overloaded.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 8 * time.Second
)

// storage is a place whose reads and writes are counted.
type storage struct {
	blob.Storage
	folder string // "" unless the place is one of this machine
	moved  func(func(*repository.Progress))

	mu  sync.Mutex
	put map[blob.ID]bool // written by this process
}

// openStorage reaches the place. make says that a repository is to be made there.
func (c *child) openStorage(ctx context.Context, make bool) (*storage, error) {
	p := c.Access.Place
	s := &storage{moved: c.moved, put: map[blob.ID]bool{}}
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
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, fault.Field("path", "The folder cannot be made: %v.", err)
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
	return filesystem.New(ctx, &filesystem.Options{Path: path, FileMode: 0o600, DirectoryMode: 0o700}, make)
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

func openSFTP(ctx context.Context, a repository.Access, make bool) (blob.Storage, error) {
	p := a.Place
	hosts := fmt.Sprintf("%s %s\n", knownhosts.Normalize(fmt.Sprintf("[%s]:%d", p.Host, p.Port)), p.HostKey)
	return sftp.New(ctx, &sftp.Options{Path: p.Path, Host: p.Host, Port: p.Port, Username: p.User, KeyData: a.Secrets.PrivateKey, KnownHostsData: hosts}, make)
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
	if err := s.Storage.PutBlob(ctx, id, data, o); err != nil {
		return err
	}
	s.mu.Lock()
	s.put[id] = true
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

// errFull says that a disk is too full to write more.
var errFull = fault.Wrap(unix.ENOSPC, fault.Unavailable, "There is not enough room on the disk of the repository. Delete backups there, or make room.")

// room is errFull when the disk of a folder would be too full with n more bytes.
func (s *storage) room(n int64) error {
	var st unix.Statfs_t
	if s.folder == "" || unix.Statfs(s.folder, &st) != nil {
		return nil
	}
	free, total := int64(st.Bavail)*st.Bsize, int64(st.Blocks)*st.Bsize
	if free-n < min(spareBytes, total/spareShare) {
		return errFull
	}
	return nil
}

// empty reports whether nothing is in the place.
func (s *storage) empty(ctx context.Context) (bool, error) {
	if s.folder != "" {
		names, err := os.ReadDir(s.folder)
		names = ignoring(names, ".shards", "lost+found")
		return len(names) == 0, err
	}
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

package child

import (
	"bytes"
	"errors"
	"io"
	"net"

	"github.com/kopia/kopia/repo"
	"github.com/kopia/kopia/repo/blob"
	"github.com/kopia/kopia/repo/content"
	"github.com/minio/minio-go/v7"
	"golang.org/x/sys/unix"

	"sandboxd/internal/fault"
	"sandboxd/internal/repository"
	"sandboxd/internal/text"
)

// maxDetail bounds what is shown of an error that nobody knows, in bytes.
const maxDetail = 300

// classified says what an error of kopia, or of a place, means.
func classified(err error) error {
	var known *fault.Error
	var answer minio.ErrorResponse
	var network net.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, repo.ErrInvalidPassword):
		return &fault.Error{Kind: fault.Invalid, Field: "password", Message: "The password is not that of this repository.", Err: err}
	case errors.Is(err, repo.ErrRepositoryNotInitialized):
		return fault.Wrap(err, fault.Unavailable, "There is no repository at that place any more. Is its disk mounted?")
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return full(err)
	case errors.As(err, &answer):
		return classifiedS3(err, answer)
	case errors.Is(err, blob.ErrInvalidCredentials):
		return &fault.Error{Kind: fault.Invalid, Field: "secret_key", Message: "The place does not accept these keys.", Err: err}
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.EROFS):
		return unusable(err, "sandboxd may not write to the repository", err.Error())
	case errors.As(err, &network):
		return unusable(err, "The repository cannot be reached", network.Error())
	case errors.Is(err, blob.ErrBlobNotFound), errors.Is(err, content.ErrContentNotFound):
		return unusable(err, "A part of the repository is missing", err.Error())
	}
	return unusable(err, "The repository cannot be used", err.Error())
}

// full says that a disk is too full to write more.
func full(err error) error {
	return fault.Wrap(repository.ItemError{Err: err}, fault.Unavailable, "There is not enough room on the disk of the repository. Delete backups there, or make room.")
}

// damaged says of an error in the middle of a backup, of which the place knows nothing, that the backup is damaged.
func damaged(err error) error {
	var network net.Error
	var answer minio.ErrorResponse
	if err == nil || errors.As(err, &network) || errors.As(err, &answer) {
		return err
	}
	return fault.Wrap(repository.ItemError{Err: err}, fault.Unavailable, "The backup is damaged: a part of it cannot be read. A check of the repository with contents names the others that are.")
}

// unusable is Unavailable, with a detail for admins.
func unusable(err error, public, detail string) error {
	return fault.Wrap(repository.PlaceError{Public: public + ".", Err: err}, fault.Unavailable, "%s: %s.", public, text.Excerpt(detail, maxDetail))
}

// classifiedS3 says what an answer of S3 means.
func classifiedS3(err error, answer minio.ErrorResponse) error {
	switch answer.Code {
	case "NoSuchBucket":
		return &fault.Error{Kind: fault.Invalid, Field: "bucket", Message: "There is no bucket of that name.", Err: err}
	case "InvalidAccessKeyId", "XAdminUserNotFound": // the latter is versitygw's
		return &fault.Error{Kind: fault.Invalid, Field: "access_key", Message: "The server does not know this access key.", Err: err}
	case "SignatureDoesNotMatch":
		return &fault.Error{Kind: fault.Invalid, Field: "secret_key", Message: "The secret key is not that of the access key.", Err: err}
	case "AccessDenied":
		return &fault.Error{Kind: fault.Invalid, Field: "access_key", Message: "This access key may not use the bucket.", Err: err}
	}
	return unusable(err, "The S3 server answers with an error", answer.Message+" ("+answer.Code+")")
}

// piece is a blob in memory.
type piece []byte

// WriteTo implements io.WriterTo.
func (p piece) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(p)
	return int64(n), err
}

// Length implements blob.Bytes.
func (p piece) Length() int { return len(p) }

// Reader implements blob.Bytes.
func (p piece) Reader() io.ReadSeekCloser { return pieceReader{bytes.NewReader(p)} }

type pieceReader struct{ *bytes.Reader }

// Close implements io.Closer.
func (pieceReader) Close() error { return nil }

// buffer takes a blob.
type buffer struct{ *bytes.Buffer }

// Length implements blob.OutputBuffer.
func (b *buffer) Length() int { return b.Len() }

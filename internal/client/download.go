package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"sandboxd/internal/fault"
)

// How long a download and the like keep trying without a server that answers.
const (
	longestPause = 15 * time.Second // between tries; they begin with firstPause
	maxFruitless = 10               // tries in a row that brought nothing
)

// mayPass says whether what a try has failed for may be over at the next one.
func mayPass(err error) bool {
	kind := fault.KindOf(err)
	return kind == fault.Unavailable || kind == fault.Timeout || kind == fault.Limited
}

// stubborn tries what changes nothing until it is done, ctx ends, or it has brought nothing for some minutes. moved says that a try which
// has failed has brought something.
func stubborn(ctx context.Context, try func() (moved bool, err error)) error {
	pause := firstPause
	for fruitless := 1; ; fruitless++ {
		moved, err := try()
		if err == nil || ctx.Err() != nil || !mayPass(err) {
			return err
		}
		if moved {
			fruitless, pause = 1, firstPause
		}
		if fruitless == maxFruitless {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
}

// DownloadBackup writes the archive of a backup that is ready to w. A connection that is cut is made again, and the rest fetched. tell
// hears how much has come; it may be nil. An error of w comes back as it is.
func (c *Client) DownloadBackup(ctx context.Context, b Backup, w io.Writer, tell func(n int)) error {
	d := &download{client: c, backup: b, tag: `"` + b.ID + `"`, to: w, tell: tell, buf: make([]byte, copyBuffer)}
	err := stubborn(ctx, func() (moved bool, err error) {
		before := d.at
		err = d.rest(ctx)
		return d.at > before, err
	})
	if d.failed != nil {
		return d.failed
	}
	return err
}

// download is one under way.
type download struct {
	client *Client
	backup Backup
	tag    string
	to     io.Writer
	at     int64 // so much is written
	tell   func(n int)
	buf    []byte
	failed error // of to
}

// errChanged says that the rest of a download belongs to something else.
var errChanged = fault.New(fault.Conflict, "The server's archive is not the one that was begun. Start again.")

// rest fetches what is still missing. The error is Unavailable when it was cut off.
func (d *download) rest(ctx context.Context) error {
	ask := call{method: http.MethodGet, path: backupPath(d.backup.ID, "/archive")}
	if d.at > 0 {
		ask.head = http.Header{"Range": {fmt.Sprintf("bytes=%d-", d.at)}, "If-Range": {d.tag}}
	}
	res, err := d.client.do(ctx, ask)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if err := d.begins(res); err != nil {
		return err
	}
	err = d.copy(res.Body)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// begins checks that an answer has what is still missing, and passes over what it has beside that.
func (d *download) begins(res *http.Response) error {
	if tag := res.Header.Get("ETag"); tag != "" && tag != d.tag {
		return errChanged
	}
	if res.StatusCode == http.StatusPartialContent {
		if want := fmt.Sprintf("bytes %d-%d/%d", d.at, d.backup.Size-1, d.backup.Size); res.Header.Get("Content-Range") != want {
			return errChanged
		}
		return nil
	}
	if res.ContentLength >= 0 && res.ContentLength != d.backup.Size && !d.streamed() {
		return errChanged
	}
	if d.at > 0 && res.Header.Get("ETag") == "" {
		return errChanged
	}
	if _, err := io.CopyN(io.Discard, res.Body, d.at); err != nil { // something on the way knows no ranges
		return d.cut(err)
	}
	return nil
}

// copy writes what comes.
func (d *download) copy(from io.Reader) error {
	for {
		n, err := from.Read(d.buf)
		if d.at+int64(n) > d.backup.Size && !d.streamed() {
			return errChanged
		}
		if n > 0 {
			var written int
			written, d.failed = d.to.Write(d.buf[:n])
			d.at += int64(written)
			if d.tell != nil {
				d.tell(written)
			}
		}
		switch {
		case d.failed != nil:
			return fault.New(fault.Conflict, "the archive cannot be written")
		case err != nil && d.at == d.backup.Size && !d.streamed(), errors.Is(err, io.EOF) && d.streamed():
			return nil
		case errors.Is(err, io.EOF):
			return d.cut(io.ErrUnexpectedEOF)
		case err != nil:
			return d.cut(err)
		}
	}
}

// streamed says that the server makes the archive on its way, out of a repository: its size is not known, and its end is the answer's.
func (d *download) streamed() bool { return d.backup.Repository != "" }

func (d *download) cut(err error) error {
	if d.streamed() {
		return fault.Wrap(err, fault.Unavailable, "The download was cut off after %d bytes: %v.", d.at, short(err))
	}
	return fault.Wrap(err, fault.Unavailable, "The download was cut off after %d of %d bytes: %v.", d.at, d.backup.Size, short(err))
}

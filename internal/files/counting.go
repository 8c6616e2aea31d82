package files

import (
	"context"
	"errors"
	"io"
)

// maxBetween bounds the bytes between the contents of two entries: headers, and global headers for all later entries.
// One entry's may have a megabyte for each of its names, and another for its other properties.
const maxBetween = 4 << 20

var errBetween = errors.New("more than is allowed belongs to none of the files")

// countingReader is what an archive's reader reads from: the plain bytes of the archive, all of which it counts, whatever they mean.
type countingReader struct {
	r       io.Reader
	ctx     context.Context        // when it ends, for whatever cause, there is no more to read
	judge   func(came int64) error // may refuse that so much has come; nil lets all come
	came    int64
	between int64 // since the last entry's content
	heading bool  // no entry's content is read
	over    bool  // the stream is at its end, which an archive's reader does not tell from the end that is written in it
}

// Read implements io.Reader.
func (c *countingReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	n, err := c.r.Read(p)
	if err == io.EOF && n == 0 {
		c.over = true
	}
	c.came += int64(n)
	if c.heading {
		c.between += int64(n)
	}
	if c.between > maxBetween {
		return 0, errBetween
	}
	if c.judge != nil {
		if refused := c.judge(c.came); refused != nil {
			return 0, refused
		}
	}
	return n, err
}

// head says that a header is read next.
func (c *countingReader) head() { c.heading = true }

// entry says that a header has been read, and is an entry's own: what comes next is its content.
func (c *countingReader) entry() { c.heading, c.between = false, 0 }

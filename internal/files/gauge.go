package files

import (
	"context"
	"errors"
	"io"
)

// maxBetween bounds what stands between the contents of two entries: their headers, and what archives say of all that follows.
// One entry's may have a megabyte for each of its names, and another for its other properties.
const maxBetween = 4 << 20

var errBetween = errors.New("more than is allowed belongs to none of the files")

// gauge is what an archive's reader reads from: the plain bytes of the archive, all of which it counts, whatever they mean.
type gauge struct {
	r       io.Reader
	ctx     context.Context        // when it ends, for whatever cause, there is no more to read
	judge   func(came int64) error // may refuse that so much has come; nil lets all come
	came    int64
	between int64 // since the last entry's content
	heading bool  // no entry's content is read
	over    bool  // the stream is at its end, which an archive's reader does not tell from the end that is written in it
}

// Read implements io.Reader.
func (g *gauge) Read(p []byte) (int, error) {
	if g.ctx.Err() != nil {
		return 0, context.Cause(g.ctx)
	}
	n, err := g.r.Read(p)
	if err == io.EOF && n == 0 {
		g.over = true
	}
	g.came += int64(n)
	if g.heading {
		g.between += int64(n)
	}
	if g.between > maxBetween {
		return 0, errBetween
	}
	if g.judge != nil {
		if refused := g.judge(g.came); refused != nil {
			return 0, refused
		}
	}
	return n, err
}

// head says that a header is read next.
func (g *gauge) head() { g.heading = true }

// entry says that a header has been read, and is an entry's own: what comes next is its content.
func (g *gauge) entry() { g.heading, g.between = false, 0 }

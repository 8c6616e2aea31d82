package backup

import (
	"io"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// What is compressed at once, as a frame of its own, and by how many cores at a time.
const (
	pieceSize  = 4 << 20 // bytes
	maxWorkers = 4
)

// compressor compresses what is written to it with several cores, in frames that follow each other. One goroutine uses it.
type compressor struct {
	out     io.Writer
	encoder *zstd.Encoder
	free    chan *piece // to be filled
	order   chan *piece // filled, in the order in which they are written
	now     *piece
	written sync.WaitGroup

	mu  sync.Mutex
	err error // of out
}

// piece is what becomes a frame.
type piece struct {
	content, frame []byte
	done           chan struct{} // has something once frame is there
}

func newCompressor(out io.Writer) (*compressor, error) {
	workers := min(runtime.GOMAXPROCS(0), maxWorkers)
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(workers), zstd.WithWindowSize(pieceSize))
	if err != nil {
		return nil, err
	}
	c := &compressor{out: out, encoder: encoder, free: make(chan *piece, workers+1), order: make(chan *piece, workers+1)}
	for range workers + 1 {
		c.free <- &piece{content: make([]byte, 0, pieceSize), done: make(chan struct{}, 1)}
	}
	c.now = <-c.free
	c.written.Go(c.writeAll)
	return c, nil
}

// writeAll writes the frames in their order.
func (c *compressor) writeAll() {
	for p := range c.order {
		<-p.done
		if c.failed() == nil {
			if _, err := c.out.Write(p.frame); err != nil {
				c.mu.Lock()
				c.err = err
				c.mu.Unlock()
			}
		}
		p.content = p.content[:0]
		c.free <- p
	}
}

func (c *compressor) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Write implements io.Writer. An error of out may come with a later Write, or with Close.
func (c *compressor) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		n := min(len(rest), pieceSize-len(c.now.content))
		c.now.content = append(c.now.content, rest[:n]...)
		rest = rest[n:]
		if len(c.now.content) == pieceSize {
			if err := c.failed(); err != nil {
				return 0, err
			}
			c.compress()
		}
	}
	return len(b), nil
}

// compress has the present piece compressed, and waits for another one that is free.
func (c *compressor) compress() {
	p := c.now
	c.order <- p
	go func() {
		p.frame = c.encoder.EncodeAll(p.content, p.frame[:0])
		p.done <- struct{}{}
	}()
	c.now = <-c.free
}

// Close compresses what is left, and waits until all is written. To be called once, also after an error.
func (c *compressor) Close() error {
	if len(c.now.content) > 0 {
		c.compress()
	}
	close(c.order)
	c.written.Wait()
	return c.failed()
}

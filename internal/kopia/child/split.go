package child

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/kopia/kopia/repo"
	"github.com/kopia/kopia/repo/object"
	"golang.org/x/sync/errgroup"
)

// A stream is cut into pieces where its content says so, so that a change in the middle changes a piece or two: kopia's own way to find
// those places takes several times the processor time, most of that of a backup of which nothing is new.
const (
	minPiece = 2 << 20
	maxPiece = 8<<20 - 1
	cutBits  = 21 // of the hash are zero at a cut: 2 MiB after minPiece, in the mean
	window   = 64 // bytes that the hash is of

	oneContent = "FIXED-8M" // keeps a piece as it is
	atOnce     = 3          // pieces that are hashed, compressed and encrypted
)

// cutMask has the bits of the hash that all bytes of the window go into.
const cutMask = (1<<cutBits - 1) << (64 - cutBits)

// gear gives each byte its share of the hash. It must never change: then nothing would be the same as in older backups.
var gear = func() (table [256]uint64) {
	x := uint64(0x9E3779B97F4A7C15)
	for i := range table { // splitmix64
		x += 0x9E3779B97F4A7C15
		z := x
		z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
		z = (z ^ z>>27) * 0x94D049BB133111EB
		table[i] = z ^ z>>31
	}
	return table
}()

// cut gives the length of the first piece.
func cut(b []byte) int {
	if len(b) <= minPiece {
		return len(b)
	}
	b = b[:min(len(b), maxPiece)]
	var h uint64
	for _, c := range b[minPiece-window : minPiece] {
		h = h<<1 + gear[c]
	}
	for i, c := range b[minPiece:] {
		if h&cutMask == 0 {
			return minPiece + i
		}
		h = h<<1 + gear[c]
	}
	return len(b)
}

// writeStream stores a stream in pieces, some at a time, and gives the object that they are together, and its size.
func writeStream(ctx context.Context, w repo.RepositoryWriter, from io.Reader) (id object.ID, size int64, err error) {
	g, working := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	free := make(chan []byte, atOnce+1)
	for range cap(free) {
		free <- make([]byte, maxPiece)
	}
	var entries []*object.IndirectObjectEntry
	var rest []byte // read, and not stored yet
	for ended := false; !ended && working.Err() == nil; {
		buf := <-free
		n := copy(buf, rest)
		more, err := io.ReadFull(from, buf[n:])
		if ended = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF); err != nil && !ended {
			return id, 0, errors.Join(err, g.Wait())
		}
		all := buf[:n+more]
		length := cut(all)
		rest = append(rest[:0], all[length:]...)
		ended = ended && len(rest) == 0
		piece, e := all[:length], &object.IndirectObjectEntry{Start: size, Length: int64(length)}
		entries = append(entries, e)
		size += int64(length)
		g.Go(func() (err error) {
			e.Object, err = writePiece(working, w, piece)
			free <- buf
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return id, 0, err
	}
	if len(entries) == 1 {
		return entries[0].Object, size, nil
	}
	id, err = writeIndex(ctx, w, entries)
	return id, size, err
}

// writeIndex stores which pieces an object is made of, as kopia does of one that it has cut itself. Its own function for that reads all
// pieces again.
func writeIndex(ctx context.Context, w repo.RepositoryWriter, entries []*object.IndirectObjectEntry) (id object.ID, err error) {
	text, err := json.Marshal(map[string]any{"stream": "kopia:indirect", "entries": entries})
	if err != nil {
		return id, err
	}
	o := w.NewObjectWriter(ctx, object.WriterOptions{Description: "INDEX:" + streamName, Prefix: "x", Compressor: compressor, MetadataCompressor: compressor})
	defer o.Close()
	if _, err := o.Write(text); err != nil {
		return id, err
	}
	index, err := o.Result()
	if err != nil {
		return id, err
	}
	return object.ParseID("I" + index.String())
}

func writePiece(ctx context.Context, w repo.RepositoryWriter, piece []byte) (object.ID, error) {
	o := w.NewObjectWriter(ctx, object.WriterOptions{Description: "FILE:" + streamName, Compressor: compressor, MetadataCompressor: compressor, Splitter: oneContent})
	defer o.Close()
	if _, err := o.Write(piece); err != nil {
		return object.ID{}, err
	}
	return o.Result()
}

package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"sandboxd/internal/logs"
)

// maxBody is how large a chunk is unpacked, at most: its text, a last line, and the rest.
const maxBody = 2 << 20

// packer and unpacker are shared: each call is independent.
var (
	packer = sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(512<<10), zstd.WithLowerEncoderMem(true))
		if err != nil {
			panic(err) // the options are constants
		}
		return e
	})
	unpacker = sync.OnceValue(func() *zstd.Decoder {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(readers), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxBody))
		if err != nil {
			panic(err) // the options are constants
		}
		return d
	})
)

// packLines gives lines of one sandbox as a chunk: column by column, which packs better, the texts last.
func packLines(lines []logs.Line) []byte {
	raw := binary.AppendUvarint(nil, uint64(len(lines)))
	before := int64(0)
	for _, l := range lines {
		raw = binary.AppendUvarint(raw, uint64(int64(l.ID)-before))
		before = int64(l.ID)
	}
	for _, l := range lines {
		raw = binary.AppendVarint(raw, int64(l.ID)-l.Time.UnixMicro())
	}
	var services []string
	for _, l := range lines {
		at := slices.Index(services, l.Service)
		if at < 0 {
			at = len(services)
			services = append(services, l.Service)
		}
		raw = binary.AppendUvarint(raw, uint64(at))
	}
	raw = binary.AppendUvarint(raw, uint64(len(services)))
	for _, s := range services {
		raw = append(binary.AppendUvarint(raw, uint64(len(s))), s...)
	}
	for _, l := range lines {
		raw = append(raw, byte(l.Level))
	}
	for _, l := range lines {
		raw = binary.AppendUvarint(raw, uint64(len(l.Text)))
	}
	for _, l := range lines {
		raw = append(raw, l.Text...)
	}
	return packer().EncodeAll(raw, make([]byte, 0, len(raw)/4))
}

var errChunk = errors.New("a chunk of log lines cannot be read")

// unpackLines reads what packLines gives.
func unpackLines(body []byte, sandbox string) ([]logs.Line, error) {
	raw, err := unpacker().DecodeAll(body, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errChunk, err)
	}
	c := columns{rest: raw}
	lines := make([]logs.Line, c.count(len(raw)))
	id := int64(0)
	for i := range lines {
		id += int64(c.uint())
		lines[i].ID, lines[i].Sandbox = logs.ID(id), sandbox
	}
	for i := range lines {
		lines[i].Time = time.UnixMicro(int64(lines[i].ID) - c.int()).UTC()
	}
	which := make([]int, len(lines))
	for i := range which {
		which[i] = c.count(len(lines))
	}
	services := make([]string, c.count(len(lines)))
	for i := range services {
		services[i] = string(c.take(c.count(len(raw))))
	}
	for i := range lines {
		if which[i] >= len(services) {
			return nil, errChunk
		}
		lines[i].Service = services[which[i]]
	}
	for i, level := range c.take(len(lines)) {
		lines[i].Level = logs.Level(level)
	}
	for i := range which {
		which[i] = c.count(len(raw))
	}
	texts := string(c.rest)
	for i, n := range which {
		if c.bad || n > len(texts) {
			return nil, errChunk
		}
		lines[i].Text, texts = texts[:n], texts[n:]
	}
	if c.bad || texts != "" {
		return nil, errChunk
	}
	return lines, nil
}

// columns reads numbers. Once something is wrong all are 0.
type columns struct {
	rest []byte
	bad  bool
}

func (c *columns) uint() uint64 {
	v, n := binary.Uvarint(c.rest)
	return advance(c, v, n)
}

func (c *columns) int() int64 {
	v, n := binary.Varint(c.rest)
	return advance(c, v, n)
}

func advance[T int64 | uint64](c *columns, v T, n int) T {
	if n <= 0 || c.bad {
		c.bad = true
		return 0
	}
	c.rest = c.rest[n:]
	return v
}

// count reads a number of things of which there are at most limit.
func (c *columns) count(limit int) int {
	v := c.uint()
	if v > uint64(limit) {
		c.bad = true
		return 0
	}
	return int(v)
}

func (c *columns) take(n int) []byte {
	if c.bad || n > len(c.rest) {
		c.bad = true
		return nil
	}
	out := c.rest[:n]
	c.rest = c.rest[n:]
	return out
}

// The index has, besides words, what else a chunk can be asked for, marked with a character that is in no word.
func sourceWord(number int64) string    { return "#" + strconv.FormatInt(number, 36) }
func levelWord(level logs.Level) string { return "!" + level.String() }

func serviceWord(service string) string {
	h := fnv.New64a()
	h.Write([]byte(service)) // it never fails
	return "@" + strconv.FormatUint(h.Sum64(), 36)
}

// indexText gives the words of a chunk, each once.
func indexText(source int64, lines []logs.Line) []byte {
	seen := make(map[string]struct{}, 2048)
	out := []byte(sourceWord(source))
	add := func(word []byte) {
		if _, ok := seen[string(word)]; !ok {
			seen[string(word)] = struct{}{}
			out = append(append(out, ' '), word...)
		}
	}
	var plain []byte
	var levels [logs.Fatal + 1]bool
	service := ""
	for i, l := range lines {
		if l.Level <= logs.Fatal && !levels[l.Level] {
			levels[l.Level] = true
			add([]byte(levelWord(l.Level)))
		}
		if i == 0 || l.Service != service {
			service = l.Service
			add([]byte(serviceWord(service)))
		}
		plain = logs.AppendPlain(plain[:0], l.Text)
		logs.Words(plain, add)
	}
	return out
}

// storedSize estimates what a chunk takes on the disk: the index packs its words to about half.
func storedSize(body, index []byte) int { return len(body) + len(index)/2 }

package proxy

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// frame makes a WebSocket frame; key 0 leaves it unmasked.
func frame(head byte, payload []byte, key byte) []byte {
	out := []byte{head}
	var masked byte
	if key != 0 {
		masked = frameMasked
	}
	switch n := len(payload); {
	case n < frameLength16:
		out = append(out, masked|byte(n))
	case n < 1<<16:
		out = binary.BigEndian.AppendUint16(append(out, masked|frameLength16), uint16(n))
	default:
		out = binary.BigEndian.AppendUint64(append(out, masked|frameLength64), uint64(n))
	}
	if key == 0 {
		return append(out, payload...)
	}
	mask := []byte{key, key + 1, key + 2, key + 3}
	out = append(out, mask...)
	for i, b := range payload {
		out = append(out, b^mask[i%4])
	}
	return out
}

const (
	textMessage, binaryMessage, more = 0x81, 0x82, 0x00 // a whole text, a whole binary, and a frame that is neither first nor last
	closing, ping, pong              = 0x88, 0x89, 0x8a
)

// readAll feeds a stream in pieces of at most size bytes.
func readAll(f *frames, stream []byte, size int) piece {
	var sum piece
	for part := range slices.Chunk(stream, size) {
		got := f.read(part)
		sum.content += got.content
		sum.data = sum.data || got.data
		sum.typed = sum.typed || got.typed
	}
	return sum
}

func TestFrames_ContentIsWhatMessagesHold(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 70_000)
	for what, c := range map[string]struct {
		stream [][]byte
		want   piece
	}{
		"nothing":               {nil, piece{}},
		"a text":                {[][]byte{frame(textMessage, []byte("hello"), 0)}, piece{5, true, false}},
		"a masked text":         {[][]byte{frame(textMessage, []byte("hello"), 7)}, piece{5, true, false}},
		"an empty message":      {[][]byte{frame(textMessage, nil, 7)}, piece{0, true, false}},
		"middle-sized":          {[][]byte{frame(binaryMessage, long[:1000], 9)}, piece{1000, true, false}},
		"large":                 {[][]byte{frame(binaryMessage, long, 9)}, piece{70_000, true, false}},
		"a ping":                {[][]byte{frame(ping, []byte("are you there"), 7)}, piece{}},
		"ping, pong, close":     {[][]byte{frame(ping, nil, 7), frame(pong, long[:125], 0), frame(closing, []byte{3, 232}, 1)}, piece{}},
		"in frames":             {[][]byte{frame(0x01, []byte("he"), 7), frame(more, []byte("ll"), 7), frame(0x80, []byte("o"), 7)}, piece{5, true, false}},
		"a ping within frames":  {[][]byte{frame(0x01, []byte("he"), 7), frame(ping, long[:99], 7), frame(0x80, []byte("llo"), 7)}, piece{5, true, false}},
		"typed":                 {[][]byte{frame(binaryMessage, []byte("0ls\n"), 48)}, piece{4, true, true}},
		"typed after an empty":  {[][]byte{frame(0x02, nil, 7), frame(0x80, []byte("0ls\n"), 48)}, piece{4, true, true}},
		"resized":               {[][]byte{frame(binaryMessage, []byte(`1{"columns":80}`), 48)}, piece{15, true, false}},
		"resized in frames":     {[][]byte{frame(0x02, []byte("1"), 7), frame(0x80, []byte("0000"), 7)}, piece{5, true, false}},
		"typed, then resized":   {[][]byte{frame(binaryMessage, []byte("0a"), 7), frame(binaryMessage, []byte("1{}"), 7)}, piece{5, true, true}},
		"compressed":            {[][]byte{frame(0xc2, []byte("zzz"), 7)}, piece{3, true, true}}, // it may be input
		"not framed":            {[][]byte{[]byte("GET / HTTP/1.1\r\n\r\n")}, piece{18 - shortHead + 0, true, true}},
		"not framed later":      {[][]byte{frame(textMessage, []byte("hello"), 0), {0xff, 0xff, 1, 2, 3}}, piece{5 + 3, true, true}},
		"a length beyond sense": {[][]byte{{binaryMessage, 127, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3}}, piece{3, true, true}},
		"a long ping":           {[][]byte{frame(ping, long[:126], 0)}, piece{126 + 2, true, true}},
		"a message in another":  {[][]byte{frame(0x01, []byte("he"), 0), frame(textMessage, []byte("llo"), 0)}, piece{2 + 3, true, true}},
		"a lone continuation":   {[][]byte{frame(0x80, []byte("llo"), 0)}, piece{3, true, true}},
	} {
		stream := slices.Concat(c.stream...)
		for _, size := range []int{1, 2, 3, 7, 1 << 20} {
			if got := readAll(&frames{}, stream, size); got != c.want {
				t.Errorf("%s, in pieces of %d: %+v, want %+v", what, size, got, c.want)
			}
		}
	}
}

func TestFrames_RandomConversationsAreFollowed(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var stream []byte
		want := 0
		for range dice.IntN(20) {
			payload := make([]byte, dice.IntN(300))
			key := byte(dice.IntN(256))
			if dice.IntN(3) == 0 {
				stream = append(stream, frame(ping, payload[:len(payload)%maxControl], key)...)
				continue
			}
			cut := dice.IntN(len(payload) + 1)
			stream = append(stream, frame(0x02, payload[:cut], key)...)
			stream = append(stream, frame(0x80, payload[cut:], key)...)
			want += len(payload)
		}
		var f frames
		if got := readAll(&f, stream, 1+dice.IntN(50)); got.content != want || f.broken || f.left != 0 || f.open {
			t.Fatalf("content %d, want %d; %+v", got.content, want, f)
		}
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1"), uint8(1))
	f.Add(slices.Concat(frame(textMessage, []byte("0hello"), 7), frame(ping, nil, 0), frame(0x02, []byte("1"), 3)), uint8(3))
	f.Add([]byte{0x82, 0xff, 0, 0, 0, 0, 0, 1, 0, 0, 1, 2, 3, 4, 5}, uint8(2))
	f.Fuzz(func(t *testing.T, stream []byte, size uint8) {
		var whole, cut frames
		want := readAll(&whole, stream, len(stream)+1)
		got := readAll(&cut, stream, int(size)+1)
		if got != want || whole != cut {
			t.Fatalf("whole %+v %+v, cut %+v %+v", want, whole, got, cut)
		}
		if want.content > len(stream) || want.content > 0 && !want.data || want.typed && !want.data {
			t.Fatalf("%d bytes hold %+v", len(stream), want)
		}
	})
}

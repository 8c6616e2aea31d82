package gatewaytest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// The size of the model of random weights: as small as llama.cpp takes one.
const (
	ggufWidth   = 64
	ggufHeads   = 4
	ggufLayers  = 2
	ggufInner   = 128
	ggufContext = 512
	ggufWords   = 200 // that it can say
)

// ggufFile writes a file of weights in the format GGUF, version 3.
type ggufFile struct {
	values, shapes, data bytes.Buffer
	keys, tensors        uint64
	random               *rand.Rand
}

// The types of values in GGUF.
const (
	ggufU32    = uint32(4)
	ggufF32    = uint32(6)
	ggufString = uint32(8)
	ggufArray  = uint32(9)
	ggufI32    = uint32(5)
)

// write writes numbers, arrays of them, and strings with their length in front.
func write(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		if s, ok := v.(string); ok {
			write(b, uint64(len(s)))
			b.WriteString(s)
			continue
		}
		if err := binary.Write(b, binary.LittleEndian, v); err != nil {
			panic(err) // a bytes.Buffer takes all, so v is of no fixed size
		}
	}
}

func (g *ggufFile) set(key string, values ...any) {
	g.keys++
	write(&g.values, append([]any{key}, values...)...)
}

func (g *ggufFile) number(key string, v uint32) { g.set(key, ggufU32, v) }

// tensor adds weights; weight gives each of them, by its row.
func (g *ggufFile) tensor(name string, weight func(row int) float32, columns, rows int) {
	g.tensors++
	dims := []any{uint32(1), uint64(columns)}
	if rows > 1 {
		dims = []any{uint32(2), uint64(columns), uint64(rows)}
	}
	write(&g.shapes, append(append([]any{name}, dims...), uint32(0), uint64(g.data.Len()))...) // 0 is F32
	for row := range rows {
		for range columns {
			write(&g.data, weight(row))
		}
	}
	for g.data.Len()%32 != 0 {
		g.data.WriteByte(0)
	}
}

// vocabulary adds the tokenizer: three marks, every byte, and words.
func (g *ggufFile) vocabulary() (size, firstWord int) {
	const unknown, control, single, normal = int32(2), int32(3), int32(6), int32(1)
	words, kinds := []any{"<unk>", "<s>", "</s>"}, []any{unknown, control, control}
	for b := range 256 {
		words, kinds = append(words, fmt.Sprintf("<0x%02X>", b)), append(kinds, single)
	}
	firstWord = len(words)
	for i := range ggufWords {
		words, kinds = append(words, fmt.Sprintf("▁w%d", i)), append(kinds, normal)
	}
	size = len(words)
	g.set("tokenizer.ggml.model", ggufString, "llama")
	g.set("tokenizer.ggml.tokens", append([]any{ggufArray, ggufString, uint64(size)}, words...)...)
	g.set("tokenizer.ggml.scores", append([]any{ggufArray, ggufF32, uint64(size)}, any(make([]float32, size)))...)
	g.set("tokenizer.ggml.token_type", append([]any{ggufArray, ggufI32, uint64(size)}, kinds...)...)
	g.number("tokenizer.ggml.unknown_token_id", 0)
	g.number("tokenizer.ggml.bos_token_id", 1)
	g.number("tokenizer.ggml.eos_token_id", 2)
	return size, firstWord
}

// RandomModel gives the file of weights of a Llama, in the format GGUF. They are random, and the same each time: it says words without a
// meaning, such as w17. Ollama and llama.cpp take it.
func RandomModel() []byte {
	g := &ggufFile{random: rand.New(rand.NewPCG(1, 2))}
	g.number("general.file_type", 0)
	g.number("llama.context_length", ggufContext)
	g.number("llama.embedding_length", ggufWidth)
	g.number("llama.block_count", ggufLayers)
	g.number("llama.feed_forward_length", ggufInner)
	g.number("llama.attention.head_count", ggufHeads)
	g.number("llama.attention.head_count_kv", ggufHeads)
	g.number("llama.rope.dimension_count", ggufWidth/ggufHeads)
	g.set("general.architecture", ggufString, "llama")
	g.set("general.name", ggufString, "random")
	g.set("llama.attention.layer_norm_rms_epsilon", ggufF32, float32(1e-5))
	size, firstWord := g.vocabulary()
	g.number("llama.vocab_size", uint32(size))
	any32 := func(int) float32 { return float32(g.random.NormFloat64()) / 8 }
	one := func(int) float32 { return 1 }
	g.tensor("token_embd.weight", any32, ggufWidth, size)
	g.tensor("output_norm.weight", one, ggufWidth, 1)
	g.tensor("output.weight", func(row int) float32 {
		if row < firstWord {
			return 0 // words are likelier than marks and bytes
		}
		return 4 * any32(row)
	}, ggufWidth, size)
	for i := range ggufLayers {
		at := fmt.Sprintf("blk.%d.", i)
		for _, name := range []string{"attn_q", "attn_k", "attn_v", "attn_output"} {
			g.tensor(at+name+".weight", any32, ggufWidth, ggufWidth)
		}
		g.tensor(at+"attn_norm.weight", one, ggufWidth, 1)
		g.tensor(at+"ffn_norm.weight", one, ggufWidth, 1)
		g.tensor(at+"ffn_gate.weight", any32, ggufWidth, ggufInner)
		g.tensor(at+"ffn_up.weight", any32, ggufWidth, ggufInner)
		g.tensor(at+"ffn_down.weight", any32, ggufInner, ggufWidth)
	}
	return g.bytes()
}

// bytes gives the whole file.
func (g *ggufFile) bytes() []byte {
	var out bytes.Buffer
	write(&out, [4]byte{'G', 'G', 'U', 'F'}, uint32(3), g.tensors, g.keys)
	out.Write(g.values.Bytes())
	out.Write(g.shapes.Bytes())
	for out.Len()%32 != 0 {
		out.WriteByte(0)
	}
	out.Write(g.data.Bytes())
	return out.Bytes()
}

package gateway

// doneWord is what OpenAI's streams end with, in the place of JSON.
const doneWord = "[DONE]"

// wanted are the values that a finder looks for. A step into an array adds a dot.
var wanted = map[string]bool{
	"usage": true, "message.usage": true, "response.usage": true, "usageMetadata": true, "prompt_eval_count": true, "eval_count": true,
	"type": true, "done": true, "error": true, "response.error": true, "background": true, "response.background": true,
	"choices..finish_reason": true, "candidates..finishReason": true, "promptFeedback": true,
}

const (
	maxDepth = 4        // below which nothing is wanted
	maxPath  = 64       // of which no wanted one is
	maxValue = 16 << 10 // longer ones are not kept
)

// finder finds values in JSON that it reads byte by byte. It keeps nothing else, so that the JSON may be of any length; what is not valid
// gives no, or wrong, values, and no more than that.
type finder struct {
	found func(path string, value []byte) // the value is valid only during the call

	depth  int            // objects and arrays that are open
	array  [maxDepth]bool // what they are
	begins [maxDepth]int  // length of the path to each of them
	path   [maxPath + 1]byte
	length int // of the path; maxPath + 1 when it is too long

	text    bool // within a string
	escaped bool // behind a backslash in it
	key     bool // which is the name of a field
	names   bool // the next string is
	scalar  bool // within a number or a word

	keeps int // depth of the value that is kept, plus one; 0 for none
	value []byte
}

// reset begins anew with the next value.
func (f *finder) reset() { *f = finder{found: f.found, value: f.value[:0]} }

// read takes the next byte.
func (f *finder) read(c byte) {
	if f.text {
		f.readText(c)
		return
	}
	if f.scalar && isDelimiter(c) {
		f.scalar = false
		f.endValue()
	}
	switch c {
	case ' ', '\t', '\r', '\n':
		f.keep(c)
	case '"':
		if f.text, f.key = true, f.names; !f.key {
			f.beginValue()
		} else if f.depth <= maxDepth {
			f.length = f.begins[f.depth-1]
			f.step()
		}
		f.keep(c)
	case '{', '[':
		f.beginValue()
		f.keep(c)
		f.open(c)
	case '}', ']':
		f.keep(c)
		f.close()
	case ',':
		f.keep(c)
		f.names = f.depth > 0 && f.depth <= maxDepth && !f.array[f.depth-1]
	case ':':
		f.keep(c)
	default:
		if !f.scalar {
			f.scalar = true
			f.beginValue()
			if c == doneWord[1] && f.depth == 1 && f.length == 0 {
				f.found(doneWord, nil)
			}
		}
		f.keep(c)
	}
}

func isDelimiter(c byte) bool {
	switch c {
	case ' ', '\t', '\r', '\n', ',', '}', ']', ':', '"', '{', '[':
		return true
	}
	return false
}

func (f *finder) readText(c byte) {
	f.keep(c)
	switch {
	case f.escaped:
		f.escaped = false
	case c == '\\':
		f.escaped = true
	case c == '"':
		f.text = false
		if f.key {
			f.key, f.names = false, false
		} else {
			f.endValue()
		}
		return
	}
	if f.key && f.depth <= maxDepth {
		f.add(c)
	}
}

func (f *finder) open(c byte) {
	if f.depth++; f.depth > maxDepth {
		f.names = false
		return
	}
	f.array[f.depth-1], f.names = c == '[', c == '{'
	f.begins[f.depth-1] = f.length
	if c == '[' && f.depth > 1 { // what an array holds whose elements come one by one is as if it came alone
		f.add('.')
	}
}

func (f *finder) close() {
	f.names = false
	if f.depth == 0 {
		return
	}
	if f.depth <= maxDepth {
		f.length = f.begins[f.depth-1]
	}
	f.depth--
	f.endValue()
}

// beginValue keeps what follows if it is wanted.
func (f *finder) beginValue() {
	if f.keeps == 0 && f.depth > 0 && f.depth <= maxDepth && f.length <= maxPath && wanted[string(f.path[:f.length])] {
		f.keeps, f.value = f.depth+1, f.value[:0]
	}
}

// endValue ends the value that is kept when it is at its depth again.
func (f *finder) endValue() {
	if f.keeps == 0 || f.depth >= f.keeps {
		return
	}
	f.keeps = 0
	if len(f.value) <= maxValue && f.length <= maxPath {
		f.found(string(f.path[:f.length]), f.value)
	}
}

func (f *finder) keep(c byte) {
	if f.keeps > 0 && len(f.value) <= maxValue {
		f.value = append(f.value, c)
	}
}

// step puts a dot between the path and the name that follows.
func (f *finder) step() {
	if f.length > 0 {
		f.add('.')
	}
}

func (f *finder) add(c byte) {
	if f.length < maxPath {
		f.path[f.length] = c
		f.length++
	} else {
		f.length = maxPath + 1
	}
}

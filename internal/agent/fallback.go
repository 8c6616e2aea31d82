package agent

import "context"

// Fallback asks models in turn, as the gateway does with the targets of an alias: the next one answers when one cannot be reached, is busy or
// fails before anything has come of its answer. It has one at least, and is for one turn at a time.
type Fallback struct {
	Models []Model
	Asked  func(i int) // is called before each is asked
}

// Stream implements Model. When none answers, the error is the last one's.
func (f Fallback) Stream(ctx context.Context, r Request, emit func(Chunk) error) (fin Finish, err error) {
	for i, m := range f.Models {
		f.Asked(i)
		began := false
		fin, err = m.Stream(ctx, r, func(c Chunk) error {
			began = true
			return emit(c)
		})
		if began || !otherMayDo(CodeOf(err)) {
			break
		}
	}
	return fin, err
}

// otherMayDo reports whether another provider may answer what one has not.
func otherMayDo(code Code) bool {
	return code == Unreachable || code == RateLimited || code == Overloaded || code == NoAnswer
}

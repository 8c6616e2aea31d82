package idle

import "time"

// maxAsked bounds how many keys are remembered for one sandbox.
const maxAsked = 256

// asked remembers who asked for what lately, by hash, so that neither length nor choice of keys costs anything.
type asked struct {
	keys    []uint64
	at      []time.Time
	rhythms []rhythm
	last    time.Time
}

// note remembers key and says whether it was there within Attention before. When there are too many the one that was
// asked for the longest ago goes.
func (a *asked) note(key uint64, now time.Time) bool {
	a.last = now
	for i, k := range a.keys {
		if k == key {
			before := a.at[i]
			a.at[i] = now
			return now.Sub(before) <= Attention
		}
	}
	if len(a.keys) < maxAsked {
		a.keys, a.at = append(a.keys, key), append(a.at, now)
		return false
	}
	oldest := 0
	for i := range a.at {
		if a.at[i].Before(a.at[oldest]) {
			oldest = i
		}
	}
	a.keys[oldest], a.at[oldest] = key, now
	return false
}

package catalog

import (
	"strconv"
	"strings"
	"time"

	"sandboxd/internal/fault"
)

// After is how long a sandbox must be unused before something is done to it. 0 says nothing: the next wider setting
// counts (the sandbox's own, its template's, the server's). Never is longer than any time.
type After time.Duration

// Never leaves a sandbox as it is, however long it is unused.
const Never After = -1

// Bounds of an After that says something.
const (
	minAfter = time.Second
	maxAfter = 365 * 24 * time.Hour
)

// Rest is when an unused sandbox is put to rest: first frozen, then stopped. Both count from its last use.
type Rest struct {
	FreezeAfter After
	StopAfter   After
}

// ParseAfter reads "never", "" or "default" (0), or a duration such as "90s", "15m", "2h" or "3d", from a second to a
// year. Invalid otherwise, with the field that is given.
func ParseAfter(field, text string) (After, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	switch text {
	case "", "default":
		return 0, nil
	case "never":
		return Never, nil
	}
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok && strings.Trim(days, "0123456789.") == "" {
		var n float64
		n, err = strconv.ParseFloat(days, 64)
		d = time.Duration(min(n*24, float64(maxAfter/time.Hour)+1) * float64(time.Hour))
	}
	if err != nil || d < minAfter || d > maxAfter {
		return 0, fault.Field(field, `%.40q is no idle time. Give a duration between 1s and 365d such as "15m", "2h" or "3d", or "never".`, text)
	}
	return After(d), nil
}

// String writes a as ParseAfter reads it: "" for 0, "never", or the shortest duration ("15m", "2h", "1h30m").
func (a After) String() string {
	switch {
	case a == 0:
		return ""
	case a < 0:
		return "never"
	}
	text := time.Duration(a).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Over fills in what r leaves open from a wider setting.
func (r Rest) Over(wider Rest) Rest {
	if r.FreezeAfter == 0 {
		r.FreezeAfter = wider.FreezeAfter
	}
	if r.StopAfter == 0 {
		r.StopAfter = wider.StopAfter
	}
	return r
}

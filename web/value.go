package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"

	"sandboxd/internal/fault"
)

// memorySize is a number of bytes, in JSON a number or a text such as "512MiB" or "2g" (binary units).
type memorySize int64

// UnmarshalJSON reads either form.
func (m *memorySize) UnmarshalJSON(b []byte) error {
	return readSize((*int64)(m), "memory", "memory", b)
}

// diskSize is a number of bytes, in JSON as for memorySize.
type diskSize int64

// UnmarshalJSON reads either form.
func (d *diskSize) UnmarshalJSON(b []byte) error {
	return readSize((*int64)(d), "disk", "limit of the home", b)
}

// readSize reads a size that a field has in JSON; what names it in a sentence.
func readSize(into *int64, field, what string, b []byte) error {
	n, err := parseSize(unquote(b))
	if err != nil {
		return fault.Field(field, "The %s must be a number of bytes or a text such as \"512MiB\", not %.40s.", what, b)
	}
	*into = n
	return nil
}

func parseSize(text string) (int64, error) {
	if text == "null" {
		return 0, nil
	}
	return units.RAMInBytes(text)
}

// tokenTTL is how long a token lives, in JSON a number of seconds or a text such as "90s", "5m" or "30d".
type tokenTTL time.Duration

// UnmarshalJSON reads either form.
func (d *tokenTTL) UnmarshalJSON(b []byte) error { return readSpan((*time.Duration)(d), "ttl", b) }

// execTimeout is how long a command may take, in JSON as for tokenTTL.
type execTimeout time.Duration

// UnmarshalJSON reads either form.
func (d *execTimeout) UnmarshalJSON(b []byte) error {
	return readSpan((*time.Duration)(d), "timeout", b)
}

// readSpan reads a length of time that a field has in JSON.
func readSpan(into *time.Duration, field string, b []byte) error {
	v, err := parseSpan(unquote(b))
	if err != nil {
		return fault.Field(field, "%.40s is not a length of time: use seconds, or a text such as \"90s\", \"5m\" or \"30d\".", b)
	}
	*into = v
	return nil
}

// parseSpan reads a number of seconds or a text such as "90s", "5m" or "30d".
func parseSpan(text string) (time.Duration, error) {
	bad := fmt.Errorf("%.40q is no length of time", text)
	if text == "null" {
		return 0, nil
	}
	unit := time.Second
	number, days := strings.CutSuffix(text, "d")
	if days {
		unit = 24 * time.Hour
	}
	if n, err := strconv.ParseFloat(number, 64); err == nil {
		v := n * float64(unit)
		if math.IsNaN(v) || math.Abs(v) > math.MaxInt64/2 {
			return 0, bad
		}
		return time.Duration(v), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, bad
	}
	return d, nil
}

// spanPart is a number with its unit, as people write it.
var spanPart = regexp.MustCompile(`^(\d+(?:\.\d+)?)\s*(seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|w)[\s,]*`)

// enteredSpan reads a length of time as people write it into a form: "12 hours", "90 min", "3 days", "1h30m".
func enteredSpan(text string) (time.Duration, error) {
	bad := fmt.Errorf("%.40q is no length of time", text)
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	left, sum := strings.ToLower(strings.TrimSpace(text)), 0.0
	if left == "" {
		return 0, bad
	}
	for left != "" {
		part := spanPart.FindStringSubmatch(left)
		if part == nil {
			return 0, bad
		}
		n, err := strconv.ParseFloat(part[1], 64)
		if sum += n * float64(units[part[2][0]]); err != nil || sum > math.MaxInt64/2 {
			return 0, bad
		}
		left = left[len(part[0]):]
	}
	return time.Duration(sum), nil
}

func unquote(b []byte) string {
	var text string
	if json.Unmarshal(b, &text) == nil && len(b) > 0 && b[0] == '"' {
		return text
	}
	return string(bytes.TrimSpace(b))
}

// boolQuery gives a switch from the query: off when it is not given.
func (r *request) boolQuery(name string) (bool, error) {
	switch r.query(name) {
	case "", "false", "0":
		return false, nil
	case "true", "1":
		return true, nil
	}
	return false, fault.Field(name, "%s must be true or false.", name)
}

// intQuery gives a whole number from the query, or otherwise when it is not given.
func (r *request) intQuery(name string, otherwise, least, most int) (int, error) {
	text := r.query(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fault.Field(name, "%s must be a whole number between %d and %d.", name, least, most)
	}
	return n, nil
}

package proxy

import (
	"net/url"
	"strings"
)

const (
	maxQuery  = 8 << 10 // what comes after so many bytes of a query makes no difference
	numberLen = 6       // digits of a number that is no page, row or day
	randomLen = 12      // digits of one with a fraction that nobody has chosen
	tokenLen  = 16      // characters of what is no word
)

// busters are names of what only keeps an answer from being cached. Socket.IO's t is a moment in seven letters and digits.
var busters = map[string]bool{
	"_": true, "t": true, "_t": true, "ts": true, "_ts": true, "_dc": true, "cb": true, "nocache": true, "cachebust": true,
	"cachebuster": true, "rand": true, "rnd": true, "random": true, "nonce": true, "timestamp": true,
}

// lasting is a query without what a page's script makes up anew each time: moments, counters and random values. Words and
// short numbers stay, since a person searches for the ones and pages through the others.
func lasting(query string) string {
	parts := strings.Split(query[:min(len(query), maxQuery)], "&")
	for i, part := range parts {
		name, value, named := strings.Cut(part, "=")
		switch {
		case named && (busters[name] || madeUp(value)):
			parts[i] = name + "=#"
		case !named && madeUp(part): // Jupyter's page puts the time there
			parts[i] = "#"
		}
	}
	return strings.Join(parts, "&")
}

// madeUp reports whether a value is a moment, a long number, or random.
func madeUp(value string) bool {
	if text, err := url.QueryUnescape(value); err == nil {
		value = text
	}
	return isNumber(value) || isMoment(value) || isToken(value)
}

// isNumber tells an id, a moment or Math.random() from a page, an address or a place on a map.
func isNumber(value string) bool {
	whole, fraction, _ := strings.Cut(value, ".")
	if strings.Trim(whole+fraction, "0123456789") != "" {
		return false
	}
	return len(whole) >= numberLen || len(whole)+len(fraction) >= randomLen
}

// isMoment tells a time of day on a day: a day alone is chosen in a calendar.
func isMoment(value string) bool {
	digits := 0
	for _, c := range value {
		if c >= '0' && c <= '9' {
			digits++
		} else if !strings.ContainsRune("-:.,TZ+ ", c) {
			return false
		}
	}
	return digits >= numberLen && strings.Contains(value, ":")
}

// isToken tells hexadecimal, UUIDs and base64 from words, also from several that are joined and numbered.
func isToken(value string) bool {
	if len(value) < tokenLen {
		return false
	}
	digits, lower, random := 0, false, false
	for i := range len(value) {
		switch c := value[i]; {
		case c >= '0' && c <= '9':
			digits++
			random = random || digits >= numberLen
		case c >= 'a' && c <= 'z':
			random = random || digits > 0
			lower = true
		case c >= 'A' && c <= 'Z':
			random = random || digits > 0 || lower
		case c == '-' || c == '_':
			digits, lower = 0, false
		case c == '=':
		default:
			return false
		}
	}
	return random
}

package text

import (
	"strconv"
	"strings"
)

var sizeUnits = []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}

// unitOf is the unit in which to write a number of bytes: its index in sizeUnits, and its bytes.
func unitOf(bytes int64) (unit int, size float64) {
	size = 1
	for unit < len(sizeUnits)-1 && float64(bytes) >= 1000*size { // so that no number has four digits
		unit, size = unit+1, size*1024
	}
	return unit, size
}

// Size writes a number of bytes in binary units, with three digits that say something: "312 MiB", "1.9 GiB", "21.8 GiB".
// static/files/format.js writes the same.
func Size(bytes int64) string {
	unit, size := unitOf(bytes)
	return sizeNumber(float64(bytes)/size) + " " + sizeUnits[unit]
}

// SizeBeside writes a number of bytes in the unit of another that follows: "0.31" before "/ 2 GiB". One that is too small for that
// has a unit of its own.
func SizeBeside(bytes, other int64) string {
	_, size := unitOf(other)
	if number := sizeNumber(float64(bytes) / size); number != "0" {
		return number
	}
	unit, size := unitOf(bytes)
	return strconv.FormatFloat(float64(bytes)/size, 'f', 0, 64) + " " + sizeUnits[unit]
}

func sizeNumber(n float64) string {
	switch {
	case n >= 100:
		return strconv.FormatFloat(n, 'f', 0, 64)
	case n >= 10:
		return Shorten(strconv.FormatFloat(n, 'f', 1, 64))
	}
	return Shorten(strconv.FormatFloat(n, 'f', 2, 64))
}

// Shorten leaves out the zeros at the end of a decimal fraction.
func Shorten(number string) string {
	if !strings.Contains(number, ".") {
		return number
	}
	return strings.TrimSuffix(strings.TrimRight(number, "0"), ".")
}

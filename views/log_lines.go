package views

import "strconv"

// fieldsText names what is folded away.
func fieldsText(n int) string {
	if n == 1 {
		return "1 field"
	}
	return strconv.Itoa(n) + " fields"
}

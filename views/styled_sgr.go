package views

import (
	"strconv"
	"strings"
)

// The hues of text. A terminal's eight and its bright ones are the same here: each has to be read on a light and on a dark page.
var hues = [...]string{"", "red", "green", "yellow", "blue", "magenta", "cyan", ""}

const grey = "grey"

// attributes are how text looks at one place of a line.
type attributes struct {
	ink, back                              string // hues, "" for none
	filled                                 bool   // it has a background, also one without a hue
	bold, dim, italic, underlined, crossed bool
	inverse                                bool
}

// class gives the classes of the style (static/css/logs.css). On a background the ink is always the darkest: a program's own pair of
// colours may not be readable.
func (a *attributes) class() string {
	if *a == (attributes{}) {
		return ""
	}
	var list []string
	switch {
	case a.inverse && a.ink != "":
		list = append(list, "bg-"+a.ink)
	case a.filled && a.back != "" && !a.inverse:
		list = append(list, "bg-"+a.back)
	case a.inverse || a.filled:
		list = append(list, "bg-"+grey)
	case a.ink != "":
		list = append(list, "fg-"+a.ink)
	}
	for _, c := range []struct {
		on   bool
		name string
	}{{a.bold, "sgr-bold"}, {a.dim && a.ink == "" && !a.filled && !a.inverse, "fg-" + grey}, {a.italic, "sgr-italic"}, {a.underlined, "sgr-line"}, {a.crossed, "sgr-crossed"}} {
		if c.on {
			list = append(list, c.name)
		}
	}
	return strings.Join(list, " ")
}

// take takes in the parameters of a sequence, such as "1;31" or "38;5;208". What it does not know has no effect; hidden text is shown.
func (a *attributes) take(parameters string) {
	codes := strings.Split(parameters, ";")
	for i := 0; i < len(codes); i++ {
		main, sub, colons := strings.Cut(codes[i], ":")
		code, err := strconv.Atoi(main)
		if err != nil && main != "" {
			continue
		}
		switch {
		case code == 38 || code == 48:
			var hue string
			if colons {
				hue = wide(strings.FieldsFunc(sub, func(r rune) bool { return r == ':' }))
			} else {
				rest := codes[i+1:]
				n := wideLen(rest)
				hue = wide(rest[:n])
				i += n
			}
			a.colour(code == 48, hue)
		case code == 4 && sub == "0":
			a.underlined = false
		default:
			a.set(code)
		}
	}
}

// colour sets the colour of the text or of what is behind it.
func (a *attributes) colour(back bool, hue string) {
	if back {
		a.back, a.filled = hue, true
	} else {
		a.ink = hue
	}
}

// set takes in a code of one number.
func (a *attributes) set(code int) {
	switch {
	case code == 0:
		*a = attributes{}
	case code == 1:
		a.bold = true
	case code == 2:
		a.dim = true
	case code == 3:
		a.italic = true
	case code == 4 || code == 21:
		a.underlined = true
	case code == 7:
		a.inverse = true
	case code == 9:
		a.crossed = true
	case code >= 22 && code <= 29:
		a.unset(code)
	case code >= 30 && code <= 37:
		a.ink = hues[code-30]
	case code == 39:
		a.ink = ""
	case code >= 40 && code <= 47:
		a.colour(true, hues[code-40])
	case code == 49:
		a.back, a.filled = "", false
	case code == 90:
		a.ink = grey
	case code > 90 && code <= 97:
		a.ink = hues[code-90]
	case code >= 100 && code <= 107:
		a.colour(true, hues[code-100])
	}
}

func (a *attributes) unset(code int) {
	switch code {
	case 22:
		a.bold, a.dim = false, false
	case 23:
		a.italic = false
	case 24:
		a.underlined = false
	case 27:
		a.inverse = false
	case 29:
		a.crossed = false
	}
}

// wideLen tells how many of the codes behind 38 or 48 belong to the colour.
func wideLen(codes []string) int {
	switch {
	case len(codes) > 0 && codes[0] == "5":
		return min(2, len(codes))
	case len(codes) > 0 && codes[0] == "2":
		return min(4, len(codes))
	}
	return 0
}

// wide gives the hue nearest to a colour of 256, "5;208", or of all, "2;255;128;0".
func wide(codes []string) string {
	var n []int
	for _, c := range codes {
		v, err := strconv.Atoi(c)
		if err != nil || v < 0 || v > 255 {
			v = 0
		}
		n = append(n, v)
	}
	switch {
	case len(n) >= 2 && n[0] == 5:
		return indexed(n[1])
	case len(n) >= 4 && n[0] == 2:
		n = n[len(n)-3:] // a colour space may stand before
		return hueOf(n[0], n[1], n[2])
	}
	return ""
}

// indexed gives the hue of a colour of 256.
func indexed(i int) string {
	switch {
	case i == 8:
		return grey
	case i < 16:
		return hues[i%8]
	case i >= 232:
		if i >= 236 && i <= 248 {
			return grey
		}
		return ""
	}
	i -= 16
	level := func(v int) int {
		if v == 0 {
			return 0
		}
		return 55 + 40*v
	}
	return hueOf(level(i/36), level(i/6%6), level(i%6))
}

// hueOf gives the hue of a colour; what has hardly one is grey, or as other text.
func hueOf(r, g, b int) string {
	high, low := max(r, g, b), min(r, g, b)
	if high-low < 40 {
		if high > 60 && high < 190 {
			return grey
		}
		return ""
	}
	near := low + (high-low)*2/5 // a part above it counts
	switch up := [3]bool{r > near, g > near, b > near}; up {
	case [3]bool{true, false, false}:
		return "red"
	case [3]bool{false, true, false}:
		return "green"
	case [3]bool{true, true, false}:
		return "yellow"
	case [3]bool{false, false, true}:
		return "blue"
	case [3]bool{true, false, true}:
		return "magenta"
	default:
		return "cyan"
	}
}

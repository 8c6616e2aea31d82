package views

import "strconv"

// open is how many ports something listens on, "" for none.
func (l PortList) open() string {
	n := 0
	for _, p := range l.Items {
		if p.Open {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// name is what a port is called.
func (p Port) name() string {
	switch {
	case p.Title != "":
		return p.Title
	case p.Process != "":
		return p.Process
	}
	return "Port"
}

// shared reports whether others may use it.
func (p Port) shared() bool { return p.Who.Icon != "lock" }

// whoText is the label of what leads to who may use it.
func (p Port) whoText() string {
	if p.shared() {
		return p.Who.Text
	}
	return "Share"
}

// whoTitle is the same in full.
func (p Port) whoTitle() string {
	if p.shared() {
		return p.Who.Text + ": who can open port " + p.Number
	}
	return "Share port " + p.Number + ", which is private"
}

// privateText says what private means, and which links it ends.
func (p PortSheet) privateText() string {
	text := "Only people who may use this sandbox, signed in."
	switch n := len(p.Shares); {
	case n == 1:
		text += " Its link stops working."
	case n > 1:
		text += " Its " + strconv.Itoa(n) + " links stop working."
	}
	return text
}

// counted gives a number of things in words.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

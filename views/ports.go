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

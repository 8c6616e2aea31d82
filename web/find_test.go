package web

import (
	"strings"

	"golang.org/x/net/html"
)

// find gives the first element that fits, or nil. What to look for is "tag", "#id", ".class" or "tag.class".
func (v view) find(what string) *html.Node {
	for n := range v.doc.Descendants() {
		if fits(n, what) {
			return n
		}
	}
	return nil
}

// all gives every element that fits.
func (v view) all(what string) []*html.Node {
	var found []*html.Node
	for n := range v.doc.Descendants() {
		if fits(n, what) {
			found = append(found, n)
		}
	}
	return found
}

// need is find that fails the test when there is none.
func (v view) need(what string) *html.Node {
	v.t.Helper()
	n := v.find(what)
	if n == nil {
		v.t.Fatalf("no %s in %s", what, v.Body)
	}
	return n
}

func fits(n *html.Node, what string) bool {
	if n.Type != html.ElementNode {
		return false
	}
	if id, ok := strings.CutPrefix(what, "#"); ok {
		return attr(n, "id") == id
	}
	tag, class, _ := strings.Cut(what, ".")
	if tag != "" && n.Data != tag {
		return false
	}
	return class == "" || strings.Contains(" "+attr(n, "class")+" ", " "+class+" ")
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// choice gives the value of the option with this text.
func (v view) choice(text string) string {
	v.t.Helper()
	for _, n := range v.all("option") {
		if textOf(n) == text {
			return attr(n, "value")
		}
	}
	v.t.Fatalf("no choice %q in %s", text, v.Body)
	return ""
}

// textOf is what a person reads in n, with single spaces.
func textOf(n *html.Node) string {
	if n == nil {
		return ""
	}
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// in gives the first element below n that fits, or nil.
func in(n *html.Node, what string) *html.Node {
	for d := range n.Descendants() {
		if fits(d, what) {
			return d
		}
	}
	return nil
}

// within gives every element below n that fits.
func within(n *html.Node, what string) []*html.Node {
	var found []*html.Node
	for d := range n.Descendants() {
		if fits(d, what) {
			found = append(found, d)
		}
	}
	return found
}

// field gives the first field of a form with this name, or nil.
func (v view) field(name string) *html.Node {
	for _, n := range v.all("input") {
		if attr(n, "name") == name {
			return n
		}
	}
	return nil
}

func hasAttr(n *html.Node, name string) bool {
	for _, a := range n.Attr {
		if a.Key == name {
			return true
		}
	}
	return false
}

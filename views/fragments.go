package views

import (
	"context"
	"html"
	"io"

	"github.com/a-h/templ"
)

// The ways in which a part takes its place in the page.
const (
	Replace = "outerHTML"  // instead of the element
	Fill    = "innerHTML"  // replaces the element's content
	Prepend = "afterbegin" // before the element's content
	Append  = "beforeend"  // after the element's content
	Remove  = "delete"     // the element goes
)

// Part is a component for one place of the page: the element with this id. Any number of them may follow each other in
// an answer or in an event of the live stream; parts whose element is not there are left out by the browser.
func Part(id, how string, c templ.Component) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		head := `<hx-partial hx-target="#` + html.EscapeString(id) + `" hx-swap="` + how + `">`
		if _, err := io.WriteString(w, head); err != nil {
			return err
		}
		if err := c.Render(ctx, w); err != nil {
			return err
		}
		_, err := io.WriteString(w, `</hx-partial>`)
		return err
	})
}

// Gone removes the element with this id.
func Gone(id string) templ.Component { return Part(id, Remove, templ.NopComponent) }

// Text is plain text as a component.
func Text(text string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, templ.EscapeString(text))
		return err
	})
}

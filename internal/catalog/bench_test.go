package catalog

import (
	"testing"

	"sandboxd/templates"
)

// What a page and a create cost when nothing has changed on the disk.
func BenchmarkUnchanged(b *testing.B) {
	dir := b.TempDir()
	if err := templates.Unpack(dir); err != nil {
		b.Fatal(err)
	}
	c, err := Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	i := NewImages(c, newFakeEngine(), ImageOptions{})
	b.Run("List", func(b *testing.B) {
		for b.Loop() {
			c.List()
		}
	})
	b.Run("Recipe", func(b *testing.B) {
		for b.Loop() {
			if _, err := i.recipeOf(Template{Name: "python-ml"}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

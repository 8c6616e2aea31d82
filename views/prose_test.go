package views

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

func show(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	if err := prose(Prose(text)).Render(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestProse_ShowsTheSafePartOfMarkdown(t *testing.T) {
	for text, want := range map[string]string{
		"# A\n\n## B ##\n#### C":            "<h2>A</h2><h3>B</h3><h4>C</h4>",
		"one\ntwo\n\nthree":                 "<p>one two</p><p>three</p>",
		"- a\n- b\n  more\n1. c":            "<ul><li>a</li><li>b more</li></ul><ol><li>c</li></ol>",
		"```sh\na <b>\n  # c\n```\nafter":   "<pre><code>a &lt;b&gt;\n  # c</code></pre><p>after</p>",
		"x `y` **z** [w](https://e.org/?a)": `<p>x <code>y</code> <strong>z</strong> <a href="https://e.org/?a" target="_blank" rel="noopener noreferrer nofollow">w</a></p>`,
		"[w](javascript:x) <script>":        "<p>w &lt;script&gt;</p>",
		"so:\n\n    a `b`\n      c\nafter":  "<p>so:</p><pre><code>a `b`\n  c</code></pre><p>after</p>",
		"```\nnever closed":                 "<pre><code>never closed</code></pre>",
		"":                                  "",
	} {
		if got := show(t, text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestProse_IsBounded(t *testing.T) {
	if got := len(Prose(strings.Repeat("a\n\n", 1<<20))); got > maxBlocks {
		t.Errorf("%d blocks", got)
	}
}

func FuzzProse(f *testing.F) {
	f.Add("# a\n- b\n```\nc")
	f.Add("**`[x](http://y)`**\n\n1) z\r\n<img onerror=1>")
	allowed := " html head body h2 h3 h4 p ul ol li pre code strong a "
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := html.Parse(strings.NewReader(show(t, text)))
		if err != nil {
			t.Fatal(err)
		}
		for n := range doc.Descendants() {
			if n.Type == html.ElementNode && !strings.Contains(allowed, " "+n.Data+" ") {
				t.Errorf("<%s> from %q", n.Data, text)
			}
		}
	})
}

package static

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The contrasts of WCAG 2.2, level AA.
const (
	aaText  = 4.5
	aaShape = 3.0
)

var token = regexp.MustCompile(`--([a-z0-9-]+): (?:light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)|(#[0-9a-f]{6}));`)

// tokens reads the colours of tokens.css: by name, light and dark.
func tokens(t *testing.T) map[string][2]string {
	t.Helper()
	css, err := os.ReadFile("css/tokens.css")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][2]string{}
	for _, m := range token.FindAllStringSubmatch(string(css), -1) {
		found[m[1]] = [2]string{m[2] + m[4], m[3] + m[4]}
	}
	return found
}

func TestColours_HaveTheContrastOfLevelAA(t *testing.T) {
	colours := tokens(t)
	for _, c := range []struct {
		least     float64
		inks, bgs string
	}{
		{aaText, "ink", "bg surface raised sunken hover picked bad-soft good-soft busy-soft calm-soft"},
		{aaText, "ink-2", "bg surface raised sunken hover picked bad-soft good-soft"},
		{aaText, "ink-3", "bg surface raised sunken hover"},
		{aaText, "accent", "bg surface raised accent-soft"},
		{aaText, "on-accent", "accent-fill accent-fill-hover bad-fill bad-fill-hover"},
		{aaText, "good", "bg surface hover"},
		{aaText, "busy", "bg surface hover busy-soft"},
		{aaText, "bad", "bg surface raised hover bad-soft"},
		{aaText, "calm", "bg surface hover calm-soft"},
		{aaText, "terminal-ink", "terminal-bg"},
		{aaText, "ink", "terminal-bg code-selection code-match code-found"},
		{aaText, "accent", "sunken"}, {aaText, "busy", "raised sunken"}, {aaText, "bad", "sunken"}, {aaText, "ink-2", "accent-soft"}, {aaShape, "good", "raised"}, // the chat
		{aaText, "ink-3", "terminal-bg accent-soft"}, {aaText, "ink", "accent-soft calm-soft"}, {aaText, "accent", "accent-soft terminal-bg"},
		{aaText, "code-keyword", "terminal-bg code-selection"}, {aaText, "code-string", "terminal-bg"}, {aaText, "code-number", "terminal-bg"},
		{aaText, "code-comment", "terminal-bg"}, {aaText, "code-function", "terminal-bg"}, {aaText, "code-type", "terminal-bg"},
		{aaText, "code-property", "terminal-bg"}, {aaText, "code-invalid", "terminal-bg"},
		{aaText, "bad good busy calm code-keyword code-type ink-2 accent", "surface hover accent-soft"}, {aaText, "ink", "tint-5-soft tint-2-soft"}, // logs
		{aaShape, "focus", "bg surface raised sunken"},
		{aaShape, "tint-1", "tint-1-soft"}, {aaShape, "tint-2", "tint-2-soft"}, {aaShape, "tint-3", "tint-3-soft"},
		{aaShape, "tint-4", "tint-4-soft"}, {aaShape, "tint-5", "tint-5-soft"}, {aaShape, "tint-6", "tint-6-soft"},
	} {
		for name := range strings.FieldsSeq(c.inks) {
			for bg := range strings.FieldsSeq(c.bgs) {
				for theme, word := range []string{"light", "dark"} {
					ink, under := colours[name][theme], colours[bg][theme]
					if ink == "" || under == "" {
						t.Fatalf("no colour %s or %s", name, bg)
					}
					if got := contrast(t, ink, under); got < c.least {
						t.Errorf("%s: %s on %s has %.2f, needs %.1f", word, name, bg, got, c.least)
					}
				}
			}
		}
	}
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	n, err := strconv.ParseUint(hex[1:], 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	part := func(shift uint) float64 {
		v := float64(n>>shift&0xff) / 255
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*part(16) + 0.7152*part(8) + 0.0722*part(0)
}

var variable = regexp.MustCompile(`var\(--([a-z0-9-]+)\)`)

func TestStyles_UseOnlyVariablesThatExist(t *testing.T) {
	files, err := os.ReadDir("css")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile("css/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	css := all.String()
	for _, m := range variable.FindAllStringSubmatch(css, -1) {
		if !strings.Contains(css, "--"+m[1]+":") {
			t.Errorf("there is no --%s", m[1])
		}
	}
}

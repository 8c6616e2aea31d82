package gateway_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/gateway"
)

// million is a million tokens of each sort.
var million = gateway.Tokens{Input: 1_000_000, Output: 1_000_000, CacheRead: 1_000_000, CacheWrite: 1_000_000}

func withPrices(t *testing.T, text string) (path string, edit func(*gateway.Config)) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "prices.json")
	if text != "" {
		writeFile(t, path, text)
	}
	return path, func(c *gateway.Config) { c.Prices = path }
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestPrices_OfWellKnownModelsAreBuiltIn(t *testing.T) {
	c := newControl(t)
	for model, want := range map[string]int64{
		"claude-opus-4-5": 36_750_000, "claude-opus-4-5-20251101": 36_750_000, "anthropic/claude-opus-4-5": 36_750_000, "claude-sonnet-4-20250514": 22_050_000,
		"gpt-5": 12_625_000, "gpt-5-2025-08-07": 12_625_000, "gpt-4o-latest": 16_250_000, "models/gemini-2.5-flash": 3_130_000,
	} {
		if got, known := c.Cost(model, million); !known || got != want {
			t.Errorf("%s costs %d, %t; want %d", model, got, known, want)
		}
	}
	for _, model := range []string{"", "llama3:8b", "gpt-5-something-new", "claude-opus-4-99", "my-gpt-5", "gpt-oss:20b"} {
		if got, known := c.Cost(model, million); known || got != 0 {
			t.Errorf("%q costs %d, %t", model, got, known)
		}
	}
	for _, p := range c.Prices() {
		if p.Date == "" || p.Input <= 0 || p.CacheRead > p.Input && p.Long == nil {
			t.Errorf("price %+v", p)
		}
	}
}

func TestPrices_AreRoundedAndNeverNegative(t *testing.T) {
	c := newControl(t)
	for _, v := range []struct {
		used gateway.Tokens
		want int64
	}{
		{gateway.Tokens{}, 0}, {gateway.Tokens{Input: 1}, 1}, {gateway.Tokens{Input: 3}, 4}, {gateway.Tokens{Input: -5}, 0}, {gateway.Tokens{Output: 1 << 62}, 1_000_000_000_000},
	} {
		if got, _ := c.Cost("gpt-5", v.used); got != v.want {
			t.Errorf("%+v costs %d, want %d", v.used, got, v.want)
		}
	}
}

func TestPrices_OfLongPromptsAreTheirOwn(t *testing.T) {
	_, edit := withPrices(t, `[{"model": "m", "input": 1, "output": 10, "long": {"above": 1000, "input": 2, "output": 20, "cache_read": 3, "cache_write": 4}}]`)
	c := newControl(t, edit)
	for _, v := range []struct {
		used gateway.Tokens
		want int64
	}{
		{gateway.Tokens{Input: 1000, Output: 5000}, 51_000}, {gateway.Tokens{Input: 1001, Output: 5000}, 102_002}, {gateway.Tokens{Input: 500, CacheRead: 300, CacheWrite: 300}, 3100},
	} {
		if got, known := c.Cost("m", v.used); !known || got != v.want {
			t.Errorf("%+v costs %d, want %d", v.used, got, v.want)
		}
	}
}

func TestPrices_OfTheFileTakePrecedence(t *testing.T) {
	_, edit := withPrices(t, `[{"model": "*", "input": 9}, {"model": "gpt-*", "input": 1}, {"model": "gpt-5", "input": 2, "date": "2026-05-31"}, {"model": "gpt-5-m*", "input": 3}, {"model": "gpt-5*", "input": 4}]`)
	c := newControl(t, edit)
	for model, want := range map[string]int64{"gpt-5": 2_000_000, "gpt-5-mini": 3_000_000, "gpt-4o": 1_000_000, "gpt-5.1": 4_000_000, "openai/gpt-5": 2_000_000, "gpt-5-mini-2026-01-01": 3_000_000, "llama": 9_000_000} {
		if got, known := c.Cost(model, million); !known || got != want {
			t.Errorf("%s costs %d, %t; want %d", model, got, known, want)
		}
	}
	if list := c.Prices(); list[0].Model != "*" || !slices.ContainsFunc(list[4:], func(p gateway.Price) bool { return p.Model == "gpt-5" }) {
		t.Errorf("prices begin with %+v", list[:5])
	}
}

func TestWindow_IsTheFilesBeforeTheBuiltInOne(t *testing.T) {
	_, edit := withPrices(t, `[{"model": "qwen3*", "window": 65536}, {"model": "gpt-5*", "input": 1}, {"model": "free", "input": 0, "window": 1000}]`)
	c := newControl(t, edit)
	for model, want := range map[string]int{
		"qwen3:8b": 65_536, "qwen2.5": 32_768, "gpt-5-mini": 272_000, "free": 1000, "claude-x": 200_000, "anthropic/claude-opus-4-5-20251101": 200_000, "gpt-4.1-mini": 1_000_000,
		"unheard-of": 0, "": 0,
	} {
		if got := c.Window(model); got != want {
			t.Errorf("%s takes %d tokens, want %d", model, got, want)
		}
	}
	for model, want := range map[string]bool{"qwen3:8b": false, "free": true, "llama3:8b": false} {
		if _, known := c.Cost(model, million); known != want {
			t.Errorf("the price of %s is known: %t", model, known)
		}
	}
	if slices.ContainsFunc(c.Prices(), func(p gateway.Price) bool { return p.Model == "qwen3*" }) {
		t.Error("what has no price is among the prices")
	}
}

func TestPrices_AFileThatIsWrongIsToldAndNotUsed(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON": "prices", "no list": `{"model": "x"}`, "more behind it": `[] []`, "a typing mistake": `[{"model": "x", "inputs": 1}]`, "no model": `[{"input": 1}]`,
		"below zero": `[{"model": "x", "input": -1}]`, "a text": `[{"model": "x", "input": "1"}]`, "one twice": `[{"model": "x"}, {"model": "x"}]`,
		"no date": `[{"model": "x", "date": "May"}]`, "of long prompts": `[{"model": "x", "long": {"above": 1, "output": -1}}]`,
		"far too long": `[` + strings.Repeat(" ", 2<<20) + `]`, "null": `null`, "a window below zero": `[{"model": "x", "window": -1}]`, "a window that is too large": `[{"model": "x", "window": 100000001}]`,
	} {
		path, edit := withPrices(t, text)
		c := newControl(t, edit)
		if log := c.log.String(); name != "null" && (!strings.Contains(log, path) || !strings.Contains(log, "cannot be used")) {
			t.Errorf("%s: the log says %s", name, log)
		}
		if _, known := c.Cost("gpt-5", million); !known {
			t.Errorf("%s: the built-in ones are gone", name)
		}
	}
}

func TestRun_ReadsTheFileOfPricesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, edit := withPrices(t, "")
		c := newControl(t, edit)
		c.running(t)
		costs := func(want int64) {
			t.Helper()
			time.Sleep(11 * time.Second)
			if got, _ := c.Cost("mine", million); got != want {
				t.Errorf("it costs %d, want %d; the log says %s", got, want, c.log)
			}
		}
		costs(0)
		writeFile(t, path, `[{"model": "mine", "input": 1}]`)
		costs(1_000_000)
		writeFile(t, path, `[{"model": "mine", "input": 22}`)
		costs(1_000_000)
		if n := strings.Count(c.log.String(), "cannot be used"); n != 1 {
			t.Errorf("it is told %d times", n)
		}
		time.Sleep(time.Minute)
		if n := strings.Count(c.log.String(), "cannot be used"); n != 1 {
			t.Errorf("it is told %d times in a minute", n)
		}
		writeFile(t, path, `[{"model": "mine", "input": 333}]`)
		costs(333_000_000)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		costs(0)
	})
}

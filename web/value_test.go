package web

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/fault"
)

func TestSpan_ReadsSecondsAndTexts(t *testing.T) {
	for text, want := range map[string]time.Duration{
		`90`: 90 * time.Second, `0.5`: 500 * time.Millisecond, `"90"`: 90 * time.Second, `"90s"`: 90 * time.Second, `"5m"`: 5 * time.Minute,
		`"30d"`: 720 * time.Hour, `"1h30m"`: 90 * time.Minute, `null`: 0, `-1`: -time.Second,
	} {
		var got execTimeout
		if err := json.Unmarshal([]byte(text), &got); err != nil || time.Duration(got) != want {
			t.Errorf("%s: %v, %v", text, time.Duration(got), err)
		}
	}
	for _, text := range []string{`"soon"`, `""`, `[]`, `{}`, `true`, `"NaN"`, `"Inf"`, `1e300`, `"d"`, `"1e99d"`} {
		var timeout execTimeout
		if err := json.Unmarshal([]byte(text), &timeout); !fault.Is(err, fault.Invalid) || fault.FieldOf(err) != "timeout" {
			t.Errorf("timeout %s: %v, %v", text, time.Duration(timeout), err)
		}
		var ttl tokenTTL
		if err := json.Unmarshal([]byte(text), &ttl); !fault.Is(err, fault.Invalid) || fault.FieldOf(err) != "ttl" {
			t.Errorf("ttl %s: %v, %v", text, time.Duration(ttl), err)
		}
	}
}

func TestEnteredSpan_ReadsWhatPeopleWrite(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"12 hours": 12 * time.Hour, "12 h": 12 * time.Hour, "12h": 12 * time.Hour, " 90 min ": 90 * time.Minute, "90 minutes": 90 * time.Minute,
		"3 Days": 72 * time.Hour, "1 day": 24 * time.Hour, "1h30m": 90 * time.Minute, "1 day, 12 hours": 36 * time.Hour, "1.5h": 90 * time.Minute, "90s": 90 * time.Second, "1 week": 168 * time.Hour,
	} {
		if got, err := enteredSpan(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "12", "h", "soon", "2 months", "3 years", "-1h", "5 m 3", "500ms", "99999999999999999999 days"} {
		if got, err := enteredSpan(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestMemory_ReadsBytesAndTexts(t *testing.T) {
	for text, want := range map[string]int64{
		`536870912`: 512 << 20, `"512MiB"`: 512 << 20, `"512m"`: 512 << 20, `"2g"`: 2 << 30, `"1.5GiB"`: 3 << 29, `null`: 0,
	} {
		var got memorySize
		if err := json.Unmarshal([]byte(text), &got); err != nil || int64(got) != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
}

// FuzzReadJSON holds the reader of bodies to its promise: whatever comes, it gives a body or an error that a caller can
// do something about, and never one of ours.
func FuzzReadJSON(f *testing.F) {
	for _, seed := range []string{``, `{}`, `{"template":"base"}`, `{"memory":"1x"}`, `[]`, `{"a":1}`, `{"env":{"a":null}}`, "\xff", `{}{}`, `{"cpus":1e999}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		var in createBody
		if err := readJSON(r, &in); err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", body, err)
		}
	})
}

// FuzzCommandLine holds commands to the same.
func FuzzCommandLine(f *testing.F) {
	for _, seed := range []string{`{"command":"x"}`, `{"command":["x"]}`, `{"command":[null]}`, `{"command":{}}`, `{"command":"\u0000"}`, `{"timeout":"1d"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		var in execBody
		err := readJSON(r, &in)
		if err == nil {
			_, err = in.request()
		}
		if err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", body, err)
		}
	})
}

func TestSplitText_NeverCutsACharacter(t *testing.T) {
	for _, c := range []struct{ in, whole, rest string }{
		{"", "", ""}, {"abc", "abc", ""}, {"a€", "a€", ""}, {"a\xe2\x82", "a", "\xe2\x82"}, {"a\xe2", "a", "\xe2"},
		{"\xf0\x9f\x98", "", "\xf0\x9f\x98"}, {"a\xff", "a\xff", ""}, {"\x80\x80\x80\x80", "\x80\x80\x80\x80", ""},
	} {
		if whole, rest := splitText([]byte(c.in)); string(whole) != c.whole || string(rest) != c.rest {
			t.Errorf("%q: %q and %q", c.in, whole, rest)
		}
	}
}

package text

import "testing"

func TestTrim_WhatShowsNothingIsNothing(t *testing.T) {
	for _, r := range " \t\n\u00a0\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180e\u2000\u200b\u200c\u200d\u200e\u2028\u202e\u2060\u2064\u2800\u3000\u3164\ufe0f\ufeff\uffa0\ufff0\U0001d159\U000e0001\U000e0100" {
		for _, text := range []string{string(r), string(r) + " " + string(r)} {
			if got := Trim(text); got != "" {
				t.Errorf("%+q gives %+q", text, got)
			}
		}
	}
	if got := Trim("\xff\x00"); got != "\xff\x00" {
		t.Errorf("what is no text gives %q: it is not for here to be refused", got)
	}
}

func TestTrim_LeavesWhatIsSeenAsItIs(t *testing.T) {
	for text, want := range map[string]string{
		"": "", " a  b\n": "a  b", "❤\ufe0f": "❤\ufe0f", "👩\u200d💻": "👩\u200d💻", "한글": "한글", "\u3164x": "\u3164x", "é": "é", "…": "…",
	} {
		if got := Trim(text); got != want {
			t.Errorf("%+q gives %+q, want %+q", text, got, want)
		}
	}
}

func TestSize_HasNoNeedlessDecimals(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 512 << 20: "512 MiB", 1536 << 20: "1.5 GiB", 2 << 30: "2 GiB", 23388000000: "21.78 GiB", 1000 << 20: "1000 MiB",
	} {
		if got := Size(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

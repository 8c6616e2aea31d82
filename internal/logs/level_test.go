package logs

import "testing"

func TestGuess(t *testing.T) {
	for line, want := range map[string]Level{
		"": Unknown, "hello world": Unknown, "listening on port 3000": Unknown, "an error came up": Unknown, "the info desk": Unknown,
		`{"level":"warn","msg":"x"}`: Warn, `{"time":1,"level" : "ERROR"}`: Error, `{"severity":"INFO"}`: Info, `{"lvl":"dbg"}`: Debug,
		`{"level":30,"pid":1}`: Info, `{"level":50}`: Error, `{"level":60}`: Fatal, `{"level":500}`: Unknown, `{"level":null}`: Unknown, `{"levels":"error"}`: Unknown,
		`{"msg":"no"}`: Unknown, `{"level":`: Unknown, `{"level"`: Unknown,
		`time=2026-01-02T15:04:05Z level=warning msg="x"`: Warn, `lvl=eror`: Unknown, `lvl=error x`: Error, `a=1 severity="fatal"`: Fatal, `sublevel=error`: Unknown,
		"E0102 15:04:05.000000       1 main.go:1] x": Error, "I0102 15:04:05.1 1 x": Info, "W0102": Unknown,
		"ERROR: x": Error, "Error: Cannot find module": Error, "error: x": Error, "[warn] x": Warn, "WARNING x": Warn, "fatal: not a git repository": Fatal,
		"panic: runtime error": Fatal, "npm ERR! code E404": Error, "npm warn deprecated x": Unknown, "DEBUG:root:x": Debug,
		"2026-01-02 10:00:00,123 - root - ERROR - x": Error, "2026-01-02T10:00:00Z INFO x": Info, "[2026-01-02 10:00:00] [info] x": Info,
		"2026/01/02 10:00:00 [error] 7#7: x": Error, "[12345] LOG:  database system is ready": Info, "TypeError: x is not a function": Error,
		"Traceback (most recent call last):": Error, "java.lang.RuntimeException: x": Unknown, "\x1b[31mERROR\x1b[0m x": Error, "\x1b[32mINFO": Info,
		"[sandboxd] 40 lines (900 bytes) were dropped here: this sandbox writes more": Warn, "[sandboxd] It has ended with exit code 1, and is started again": Warn,
		"[sandboxd] It has started as process 7.": Info,
		"[[[[": Unknown, "   \t": Unknown, "Information about x": Info, "12:00 the ERROR x": Error,
	} {
		if got := Guess(line); got != want {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
	}
}

func FuzzGuess(f *testing.F) {
	f.Add("E0102 15:04:05")
	f.Add(`{"level":`)
	f.Add("\x1b[")
	f.Fuzz(func(t *testing.T, line string) {
		if l := Guess(line); l > Fatal {
			t.Error(l)
		}
	})
}

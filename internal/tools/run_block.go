package tools

import (
	"bytes"
	"context"
	"image"
	_ "image/jpeg" // so that image.DecodeConfig knows it
	_ "image/png"  // the same
	"time"
	"unicode/utf8"

	"sandboxd/internal/access"
	"sandboxd/internal/exec"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
	"sandboxd/internal/tools/risk"
)

// Bounds of what a person's run of code gives.
const (
	runPictures = 5 << 20    // bytes of all its pictures
	mostPixels  = 40_000_000 // of one: a browser has to draw it
	maxHeld     = 256        // bytes of an escape sequence whose end has not come
	clearingUp  = 30 * time.Second
)

// RunCode runs code for a person, in the home of their sandbox, and returns when it has ended. What it writes is given to out meanwhile, as a
// text without escape sequences: out must take it at once. Pictures are PNG or JPEG. The code ends with ctx. Kinds: Invalid for a
// language that is not known, and those of exec and files.
func (s *Service) RunCode(ctx context.Context, h access.Handle, name, code string, out func(stderr bool, text string)) (exit int, pictures []Image, err error) {
	l, known := languageOf(name)
	if !known {
		return 0, nil, fault.New(fault.Invalid, "Code of the language %q cannot be run.", text.OneLine(name, 40))
	}
	request, folder, err := s.putCode(ctx, h, l, code)
	if err != nil {
		return 0, nil, err
	}
	request.Timeout = exec.MaxTimeout // ctx is the limit
	var streams [2]stream
	result, err := s.cfg.Exec.Stream(ctx, h, request, func(e exec.Event) error {
		switch e.Kind {
		case exec.Stdout:
			tell(out, false, streams[0].take(e.Data))
		case exec.Stderr:
			tell(out, true, streams[1].take(e.Data))
		}
		return nil
	})
	tell(out, false, streams[0].rest())
	tell(out, true, streams[1].rest())
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearingUp)
	defer cancel()
	size := 0
	for _, p := range s.pictures(after, h, folder) {
		if size += len(p.Bytes); size <= runPictures && drawable(p) {
			pictures = append(pictures, p)
		}
	}
	return result.ExitCode, pictures, err
}

func tell(out func(bool, string), stderr bool, s string) {
	if s != "" {
		out(stderr, s)
	}
}

// drawable says whether a picture is a PNG or JPEG, as its bytes say, of a size that a browser can draw.
func drawable(p Image) bool {
	c, format, err := image.DecodeConfig(bytes.NewReader(p.Bytes))
	if err != nil || format != "png" && format != "jpeg" || p.MIME != "image/"+format {
		return false
	}
	return c.Width > 0 && c.Height > 0 && c.Width <= mostPixels/c.Height
}

// stream makes texts of what a program writes piece by piece.
type stream struct{ held []byte }

// take gives what can be said of the text so far: a character or an escape sequence that is not complete waits for the next piece.
func (s *stream) take(p []byte) string {
	b := append(s.held, p...)
	n := len(b)
	if at := bytes.LastIndexByte(b, '\x1b'); at >= 0 && n-at < maxHeld && !escapes.Match(b[at:]) {
		n = at
	} else if n > 0 && b[n-1] == '\r' { // a line break may follow
		n--
	} else {
		n -= incomplete(b)
	}
	s.held = bytes.Clone(b[n:])
	return plain(string(b[:n]))
}

func (s *stream) rest() string { return plain(string(s.held)) }

// incomplete gives how many bytes at the end are the beginning of a character.
func incomplete(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if last := b[len(b)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// RiskyCode says whether code is judged risky, or hides something from who reads it.
func RiskyCode(language, code string) bool {
	if l, ok := languageOf(language); ok {
		language = l.names[0]
	}
	return risk.Code(language, code).Level == risk.Risky || len(risk.Hidden(code)) > 0
}

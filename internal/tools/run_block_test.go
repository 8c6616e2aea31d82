package tools_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/gif"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sandboxd/internal/fault"
	"sandboxd/internal/tools"
)

// written is what code writes, by stream.
type written struct {
	mu       sync.Mutex
	out, err strings.Builder
	begun    chan struct{}
}

func (w *written) take(stderr bool, s string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if stderr {
		w.err.WriteString(s)
	} else {
		w.out.WriteString(s)
	}
	select {
	case w.begun <- struct{}{}:
	default:
	}
}

func TestRunCode_ForAPersonKeepsStreamsApartAndGivesPictures(t *testing.T) {
	b := live(t)
	var good, small bytes.Buffer
	png.Encode(&good, image.NewGray(image.Rect(0, 0, 2, 2)))
	gif.Encode(&small, image.NewGray(image.Rect(0, 0, 2, 2)), nil)
	huge := bytes.Clone(good.Bytes())
	copy(huge[16:24], []byte{0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff}) // a picture that says it is huge
	for name, content := range map[string]string{"a.png": good.String(), "b.png": string(huge), "c.png": small.String(), "d.png": "\x89PNG\r\n\x1a\nrest", "e.svg": "<svg/>"} {
		b.put(name, content)
	}
	w := &written{}
	exit, pictures, err := b.tools.RunCode(t.Context(), b.seat.Handle, "sh", "printf '\\033[31mred\\033[0m\\r\\n'; printf 'caf\\303'; sleep 0.1; printf '\\251\\n'; echo bad >&2; cp *.png *.svg $OUTPUT; dirname $OUTPUT; exit 7", w.take)
	if err != nil || exit != 7 {
		t.Fatalf("exit code %d: %v", exit, err)
	}
	lines := strings.Split(w.out.String(), "\n")
	if lines[0] != "red" || lines[1] != "café" || w.err.String() != "bad\n" {
		t.Errorf("it wrote %q and %q", w.out.String(), w.err.String())
	}
	if len(pictures) != 1 || pictures[0].MIME != "image/png" || !bytes.Equal(pictures[0].Bytes, good.Bytes()) {
		t.Errorf("%d pictures", len(pictures))
	}
	if left, _ := filepath.Glob(lines[2] + "*"); !strings.HasPrefix(lines[2], "/tmp/code-") || len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if _, _, err := b.tools.RunCode(t.Context(), b.seat.Handle, "cobol", "x", w.take); !fault.Is(err, fault.Invalid) {
		t.Errorf("another language: %v", err)
	}
}

func TestRunCode_ForAPersonEndsWithItsContext(t *testing.T) {
	b := live(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	w := &written{begun: make(chan struct{}, 1)}
	gone := errors.New("stopped")
	go func() {
		<-w.begun
		cancel(gone)
	}()
	_, _, err := b.tools.RunCode(ctx, b.seat.Handle, "sh", "echo $PWD; sleep 60; touch late", w.take)
	if err == nil || context.Cause(ctx) != gone {
		t.Errorf("it ended with %v", err)
	}
	if _, err := os.Stat(filepath.Join(b.home, "late")); err == nil {
		t.Error("it ran on")
	}
}

func TestRiskyCode_IsNotRunByItself(t *testing.T) {
	for code, want := range map[string]bool{"echo 1": false, "rm -rf ~": true, "echo \u202edone": true} {
		if got := tools.RiskyCode("sh", code); got != want {
			t.Errorf("%q: %t", code, got)
		}
	}
	if tools.RiskyCode("python", "print(sum(range(10)))") {
		t.Error("a plain program is risky")
	}
}

package guest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/wire"
)

// texts decodes lines as "service text".
func texts(t *testing.T, b []byte) (out []string) {
	t.Helper()
	last := time.Time{}
	for len(b) > 0 {
		l, rest, err := wire.NextLogLine(b)
		if err != nil {
			t.Fatal(err)
		}
		if !l.Time.After(last) {
			t.Errorf("%q is not later than the line before", l.Text)
		}
		last, b = l.Time, rest
		out = append(out, l.Service+" "+string(l.Text))
	}
	return out
}

// kept gives all lines of a journal that one who has read none gets.
func kept(t *testing.T, j *journal) (out []string) {
	t.Helper()
	at, _ := j.find(time.Time{})
	for {
		p := j.since(at, nil)
		if len(p.lines) == 0 {
			return out
		}
		if len(p.lines) > wire.MaxFrame {
			t.Errorf("%d bytes at once", len(p.lines))
		}
		at = p.next
		out = append(out, texts(t, p.lines)...)
	}
}

func TestLineWriter_SplitsAndCuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		w := &lineWriter{journal: j, service: "web"}
		long := strings.Repeat("x", 3*wire.MaxLogText)
		for _, p := range []string{"one\ntw", "o\r\n", "\n", "10 %\r50 %\r100 %\n", "\xff\x00\x1b[31mred\n", long, "yyy\nafter\n", "no end"} {
			if n, err := io.WriteString(w, p); n != len(p) || err != nil {
				t.Fatal(n, err)
			}
		}
		w.flush()
		got := kept(t, j)
		want := []string{"web one", "web two", "web ", "web 100 %", "web \xff\x00\x1b[31mred",
			"web " + long[:wire.MaxLogText-cutMark] + fmt.Sprintf("… [%d bytes cut]", 2*wire.MaxLogText+cutMark+3), "web after", "web no end"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff[:min(len(diff), 2000)])
		}
	})
}

func TestJournal_KeepsTheNewestAndSaysWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		for i := range 30_000 {
			j.append("web", fmt.Appendf(nil, "line %05d %s", i, strings.Repeat(".", 100)))
		}
		got := kept(t, j)
		if n := len(got); n < 5000 || !strings.HasPrefix(got[n-1], "web line 29999") {
			t.Fatalf("%d lines, the last is %q", n, got[n-1])
		}
		size := 0
		for _, b := range j.blocks {
			size += cap(b.lines)
		}
		if size > journalSize*5/4 {
			t.Errorf("it holds %d bytes", size)
		}
		if _, missing := j.find(time.Time{}); !missing {
			t.Error("nothing is said to be missing")
		}
		if _, missing := j.find(j.last); missing {
			t.Error("to one who has all, something is said to be missing")
		}
	})
}

func TestJournal_DropsWhatIsTooMuchAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		for i := range 25_000 {
			j.add("web", fmt.Append(nil, i))
		}
		time.Sleep(2 * reportsEvery)
		j.add("web", []byte("later"))
		synctest.Wait()
		got := kept(t, j)
		if n := len(got); n != 10_002 || got[n-1] != "web later" || !strings.HasPrefix(got[n-2], "web [sandboxd] 15000 lines (") {
			t.Errorf("%d lines, at the end %q", n, got[n-2:])
		}
		time.Sleep(time.Minute)
		big := bytes.Repeat([]byte("y"), wire.MaxLogText)
		for range 1000 {
			j.add("db", big)
		}
		time.Sleep(2 * reportsEvery)
		synctest.Wait()
		got = kept(t, j)
		if last := got[len(got)-1]; !strings.HasPrefix(last, "db [sandboxd] ") {
			t.Errorf("at the end %.100q", last)
		}
	})
}

func TestJournal_ServesFromATimeOn(t *testing.T) {
	j := newJournal()
	for i := range 100 {
		j.add("web", fmt.Append(nil, i))
	}
	server := httptest.NewServer(http.HandlerFunc(j.serve))
	defer server.Close()
	read := func(after int64, until string) (out []string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprint(server.URL, "?after=", after), nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		frames := wire.NewFrameReader(r.Body)
		for {
			kind, payload, err := frames.Next()
			if err != nil || kind != wire.FrameLines {
				t.Fatal(kind, err)
			}
			out = append(out, texts(t, payload)...)
			if n := len(out); n > 0 && out[n-1] == until {
				return out
			}
		}
	}
	if got := read(0, "web 99"); len(got) != 100 || got[0] != "web 0" {
		t.Errorf("%d lines from %q", len(got), got[0])
	}
	j.mu.Lock()
	first, _, _ := wire.NextLogLine(j.blocks[0].lines)
	last := j.last
	j.mu.Unlock()
	go j.add("web", []byte("news"))
	if got := read(last.UnixMicro(), "web news"); len(got) != 1 {
		t.Errorf("%q", got)
	}
	j.mu.Lock() // the requests before may not have ended
	for i := range 20_000 {
		j.append("web", fmt.Append(nil, strings.Repeat("z", 200), i))
	}
	j.mu.Unlock()
	if got := read(first.Time.UnixMicro(), "web "+strings.Repeat("z", 200)+"19999"); got[0] != " "+gap {
		t.Errorf("it begins with %.80q", got[0])
	}
}

func TestJournal_ForgetsWhatWasSentLongAgo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		text := bytes.Repeat([]byte("z"), 1000)
		write := func(n int) {
			for range n {
				j.append("web", text)
			}
		}
		write(200)
		sent := j.last
		at, _ := j.find(sent)
		care := caretaker{journal: j, noted: time.Now(), tidied: time.Now()}
		care.look(at)
		time.Sleep(sentLife + time.Second)
		write(100)
		care.look(at) // from now on it is known that these were sent
		if n := len(kept(t, j)); n != 300 {
			t.Errorf("%d lines are left, but sandboxd may not have written them yet", n)
		}
		tidied := 0
		j.tidy = func() { tidied++ }
		time.Sleep(tidyEvery)
		care.look(at)
		if n := len(kept(t, j)); n < 100 || n > 100+wire.MaxFrame/len(text) {
			t.Errorf("%d lines are left, 100 were not sent", n)
		}
		if _, missing := j.find(sent); missing {
			t.Error("to one who has what was sent, something is missing")
		}
		if tidied != 1 {
			t.Errorf("memory was given back %d times", tidied)
		}
		write(200)
		if got := kept(t, j); len(got) < 300 {
			t.Errorf("%d lines are kept", len(got))
		}
	})
}

func TestJournal_DrainWaitsForThoseWhoRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		takes := func(want time.Duration) {
			t.Helper()
			begun := time.Now()
			if j.drain(); time.Since(begun) < want || time.Since(begun) > want+2*sweepPace {
				t.Errorf("it took %s, want %s", time.Since(begun), want)
			}
		}
		j.add("web", []byte("one"))
		takes(0) // nobody reads
		at, _ := j.find(time.Time{})
		r, done := j.beginReading(at)
		takes(lastSend) // who does not get on
		go func() {
			time.Sleep(100 * time.Millisecond)
			j.wasSent(r, j.since(at, nil).next)
		}()
		takes(100*time.Millisecond + journalPause)
		takes(0) // all was sent before
		j.add("web", []byte("two"))
		go func() {
			time.Sleep(100 * time.Millisecond)
			done()
		}()
		takes(100 * time.Millisecond) // the connection is lost
	})
}

// TestJournal_ServeCountsAsReadingUntilItEnds has a reader who gets what was written just before the end.
func TestJournal_ServeCountsAsReadingUntilItEnds(t *testing.T) {
	j := newJournal()
	server := httptest.NewServer(http.HandlerFunc(j.serve))
	defer server.Close()
	r, err := http.Get(server.URL + "?after=0")
	if err != nil {
		t.Fatal(err)
	}
	frames := wire.NewFrameReader(r.Body)
	if _, _, err := frames.Next(); err != nil {
		t.Fatal(err)
	}
	j.mu.Lock()
	if len(j.readers) != 1 {
		t.Errorf("%d read", len(j.readers))
	}
	readers := maps.Clone(j.readers)
	j.mu.Unlock()
	j.add("web", []byte("bye"))
	if _, b, err := frames.Next(); err != nil || len(texts(t, b)) != 1 {
		t.Errorf("%q %v", b, err)
	}
	r.Body.Close()
	server.Close()
	j.mu.Lock()
	defer j.mu.Unlock()
	for r := range readers {
		if r.at != j.end() || r.sent.IsZero() {
			t.Error("the line does not count as sent")
		}
	}
	if len(j.readers) != 0 {
		t.Error("who has left counts on")
	}
}

package sqlite

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/fault"
	"sandboxd/internal/logs"
)

const (
	envLogs   = "SANDBOXD_TEST_LOGS"
	killAfter = 8_000 // lines
	mayLose   = 5 * time.Second
)

// writeLogs appends lines for ever, and says of each ten when they were appended.
func writeLogs(path string) error {
	store := OpenLogs(context.Background(), path, slog.New(slog.DiscardHandler))
	k := logs.New(logs.Config{Store: store})
	go func() { _ = k.Run(context.Background()) }() // until the process ends
	start := int(store.Last() % 1000)
	tick := time.NewTicker(2 * time.Millisecond)
	for n := start; ; n++ {
		<-tick.C
		for s := range 10 {
			k.Append(logs.Line{Sandbox: fmt.Sprint("s", s%3), Text: fmt.Sprintf("run%d line%d of %d", start, n, s)})
		}
		fmt.Println(start, n, time.Now().UnixMilli())
	}
}

// TestLogs_SIGKILLLosesAMomentAndDamagesNothing kills a process that writes, some times.
func TestLogs_SIGKILLLosesAMomentAndDamagesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs.db")
	for range 2 {
		c := exec.CommandContext(t.Context(), os.Args[0])
		c.Env = append(os.Environ(), envLogs+"="+path)
		c.Stderr = os.Stderr
		out, err := c.StdoutPipe()
		must(t, err)
		must(t, c.Start())
		times := map[int]int64{}
		var run, n int
		var at int64
		enough := killAfter/10 + rand.IntN(300)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			if _, err := fmt.Sscan(scan.Text(), &run, &n, &at); err != nil {
				t.Fatal(err)
			}
			if times[n] = at; len(times) == enough {
				must(t, c.Process.Kill())
			}
		}
		_ = c.Wait() // it was killed
		store := openLogs(t, path)
		wantSound(t, store)
		k := logs.New(logs.Config{Store: store, Budget: time.Minute})
		found := map[string]bool{}
		for q := (logs.Query{Scope: logs.All(), Filter: logs.Filter{Text: fmt.Sprint("run", run)}, Limit: logs.MaxLimit}); ; {
			r, err := k.Search(t.Context(), q)
			must(t, err)
			for _, l := range r.Lines {
				found[l.Text] = true
			}
			if q.Before = r.Next; r.Next == 0 {
				break
			}
		}
		lost := 0
		for m, then := range times {
			for s := range 10 {
				if found[fmt.Sprintf("run%d line%d of %d", run, m, s)] {
					continue
				}
				if lost++; time.UnixMilli(at).Sub(time.UnixMilli(then)) > mayLose {
					t.Fatalf("line %d is lost, and %d was the last", m, n)
				}
			}
		}
		t.Logf("killed after %d lines; %d lost", 10*len(times), lost)
		must(t, store.Close())
	}
}

// wantSound asks SQLite and the index whether all is well.
func wantSound(t *testing.T, l *Logs) {
	t.Helper()
	var said string
	if err := l.file.db.writer.QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&said); err != nil || said != "ok" {
		t.Errorf("%s %v", said, err)
	}
	if _, err := l.file.db.writer.ExecContext(t.Context(), `INSERT INTO words (words) VALUES ('integrity-check')`); err != nil {
		t.Error(err)
	}
	var chunks, bodies, words int
	err := l.file.db.writer.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM chunks), (SELECT count(*) FROM bodies), (SELECT count(*) FROM words_docsize)`).Scan(&chunks, &bodies, &words)
	if err != nil || chunks != bodies || chunks != words {
		t.Errorf("%d chunks, %d bodies, %d in the index, %v", chunks, bodies, words, err)
	}
}

func TestLogs_AFullDiskKeepsLinesWaiting(t *testing.T) {
	t.Run("page count", func(t *testing.T) {
		l := openLogs(t, filepath.Join(t.TempDir(), "logs.db"))
		fillLogs(t, l, func(full bool) {
			pages := 1 << 30
			if full {
				pages = 300
			}
			_, err := l.file.db.writer.ExecContext(t.Context(), fmt.Sprintf(`PRAGMA max_page_count = %d`, pages))
			must(t, err)
		})
	})
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=2m,mode=700"); err != nil {
		t.Logf("only with SQLite's own bound: a tmpfs cannot be mounted here: %v", err)
		return
	}
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	t.Run("tmpfs", func(t *testing.T) {
		l := openLogs(t, filepath.Join(dir, "logs.db"))
		fillLogs(t, l, func(full bool) {
			if !full {
				must(t, unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=256m"))
			}
		})
	})
}

// fillLogs writes until the disk is full, and expects that all lines that waited are kept once there is room.
func fillLogs(t *testing.T, l *Logs, full func(bool)) {
	full(true)
	k := logs.New(logs.Config{Store: l})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := k.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	r := rand.New(rand.NewPCG(8, 8))
	n := 0
	more := func() {
		for range 50 {
			k.Append(logs.Line{Sandbox: fmt.Sprint("s", n%7), Text: fmt.Sprintf("line%d %x %x %x", n, r.Uint64(), r.Uint64(), r.Uint64())})
			n++
		}
	}
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	isFull := func() bool { return strings.Contains(fault.Message(k.Problem()), "full") }
	for limit := time.Now().Add(time.Minute); !isFull() && time.Now().Before(limit); <-poll.C {
		more()
	}
	if err := k.Problem(); !isFull() || !fault.Is(err, fault.Unavailable) {
		t.Fatalf("problem: %v", err)
	}
	more()
	found, err := k.Search(t.Context(), logs.Query{Scope: logs.All(), Filter: logs.Filter{Text: "line1 OR line1"}})
	must(t, err)
	if len(found.Lines) != 0 {
		t.Error("it found what is not there")
	}
	full(false)
	newest := logs.Query{Scope: logs.All(), Limit: 1}
	last, err := k.Search(t.Context(), newest)
	must(t, err)
	for limit := time.Now().Add(time.Minute); l.Last() < last.Lines[0].ID && time.Now().Before(limit); {
		<-poll.C
	}
	cancel()
	<-done
	wantAllOnce(t, l, k, n)
}

// wantAllOnce expects lines 0 to n, each once.
func wantAllOnce(t *testing.T, l *Logs, k *logs.Keeper, n int) {
	t.Helper()
	wantSound(t, l)
	each, _, err := l.Usage(t.Context())
	must(t, err)
	lines := int64(0)
	for _, u := range each {
		lines += u.Lines
	}
	if lines != int64(n) || k.Dropped() != 0 {
		t.Errorf("%d lines of %d, %d dropped", lines, n, k.Dropped())
	}
	for range 20 {
		want := fmt.Sprint("line", rand.IntN(n))
		found, err := k.Search(t.Context(), logs.Query{Scope: logs.All(), Filter: logs.Filter{Text: want}})
		must(t, err)
		if len(found.Lines) != 1 {
			t.Errorf("%s: %d lines", want, len(found.Lines))
		}
	}
}

func TestLogs_ADamagedFileIsSetAside(t *testing.T) {
	w := newLogWorld(t, 1)
	w.add(5000)
	path := w.store.file.path
	must(t, w.store.Close())
	spoil(t, path)
	l := openLogs(t, path)
	wantAside(t, path)
	must(t, l.Add(t.Context(), w.all[:100]))
	if got := everything(t, logs.New(logs.Config{Store: l}), logs.Query{Scope: logs.All(), Limit: 1000}); len(got) != 100 {
		t.Errorf("%d lines", len(got))
	}
}

func TestLogs_OneFoundDamagedWhileOpenIsReplaced(t *testing.T) {
	w := newLogWorld(t, 1)
	for range 10 {
		w.add(5000)
	}
	path := w.store.file.path
	_, err := w.store.file.db.writer.Exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
	must(t, err)
	spoil(t, path)
	k := logs.New(logs.Config{Store: w.store})
	_, err = k.Search(t.Context(), logs.Query{Scope: logs.All(), Filter: logs.Filter{Text: "rare1 rare2 alpha"}, Limit: 1000})
	wantKind(t, "search in a damaged file", err, fault.Unavailable)
	wantAside(t, path)
	w.add(10)
	if got := everything(t, k, logs.Query{Scope: logs.All(), Limit: 1000}); len(got) != 10 {
		t.Errorf("%d lines", len(got))
	}
}

func TestLogs_OneChunkThatCannotBeReadIsLeftOut(t *testing.T) {
	w := newLogWorld(t, 1)
	for range 4 {
		w.add(2000)
	}
	for _, spoilt := range []string{`UPDATE bodies SET body = x'0011' WHERE number = 2`, `UPDATE bodies SET body = x'28b52ffd' WHERE number = 3`, `UPDATE tail SET body = zeroblob(100) WHERE source = 1`} {
		_, err := w.store.file.db.writer.Exec(spoilt)
		must(t, err)
	}
	var said strings.Builder
	w.store.file.log = slog.New(slog.NewTextHandler(&said, nil))
	n := len(everything(t, w.keeper(), logs.Query{Scope: logs.All(), Limit: 1000}))
	if n >= len(w.all) || n < len(w.all)-3*chunkLines || !strings.Contains(said.String(), "a chunk of log lines is damaged") {
		t.Errorf("%d lines of %d; log: %.200s", n, len(w.all), said.String())
	}
	w.add(3000) // also of the sandbox whose tail is damaged
	if more := len(everything(t, w.keeper(), logs.Query{Scope: logs.All(), Limit: 1000})); more != n+3000 {
		t.Errorf("%d lines, %d before", more, n)
	}
}

func TestLogs_QueriesAreNotTheIndexsLanguage(t *testing.T) {
	w := newLogWorld(t, 1)
	w.add(3000)
	words := []string{`"`, `*`, `NEAR`, `(`, `)`, `alpha`, `AND`, `OR`, `NOT`, `word:`, `^`, `-`, `'`, `;`, `\`, "\x00", "#1", "@web", "!error", `{`, `+`, "\xff", `%`, "rare1*", `""`, `alpha"beta`, `a*b*`}
	k := w.keeper()
	for range 400 {
		var text []string
		for range 1 + w.rand.IntN(4) {
			text = append(text, pick(w, words...))
		}
		q := logs.Query{Scope: logs.All(), Filter: logs.Filter{Text: strings.Join(text, pick(w, " ", ""))}}
		if _, err := k.Search(t.Context(), q); err != nil {
			t.Fatalf("%q: %v", q.Text, err)
		}
	}
}

func TestLogs_WordsThatAreAllDistinctAreBounded(t *testing.T) {
	l := openLogs(t, filepath.Join(t.TempDir(), "logs.db"))
	r := rand.New(rand.NewPCG(1, 1))
	id := noon.UnixMicro()
	var text int64
	for range 3 {
		var batch []logs.Line
		for range 1000 {
			var s []byte
			for range 100 {
				s = strconv.AppendUint(append(s, ' '), r.Uint64(), 36)
			}
			id++
			text += int64(len(s))
			batch = append(batch, logs.Line{ID: logs.ID(id), Time: noon, Sandbox: "a", Text: string(s) + fmt.Sprint(" n", id)})
		}
		must(t, l.Add(t.Context(), batch))
	}
	found, err := logs.New(logs.Config{Store: l}).Search(t.Context(), logs.Query{Scope: logs.All(), Filter: logs.Filter{Text: fmt.Sprint("n", id-1500)}})
	must(t, err)
	each, disk, err := l.Usage(t.Context())
	must(t, err)
	if len(found.Lines) != 1 || disk > 3*text || each[0].Stored < text/2 {
		t.Errorf("%d lines; %d bytes on the disk for %d, told as %d", len(found.Lines), disk, text, each[0].Stored)
	}
}

// Words that all chunks have, but no line has both.
func TestLogs_ASearchInVainEndsWithItsBudget(t *testing.T) {
	l := openLogs(t, filepath.Join(t.TempDir(), "logs.db"))
	id := noon.UnixMicro()
	for range 5 {
		var batch []logs.Line
		for range logs.BatchLines {
			id++
			batch = append(batch, logs.Line{ID: logs.ID(id), Time: noon, Sandbox: "a", Text: []string{"left ", "right "}[id%2] + strings.Repeat("x", 100)})
		}
		must(t, l.Add(t.Context(), batch))
	}
	k := logs.New(logs.Config{Store: l, Budget: 5 * time.Millisecond})
	q := logs.Query{Scope: logs.All(), Filter: logs.Filter{Text: "left right"}}
	first, err := k.Search(t.Context(), q)
	must(t, err)
	if first.Next == 0 || first.SearchedBackTo.IsZero() {
		t.Errorf("%+v", first)
	}
	k = logs.New(logs.Config{Store: l, Budget: time.Minute})
	q.Before = first.Next
	if r, err := k.Search(t.Context(), q); err != nil || len(r.Lines) != 0 || r.Next != 0 {
		t.Errorf("%+v %v", r, err)
	}
}

func TestLogs_SpaceOfDeletedLinesIsGivenBack(t *testing.T) {
	l := openLogs(t, filepath.Join(t.TempDir(), "logs.db"))
	r := rand.New(rand.NewPCG(1, 1))
	id := noon.UnixMicro()
	for range 15 {
		var batch []logs.Line
		for range 4000 {
			id++
			batch = append(batch, logs.Line{ID: logs.ID(id), Time: noon, Sandbox: "a", Text: strings.Repeat(strconv.FormatUint(r.Uint64(), 36)+"-", 3) + strconv.FormatUint(r.Uint64(), 36)})
		}
		must(t, l.Add(t.Context(), batch))
	}
	before := pagesOf(t, l)
	must(t, l.Delete(t.Context(), "a"))
	must(t, l.Sweep(t.Context(), logs.Limits{}, noon))
	after := pagesOf(t, l)
	t.Logf("%d pages, then %d", before, after)
	if after > freeSpare*3/2+before/8 {
		t.Errorf("%d pages of %d are left", after, before)
	}
	wantSound(t, l)
}

func pagesOf(t *testing.T, l *Logs) (n int) {
	t.Helper()
	must(t, l.file.read(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `PRAGMA page_count`).Scan(&n)
	}))
	return n
}

func TestReplaceable_StepsLeadFromEachVersionToTheNewest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	steps := []string{`CREATE TABLE a (x); INSERT INTO a VALUES (1)`, `ALTER TABLE a ADD COLUMN y DEFAULT 2`, `INSERT INTO a VALUES (3, 4)`}
	for _, n := range []int{1, 1, 3} {
		r := &replaceable{path: path, steps: steps[:n], log: slog.New(slog.DiscardHandler)}
		r.open(t.Context())
		var rows int
		must(t, r.db.writer.QueryRow(`SELECT count(*) FROM a`).Scan(&rows))
		if want := max(1, n-1); rows != want {
			t.Errorf("%d steps: %d rows", n, rows)
		}
		must(t, r.close())
	}
	if aside, _ := filepath.Glob(path + asideSuffix + "*"); len(aside) != 0 {
		t.Errorf("set aside: %v", aside)
	}
}

// TestReplaceable_OneThatCannotBeOpenedIsOpenedLater has something else in the file's place for a while.
func TestReplaceable_OneThatCannotBeOpenedIsOpenedLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs.db")
	must(t, os.Mkdir(path, 0o700))
	l := OpenLogs(t.Context(), path, slog.New(slog.DiscardHandler))
	line := logs.Line{ID: logs.ID(noon.UnixMicro()), Time: noon, Sandbox: "a", Text: "x"}
	if err := l.Add(t.Context(), []logs.Line{line}); !fault.Is(err, fault.Unavailable) || strings.Contains(fault.Message(err), filepath.Dir(path)) || !strings.Contains(err.Error(), path) {
		t.Errorf("add: %v", err)
	}
	must(t, os.Remove(path))
	l.file.tried = time.Now().Add(-reopenEvery)
	must(t, l.Add(t.Context(), []logs.Line{line}))
	must(t, l.Close())
	if err := l.Add(t.Context(), []logs.Line{line}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("add after the end: %v", err)
	}
}

func FuzzUnpackLines(f *testing.F) {
	f.Add(packLines([]logs.Line{{ID: 5, Time: noon, Service: "web", Level: logs.Warn, Text: "x"}, {ID: 9, Time: noon, Text: "\x00"}}), false)
	f.Add([]byte{2, 5, 4, 0, 0, 0, 0, 1, 0, 1, 1, 1, 1, 'a', 'b'}, true)
	f.Fuzz(func(t *testing.T, body []byte, pack bool) {
		if pack {
			body = packer().EncodeAll(body, nil)
		}
		lines, err := unpackLines(body, "a")
		if err != nil || len(lines) == 0 {
			return
		}
		again, err := unpackLines(packLines(lines), "a")
		if err != nil || len(again) != len(lines) {
			t.Errorf("%d lines, then %d: %v", len(lines), len(again), err)
		}
	})
}

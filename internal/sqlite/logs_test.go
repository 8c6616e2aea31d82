package sqlite

import (
	"cmp"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"sandboxd/internal/logs"
)

func openLogs(t testing.TB, path string) *Logs {
	t.Helper()
	l := OpenLogs(t.Context(), path, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// logWorld is a Store beside a plain list of what it should have.
type logWorld struct {
	t     *testing.T
	store *Logs
	all   []logs.Line
	next  logs.ID
	rand  *rand.Rand
}

func newLogWorld(t *testing.T, seed uint64) *logWorld {
	start := logs.ID(noon.UnixMicro())
	return &logWorld{t: t, store: openLogs(t, filepath.Join(t.TempDir(), "logs.db")), next: start, rand: rand.New(rand.NewPCG(seed, 1))}
}

func pick[T any](w *logWorld, of ...T) T { return of[w.rand.IntN(len(of))] }

func (w *logWorld) line(sandbox string) logs.Line {
	w.next += logs.ID(1 + w.rand.Int64N(1000))
	var text []string
	for range w.rand.IntN(8) {
		text = append(text, pick(w, "alpha", "Beta", "gamma", "delta-x", "ERROR", "\x1b[31mred\x1b[0m", "日本", "né", "\x00", "a_b", "12", "\"", "x*", "AND"))
	}
	if w.rand.IntN(50) == 0 {
		text = append(text, fmt.Sprint("rare", w.rand.IntN(5)))
	}
	return logs.Line{ID: w.next, Time: time.UnixMicro(int64(w.next) - w.rand.Int64N(3000)).UTC(), Sandbox: sandbox,
		Service: pick(w, "", "web", "worker", "db"), Level: logs.Level(w.rand.IntN(6)), Text: strings.Join(text, pick(w, " ", "  ", ","))}
}

// add adds a batch of lines of some sandboxes.
func (w *logWorld) add(n int) {
	batch := make([]logs.Line, 0, n)
	for range n {
		batch = append(batch, w.line(pick(w, "a", "a", "a", "a", "b", "b", "c", "quiet")))
	}
	must(w.t, w.store.Add(w.t.Context(), batch))
	w.all = append(w.all, batch...)
}

func (w *logWorld) query() logs.Query {
	q := logs.Query{Scope: pick(w, logs.All(), logs.All(), logs.Only("a"), logs.Only("b", "quiet"), logs.Only(), logs.Only("nobody"), logs.Only("c", "nobody")), Limit: pick(w, 1, 7, 100, 1000)}
	q.Text = pick(w, "", "", "alpha", "alpha beta", "gam*", `"alpha gamma"`, "rare1", "rare1 rare2", "nothing", "日", "delta", "delta-x", "x*", "\"\x00\"", "red", "31mred", "AND OR", `"`)
	if w.rand.IntN(3) == 0 {
		q.Services = pick(w, []string{"web"}, []string{"", "db"}, []string{"none"})
	}
	if w.rand.IntN(3) == 0 {
		q.Levels = pick(w, []logs.Level{logs.Fatal}, []logs.Level{logs.Unknown, logs.Warn})
	}
	some := func() time.Time { return w.all[w.rand.IntN(len(w.all))].Time }
	if w.rand.IntN(3) == 0 {
		q.Since = some()
	}
	if w.rand.IntN(3) == 0 {
		q.Until = some()
	}
	return q
}

// naive is what a search for everything that matches must give. The words are told apart by a search of each line alone.
func (w *logWorld) naive(q logs.Query) (out []logs.Line) {
	for _, l := range slices.Backward(w.all) {
		if q.Scope.Has(l.Sandbox) && (len(q.Levels) == 0 || slices.Contains(q.Levels, l.Level)) && (len(q.Services) == 0 || slices.Contains(q.Services, l.Service)) &&
			(q.Since.IsZero() || !l.Time.Before(q.Since)) && (q.Until.IsZero() || l.Time.Before(q.Until)) && naiveText(q.Text, l.Text) {
			out = append(out, l)
		}
	}
	return out
}

func naiveText(query, text string) bool {
	text = strings.ToLower(strings.NewReplacer("\x1b[31m", "", "\x1b[0m", "").Replace(text))
	isWord := func(s string) bool {
		return len(s) > 0 && (s[0] == '_' || s[0] >= '0' && s[0] <= '9' || s[0] >= 'a' && s[0] <= 'z' || s[0] == 0xc3)
	}
	has := func(part string, prefix bool) bool {
		for i := range text {
			if !strings.HasPrefix(text[i:], part) {
				continue
			}
			before, after := text[max(0, i-1):i], text[i+len(part):]
			if (!isWord(before) && before != "\xa9" || !isWord(part)) && (prefix || !isWord(after) || !isWord(part[len(part)-1:])) {
				return true
			}
		}
		return false
	}
	if quoted, ok := strings.CutPrefix(query, `"`); ok {
		quoted = strings.TrimSuffix(quoted, `"`)
		return quoted == "" || has(quoted, false)
	}
	for _, part := range strings.Fields(strings.ToLower(query)) {
		short, prefix := strings.CutSuffix(part, "*")
		if !has(short, prefix) {
			return false
		}
	}
	return true
}

func (w *logWorld) keeper() *logs.Keeper {
	return logs.New(logs.Config{Store: w.store, Budget: time.Minute})
}

// maxPages bounds a test of small pages.
const maxPages = 25

// everything reads all pages of a search, up to maxPages.
func everything(t *testing.T, k *logs.Keeper, q logs.Query) (out []logs.Line) {
	t.Helper()
	for range maxPages {
		r, err := k.Search(t.Context(), q)
		must(t, err)
		if len(r.Lines) > q.Limit {
			t.Fatalf("%d lines, %d at most", len(r.Lines), q.Limit)
		}
		out = append(out, r.Lines...)
		if r.Next == 0 {
			if !r.SearchedBackTo.IsZero() {
				t.Errorf("all is searched, but only back to %s", r.SearchedBackTo)
			}
			return out
		}
		if r.SearchedBackTo.IsZero() || q.Before != 0 && r.Next >= q.Before {
			t.Fatalf("no progress: before %d, next %d, searched back to %s", q.Before, r.Next, r.SearchedBackTo)
		}
		q.Before = r.Next
	}
	return out
}

func TestLogs_FindsWhatAPlainListHas(t *testing.T) {
	for seed := range uint64(2) {
		w := newLogWorld(t, seed)
		for range 8 {
			w.add(1 + w.rand.IntN(900))
			for range 8 {
				q := w.query()
				got, want := everything(t, w.keeper(), q), w.naive(q)
				if q.Limit*maxPages < len(want) {
					want = want[:q.Limit*maxPages]
				}
				if diff := gocmp.Diff(want, got); diff != "" {
					t.Fatalf("seed %d, %+v: %d lines, want %d\n%.2000s", seed, q, len(got), len(want), diff)
				}
			}
		}
	}
}

func TestLogs_GivesLinesAroundOne(t *testing.T) {
	w := newLogWorld(t, 9)
	for range 8 {
		w.add(700)
	}
	k := w.keeper()
	for range 60 {
		l := w.all[w.rand.IntN(len(w.all))]
		own := slices.DeleteFunc(slices.Clone(w.all), func(o logs.Line) bool { return o.Sandbox != l.Sandbox })
		at, _ := slices.BinarySearchFunc(own, l.ID, func(l logs.Line, id logs.ID) int { return cmp.Compare(l.ID, id) })
		n := pick(w, 0, 1, 30, 600)
		got, err := k.Around(t.Context(), logs.Only(l.Sandbox), l.Sandbox, l.ID, logs.Page{Lines: n, Text: logs.MaxPage})
		must(t, err)
		if diff := gocmp.Diff(own[max(0, at-n):min(len(own), at+n+1)], got); diff != "" {
			t.Fatalf("%d lines around %d of %s: %.1000s", n, l.ID, l.Sandbox, diff)
		}
		for _, scope := range []logs.Scope{logs.All(), logs.Only(l.Sandbox), logs.Only("x", l.Sandbox)} {
			if found, err := k.Line(t.Context(), scope, l.ID); err != nil || found != l {
				t.Errorf("line %d: %+v %v", l.ID, found, err)
			}
		}
	}
}

// TestLogs_APageEndsWithItsText asks for more lines than their text lets through.
func TestLogs_APageEndsWithItsText(t *testing.T) {
	w := newLogWorld(t, 11)
	for range 6 {
		w.add(700)
	}
	l := w.all[len(w.all)/2]
	own := slices.DeleteFunc(slices.Clone(w.all), func(o logs.Line) bool { return o.Sandbox != l.Sandbox })
	at, _ := slices.BinarySearchFunc(own, l.ID, func(l logs.Line, id logs.ID) int { return cmp.Compare(l.ID, id) })
	for _, most := range []int{1, 300, 20_000} {
		from, text := at, 0
		for ; text < most && from > 0; from-- {
			text += len(own[from-1].Text)
		}
		to, text := at, 0
		for ; text < most && to < len(own); to++ {
			text += len(own[to].Text)
		}
		before, err := w.store.Before(t.Context(), l.Sandbox, l.ID, logs.Page{Lines: 5000, Text: most})
		must(t, err)
		after, err := w.store.From(t.Context(), l.Sandbox, l.ID, logs.Page{Lines: 5000, Text: most})
		must(t, err)
		if diff := gocmp.Diff([][]logs.Line{own[from:at], own[at:to]}, [][]logs.Line{before, after}); diff != "" {
			t.Errorf("%d bytes: %.1000s", most, diff)
		}
	}
}

func TestLogs_DeleteForgetsOneSandbox(t *testing.T) {
	w := newLogWorld(t, 3)
	for range 5 {
		w.add(2000)
	}
	must(t, w.store.Delete(t.Context(), "a"))
	must(t, w.store.Delete(t.Context(), "nobody"))
	w.all = slices.DeleteFunc(w.all, func(l logs.Line) bool { return l.Sandbox == "a" })
	w.add(3000)
	for _, q := range []logs.Query{{Scope: logs.All(), Limit: 1000}, {Scope: logs.Only("a"), Limit: 1000}, {Scope: logs.All(), Limit: 1000, Filter: logs.Filter{Text: "alpha"}}} {
		if diff := gocmp.Diff(w.naive(q), everything(t, w.keeper(), q)); diff != "" {
			t.Errorf("%.1000s", diff)
		}
	}
	each, disk, err := w.store.Usage(t.Context())
	must(t, err)
	lines := map[string]int64{}
	for _, l := range w.all {
		lines[l.Sandbox]++
	}
	for _, u := range each {
		if u.Lines != lines[u.Sandbox] || u.Stored == 0 || u.Text == 0 {
			t.Errorf("%+v, want %d lines", u, lines[u.Sandbox])
		}
		delete(lines, u.Sandbox)
	}
	if len(lines) > 0 || disk == 0 {
		t.Errorf("usage misses %v; disk %d", lines, disk)
	}
}

func TestLogs_KeptLogsAreForgottenWithTheirLastLine(t *testing.T) {
	w := newLogWorld(t, 5)
	w.add(20)
	sandbox, age := w.all[0].Sandbox, logs.Limits{Age: 24 * time.Hour}
	for _, k := range []logs.Kept{{Sandbox: sandbox, Name: "old", Since: noon}, {Sandbox: sandbox, Name: "lab", Since: noon}, {Sandbox: "silent", Name: "silent", Since: noon}} {
		must(t, w.store.Keep(t.Context(), k))
	}
	wantKept := func(names ...string) {
		t.Helper()
		kept, err := w.store.Kept(t.Context())
		must(t, err)
		var got []string
		for _, k := range kept {
			got = append(got, k.Name)
		}
		slices.Sort(got)
		if diff := gocmp.Diff(names, got); diff != "" {
			t.Error(diff)
		}
	}
	must(t, w.store.Sweep(t.Context(), age, noon.Add(time.Minute)))
	wantKept("lab", "silent") // a line may be on its way
	must(t, w.store.Sweep(t.Context(), age, noon.Add(2*time.Hour)))
	wantKept("lab")
	must(t, w.store.Sweep(t.Context(), age, noon.Add(25*time.Hour)))
	wantKept()
	must(t, w.store.Unkeep(t.Context(), sandbox))
}

func TestLogs_AddTwiceKeepsOnce(t *testing.T) {
	w := newLogWorld(t, 4)
	w.add(1200)
	must(t, w.store.Add(t.Context(), w.all[700:]))
	must(t, w.store.Add(t.Context(), nil))
	if got := everything(t, w.keeper(), logs.Query{Scope: logs.All(), Limit: 1000}); len(got) != 1200 {
		t.Errorf("%d lines", len(got))
	}
	if w.store.Last() != w.next {
		t.Error("last", w.store.Last(), w.next)
	}
}

func TestLogs_SweepKeepsToTheLimits(t *testing.T) {
	w := newLogWorld(t, 5)
	for range 10 {
		w.add(3000)
	}
	total := func() (sum, a int64) {
		each, _, err := w.store.Usage(t.Context())
		must(t, err)
		for _, u := range each {
			sum += u.Stored
			if u.Sandbox == "a" {
				a = u.Stored
			}
		}
		return sum, a
	}
	sweep := func(l logs.Limits, now time.Time) { must(t, w.store.Sweep(t.Context(), l, now)) }
	sum, a := total()
	sweep(logs.Limits{}, noon.Add(1000*time.Hour))
	if s, _ := total(); s != sum {
		t.Errorf("no limits, but %d of %d are left", s, sum)
	}
	const tails = 64 << 10
	sweep(logs.Limits{Sandbox: a / 2}, noon)
	s, half := total()
	if half > a/2+tails || half < a/4 || s >= sum {
		t.Errorf("%d of %d are left of one sandbox", half, a)
	}
	sweep(logs.Limits{Total: sum / 4}, noon)
	if s, _ := total(); s > sum/4+tails || s < sum/8 {
		t.Errorf("%d of %d are left", s, sum)
	}
	found := everything(t, w.keeper(), logs.Query{Scope: logs.All(), Limit: 1000})
	if len(found) == 0 || found[0] != w.all[len(w.all)-1] {
		t.Error("the newest line is gone")
	}
	middle := found[len(found)/2].ID
	sweep(logs.Limits{Age: time.Hour}, time.UnixMicro(int64(middle)).Add(time.Hour))
	for _, l := range everything(t, w.keeper(), logs.Query{Scope: logs.All(), Limit: 1000}) {
		if l.ID < middle-10_000_000 {
			t.Fatalf("line %d is left", l.ID)
		}
	}
	sweep(logs.Limits{Age: time.Hour}, noon.Add(1000*time.Hour))
	if each, _, err := w.store.Usage(t.Context()); err != nil || len(each) != 0 {
		t.Errorf("%v %v", each, err)
	}
}

func TestLogs_MemberReadsOnlyTheirChunks(t *testing.T) {
	w := newLogWorld(t, 6)
	for range 6 {
		w.add(3000)
	}
	for _, look := range []logs.Look{{Scope: logs.Only("b")}, {Scope: logs.Only("b"), Words: []logs.Word{{Text: "alpha"}}}} {
		err := w.store.Walk(t.Context(), look, func(b logs.Block) bool {
			if b.Lines == nil {
				return true
			}
			lines, err := b.Lines()
			must(t, err)
			if len(lines) == 0 || lines[0].Sandbox != "b" {
				t.Errorf("%d lines of another sandbox", len(lines))
			}
			return true
		})
		must(t, err)
	}
	if err := w.store.Walk(t.Context(), logs.Look{}, func(logs.Block) bool { t.Error("a block for nobody"); return true }); err != nil {
		t.Error(err)
	}
}

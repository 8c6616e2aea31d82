package logs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/fault"
)

// running starts a Keeper, and gives what ends it and waits for it.
func running(t *testing.T, c Config) (k *Keeper, stop func()) {
	t.Helper()
	k = New(c)
	ctx, cancel := context.WithCancel(t.Context())
	var g sync.WaitGroup
	g.Go(func() {
		if err := k.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	stop = func() {
		cancel()
		g.Wait()
	}
	t.Cleanup(stop)
	return k, stop
}

func plain(sandbox, text string) Line { return Line{Sandbox: sandbox, Text: text} }

func texts(lines []Line) string {
	var out []string
	for _, l := range lines {
		out = append(out, l.Text)
	}
	return strings.Join(out, ",")
}

func find(t *testing.T, k *Keeper, q Query) Result {
	t.Helper()
	r, err := k.Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestKeeper_LinesAreFoundAtOnceAndWrittenWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		k, _ := running(t, Config{Store: m})
		k.Append(Line{Sandbox: "a", Service: "web", Text: "ERROR one\r\n"}, plain("b", "two"))
		r := find(t, k, Query{Scope: All()})
		if texts(r.Lines) != "two,ERROR one" || r.Next != 0 || !r.SearchedBackTo.IsZero() || r.Lines[1].Level != Error || !r.Lines[1].Time.Equal(time.Now()) {
			t.Errorf("%+v", r)
		}
		if l, err := k.Line(t.Context(), Only("a"), r.Lines[1].ID); err != nil || l != r.Lines[1] {
			t.Errorf("%+v %v", l, err)
		}
		if n := len(m.all()); n != 0 {
			t.Errorf("%d lines are written already", n)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := texts(m.all()); got != "ERROR one,two" {
			t.Errorf("written: %s", got)
		}
		if r := find(t, k, Query{Scope: Only("a")}); texts(r.Lines) != "ERROR one" {
			t.Errorf("%+v", r)
		}
	})
}

func TestKeeper_WritesWhatIsLeftAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		k, stop := running(t, Config{Store: m})
		k.Append(plain("a", "last"))
		stop()
		if got := texts(m.all()); got != "last" {
			t.Error(got)
		}
	})
}

func TestKeeper_IDsGrowWhenTheClockWasAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ahead := ID(time.Now().Add(time.Hour).UnixMicro())
		m := &memory{lines: []Line{{ID: ahead, Sandbox: "a"}}}
		k, stop := running(t, Config{Store: m})
		future := time.Now().Add(24 * time.Hour)
		k.Append(plain("a", "x"), Line{Sandbox: "a", Text: "y", Time: future})
		stop()
		if all := m.all(); all[1].ID != ahead+1 || all[2].ID != ahead+2 || !all[2].Time.Equal(time.Now()) {
			t.Errorf("%+v", all)
		}
	})
}

func TestKeeper_AFullDiskIsToldAndRecoveredFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{fail: fault.New(fault.Unavailable, "full")}
		const line = lineCost + 1000
		k, _ := running(t, Config{Store: m, Queue: 100 * line})
		long := strings.Repeat("x", 1000)
		for range 500 {
			k.Append(plain("hog", long))
		}
		for range 10 {
			k.Append(plain("quiet", long))
		}
		time.Sleep(time.Minute)
		if k.Problem() == nil || k.Dropped() != 450 {
			t.Errorf("problem %v, %d dropped", k.Problem(), k.Dropped())
		}
		if r := find(t, k, Query{Scope: All(), Limit: 1000}); len(r.Lines) != 60 {
			t.Errorf("%d lines are found meanwhile", len(r.Lines))
		}
		m.set(nil)
		time.Sleep(time.Second)
		synctest.Wait()
		k.Append(plain("hog", "after"))
		time.Sleep(time.Second)
		synctest.Wait()
		all := m.all()
		if k.Problem() != nil || len(all) != 62 || all[61].Text != "after" {
			t.Errorf("problem %v, %d lines", k.Problem(), len(all))
		}
		if told := all[60]; told.Sandbox != "hog" || told.Service != Own || told.Level != Warn || !strings.HasPrefix(told.Text, "450 lines were dropped here") {
			t.Errorf("told: %+v", told)
		}
		if !slices.IsSortedFunc(all, func(a, b Line) int { return int(a.ID - b.ID) }) {
			t.Error("not in the order of their IDs")
		}
	})
}

func TestKeeper_AppendNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{hang: make(chan struct{})}
		k, stop := running(t, Config{Store: m, Queue: 1 << 20})
		begun := time.Now()
		for i := range 50_000 {
			k.Append(plain("a", fmt.Sprint(i)))
			if i%1000 == 0 {
				synctest.Wait()
			}
		}
		if time.Since(begun) != 0 || k.Dropped() == 0 {
			t.Errorf("%s, %d dropped", time.Since(begun), k.Dropped())
		}
		close(m.hang)
		stop()
		if n := int64(len(m.all())) + k.Dropped(); n != 50_000 && n != 50_001 {
			t.Errorf("%d lines in all", n)
		}
	})
}

func TestKeeper_BatchesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		k, stop := running(t, Config{Store: m})
		for range 50 {
			k.Append(make([]Line, 1000)...)
		}
		stop()
		if len(m.all()) != 50_000 || m.adds < 4 || m.adds > 25 { // ten, and what was queued while one was written
			t.Errorf("%d lines in %d batches", len(m.all()), m.adds)
		}
	})
}

func TestKeeper_ABatchThatFailsIsTriedInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{most: 3000}
		k, _ := running(t, Config{Store: m})
		for range 12 {
			k.Append(make([]Line, 1000)...)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(m.all()) != 12_000 || k.Problem() != nil {
			t.Errorf("%d lines, %v", len(m.all()), k.Problem())
		}
	})
}

func TestKeeper_DeletedLinesDoNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{hang: make(chan struct{})}
		k, stop := running(t, Config{Store: m})
		k.Append(plain("a", "1"), plain("b", "2"))
		time.Sleep(time.Second) // a batch is under way
		k.Append(plain("a", "3"), plain("b", "4"))
		var g sync.WaitGroup
		g.Go(func() {
			if err := k.Delete(t.Context(), "a"); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		close(m.hang)
		g.Wait()
		stop()
		if got := texts(m.all()); got != "2,4" || k.size != 0 || len(k.sizes) != 0 {
			t.Errorf("%s; %d bytes in the queue", got, k.size)
		}
	})
}

func TestKeeper_SweepsEachMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		running(t, Config{Store: m, Limits: DefaultLimits})
		time.Sleep(3*time.Minute + time.Second)
		synctest.Wait()
		m.mu.Lock()
		defer m.mu.Unlock()
		if len(m.sweeps) != 3 || m.sweeps[0] != DefaultLimits {
			t.Errorf("%v", m.sweeps)
		}
	})
}

func TestSearch_EndsWithItsBudgetAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{slow: 300 * time.Millisecond}
		start := time.Now()
		for i := range 500 {
			m.lines = append(m.lines, Line{ID: ID(start.UnixMicro() - 500_000 + 1000*int64(i)), Time: start, Sandbox: "a", Text: fmt.Sprint("n", i%100)})
		}
		k := New(Config{Store: m})
		q := Query{Scope: All(), Filter: Filter{Text: "n7"}}
		begun := time.Now()
		r := find(t, k, q)
		if took := time.Since(begun); took > 3*time.Second || r.Next == 0 || r.SearchedBackTo.IsZero() || !r.SearchedBackTo.Before(start) {
			t.Errorf("%s, %+v", took, r)
		}
		found, pages := r.Lines, 1
		for r.Next != 0 && pages < 50 {
			if q.Before != 0 && r.Next >= q.Before {
				t.Fatal("no progress")
			}
			q.Before = r.Next
			r = find(t, k, q)
			found, pages = append(found, r.Lines...), pages+1
		}
		if len(found) != 5 || pages < 3 || !r.SearchedBackTo.IsZero() {
			t.Errorf("%d lines in %d pages, %+v", len(found), pages, r)
		}
	})
}

func TestSearch_AFullPageWasSearchedBackToItsLastLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := running(t, Config{Store: &memory{}})
		begun := time.Now().Add(-time.Minute)
		for i := range 5 { // which come late
			k.Append(Line{Sandbox: "a", Text: fmt.Sprint(i), Time: begun.Add(time.Duration(i) * time.Second)})
		}
		r := find(t, k, Query{Scope: All(), Limit: 3})
		if texts(r.Lines) != "4,3,2" || !r.SearchedBackTo.Equal(r.Lines[2].Time) || r.Next != r.Lines[2].ID {
			t.Errorf("%+v", r)
		}
		if r = find(t, k, Query{Scope: All(), Limit: 3, Before: r.Next}); texts(r.Lines) != "1,0" || !r.SearchedBackTo.IsZero() || r.Next != 0 {
			t.Errorf("%+v", r)
		}
	})
}

func TestSearch_TheCallersEndIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{slow: time.Second, lines: make([]Line, 1000)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if r, err := New(Config{Store: m}).Search(ctx, Query{Scope: All(), Filter: Filter{Text: "x"}}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%+v %v", r, err)
		}
	})
}

func TestSearchApart_WaitsForNoSearchOfUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{slow: time.Second, lines: make([]Line, 1000)}
		k := New(Config{Store: m})
		q := Query{Scope: All(), Filter: Filter{Text: "x"}}
		for range 20 {
			go func() { _, _ = k.Search(t.Context(), q) }() // which ends by itself
		}
		synctest.Wait()
		begun := time.Now()
		q.Budget = 500 * time.Millisecond
		if r, err := k.SearchApart(t.Context(), q); err != nil || r.Next == 0 || time.Since(begun) > time.Second {
			t.Errorf("%+v %v after %s", r, err, time.Since(begun))
		}
		time.Sleep(time.Minute)
	})
}

func TestScope_NothingOutsideOfItIsGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		k, _ := running(t, Config{Store: m})
		f, err := k.Follow(Only("a"), Filter{})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for range 2 { // lines that wait, and lines in the Store
			k.Append(plain("b", "secret"))
			lines := k.waiting(All())
			for _, scope := range []Scope{{}, Only(), Only("a"), Only("a", "c", "d", "e", "f", "g", "h", "i", "j")} {
				if r := find(t, k, Query{Scope: scope}); len(r.Lines) != 0 {
					t.Errorf("%v", r.Lines)
				}
				for _, id := range []ID{lines[0].ID, 1} {
					if l, err := k.Line(t.Context(), scope, id); !fault.Is(err, fault.NotFound) {
						t.Errorf("%v %v", l, err)
					}
					if l, err := k.Around(t.Context(), scope, "b", id, Page{5, MaxPage}); !fault.Is(err, fault.NotFound) {
						t.Errorf("%v %v", l, err)
					}
				}
				if each, _, err := k.Usage(t.Context(), scope); err != nil || slices.ContainsFunc(each, func(u Use) bool { return u.Sandbox == "b" }) {
					t.Errorf("%v %v", each, err)
				}
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if lines, err := f.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v %v", lines, err)
		}
	})
}

func TestAround_CrossesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		k, _ := running(t, Config{Store: m})
		for i := range 6 {
			k.Append(plain("a", fmt.Sprint(i)), plain("b", "x"))
			if i == 3 {
				time.Sleep(time.Second)
				synctest.Wait()
			}
		}
		four := find(t, k, Query{Scope: All(), Filter: Filter{Text: "4"}}).Lines[0]
		for n, want := range map[int]string{0: "4", 1: "3,4,5", 3: "1,2,3,4,5", 5000: "0,1,2,3,4,5"} {
			if got, err := k.Around(t.Context(), Only("a"), "a", four.ID, Page{n, MaxPage}); err != nil || texts(got) != want {
				t.Errorf("%d: %s %v", n, texts(got), err)
			}
		}
	})
}

func TestFollow_GivesWhatMatchesAsItComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := running(t, Config{Store: &memory{fail: errors.New("no")}})
		f, err := k.Follow(All(), Filter{Levels: []Level{Error}, Text: "disk*"})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := k.Follow(All(), Filter{Text: strings.Repeat("x", 2000)}); !fault.Is(err, fault.Invalid) {
			t.Error(err)
		}
		for i := range 3 {
			begun := time.Now()
			k.Append(plain("a", "INFO disks"), plain("a", "ERROR: Disks "+fmt.Sprint(i)), plain("b", "error: x"))
			lines, err := f.Next(t.Context())
			if err != nil || texts(lines) != "ERROR: Disks "+fmt.Sprint(i) || time.Since(begun) > followEvery {
				t.Errorf("%v %v after %s", lines, err, time.Since(begun))
			}
		}
		f.Close()
		if _, err := f.Next(t.Context()); err == nil {
			t.Error("a closed one gives lines")
		}
	})
}

func TestFollow_ASlowReaderIsToldAndHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := running(t, Config{Store: &memory{}})
		slow, _ := k.Follow(All(), Filter{})
		fast, _ := k.Follow(All(), Filter{})
		defer slow.Close()
		defer fast.Close()
		for i := range 100 {
			k.Append(plain("a", fmt.Sprint(i)))
			if lines, err := fast.Next(t.Context()); err != nil || texts(lines) != fmt.Sprint(i) {
				t.Fatalf("%v %v", lines, err)
			}
		}
		n := 0
		var err error
		for err == nil {
			var lines []Line
			lines, err = slow.Next(t.Context())
			n += len(lines)
		}
		if n != followLag || !fault.Is(err, fault.Limited) {
			t.Errorf("%d lines, then %v", n, err)
		}
	})
}

func TestFollow_PartsAreBounded(t *testing.T) {
	k := New(Config{Store: &memory{}})
	for range 500 {
		k.Append(plain("a", strings.Repeat("x", 1<<20)))
	}
	n := 0
	for _, part := range k.unpublished() {
		size := 0
		for _, l := range part {
			size += len(l.Text)
		}
		if n += len(part); size > followBytes+MaxText {
			t.Errorf("%d bytes", size)
		}
	}
	if n != 500 || len(k.unpublished()) != 0 {
		t.Errorf("%d lines", n)
	}
}

package logs

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// numbered gives a line of n bytes that begins with a number.
func numbered(sandbox string, number, n int) Line {
	text := fmt.Sprintf("%05d", number)
	return plain(sandbox, text+strings.Repeat("x", n-len(text)))
}

func TestSearch_APageThatIsFullOfTextIsContinued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		k, _ := running(t, Config{Store: m})
		const all = 800
		for i := range all {
			if k.Append(numbered("a", i, MaxText)); i == all/2 {
				time.Sleep(time.Second) // the rest waits in the queue
				synctest.Wait()
			}
		}
		want := all - 1
		for q := (Query{Scope: All(), Limit: MaxLimit}); ; {
			r := find(t, k, q)
			text := 0
			for _, l := range r.Lines {
				if !strings.HasPrefix(l.Text, fmt.Sprintf("%05d", want)) {
					t.Fatalf("%.5q, want %d", l.Text, want)
				}
				want--
				text += len(l.Text)
			}
			if text > MaxPage+MaxText {
				t.Errorf("%d bytes", text)
			}
			if (r.Next == 0) != r.SearchedBackTo.IsZero() {
				t.Errorf("next %v, searched back to %v", r.Next, r.SearchedBackTo)
			}
			if q.Before = r.Next; r.Next == 0 {
				break
			}
		}
		if want != -1 {
			t.Errorf("%d lines are lost", want+1)
		}
	})
}

// TestAround_NothingIsMissingWithinAPage has long lines in the Store, of which a page takes some, and a short one that waits.
func TestAround_NothingIsMissingWithinAPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		k, _ := running(t, Config{Store: m})
		for i := range 20 {
			k.Append(numbered("a", i, 1000))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		k.Append(plain("a", "short"))
		ten := m.all()[10]
		for text, each := range map[int]int{0: 0, 1: 1, 1000: 1, 3500: 4, 5001: 6} {
			lines, err := k.Around(t.Context(), All(), "a", ten.ID, Page{100, text})
			if err != nil || len(lines) != 2*each+1 || lines[each].ID != ten.ID {
				t.Errorf("%d bytes: %d lines, %v", text, len(lines), err)
			}
			for i := range lines {
				if lines[i].ID != m.all()[10-each+i].ID {
					t.Errorf("%d bytes: line %d is %.5q", text, i, lines[i].Text)
				}
			}
		}
		if lines, err := k.Around(t.Context(), All(), "a", ten.ID, Page{100, 1 << 20}); err != nil || len(lines) != 21 || lines[20].Text != "short" {
			t.Errorf("%d lines, %v", len(lines), err)
		}
	})
}

package snapshot_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/snapshot"
)

// grown makes snapshots of "ID<PARENT" texts, each a minute after the one before. One of "ID!" has failed, one of "ID?" is being taken.
func grown(texts ...string) (list []snapshot.Snapshot) {
	for i, one := range texts {
		id, parent, _ := strings.Cut(one, "<")
		n := snapshot.Snapshot{ID: strings.Trim(id, "!?"), Parent: parent, State: snapshot.Ready, Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(i) * time.Minute)}
		switch {
		case strings.HasSuffix(id, "!"):
			n.State = snapshot.Failed
		case strings.HasSuffix(id, "?"):
			n.State = snapshot.Making
		}
		list = append([]snapshot.Snapshot{n}, list...)
	}
	return list
}

// drawn writes a tree as text: for each the lane, the id, and the lines that leave it.
func drawn(list []snapshot.Placed) string {
	var lines []string
	for _, n := range list {
		line := fmt.Sprintf("%d%s", n.Lane, n.ID)
		if n.Above {
			line += "^"
		}
		if n.Below {
			line += "v"
		}
		if n.From != nil {
			line += "/" + n.From.ID
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, " ")
}

func TestTree_PutsEachBelowThoseAfterIt(t *testing.T) {
	for _, c := range []struct {
		head string
		list []snapshot.Snapshot
		want string
	}{
		{"", nil, ""},
		{"c", grown("a", "b<a", "c<b"), "0cv 0b^v 0a^"},
		{"b", grown("a", "b<a", "c<b", "d<a"), "0cv 0b^v 1d/a 0a^"},
		{"d", grown("a", "b<a", "c<b", "d<a"), "0dv 1cv 1b^/a 0a^"},
		{"", grown("a", "b<a", "c<a", "d<b"), "0dv 0b^v 1c/a 0a^"},
		{"a", grown("a", "b", "c<b"), "0a 0cv 0b^"},
		{"b", grown("a", "b<a", "x!", "c?"), "0x 0cv 0b^v 0a^"},
		{"a", grown("a<gone", "b<b", "c<a"), "0cv 0a^ 0b"},
	} {
		if got := drawn(snapshot.Tree(c.list, c.head)); got != c.want {
			t.Errorf("head %q: %s, want %s", c.head, got, c.want)
		}
	}
}

func TestTree_DrawsNoMoreLanesThanThereAre(t *testing.T) {
	texts := []string{"r"}
	for i := range 12 { // each branch has the head of the one before beside it
		parent := "r"
		if i > 0 {
			parent = fmt.Sprintf("b%d", i-1)
		}
		texts = append(texts, fmt.Sprintf("b%d<%s", i, parent))
	}
	for i := 11; i >= 0; i-- {
		parent := "r"
		if i > 0 {
			parent = fmt.Sprintf("b%d", i-1)
		}
		texts = append(texts, fmt.Sprintf("m%d<%s", i, parent))
	}
	list := snapshot.Tree(grown(texts...), "")
	most := 0
	for _, n := range list {
		most = max(most, n.Lane)
	}
	if len(list) != len(texts) || most != snapshot.MaxLanes {
		t.Errorf("%d of %d, %d lanes", len(list), len(texts), most)
	}
}

func TestTree_ACircleIsNotFollowed(t *testing.T) {
	snapshot.Tree(grown("a<b", "b<a", "c<a"), "c") // and they are not shown: the store never has that
}

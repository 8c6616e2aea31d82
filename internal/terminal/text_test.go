package terminal

import (
	"context"
	"testing"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// pager is a guest whose tab "main" has a program with the whole screen.
type pager struct {
	access.Guest
	read []string
}

func (p *pager) Terminals(context.Context) ([]wire.Terminal, error) {
	return []wire.Terminal{{Name: "2"}, {Name: "main", Full: true}}, nil
}

func (p *pager) TerminalText(_ context.Context, tab string) ([]byte, error) {
	p.read = append(p.read, tab)
	return []byte("text of " + tab), nil
}

func TestLook_LeavesOutWhatIsNotWanted(t *testing.T) {
	for _, c := range []struct {
		tab  string
		part Part
		full bool
		text string
	}{
		{"main", Everything, false, "text of main"}, {"main", UnlessFull, true, ""}, {"main", StateOnly, true, ""},
		{"2", Everything, false, "text of 2"}, {"2", UnlessFull, false, "text of 2"}, {"2", StateOnly, false, ""},
	} {
		p := &pager{}
		got, err := Look(t.Context(), p, c.tab, c.part)
		if err != nil || got.Full != c.full || string(got.Text) != c.text || (len(p.read) > 0) != (c.text != "") {
			t.Errorf("%s, %q: %+v %q, %v, read %v", c.tab, c.part, got, got.Text, err, p.read)
		}
	}
	if _, err := Look(t.Context(), &pager{}, "../x", Everything); !fault.Is(err, fault.Invalid) {
		t.Errorf("a bad name: %v", err)
	}
}

package views

import (
	"strings"
	"testing"
)

// In a workspace, letters are for the terminal and the editor (static/js/shortcuts.js).
func TestKeys_OnlyWhatWorksEverywhereIsListedAsSuch(t *testing.T) {
	var b strings.Builder
	if err := Keys().Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	_, everywhere, _ := strings.Cut(b.String(), "<h3>Everywhere</h3>")
	everywhere, _, found := strings.Cut(everywhere, "</section>")
	if !found || !strings.Contains(everywhere, "Show this help") || strings.Contains(everywhere, "New sandbox") || strings.Contains(everywhere, "Go to") {
		t.Errorf("everywhere: %s", everywhere)
	}
}

package views

import (
	"strings"
	"testing"
)

func TestPortSheet_ALinkThatAPhoneCanOpenHasACode(t *testing.T) {
	for _, local := range []bool{false, true} {
		var b strings.Builder
		if err := PortSheetPart(PortSheet{Box: "lab", Number: "3000", Secret: "https://3000-lab.example.com/x#y", Local: local}).Render(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		if has := strings.Contains(b.String(), `data-qr="https://3000-lab.example.com/x#y"`); has == local {
			t.Errorf("local %v: a code %v", local, has)
		}
	}
}

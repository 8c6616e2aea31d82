package child

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"

	"sandboxd/internal/repository/repositorytest"
)

// pieceSums cuts bytes as a stream is cut.
func pieceSums(b []byte) (sums []string, lengths []int) {
	for len(b) > 0 {
		n := cut(b[:min(len(b), maxPiece)])
		sums = append(sums, fmt.Sprintf("%x", sha256.Sum256(b[:n])))
		lengths = append(lengths, n)
		b = b[n:]
	}
	return sums, lengths
}

func TestCut_AChangeMovesNoOtherPiece(t *testing.T) {
	content := repositorytest.Noise(1, 60<<20)
	before, lengths := pieceSums(content)
	for _, n := range lengths[:len(lengths)-1] {
		if n < minPiece || n > maxPiece {
			t.Errorf("a piece of %d bytes", n)
		}
	}
	after, _ := pieceSums(slices.Insert(slices.Clone(content), 1000, 'x'))
	same := 0
	for _, sum := range after {
		if slices.Contains(before, sum) {
			same++
		}
	}
	if same < len(after)-2 {
		t.Errorf("%d of %d pieces are the same", same, len(after))
	}
}

// TestCut_IsWhereItWas pins the places: with others, a new sandboxd would store all homes anew.
func TestCut_IsWhereItWas(t *testing.T) {
	_, lengths := pieceSums(repositorytest.Noise(1, 20<<20))
	if got := fmt.Sprint(lengths); got != wantLengths {
		t.Errorf("cut into %s", got)
	}
	_, lengths = pieceSums(make([]byte, 20<<20))
	if got := fmt.Sprint(lengths); got != "[8388607 8388607 4194306]" {
		t.Errorf("zeros are cut into %s", got)
	}
}

const wantLengths = "[2564847 7598340 6670388 2530866 1607079]"

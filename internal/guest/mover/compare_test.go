package mover

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandboxd/internal/archive"
	"sandboxd/internal/wire"
)

func TestCompare_TellsOfTheCopyAndTheHome(t *testing.T) {
	home := withSnapshot(t, grow(t, 1))
	if got := ask(t, home, wire.MoverCompare, nil, true); got.last.Kind != wire.MoverAbsent {
		t.Errorf("without a copy: %+v", got.last)
	}
	done(t, home, wire.MoverCopyOut)
	compared := func(most int) (found []archive.Difference) {
		t.Helper()
		got := askJob(t, home, wire.MoverJob{Do: wire.MoverCompare, Most: most}, nil, true)
		if got.err != nil || got.last.Error != "" {
			t.Fatalf("%v %+v", got.err, got.last)
		}
		for in := json.NewDecoder(bytes.NewReader(got.archive)); in.More(); {
			var d archive.Difference
			if err := in.Decode(&d); err != nil {
				t.Fatal(err)
			}
			found = append(found, d)
		}
		return found
	}
	if found := compared(10); len(found) > 0 {
		t.Errorf("of a copy: %+v", found)
	}
	hostile(t, home, "mkdir .sandboxd-restore; touch .sandboxd-restore/file; echo more > more; rm -r both0; ln -s $OUT link")
	found := compared(1000)
	if len(found) < 3 || found[len(found)-1] != (archive.Difference{Path: "more", Change: archive.Added, Kind: archive.KindFile, Size: 5}) || found[0].Kind != archive.KindFolder {
		t.Errorf("%+v", found)
	}
	if two := compared(2); len(two) != 2 {
		t.Errorf("at most two: %+v", two)
	}
}

func TestVersions_AreOfRegularFilesBelowTheHome(t *testing.T) {
	home := withSnapshot(t, grow(t, 1))
	for name, text := range map[string]string{"both": "before", "gone": "before", "long": strings.Repeat("x", 5000), "empty": ""} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	done(t, home, wire.MoverCopyOut)
	hostile(t, home, "echo -n after > both; rm gone; mkfifo pipe; ln -s $OUT out; ln -s both link; mkdir -p deep/er; echo -n new > deep/er/file")
	for path, want := range map[string][2]any{
		"both": {"before", "after"}, "gone": {"before", nil}, "deep/er/file": {nil, "new"}, "empty": {"", ""},
		"long": {strings.Repeat("x", 1000), strings.Repeat("x", 1000)},
		"pipe": {nil, nil}, "link": {nil, nil}, "out/secret": {nil, nil}, "../" + filepath.Base(home) + "/both": {nil, nil}, "/etc/passwd": {nil, nil},
		"": {nil, nil}, ".": {nil, nil}, "deep": {nil, nil}, "both/": {nil, nil}, "none": {nil, nil},
	} {
		got := askJob(t, home, wire.MoverJob{Do: wire.MoverVersions, Path: path, Most: 1000}, nil, true)
		var v wire.FileVersions
		if err := json.Unmarshal(got.archive, &v); got.err != nil || got.last.Error != "" || err != nil {
			t.Errorf("%q: %v %+v %v", path, got.err, got.last, err)
		}
		for i, b := range [][]byte{v.Before, v.After} {
			var has any
			if b != nil {
				has = string(b)
			}
			if has != want[i] {
				t.Errorf("%q: version %d is %.20q, want %.20q", path, i, has, want[i])
			}
		}
	}
}

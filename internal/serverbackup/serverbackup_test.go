package serverbackup

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

const phrase = "correct horse battery"

// quick seals in no time.
var quick = Sealer{Work: 2}

var made = time.Date(2026, 11, 26, 5, 0, 0, 0, time.UTC)

// tree writes files into a new folder. What is named "*.sh" is executable.
func tree(t *testing.T, files map[string]string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	plant(t, folder, files)
	return folder
}

func plant(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(folder, name)
		mode := fs.FileMode(0o600)
		if strings.HasSuffix(name, ".sh") {
			mode = 0o700
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), mode)); err != nil {
			t.Fatal(err)
		}
	}
}

// contents reads a folder.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		all[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var kept = map[string]string{"sandboxd.db": strings.Repeat("rows ", 40_000), "instance": "0123abcd\n", "secret.key": "key", "restored/templates-1/lab/build.sh": "#!/bin/sh\n", "empty": ""}

func written(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	m, err := quick.Write(t.Context(), &out, phrase, Manifest{Made: made, By: "1.0", Database: 15, Host: "box"}, tree(t, files))
	if err != nil || len(m.Files) != len(files) {
		t.Fatalf("%+v, %v", m, err)
	}
	return out.Bytes()
}

func TestWrite_ComesBackWholeAndForItsOwnerAlone(t *testing.T) {
	file := written(t, kept)
	if bytes.Contains(file, []byte("rows")) || bytes.Contains(file, []byte("instance")) {
		t.Error("it can be read without the passphrase")
	}
	m, err := Check(t.Context(), bytes.NewReader(file), phrase)
	if err != nil || m.By != "1.0" || m.Database != 15 || !m.Made.Equal(made) {
		t.Fatalf("%+v, %v", m, err)
	}
	to := t.TempDir()
	if _, err := Extract(t.Context(), bytes.NewReader(file), phrase, to, func(Manifest) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(kept, contents(t, to)); diff != "" {
		t.Errorf("it differs:\n%.500s", diff)
	}
	for name, want := range map[string]fs.FileMode{"secret.key": 0o600, "restored/templates-1/lab/build.sh": 0o700, "restored": 0o700} {
		if st, err := os.Stat(filepath.Join(to, name)); err != nil || st.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, st.Mode(), err)
		}
	}
}

// TestWrite_KeepsAnyName has names as other systems and mistakes make them: they come back byte by byte.
func TestWrite_KeepsAnyName(t *testing.T) {
	files := map[string]string{"latin-\xe4\xff": "1", "dir\xfe/a": "2", "latin-\ufffd": "3", "line\nend\t\"quote\" ": "4", strings.Repeat("\xf0", 255): "5", "\xff/\xff.sh": "6"}
	to := t.TempDir()
	if _, err := Extract(t.Context(), bytes.NewReader(written(t, files)), phrase, to, func(Manifest) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(files, contents(t, to)); diff != "" {
		t.Errorf("it differs:\n%.500s", diff)
	}
}

func TestWrite_RefusesAListThatNobodyCouldReadBeforeItWrites(t *testing.T) {
	var out bytes.Buffer
	m := Manifest{LeftOut: make([]LeftOut, 4200)}
	for n := range m.LeftOut {
		m.LeftOut[n].Name = strings.Repeat("n", 4000)
	}
	_, err := quick.Write(t.Context(), &out, phrase, m, tree(t, kept))
	if !fault.Is(err, fault.TooLarge) || !strings.Contains(fault.Message(err), "4200 that are left out") || out.Len() > 0 {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
	m.LeftOut = m.LeftOut[:4000]
	if _, err = quick.Write(t.Context(), &out, phrase, m, tree(t, kept)); err == nil {
		_, err = Check(t.Context(), &out, phrase)
	}
	if err != nil {
		t.Errorf("a list that is just short enough: %v", err)
	}
}

func TestWrite_WantsAPassphraseThatIsNotShort(t *testing.T) {
	_, err := quick.Write(t.Context(), io.Discard, "short", Manifest{}, t.TempDir())
	if !fault.Is(err, fault.Invalid) || fault.FieldOf(err) != "passphrase" {
		t.Error(err)
	}
}

func TestCheck_RefusesAnotherPassphraseAndOtherFiles(t *testing.T) {
	file := written(t, kept)
	for name, c := range map[string]struct {
		file   []byte
		phrase string
		says   string
	}{
		"another passphrase":    {file, phrase + "!", "not that of this backup"},
		"no passphrase":         {file, "", "empty"},
		"nothing":               {nil, phrase, "no server backup"},
		"another file":          {[]byte(strings.Repeat("text\n", 1000)), phrase, "no server backup"},
		"bytes of another one":  {[]byte("\x1b[31m\x00\xff"), phrase, "no server backup"},
		"another file of age's": {[]byte("age-encryption.org/v1\n-> \x1b[31m\x00\xff\n\n"), phrase, "damaged"},
		"something after it":    {append(bytes.Clone(file), "more"...), phrase, "damaged"},
	} {
		if _, err := Check(t.Context(), bytes.NewReader(c.file), c.phrase); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Message(err), c.says) || text.Unprintable(fault.Message(err)) {
			t.Errorf("%s: %q", name, err)
		}
	}
}

// TestCheck_RefusesWhatWasCutOrChanged cuts a file after each byte of its beginning and its end, and here and there between, and changes a bit at each of those places.
func TestCheck_RefusesWhatWasCutOrChanged(t *testing.T) {
	file := written(t, map[string]string{"sandboxd.db": strings.Repeat("rows ", 40_000), "noise": string(bytes.Repeat(written(t, kept), 150))})
	places := 0
	for at := 0; at < len(file); at++ {
		if at > 400 && at < len(file)-200 && at%4099 != 0 {
			continue
		}
		places++
		if _, err := Check(t.Context(), bytes.NewReader(file[:at]), phrase); !fault.Is(err, fault.Invalid) {
			t.Fatalf("cut to %d of %d bytes: %v", at, len(file), err)
		}
		changed := bytes.Clone(file)
		changed[at] ^= 1
		if _, err := Check(t.Context(), bytes.NewReader(changed), phrase); !fault.Is(err, fault.Invalid) {
			t.Fatalf("byte %d of %d changed: %v", at, len(file), err)
		}
	}
	t.Logf("%d places of %d bytes", places, len(file))
}

func TestExtract_MayBeRefusedBeforeAnythingIsMade(t *testing.T) {
	to := t.TempDir()
	refusal := fault.New(fault.Conflict, "No.")
	_, err := Extract(t.Context(), bytes.NewReader(written(t, kept)), phrase, to, func(Manifest) error { return refusal })
	if !errors.Is(err, refusal) || len(contents(t, to)) > 0 {
		t.Errorf("%v, %v", err, contents(t, to))
	}
	newer := formatOf(t, formatVersion+1)
	if _, err := Check(t.Context(), bytes.NewReader(newer), phrase); !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Message(err), "2.0") {
		t.Errorf("a newer format: %v", err)
	}
}

// formatOf gives a backup of another version of the format.
func formatOf(t *testing.T, version int) []byte {
	t.Helper()
	return sealedArchive(t, Manifest{Format: formatName, Version: version, By: "2.0"}, t.TempDir())
}

func sealedArchive(t *testing.T, m Manifest, folder string) []byte {
	t.Helper()
	var out bytes.Buffer
	to, err := quick.seal(&out, phrase)
	if err != nil {
		t.Fatal(err)
	}
	packed := frame(t, m, folder)
	_, err = to.Write(packed)
	if err := errors.Join(err, to.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestExtract_WritesNowhereElse has the one who knows the passphrase make a file that wants out of its folder.
func TestExtract_WritesNowhereElse(t *testing.T) {
	for _, name := range []string{"../outside", "/outside", "a/../../outside", ""} {
		m := Manifest{Format: formatName, Version: formatVersion, Files: []File{{Path: name, Size: 0, SHA256: strings.Repeat("0", 64)}}}
		to := filepath.Join(t.TempDir(), "to")
		if err := os.Mkdir(to, 0o700); err != nil {
			t.Fatal(err)
		}
		_, err := Extract(t.Context(), bytes.NewReader(sealedArchive(t, m, t.TempDir())), phrase, to, func(Manifest) error { return nil })
		if !fault.Is(err, fault.Invalid) || len(contents(t, filepath.Dir(to))) > 0 {
			t.Errorf("%q: %v, %v", name, err, contents(t, filepath.Dir(to)))
		}
	}
}

func TestExtract_AFullDiskIsSaid(t *testing.T) {
	folder := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", folder).CombinedOutput(); err != nil {
			t.Errorf("%v %s", err, out)
		}
	})
	_, err := Extract(t.Context(), bytes.NewReader(written(t, kept)), phrase, folder, func(Manifest) error { return nil })
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Message(err), "no space left") {
		t.Errorf("extract: %v", err)
	}
}

func TestWrite_EndsWithItsContext(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	end()
	if _, err := quick.Write(ctx, io.Discard, phrase, Manifest{}, tree(t, kept)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := Check(ctx, bytes.NewReader(written(t, kept)), phrase); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func own(name string) bool {
	return strings.HasPrefix(name, "sandboxd.db") || name == "instance" || name == "secret.key" || name == "restored"
}

var (
	former = map[string]string{"sandboxd.db": "old", "sandboxd.db-wal": "old log", "instance": "old\n", "backups/one": "stays", "restored/old": "old"}
	next   = map[string]string{"sandboxd.db": "new", "instance": "new\n", "secret.key": "new key", "restored/templates-1/a": "new"}
)

// committed gives a data folder with a restore that is ready.
func committed(t *testing.T) (data string) {
	t.Helper()
	data = tree(t, former)
	folder, err := Begin(data)
	if err != nil {
		t.Fatal(err)
	}
	plant(t, folder, next)
	if err := Commit(data); err != nil {
		t.Fatal(err)
	}
	return data
}

// wantRestored wants the data folder to be what a restore makes of it, with what was there before beside it.
func wantRestored(t *testing.T, data, when string) {
	t.Helper()
	got := contents(t, data)
	want := map[string]string{"backups/one": "stays"}
	for name, content := range next {
		want[name] = content
	}
	beside, err := filepath.Glob(filepath.Join(data, ReplacedPrefix+"*"))
	if err != nil || len(beside) != 1 {
		t.Fatalf("%s: beside it: %v, %v", when, beside, err)
	}
	for name, content := range former {
		if name != "backups/one" {
			want[filepath.Base(beside[0])+"/"+name] = content
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: the folder differs:\n%s", when, diff)
	}
}

func TestFinish_KeepsWhatWasThereBesideIt(t *testing.T) {
	data := committed(t)
	replaced, err := Finish(data, own)
	if err != nil || !strings.HasPrefix(filepath.Base(replaced), ReplacedPrefix) {
		t.Fatalf("%q, %v", replaced, err)
	}
	wantRestored(t, data, "at once")
	if replaced, err := Finish(data, own); err != nil || replaced != "" {
		t.Errorf("again: %q, %v", replaced, err)
	}
	wantRestored(t, data, "again")
}

func TestFinish_ForgetsWhatWasOnlyBegun(t *testing.T) {
	data := tree(t, former)
	folder, err := Begin(data)
	if err != nil {
		t.Fatal(err)
	}
	plant(t, folder, map[string]string{"sandboxd.db": "half"})
	if replaced, err := Finish(data, own); err != nil || replaced != "" {
		t.Fatalf("%q, %v", replaced, err)
	}
	if diff := cmp.Diff(former, contents(t, data)); diff != "" {
		t.Errorf("the folder differs:\n%s", diff)
	}
}

// TestFinish_ContinuesWhereverItWasKilled makes each state that a kill can leave: after so many moves away, and after so many moves in.
func TestFinish_ContinuesWhereverItWasKilled(t *testing.T) {
	for moves := range 12 {
		data := committed(t)
		if !killedAfter(t, data, moves) {
			return
		}
		if _, err := Finish(data, own); err != nil {
			t.Fatalf("killed after %d moves: %v", moves, err)
		}
		wantRestored(t, data, "killed after some moves")
	}
	t.Error("there are more moves")
}

// killedAfter does so many moves as Finish does them; false when it does fewer.
func killedAfter(t *testing.T, data string, moves int) bool {
	t.Helper()
	ready, in := filepath.Join(data, readyFolder), filepath.Join(data, inFolder)
	st, err := os.Stat(ready)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(data, ReplacedPrefix+st.ModTime().UTC().Format("20060102-150405"))
	var all [][2]string
	for _, name := range []string{"instance", "restored", "sandboxd.db", "sandboxd.db-wal"} {
		all = append(all, [2]string{filepath.Join(data, name), filepath.Join(to, name)})
	}
	all = append(all, [2]string{ready, in})
	for _, name := range []string{"instance", "restored", "sandboxd.db", "secret.key"} {
		all = append(all, [2]string{filepath.Join(in, name), filepath.Join(data, name)})
	}
	if moves > len(all) {
		return false
	}
	if moves > 0 {
		if err := os.Mkdir(to, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range all[:moves] {
		if err := os.Rename(m[0], m[1]); err != nil {
			t.Fatal(err)
		}
	}
	return true
}

// frame gives the archive of a backup, packed and not sealed.
func frame(t *testing.T, m Manifest, folder string) []byte {
	t.Helper()
	var archive bytes.Buffer
	manifest, err := m.encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := writeArchive(t.Context(), &archive, manifest, m, folder); err != nil && len(m.Files) == 0 {
		t.Fatal(err)
	}
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return encoder.EncodeAll(archive.Bytes(), nil)
}

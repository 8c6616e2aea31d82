package sandboxtest

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/archive"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// HomesSubject is what opens homes, under test, with the engine that it is of.
type HomesSubject struct {
	RuntimeSubject
	Homes     sandbox.Homes
	Snapshots sandbox.Snapshots           // on the same engine
	Left      func(t *testing.T) []string // what homes that were open have left
	Uncounted bool                        // its copies do not tell what they have
}

// RunHomes checks that what open gives keeps the contract of sandbox.Homes. open is as for RunRuntime.
func RunHomes(t *testing.T, open func(t *testing.T) HomesSubject) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*testing.T, *homesTest)
	}{
		{"ReplaceMakesWhatReadGives", homeReplaced},
		{"ReadIsAPartOfAnArchive", homeIsAPart},
		{"ReplaceTakesWhatHasThePrefix", homePrefix},
		{"ReplaceOfABadArchiveLeavesTheOldHome", homeBadArchive},
		{"ReplaceOfWhatCannotBeReadLeavesTheOldHome", homeBadSource},
		{"ReadGivesTheErrorOfItsWriter", homeBadWriter},
		{"JobsEndWithTheirContext", homeContext},
		{"SettleMayBeRepeated", homeSettled},
		{"OpenEndsWhatAnEarlierOneDoes", homeOpenedAgain},
		{"CloseEndsAJobAndMayBeRepeated", homeClosed},
		{"RemoveOfTheSandboxEndsAJob", homeRemoved},
		{"FrozenHomesCanBeReadAndReplaced", homeFrozen},
		{"ManyAtOnce", homesAtOnce},
		{"CopyInMakesWhatCopyOutHasTaken", homeCopied},
		{"CopyInWithoutACopyIsNotFound", homeCopyAbsent},
		{"ManyCopyInAtOnce", homeCopiedAtOnce},
		{"RemoveCopyOfOneInUseIsAConflict", homeCopyInUse},
		{"OpenOfTheAbsentIsNotFound", homeAbsent},
		{"HungEngineEndsWithTheCaller", homeHung},
		{"LostEngineIsUnavailable", homeLost},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), suiteLimit)
			defer cancel()
			s := open(t)
			h := &homesTest{runtimeTest: &runtimeTest{RuntimeSubject: s.RuntimeSubject, t: t, ctx: ctx}, s: s}
			c.run(t, h)
			h.closeAll()
			if left := s.Left(t); len(left) > 0 {
				t.Errorf("left over: %q", left)
			}
		})
	}
}

// homesTest is one test of the suite, with what every test does.
type homesTest struct {
	*runtimeTest
	s HomesSubject

	mu     sync.Mutex
	opened []sandbox.Home
}

const suitePrefix = "some/home/"

// home opens that of a sandbox, until the test's end at the latest.
func (h *homesTest) home(id string) sandbox.Home {
	h.t.Helper()
	home, err := h.s.Homes.OpenHome(h.ctx, id, "")
	if err != nil {
		h.t.Fatalf("open: %v", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.opened = append(h.opened, home)
	return home
}

func (h *homesTest) closeAll() {
	h.t.Helper()
	for _, home := range h.opened {
		if err := home.Close(); err != nil {
			h.t.Errorf("close: %v", err)
		}
	}
}

// tarOf makes an archive of files by their paths, and of their folders.
func tarOf(t *testing.T, prefix string, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	out := tar.NewWriter(&b)
	add := func(h tar.Header, content string) {
		h.Mode, h.Size, h.ModTime, h.Format = 0o755, int64(len(content)), time.Unix(1e9, 7), tar.FormatPAX
		if err := out.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(out, content); err != nil {
			t.Fatal(err)
		}
	}
	if prefix != "" {
		add(tar.Header{Name: prefix, Typeflag: tar.TypeDir}, "")
	}
	known := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for i, c := range name {
			if folder := prefix + name[:i] + "/"; c == '/' && !known[folder] {
				known[folder] = true
				add(tar.Header{Name: folder, Typeflag: tar.TypeDir}, "")
			}
		}
		add(tar.Header{Name: prefix + name, Typeflag: tar.TypeReg}, files[name])
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// filesIn gives the files in an archive that have the prefix.
func filesIn(t *testing.T, b []byte, prefix string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for in := tar.NewReader(bytes.NewReader(b)); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if name, mine := strings.CutPrefix(header.Name, prefix); mine && header.Typeflag == tar.TypeReg {
			files[name] = string(content)
		}
	}
}

func ignore(archive.Stats) {}

// put replaces the home of a sandbox.
func (h *homesTest) put(id string, files map[string]string) archive.Stats {
	h.t.Helper()
	home := h.home(id)
	s, err := home.Replace(h.ctx, bytes.NewReader(tarOf(h.t, "in/", files)), sandbox.Content{Prefix: "in/"}, ignore)
	if err != nil {
		h.t.Fatalf("replace: %v", err)
	}
	if err := home.Close(); err != nil {
		h.t.Errorf("close: %v", err)
	}
	return s
}

// read gives the home of a sandbox as an archive.
func (h *homesTest) read(id string) ([]byte, archive.Stats) {
	h.t.Helper()
	home := h.home(id)
	var b bytes.Buffer
	s, err := home.Read(h.ctx, &b, suitePrefix, ignore)
	if err != nil {
		h.t.Fatalf("read: %v", err)
	}
	if err := home.Close(); err != nil {
		h.t.Errorf("close: %v", err)
	}
	return b.Bytes(), s
}

// filesDiffer tells how files differ from those that are wanted, or gives "".
func filesDiffer(want, got map[string]string) string {
	var out []string
	for name := range maps.Keys(got) {
		if _, known := want[name]; !known {
			out = append(out, fmt.Sprintf("has %q too", name))
		}
	}
	for name, content := range want {
		if found, has := got[name]; !has {
			out = append(out, fmt.Sprintf("lacks %q", name))
		} else if found != content {
			out = append(out, fmt.Sprintf("%q is %.20q of %d bytes, and not %.20q of %d", name, found, len(found), content, len(content)))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

// has checks what files the home of a sandbox has.
func (h *homesTest) has(id string, want map[string]string) {
	h.t.Helper()
	b, _ := h.read(id)
	if d := filesDiffer(want, filesIn(h.t, b, suitePrefix)); d != "" {
		h.t.Errorf("the home: %s", d)
	}
}

// same checks that the home of a sandbox is as it was, to the last bit.
func (h *homesTest) same(id string, before []byte) {
	h.t.Helper()
	if now, _ := h.read(id); !bytes.Equal(before, now) {
		h.t.Errorf("the home is another one: %s", filesDiffer(filesIn(h.t, before, suitePrefix), filesIn(h.t, now, suitePrefix)))
	}
}

func (h *homesTest) settle(id string) {
	h.t.Helper()
	home := h.home(id)
	if finished, err := home.Settle(h.ctx); err != nil || finished { // the suite cuts nothing off when all of the new home is there
		h.t.Fatalf("settle: %v, finished %t", err, finished)
	}
	if err := home.Close(); err != nil {
		h.t.Errorf("close: %v", err)
	}
}

// oldFiles and newFiles have names in common, and a file of several megabytes.
func oldFiles() map[string]string {
	return map[string]string{"both": "old", "old": "1", "a/b/c": "deep", "large": strings.Repeat("old ", 1<<20)}
}

func newFiles() map[string]string {
	return map[string]string{"both": "new", "new": "", "a/b": "a file now", "large": strings.Repeat("new ", 1<<20)}
}

func homeReplaced(t *testing.T, h *homesTest) {
	b := h.made(Patient)
	h.has(b.ID, map[string]string{})
	for _, files := range []map[string]string{oldFiles(), newFiles(), {}, {".hidden": "x", "name with\nlines": "y"}} {
		wrote := h.put(b.ID, files)
		h.has(b.ID, files)
		one, read := h.read(b.ID)
		two, _ := h.read(b.ID)
		if !bytes.Equal(one, two) {
			t.Error("two archives of one home differ")
		}
		total := int64(0)
		for _, content := range files {
			total += int64(len(content))
		}
		if read.Files != int64(len(files)) || read.Bytes != total || cmp.Diff(read, wrote) != "" || read.Lost != nil {
			t.Errorf("read %+v, wrote %+v", read, wrote)
		}
	}
}

func homeIsAPart(t *testing.T, h *homesTest) {
	b := h.made(Patient)
	h.put(b.ID, oldFiles())
	part, _ := h.read(b.ID)
	more := tarOf(t, "", map[string]string{"beside": "x"})
	whole := append(slices.Clone(part), more...)
	if d := filesDiffer(map[string]string{"beside": "x"}, without(filesIn(t, whole, ""), suitePrefix)); d != "" {
		t.Error(d)
	}
	other := h.made(Patient)
	home := h.home(other.ID)
	if _, err := home.Replace(h.ctx, bytes.NewReader(whole), sandbox.Content{Prefix: suitePrefix}, ignore); err != nil {
		t.Fatal(err)
	}
	if again, _ := h.read(other.ID); !bytes.Equal(part, again) {
		t.Error("the home of an archive makes another archive")
	}
}

func without(files map[string]string, prefix string) map[string]string {
	maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasPrefix(name, prefix) })
	return files
}

func homePrefix(_ *testing.T, h *homesTest) {
	b := h.made(Patient)
	h.put(b.ID, oldFiles())
	home := h.home(b.ID)
	archive := tarOf(h.t, "", map[string]string{"in/yes": "1", "in/sub/yes": "2", "inside/no": "3", "no": "4"})
	if _, err := home.Replace(h.ctx, bytes.NewReader(archive), sandbox.Content{Prefix: "in/"}, ignore); err != nil {
		h.t.Fatal(err)
	}
	h.has(b.ID, map[string]string{"yes": "1", "sub/yes": "2"})
}

func homeBadArchive(t *testing.T, h *homesTest) {
	b := h.made(Patient)
	h.put(b.ID, oldFiles())
	before, _ := h.read(b.ID)
	good := tarOf(t, "in/", newFiles())
	for name, bad := range map[string][]byte{
		"cut off":        good[:len(good)/2],
		"not an archive": bytes.Repeat([]byte("x"), 2000),
		"spoilt":         append(slices.Clone(good[:len(good)-1024]), bytes.Repeat([]byte("x"), 1024)...),
		"leads out":      tarOf(t, "in/", map[string]string{"../out": "x"}),
	} {
		home := h.home(b.ID)
		_, err := home.Replace(h.ctx, bytes.NewReader(bad), sandbox.Content{Prefix: "in/"}, ignore)
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v, want Invalid", name, err)
		}
		if err := home.Close(); err != nil {
			t.Error(err)
		}
		h.same(b.ID, before)
	}
}

func homeBadSource(t *testing.T, h *homesTest) {
	b := h.made(Patient)
	h.put(b.ID, oldFiles())
	before, _ := h.read(b.ID)
	good := tarOf(t, "in/", newFiles())
	spoilt := errors.New("the source is spoilt")
	for _, c := range []struct {
		upTo int
		err  error
	}{
		{0, spoilt}, {1000, spoilt}, {len(good) / 2, spoilt}, {len(good), spoilt},
		{len(good) / 2, io.ErrUnexpectedEOF}, {len(good) - 1024, io.ErrUnexpectedEOF}, {len(good), io.ErrUnexpectedEOF}, // of what unpacks
	} {
		home := h.home(b.ID)
		_, err := home.Replace(h.ctx, io.MultiReader(bytes.NewReader(good[:c.upTo]), failing{c.err}), sandbox.Content{Prefix: "in/"}, ignore)
		if err != c.err {
			t.Errorf("after %d bytes: got %v, want %v", c.upTo, err, c.err)
		}
		if err := home.Close(); err != nil {
			t.Error(err)
		}
		h.same(b.ID, before)
	}
}

// failing is a reader and a writer.
type failing struct{ error }

// Read implements io.Reader.
func (f failing) Read([]byte) (int, error) { return 0, f.error }

// Write implements io.Writer.
func (f failing) Write([]byte) (int, error) { return 0, f.error }

func homeBadWriter(t *testing.T, h *homesTest) {
	b := h.made(Patient)
	h.put(b.ID, oldFiles())
	full := errors.New("the disk is full")
	if _, err := h.home(b.ID).Read(h.ctx, failing{full}, suitePrefix, ignore); err != full {
		t.Errorf("got %v, want %v", err, full)
	}
	h.has(b.ID, oldFiles())
}

func homesAtOnce(t *testing.T, h *homesTest) {
	var boxes sync.WaitGroup
	for i := range 4 {
		b := h.made(Patient)
		boxes.Go(func() {
			files := map[string]string{"mine": fmt.Sprint(i), "large": strings.Repeat(fmt.Sprint(i), 1<<20)}
			home, err := h.s.Homes.OpenHome(h.ctx, b.ID, "")
			if err != nil {
				t.Error(err)
				return
			}
			defer home.Close()
			if _, err := home.Replace(h.ctx, bytes.NewReader(tarOf(t, "in/", files)), sandbox.Content{Prefix: "in/"}, ignore); err != nil {
				t.Error(err)
			}
			again, err := h.s.Homes.OpenHome(h.ctx, b.ID, "")
			if err != nil {
				t.Error(err)
				return
			}
			defer again.Close()
			var out bytes.Buffer
			if _, err := again.Read(h.ctx, &out, "", ignore); err != nil {
				t.Error(err)
			}
			if d := filesDiffer(files, filesIn(t, out.Bytes(), "")); d != "" {
				t.Error(d)
			}
		})
	}
	boxes.Wait()
}

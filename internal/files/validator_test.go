package files

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/wire"
)

func aFile(name string) *tar.Header { return &tar.Header{Typeflag: tar.TypeReg, Name: name} }
func aLink(name, to string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
}
func aHard(name, to string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: to}
}

func TestEntryValidator_RefusesWhatReachesOutside(t *testing.T) {
	long := strings.Repeat("x", 256)
	for name, c := range map[string]struct {
		entries []*tar.Header // the last is refused
		why     error
	}{
		"absolute":                      {[]*tar.Header{aFile("/etc/passwd")}, wire.ErrEntryAbsolute},
		"absolute, twice":               {[]*tar.Header{aFile("//etc/passwd")}, wire.ErrEntryAbsolute},
		"up":                            {[]*tar.Header{aFile("../x")}, wire.ErrEntryUp},
		"up, deep":                      {[]*tar.Header{aFile("a/b/../../../x")}, wire.ErrEntryUp},
		"up and down":                   {[]*tar.Header{aFile("a/../b")}, wire.ErrEntryUp},
		"up at the end":                 {[]*tar.Header{aFile("a/..")}, wire.ErrEntryUp},
		"up, with dots between":         {[]*tar.Header{aFile("./../x")}, wire.ErrEntryUp},
		"up as a folder":                {[]*tar.Header{{Typeflag: tar.TypeDir, Name: "../"}}, wire.ErrEntryUp},
		"no name":                       {[]*tar.Header{aFile("")}, wire.ErrEntryName},
		"a NUL":                         {[]*tar.Header{aFile("a\x00b")}, wire.ErrEntryName},
		"a long name":                   {[]*tar.Header{aFile("a/" + long)}, wire.ErrEntryName},
		"a long path":                   {[]*tar.Header{aFile(strings.Repeat("a/", 2049))}, wire.ErrEntryName},
		"a file in place of the folder": {[]*tar.Header{aFile("./")}, wire.ErrEntryName},
		"below a link":                  {[]*tar.Header{aLink("a", "/etc"), aFile("a/passwd")}, errBelow},
		"far below a link":              {[]*tar.Header{aLink("a/b", "/"), aFile("a/b/c/d/e")}, errBelow},
		"below a link, other spelling":  {[]*tar.Header{aLink("./a/", "/"), aFile("a//b")}, errBelow},
		"a folder below a link":         {[]*tar.Header{aLink("a", "/"), {Typeflag: tar.TypeDir, Name: "a/b"}}, errBelow},
		"a link below a link":           {[]*tar.Header{aLink("a", "."), aLink("a/b", "..")}, errBelow},
		"below a hard link to a link":   {[]*tar.Header{aLink("a", "/"), aHard("b", "a"), aFile("b/x")}, errBelow},
		"hard link up":                  {[]*tar.Header{aHard("a", "../b")}, wire.ErrEntryLinkUp},
		"hard link, absolute":           {[]*tar.Header{aHard("a", "/etc/shadow")}, wire.ErrEntryLinkUp},
		"hard link through a link":      {[]*tar.Header{aLink("a", "/etc"), aHard("b", "a/shadow")}, wire.ErrEntryLinkUp},
		"hard link to the folder":       {[]*tar.Header{aHard("b", ".")}, wire.ErrEntryLinkUp},
		"hard link to itself":           {[]*tar.Header{aHard("b", "./b")}, wire.ErrEntryLinkUp},
		"link to nothing":               {[]*tar.Header{aLink("a", "")}, wire.ErrEntryTarget},
		"link to a NUL":                 {[]*tar.Header{aLink("a", "b\x00")}, wire.ErrEntryTarget},
		"link in place of the folder":   {[]*tar.Header{aLink(".", "/etc")}, wire.ErrEntryTarget},
		"device":                        {[]*tar.Header{{Typeflag: tar.TypeChar, Name: "null"}}, errKind},
		"block device":                  {[]*tar.Header{{Typeflag: tar.TypeBlock, Name: "sda"}}, errKind},
		"pipe":                          {[]*tar.Header{{Typeflag: tar.TypeFifo, Name: "pipe"}}, errKind},
		"something else":                {[]*tar.Header{{Typeflag: 'V', Name: "label"}}, errKind},
		"negative size":                 {[]*tar.Header{{Typeflag: tar.TypeReg, Name: "a", Size: -1}}, errSize},
		"no such size":                  {[]*tar.Header{{Typeflag: tar.TypeReg, Name: "a", Size: 1 << 60}}, errSize},
	} {
		v := newEntryValidator(true)
		for i, h := range c.entries {
			err := v.admit(h)
			if last := i == len(c.entries)-1; last && !errors.Is(err, c.why) || !last && err != nil {
				t.Errorf("%s: entry %d: %v", name, i, err)
			}
		}
	}
}

func TestEntryValidator_LetsPassWhatIsInsideAndCleansIt(t *testing.T) {
	v := newEntryValidator(true)
	for _, h := range []*tar.Header{
		aFile("a"), aFile("./b/c"), aFile("b//d"), aFile("...x"), aFile("..x"), aFile(`a\b`), aFile("with\nnewline"), aFile("\xff"),
		aLink("l", "/anywhere"), aLink("l2", "../../up"), aHard("h", "b/c"), aFile("l"), aFile("l/below a file that took its place"),
		{Typeflag: tar.TypeDir, Name: "./"}, {Typeflag: tar.TypeDir, Name: "dir/", Mode: 0o7755},
	} {
		if err := v.admit(h); err != nil {
			t.Errorf("%q: %v", h.Name, err)
		}
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: "./x//y", Mode: 0o6777, ModTime: time.Unix(-1<<40, 0)}
	if err := v.admit(h); err != nil || h.Name != "x/y" || h.Mode != 0o777 || !h.ModTime.Equal(firstTime) {
		t.Errorf("got %+v, %v", h, err)
	}
}

func TestEntryValidator_LinksThatLeadOutAreRefusedWhenAsked(t *testing.T) {
	for _, c := range []struct {
		name, to string
		ok       bool
	}{
		{"a", "b", true}, {"a", "./b/c", true}, {"x/a", "../b", true}, {"x/y/a", "../../b", true}, {"x/a", "..", true}, {"a", ".", true},
		{"a", "..", false}, {"a", "../b", false}, {"x/a", "../../b", false}, {"a", "/b", false}, {"x/a", "b/../../..", false},
		{"x/y/a", "b/../c", false}, {"x/a", "./../..", false}, {"x/a", "//b", false}, {"x/a", "..//../b", false},
	} {
		err := newEntryValidator(false).admit(aLink(c.name, c.to))
		if (err == nil) != c.ok {
			t.Errorf("%s → %s: %v", c.name, c.to, err)
		}
	}
}

func TestEntryValidator_BoundsEntriesAndLinks(t *testing.T) {
	v := newEntryValidator(true)
	for range maxEntries {
		if err := v.admit(aFile("a")); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.admit(aFile("a")); !errors.Is(err, errMany) {
		t.Errorf("one entry more: %v", err)
	}
	if len(v.links) != 0 {
		t.Errorf("%d names are remembered of files", len(v.links))
	}
	v = newEntryValidator(true)
	h := tar.Header{Typeflag: tar.TypeSymlink, Linkname: "x"}
	for i := range maxLinks {
		h.Name = strconv.Itoa(i)
		if err := v.admit(&h); err != nil {
			t.Fatalf("link %d: %v", i, err)
		}
	}
	if err := v.admit(aLink("one more", "x")); !errors.Is(err, errMany) {
		t.Errorf("one link more: %v", err)
	}
}

// FuzzEntryValidator holds what passes against what a careless extractor would do with it: follow no link, and never leave.
func FuzzEntryValidator(f *testing.F) {
	f.Add("a/b", "c", "a", "../x", byte('2'), byte('0'))
	f.Add("a", "/etc", "a/passwd", "", byte('2'), byte('0'))
	f.Add("a", "b", "c", "a", byte('2'), byte('1'))
	f.Add("./a//b/", "..", "a/b/c", "x", byte('2'), byte('5'))
	f.Fuzz(func(t *testing.T, name1, to1, name2, to2 string, kind1, kind2 byte) {
		v := newEntryValidator(true)
		links := map[string]bool{}
		for _, h := range []*tar.Header{
			{Typeflag: kind1, Name: name1, Linkname: to1}, {Typeflag: kind2, Name: name2, Linkname: to2},
		} {
			if v.admit(h) != nil {
				continue
			}
			at := ""
			for _, part := range strings.Split(h.Name, "/") {
				if part == ".." || part == "." || strings.ContainsRune(part, 0) || part == "" && h.Name != "" || links[at] && at != "" {
					t.Fatalf("%q passed", h.Name)
				}
				at = strings.TrimPrefix(at+"/"+part, "/")
			}
			links[h.Name] = h.Typeflag == tar.TypeSymlink || h.Typeflag == tar.TypeLink && links[h.Linkname]
			if h.Typeflag == tar.TypeLink && (strings.HasPrefix(h.Linkname, "/") || strings.Contains("/"+h.Linkname+"/", "/../")) {
				t.Fatalf("a hard link to %q passed", h.Linkname)
			}
		}
	})
}

func TestEntryValidator_OnTheWayOutNothingTakesALinksPlace(t *testing.T) {
	for name, entries := range map[string][]*tar.Header{
		"a file":               {aLink("a", "/etc"), aFile("a")},
		"a folder":             {aLink("a", "/etc"), {Typeflag: tar.TypeDir, Name: "a/"}},
		"another link":         {aLink("a", "b"), aLink("./a", "/etc")},
		"a hard link":          {aFile("f"), aLink("a", "/etc"), aHard("a", "f")},
		"after a link to it":   {aLink("a", "/etc"), aHard("b", "a"), aFile("b")},
		"renamed, a file":      {aLink("a_b", "/etc"), aFile(`a\b`)},
		"renamed, a link":      {aLink(`a\b`, "/etc"), {Typeflag: tar.TypeDir, Name: "a_b"}},
		"renamed, with a disk": {aLink("./C:", "/etc"), aFile("C_")},
	} {
		v := newPackValidator(Zip)
		for i, h := range entries {
			err := v.admit(h)
			if last := i == len(entries)-1; last && !errors.Is(err, errWasLink) || !last && err != nil {
				t.Errorf("%s: entry %d: %v", name, i, err)
			}
		}
	}
}

func TestEntryValidator_ZIPNamesAreJudgedAsTheyWillBe(t *testing.T) {
	for name, c := range map[string]struct {
		entries []*tar.Header // the last is refused
		why     error
	}{
		"below a link":             {[]*tar.Header{aLink(`a\b`, "/etc"), aFile("a_b/passwd")}, errBelow},
		"below, the other way":     {[]*tar.Header{aLink("a_b", "/etc"), aFile(`a\b/passwd`)}, errBelow},
		"below a disk":             {[]*tar.Header{aLink("C_", "/etc"), aFile("./C:/passwd")}, errBelow},
		"hard link through a link": {[]*tar.Header{aLink("a_b", "/etc"), aHard("x", `a\b/shadow`)}, wire.ErrEntryLinkUp},
		"hard link to itself":      {[]*tar.Header{aHard("a_b", `a\b`)}, wire.ErrEntryLinkUp},
	} {
		v := newPackValidator(Zip)
		for i, h := range c.entries {
			err := v.admit(h)
			if last := i == len(c.entries)-1; last && !errors.Is(err, c.why) || !last && err != nil {
				t.Errorf("%s: entry %d: %v", name, i, err)
			}
		}
	}
	h := aHard(`x\y`, `./C:\z`)
	if err := newPackValidator(Zip).admit(h); err != nil || h.Name != "x_y" || h.Linkname != `C__z` {
		t.Errorf("got %+v, %v", h, err)
	}
	h = aFile(`x\y`)
	if err := newPackValidator(Tar).admit(h); err != nil || h.Name != `x\y` {
		t.Errorf("in a tar: %+v, %v", h, err)
	}
}

func TestArchive_APackedLinkIsNotReplacedByAnEntryOfItsName(t *testing.T) {
	for _, f := range Formats {
		b := tarOf(t, aLink("a", "/etc"), &tar.Header{Typeflag: tar.TypeDir, Name: "a/"}, aFile("a/passwd"))
		if err := sent(bytes.NewReader(b), f).Copy(io.Discard); !errors.Is(err, errWasLink) {
			t.Errorf("%s: %v", f, err)
		}
	}
}

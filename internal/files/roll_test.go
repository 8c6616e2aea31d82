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
)

func aFile(name string) *tar.Header { return &tar.Header{Typeflag: tar.TypeReg, Name: name} }
func aLink(name, to string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
}
func aHard(name, to string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: to}
}

func TestRoll_RefusesWhatReachesOutside(t *testing.T) {
	long := strings.Repeat("x", 256)
	for name, c := range map[string]struct {
		entries []*tar.Header // the last is refused
		why     error
	}{
		"absolute":                      {[]*tar.Header{aFile("/etc/passwd")}, errAbsolute},
		"absolute, twice":               {[]*tar.Header{aFile("//etc/passwd")}, errAbsolute},
		"up":                            {[]*tar.Header{aFile("../x")}, errUp},
		"up, deep":                      {[]*tar.Header{aFile("a/b/../../../x")}, errUp},
		"up and down":                   {[]*tar.Header{aFile("a/../b")}, errUp},
		"up at the end":                 {[]*tar.Header{aFile("a/..")}, errUp},
		"up, with dots between":         {[]*tar.Header{aFile("./../x")}, errUp},
		"up as a folder":                {[]*tar.Header{{Typeflag: tar.TypeDir, Name: "../"}}, errUp},
		"no name":                       {[]*tar.Header{aFile("")}, errNoName},
		"a NUL":                         {[]*tar.Header{aFile("a\x00b")}, errNoName},
		"a long name":                   {[]*tar.Header{aFile("a/" + long)}, errNoName},
		"a long path":                   {[]*tar.Header{aFile(strings.Repeat("a/", 2049))}, errNoName},
		"a file in place of the folder": {[]*tar.Header{aFile("./")}, errNoName},
		"below a link":                  {[]*tar.Header{aLink("a", "/etc"), aFile("a/passwd")}, errBelow},
		"far below a link":              {[]*tar.Header{aLink("a/b", "/"), aFile("a/b/c/d/e")}, errBelow},
		"below a link, other spelling":  {[]*tar.Header{aLink("./a/", "/"), aFile("a//b")}, errBelow},
		"a folder below a link":         {[]*tar.Header{aLink("a", "/"), {Typeflag: tar.TypeDir, Name: "a/b"}}, errBelow},
		"a link below a link":           {[]*tar.Header{aLink("a", "."), aLink("a/b", "..")}, errBelow},
		"below a hard link to a link":   {[]*tar.Header{aLink("a", "/"), aHard("b", "a"), aFile("b/x")}, errBelow},
		"hard link up":                  {[]*tar.Header{aHard("a", "../b")}, errLinkUp},
		"hard link, absolute":           {[]*tar.Header{aHard("a", "/etc/shadow")}, errLinkUp},
		"hard link through a link":      {[]*tar.Header{aLink("a", "/etc"), aHard("b", "a/shadow")}, errLinkUp},
		"hard link to the folder":       {[]*tar.Header{aHard("b", ".")}, errLinkUp},
		"hard link to itself":           {[]*tar.Header{aHard("b", "./b")}, errLinkUp},
		"link to nothing":               {[]*tar.Header{aLink("a", "")}, errNoTarget},
		"link to a NUL":                 {[]*tar.Header{aLink("a", "b\x00")}, errNoTarget},
		"link in place of the folder":   {[]*tar.Header{aLink(".", "/etc")}, errNoTarget},
		"device":                        {[]*tar.Header{{Typeflag: tar.TypeChar, Name: "null"}}, errKind},
		"block device":                  {[]*tar.Header{{Typeflag: tar.TypeBlock, Name: "sda"}}, errKind},
		"pipe":                          {[]*tar.Header{{Typeflag: tar.TypeFifo, Name: "pipe"}}, errKind},
		"something else":                {[]*tar.Header{{Typeflag: 'V', Name: "label"}}, errKind},
		"negative size":                 {[]*tar.Header{{Typeflag: tar.TypeReg, Name: "a", Size: -1}}, errSize},
		"no such size":                  {[]*tar.Header{{Typeflag: tar.TypeReg, Name: "a", Size: 1 << 60}}, errSize},
	} {
		r := newRoll(nil)
		for i, h := range c.entries {
			err := r.admit(h)
			if last := i == len(c.entries)-1; last && !errors.Is(err, c.why) || !last && err != nil {
				t.Errorf("%s: entry %d: %v", name, i, err)
			}
		}
	}
}

func TestRoll_LetsPassWhatIsInsideAndCleansIt(t *testing.T) {
	r := newRoll(nil)
	for _, h := range []*tar.Header{
		aFile("a"), aFile("./b/c"), aFile("b//d"), aFile("...x"), aFile("..x"), aFile(`a\b`), aFile("with\nnewline"), aFile("\xff"),
		aLink("l", "/anywhere"), aLink("l2", "../../up"), aHard("h", "b/c"), aFile("l"), aFile("l/below a file that took its place"),
		{Typeflag: tar.TypeDir, Name: "./"}, {Typeflag: tar.TypeDir, Name: "dir/", Mode: 0o7755},
	} {
		if err := r.admit(h); err != nil {
			t.Errorf("%q: %v", h.Name, err)
		}
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: "./x//y", Mode: 0o6777, ModTime: time.Unix(-1<<40, 0)}
	if err := r.admit(h); err != nil || h.Name != "x/y" || h.Mode != 0o777 || !h.ModTime.Equal(firstTime) {
		t.Errorf("got %+v, %v", h, err)
	}
}

func TestRoll_LinksThatLeadOutAreRefusedWhenAsked(t *testing.T) {
	for _, c := range []struct {
		name, to string
		ok       bool
	}{
		{"a", "b", true}, {"a", "./b/c", true}, {"x/a", "../b", true}, {"x/y/a", "../../b", true}, {"x/a", "..", true}, {"a", ".", true},
		{"a", "..", false}, {"a", "../b", false}, {"x/a", "../../b", false}, {"a", "/b", false}, {"x/a", "b/../../..", false},
		{"x/y/a", "b/../c", false}, {"x/a", "./../..", false}, {"x/a", "//b", false}, {"x/a", "..//../b", false},
	} {
		err := newRoll(leadsInside).admit(aLink(c.name, c.to))
		if (err == nil) != c.ok {
			t.Errorf("%s → %s: %v", c.name, c.to, err)
		}
	}
}

func TestRoll_BoundsEntriesAndLinks(t *testing.T) {
	r := newRoll(nil)
	for range maxEntries {
		if err := r.admit(aFile("a")); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.admit(aFile("a")); !errors.Is(err, errMany) {
		t.Errorf("one entry more: %v", err)
	}
	if len(r.links) != 0 {
		t.Errorf("%d names are remembered of files", len(r.links))
	}
	r = newRoll(nil)
	h := tar.Header{Typeflag: tar.TypeSymlink, Linkname: "x"}
	for i := range maxLinks {
		h.Name = strconv.Itoa(i)
		if err := r.admit(&h); err != nil {
			t.Fatalf("link %d: %v", i, err)
		}
	}
	if err := r.admit(aLink("one more", "x")); !errors.Is(err, errMany) {
		t.Errorf("one link more: %v", err)
	}
}

// FuzzRoll holds what passes against what a careless extractor would do with it: follow no link, and never leave.
func FuzzRoll(f *testing.F) {
	f.Add("a/b", "c", "a", "../x", byte('2'), byte('0'))
	f.Add("a", "/etc", "a/passwd", "", byte('2'), byte('0'))
	f.Add("a", "b", "c", "a", byte('2'), byte('1'))
	f.Add("./a//b/", "..", "a/b/c", "x", byte('2'), byte('5'))
	f.Fuzz(func(t *testing.T, name1, to1, name2, to2 string, kind1, kind2 byte) {
		r := newRoll(nil)
		links := map[string]bool{}
		for _, h := range []*tar.Header{
			{Typeflag: kind1, Name: name1, Linkname: to1}, {Typeflag: kind2, Name: name2, Linkname: to2},
		} {
			if r.admit(h) != nil {
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

func TestRoll_OnTheWayOutNothingTakesALinksPlace(t *testing.T) {
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
		r := newRollOut(Zip)
		for i, h := range entries {
			err := r.admit(h)
			if last := i == len(entries)-1; last && !errors.Is(err, errWasLink) || !last && err != nil {
				t.Errorf("%s: entry %d: %v", name, i, err)
			}
		}
	}
}

func TestRoll_ZIPNamesAreJudgedAsTheyWillBe(t *testing.T) {
	for name, c := range map[string]struct {
		entries []*tar.Header // the last is refused
		why     error
	}{
		"below a link":             {[]*tar.Header{aLink(`a\b`, "/etc"), aFile("a_b/passwd")}, errBelow},
		"below, the other way":     {[]*tar.Header{aLink("a_b", "/etc"), aFile(`a\b/passwd`)}, errBelow},
		"below a disk":             {[]*tar.Header{aLink("C_", "/etc"), aFile("./C:/passwd")}, errBelow},
		"hard link through a link": {[]*tar.Header{aLink("a_b", "/etc"), aHard("x", `a\b/shadow`)}, errLinkUp},
		"hard link to itself":      {[]*tar.Header{aHard("a_b", `a\b`)}, errLinkUp},
	} {
		r := newRollOut(Zip)
		for i, h := range c.entries {
			err := r.admit(h)
			if last := i == len(c.entries)-1; last && !errors.Is(err, c.why) || !last && err != nil {
				t.Errorf("%s: entry %d: %v", name, i, err)
			}
		}
	}
	h := aHard(`x\y`, `./C:\z`)
	if err := newRollOut(Zip).admit(h); err != nil || h.Name != "x_y" || h.Linkname != `C__z` {
		t.Errorf("got %+v, %v", h, err)
	}
	h = aFile(`x\y`)
	if err := newRollOut(Tar).admit(h); err != nil || h.Name != `x\y` {
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

package link

import (
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

func TestFileListAndTrash_AGuestThatSaysTooMuchIsRefused(t *testing.T) {
	long := strings.Repeat("/"+strings.Repeat("p", 199), 20)
	link := entryRecord(func(e *wire.Entry) { e.Type, e.Target = wire.TypeLink, strings.Repeat("\xff", 4000) })
	plain := entryRecord(func(*wire.Entry) {})
	thing := wire.AppendRecord(nil, wire.RecordTrashed, wire.AppendTrashed(nil, &wire.Trashed{ID: "a", Path: long, Type: wire.TypeFile}))
	listed := func(p string) []byte {
		return wire.AppendRecord(nil, wire.RecordEnd, wire.AppendListed(nil, &wire.Listing{Path: p}))
	}
	for name, c := range map[string]struct {
		call, one string
		many      int
		end       []byte
		ok        bool
	}{
		"targets":           {"list", string(link), 3000, listed("/a"), false},
		"a page of targets": {"list", string(link), 1000, listed("/a"), true},
		"paths":             {"list", string(plain), 3000, listed(long), false},
		"a page of paths":   {"list", string(plain), 1000, listed(long), true},
		"many entries":      {"list", string(plain), 10_000, listed("/a"), true},
		"the trash":         {"trash", string(thing), 3000, endRecord(), false},
		"a page of trash":   {"trash", string(thing), 1000, endRecord(), true},
	} {
		_, s := liarSession(t, func(w http.ResponseWriter, r *http.Request) {
			w.Write([]byte(strings.Repeat(c.one, c.many)))
			w.Write(c.end)
		})
		if err := fileCalls[c.call](within(t), s); (err == nil) != c.ok || !c.ok && fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
}

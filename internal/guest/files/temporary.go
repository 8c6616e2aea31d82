package files

import (
	"crypto/rand"
	"encoding/hex"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"sandboxd/internal/wire"
)

// An incomplete entry has a temporary name: its later name, and a part between temporaryMark and temporaryEnd that says that
// it is ours.
const (
	temporaryMark = ".sandboxd-"
	temporaryEnd  = "~"
	uploadMark    = temporaryMark + "upload-"
	randomBytes   = 8
)

// How old something must be for a sweep. A single write that is not under way here is one of a guest that was killed.
const (
	uploadAge = 24 * time.Hour
	writeAge  = time.Hour
)

// temporaryName is a fresh name for what will be name.
func temporaryName(name string) string {
	var b [randomBytes]byte
	rand.Read(b[:])
	return around(name, temporaryMark+hex.EncodeToString(b[:]))
}

// uploadName is the name of a partial upload's file. Names that are cut short differ by their sums.
func uploadName(name, id string) string {
	h := fnv.New64a()
	h.Write([]byte(name))
	return around(name, uploadMark+strconv.FormatUint(h.Sum64(), 36)+"-"+id)
}

func around(name, mark string) string {
	room := wire.MaxFileName - len(mark) - len(temporaryEnd) - 1
	return "." + name[:min(len(name), room)] + mark + temporaryEnd
}

// isTemporary says whether a name is one of ours.
func isTemporary(name string) bool {
	if len(name) < 2 || name[0] != '.' || !strings.HasSuffix(name, temporaryEnd) {
		return false
	}
	_, mark, found := lastCut(name, temporaryMark)
	if !found {
		return false
	}
	mark = strings.TrimSuffix(mark, temporaryEnd)
	if id, ok := strings.CutPrefix(mark, "upload-"); ok {
		_, id, ok = strings.Cut(id, "-")
		return ok && wire.CheckUpload(id) == nil
	}
	b, err := hex.DecodeString(mark)
	return err == nil && len(b) == randomBytes
}

func lastCut(s, mark string) (before, after string, found bool) {
	i := strings.LastIndex(s, mark)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(mark):], true
}

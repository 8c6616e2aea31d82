package files

import (
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// namesAge is how long names are believed without a look at the files that have them.
const namesAge = 2 * time.Second

// names gives the names of user and group ids. Safe for concurrent use.
type names struct {
	passwd, group string // paths

	mu     sync.Mutex
	looked time.Time
	stamp  [2]stamp
	users  map[uint32]string
	groups map[uint32]string
}

type stamp struct {
	size  int64
	mtime time.Time
}

func newNames(passwd, group string) *names { return &names{passwd: passwd, group: group} }

// both gives the names of users and of groups. The maps are never changed.
func (n *names) both() (users, groups map[uint32]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.users != nil && time.Since(n.looked) < namesAge {
		return n.users, n.groups
	}
	n.looked = time.Now()
	now := [2]stamp{stampOf(n.passwd), stampOf(n.group)}
	if n.users == nil || now != n.stamp {
		n.users, n.groups, n.stamp = readNames(n.passwd), readNames(n.group), now
	}
	return n.users, n.groups
}

func stampOf(path string) stamp {
	st, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{st.Size(), st.ModTime()}
}

// readNames reads passwd(5) or group(5), which both have the name first and its number third. A program in the sandbox may
// have made it huge, or something else than a file.
func readNames(path string) map[uint32]string {
	list := map[uint32]string{}
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return list
	}
	f, err := os.Open(path)
	if err != nil {
		return list
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, 1<<20))
	for line := range strings.Lines(string(b)) {
		field := strings.SplitN(line, ":", 4)
		if len(field) < 4 || field[0] == "" || len(field[0]) > 64 || strings.IndexByte(field[0], 0) >= 0 {
			continue
		}
		id, err := strconv.ParseUint(field[2], 10, 32)
		if _, known := list[uint32(id)]; err == nil && !known {
			list[uint32(id)] = strings.Clone(field[0])
		}
	}
	return list
}

// nameOf is who a number is, or the number.
func nameOf(list map[uint32]string, id uint32) string {
	if name, ok := list[id]; ok {
		return name
	}
	return strconv.FormatUint(uint64(id), 10)
}

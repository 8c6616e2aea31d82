package guest

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"sandboxd/internal/wire"
)

// agentUser is who everything runs as in our own templates.
const agentUser = "agent"

// account is a user of the image.
type account struct {
	name   string
	uid    uint32
	gid    uint32
	groups []uint32 // supplementary
	home   string
	shell  string // absolute and runnable, or "" when the image has none
}

// accounts knows the image's users. It rereads a file when it has changed. Safe for concurrent use.
type accounts struct {
	passwd, group string // paths

	mu    sync.Mutex
	stamp [2]fileStamp
	users []account
}

type fileStamp struct {
	size  int64
	mtime int64
}

func newAccounts(passwd, group string) *accounts { return &accounts{passwd: passwd, group: group} }

// find gives the user called spec: a name, a uid, uid:gid, or "" for the default: agent where there is one, else who
// we are ourselves. An image without /etc/passwd still has root and every uid.
func (a *accounts) find(spec string) (account, error) {
	users := a.read()
	if spec == "" {
		if u, ok := byName(users, agentUser); ok {
			return u, nil
		}
		spec = strconv.Itoa(os.Getuid()) + ":" + strconv.Itoa(os.Getgid())
	}
	if u, ok := byName(users, spec); ok {
		return u, nil
	}
	if spec == "root" {
		spec = "0:0"
	}
	return byID(users, spec)
}

func byName(users []account, name string) (account, bool) {
	for _, u := range users {
		if u.name == name {
			return u, true
		}
	}
	return account{}, false
}

func byID(users []account, spec string) (account, error) {
	uidText, gidText, hasGID := strings.Cut(spec, ":")
	uid, err := strconv.ParseUint(uidText, 10, 31)
	if err != nil {
		return account{}, problem(wire.CodeNotFound, fmt.Sprintf("There is no user %q in the sandbox.", spec))
	}
	u := account{name: uidText, uid: uint32(uid), home: "/"}
	if uid == 0 {
		u.name, u.home = "root", "/root"
	}
	for _, known := range users {
		if known.uid == u.uid {
			u = known
			break
		}
	}
	if hasGID {
		gid, err := strconv.ParseUint(gidText, 10, 31)
		if err != nil {
			return account{}, problem(wire.CodeNotFound, fmt.Sprintf("There is no group %q in the sandbox.", gidText))
		}
		u.gid = uint32(gid)
	}
	if u.shell == "" {
		u.shell = anyShell()
	}
	return u, nil
}

func (a *accounts) read() []account {
	stamp := [2]fileStamp{stampOf(a.passwd), stampOf(a.group)}
	a.mu.Lock()
	defer a.mu.Unlock()
	if stamp != a.stamp || a.users == nil {
		a.users, a.stamp = parseAccounts(slurp(a.passwd), slurp(a.group)), stamp
	}
	return a.users
}

func stampOf(path string) fileStamp {
	st, err := os.Stat(path)
	if err != nil {
		return fileStamp{}
	}
	return fileStamp{st.Size(), st.ModTime().UnixNano()}
}

// slurp reads a file that a program in the sandbox may have made huge.
func slurp(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, 1<<20))
	return string(b)
}

// parseAccounts reads passwd(5) and group(5), skipping lines that it does not understand. It never gives nil.
func parseAccounts(passwd, group string) []account {
	users := []account{}
	for line := range strings.Lines(passwd) {
		f := strings.Split(strings.TrimRight(line, "\r\n"), ":")
		if len(f) < 7 || f[0] == "" {
			continue
		}
		uid, err1 := strconv.ParseUint(f[2], 10, 31)
		gid, err2 := strconv.ParseUint(f[3], 10, 31)
		if err1 != nil || err2 != nil {
			continue
		}
		u := account{name: f[0], uid: uint32(uid), gid: uint32(gid), home: f[5], shell: f[6]}
		if u.home == "" {
			u.home = "/"
		}
		if runnable(u.shell) != nil {
			u.shell = anyShell()
		}
		users = append(users, u)
	}
	addGroups(users, group)
	return users
}

func addGroups(users []account, group string) {
	for line := range strings.Lines(group) {
		f := strings.Split(strings.TrimRight(line, "\r\n"), ":")
		if len(f) < 4 {
			continue
		}
		gid, err := strconv.ParseUint(f[2], 10, 31)
		if err != nil {
			continue
		}
		for _, member := range strings.Split(f[3], ",") {
			for i := range users {
				if users[i].name == member && users[i].gid != uint32(gid) {
					users[i].groups = append(users[i].groups, uint32(gid))
				}
			}
		}
	}
}

// anyShell is the best shell that the image has, or "".
func anyShell() string {
	for _, path := range []string{"/bin/bash", "/bin/sh", "/usr/bin/sh", "/bin/ash"} {
		if runnable(path) == nil {
			return path
		}
	}
	return ""
}

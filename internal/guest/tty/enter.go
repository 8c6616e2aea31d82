package tty

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// The permission to enter a folder, as its group's and its owner's.
const (
	enterOther = 0o001
	enterGroup = 0o010
	enterOwner = 0o100
)

// enters says whether the sandbox's user may make path the working folder, by owners and modes; it knows no access lists.
func (c *Config) enters(path string) bool {
	for {
		info, err := os.Stat(path)
		if err != nil || !info.IsDir() || !c.mayEnter(info) {
			return false
		}
		if path == "/" {
			return true
		}
		path = filepath.Dir(path)
	}
}

func (c *Config) mayEnter(folder os.FileInfo) bool {
	st, ok := folder.Sys().(*syscall.Stat_t)
	who := c.credential()
	switch {
	case !ok || who.Uid == 0:
		return true
	case st.Uid == who.Uid:
		return folder.Mode()&enterOwner != 0
	case st.Gid == who.Gid || slices.Contains(who.Groups, st.Gid):
		return folder.Mode()&enterGroup != 0
	}
	return folder.Mode()&enterOther != 0
}

// credential is the sandbox's user, also when that is the guest's own.
func (c *Config) credential() *syscall.Credential {
	if c.Credential != nil {
		return c.Credential
	}
	own := &syscall.Credential{Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid())}
	groups, _ := os.Getgroups() // without them it is only more careful
	for _, g := range groups {
		own.Groups = append(own.Groups, uint32(g))
	}
	return own
}

package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"sandboxd/internal/guest"
	"sandboxd/internal/guest/tty"
)

// runtimeFolders are where the terminals' sockets may go, best first: a root may be read-only, /run may be missing.
var runtimeFolders = []string{"/run/sandboxd", "/tmp/.sandboxd", "/dev/shm/.sandboxd"}

// openTerminals makes the sandbox's terminal tabs.
func openTerminals(log *slog.Logger) guest.Tabs {
	return func(sh guest.Shell) (guest.Terminals, func(context.Context) error) {
		c := tty.Config{Dir: runtimeFolder(), Shell: sh.Path, Home: sh.Cwd, Env: sh.Env, TTYD: sh.TTYD, Tmux: sh.Tmux}
		if os.Getuid() == 0 {
			c.Credential = &syscall.Credential{Uid: sh.UID, Gid: sh.GID, Groups: sh.Groups}
		}
		tabs := tty.New(c, log)
		return tabs, tabs.Run
	}
}

// runtimeFolder gives the first folder that can be made. Everybody may write to /tmp and /dev/shm, so a folder there
// already may be another user's; a folder that is left from before a restart is removed first.
func runtimeFolder() string {
	for _, folder := range runtimeFolders {
		os.RemoveAll(folder)
		if os.Mkdir(folder, 0o755) == nil {
			return folder
		}
	}
	return filepath.Join(os.TempDir(), "sandboxd") // will fail, and say so when a terminal is opened
}

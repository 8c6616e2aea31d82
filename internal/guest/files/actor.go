package files

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

var errIdentity = errors.New("the identity of the sandbox's user cannot be taken on")

// actor stands for the sandbox's user: its holder is on a thread that has the user's identity, and may make system
// calls about files.
type actor struct {
	tree *Tree
	user User
	ctx  context.Context
}

// act calls f as the sandbox's user, for something that is over soon.
func (t *Tree) act(ctx context.Context, f func(*actor) error) error { return t.actIn(ctx, t.brief, f) }

// actLong calls f as the sandbox's user, for long work that ends with ctx.
func (t *Tree) actLong(ctx context.Context, f func(*actor) error) error {
	return t.actIn(ctx, t.long, f)
}

func (t *Tree) actIn(ctx context.Context, seats chan struct{}, f func(*actor) error) error {
	if err := seat(ctx, seats); err != nil {
		return err
	}
	defer func() { <-seats }()
	a := &actor{tree: t, user: t.cfg.User(), ctx: ctx}
	return a.user.become(func() error { return f(a) })
}

// ownGroups are those of every thread with the guest's own identity. The first call must come from such a thread.
var ownGroups = sync.OnceValues(unix.Getgroups)

// become calls f on a locked thread with the file system identity of u. The thread has its own identity back afterwards, or
// ends with its goroutine. A process that is not root keeps its own.
func (u User) become(f func() error) error {
	own := os.Geteuid()
	if own != 0 {
		return f()
	}
	runtime.LockOSThread()
	groups, err := ownGroups()
	if err != nil {
		runtime.UnlockOSThread()
		return errIdentity
	}
	defer func() {
		if u.leave(groups) {
			runtime.UnlockOSThread()
		}
	}()
	if !u.enter(groups) {
		return errIdentity
	}
	return f()
}

// enter takes groups first, which only root may. The calls are this thread's alone, where those of package syscall would be
// every thread's.
func (u User) enter(groups []int) bool {
	if !slices.Equal(groups, u.Groups) && unix.Setgroups(u.Groups) != nil {
		return false
	}
	return isNow(u.UID, u.GID)
}

// leave reports whether the thread has its own identity back.
func (u User) leave(groups []int) bool {
	unix.SetfsuidRetUid(os.Geteuid()) // first: only root may take the rest
	if !slices.Equal(groups, u.Groups) && unix.Setgroups(groups) != nil {
		return false
	}
	return isNow(uint32(os.Geteuid()), uint32(os.Getegid()))
}

func isNow(uid, gid uint32) bool {
	unix.SetfsgidRetGid(int(gid))
	unix.SetfsuidRetUid(int(uid))
	u, _ := unix.SetfsuidRetUid(-1)
	g, _ := unix.SetfsgidRetGid(-1)
	return uint32(u) == uid && uint32(g) == gid
}

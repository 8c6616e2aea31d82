package files

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"sandboxd/internal/text"
	"sandboxd/internal/wire"
)

var (
	errFolder = errors.New("a folder")
	errNoFile = errors.New("neither file nor folder")
	errRoot   = errors.New("the root")
	errDeep   = errors.New("nested too deeply")
	errEnough = errors.New("enough")
	errMount  = errors.New("another file system is mounted in it")

	errChanging = errors.New("it changes while it is moved")
	errKept     = errors.New("it has changed since it was copied")
)

func problem(code, format string, args ...any) error {
	return &wire.Problem{Code: code, Message: fmt.Sprintf(format, args...)}
}

// about adds the path to an error, unless it is a problem already.
func about(path string, err error) error {
	var known *wire.Problem
	if err == nil || errors.As(err, &known) || errors.Is(err, context.Canceled) {
		return err
	}
	shown := text.OneLine(path, 200)
	for _, row := range sentences {
		if errors.Is(err, row.err) {
			return problem(row.code, row.sentence, shown)
		}
	}
	return problem(wire.CodeUnavailable, "Something went wrong with %s in the sandbox: %v.", shown, err)
}

// sentences say what the kernel's words mean to a person.
var sentences = []struct {
	err      error
	code     string
	sentence string
}{
	{unix.ENOENT, wire.CodeNotFound, "There is no %s in the sandbox."},
	{unix.ENOTDIR, wire.CodeNotFound, "There is no %s in the sandbox: something on the way is no folder."},
	{unix.EACCES, wire.CodeForbidden, "The sandbox's user may not do that with %s."},
	{unix.EPERM, wire.CodeForbidden, "The sandbox's user may not do that with %s."},
	{unix.EROFS, wire.CodeForbidden, "%s is on a file system that is read-only."},
	{unix.EEXIST, wire.CodeConflict, "%s is there already."},
	{unix.ENOTEMPTY, wire.CodeConflict, "%s is a folder that is not empty."},
	{unix.EISDIR, wire.CodeFolder, "%s is a folder."},
	{errFolder, wire.CodeFolder, "%s is a folder."},
	{errNoFile, wire.CodeInvalid, "%s is neither a file nor a folder."},
	{errRoot, wire.CodeInvalid, "That cannot be done with the root, %s."},
	{errDeep, wire.CodeConflict, "%s holds folders that are nested too deeply."},
	{errMount, wire.CodeConflict, "%s holds another file system."},
	{errChanging, wire.CodeConflict, "%s changes while it is moved to another file system: nothing was moved. Try again."},
	{errKept, wire.CodeConflict, "%s was copied to the other file system, but has changed since: the changed parts are still here, too."},
	{unix.ELOOP, wire.CodeInvalid, "%s leads through too many links, or became one just now."},
	{unix.ENAMETOOLONG, wire.CodeInvalid, "A name in %s is too long."},
	{unix.EINVAL, wire.CodeInvalid, "The file system does not allow that with %s."},
	{unix.EXDEV, wire.CodeConflict, "%s is on another file system."},
	{unix.EBUSY, wire.CodeConflict, "%s is in use by the system."},
	{unix.ETXTBSY, wire.CodeConflict, "%s is a program that is running."},
	{unix.EFBIG, wire.CodeInvalid, "%s would be larger than the file system allows."},
	{unix.ENOSPC, wire.CodeFull, "The disk of the sandbox is full: nothing was changed about %s."},
	{unix.EDQUOT, wire.CodeFull, "The sandbox has reached its disk limit: nothing was changed about %s."},
	{unix.EMFILE, wire.CodeUnavailable, "Too many files are open in the sandbox to look at %s. Try again in a moment."},
	{unix.ENFILE, wire.CodeUnavailable, "Too many files are open in the sandbox to look at %s. Try again in a moment."},
}

// problemOf is what err says to sandboxd.
func problemOf(err error) *wire.Problem {
	var p *wire.Problem
	if !errors.As(err, &p) {
		p = &wire.Problem{Code: wire.CodeUnavailable, Message: "Something went wrong in the sandbox: " + err.Error() + "."}
	}
	p.Check()
	return p
}

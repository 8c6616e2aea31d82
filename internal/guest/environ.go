package guest

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"sandboxd/internal/wire"
)

// marker is the variable that marks the processes of an exec or a service.
const marker = "SANDBOXD_EXEC"

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment is that of a process.
type environment map[string]string

func (e environment) list() []string {
	l := make([]string, 0, len(e))
	for k, v := range e {
		l = append(l, k+"="+v)
	}
	return l
}

// baseEnv is the environment from the image and the engine, without the guest's own variables.
func baseEnv(environ []string) map[string]string {
	env := map[string]string{}
	for _, kv := range environ {
		k, v, ok := strings.Cut(kv, "=")
		if ok && k != "" && k != marker && !strings.HasPrefix(k, "SANDBOXD_GUEST_") {
			env[k] = v
		}
	}
	if env["PATH"] == "" {
		env["PATH"] = defaultPath
	}
	return env
}

// environ is the environment of a process of an account: the image's, the setup's, the user's, and extra on top;
// below them all, what leads programs to models.
func (p *spawner) environ(who account, extra map[string]string, tty bool) environment {
	setup := p.setup.Load()
	env := environment(maps.Clone(p.base))
	maps.Copy(env, setup.Env)
	env["HOME"], env["USER"], env["LOGNAME"] = who.home, who.name, who.name
	if who.shell != "" {
		env["SHELL"] = who.shell
	}
	env["TERM"] = "dumb"
	if tty {
		env["TERM"] = "xterm-256color"
	}
	maps.Copy(env, extra)
	if setup.Models {
		env.preset()
	}
	return env
}

// workFolder is where a process starts: where it was asked to, else the volume, else the root. Whether the
// user may enter it, only starting shows.
func (p *spawner) workFolder(asked string) string {
	if asked != "" {
		if !filepath.IsAbs(asked) {
			return filepath.Join(p.home, asked)
		}
		return asked
	}
	if st, err := os.Stat(p.home); err == nil && st.IsDir() {
		return p.home
	}
	return "/"
}

// lookPath finds a program as a shell would: by the PATH that it will have, or relative to its working folder.
func lookPath(name, path, cwd string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(cwd, name)
		}
		return name, runnable(name)
	}
	denied := false
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(cwd, dir)
		}
		full := filepath.Join(dir, name)
		err := runnable(full)
		if err == nil {
			return full, nil
		}
		denied = denied || os.IsPermission(err)
	}
	if denied {
		return "", os.ErrPermission
	}
	return "", os.ErrNotExist
}

// runnable says whether path is a program. Whether the user may run it, only running it tells.
func runnable(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if st.IsDir() || st.Mode()&0o111 == 0 {
		return os.ErrPermission
	}
	return nil
}

// startProblem says in a sentence why a program could not be started.
func startProblem(name, cwd string, err error) error {
	switch {
	case os.IsNotExist(err):
		if st, e := os.Stat(cwd); e != nil || !st.IsDir() {
			return problem(wire.CodeNotFound, "There is no folder "+cwd+" in the sandbox.")
		}
		return problem(wire.CodeNoProgram, "There is no program "+name+" in the sandbox.")
	case os.IsPermission(err):
		return problem(wire.CodeNoCommand, "The program "+name+" in the sandbox may not be run, or its folder may not be entered.")
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM):
		return problem(wire.CodeUnavailable, "The sandbox has as many processes as it may have, or no memory for another: "+
			"end some and try again.")
	}
	return problem(wire.CodeNoCommand, "The program "+name+" in the sandbox cannot be run: "+reason(err)+".")
}

func reason(err error) string {
	if e, ok := err.(*os.PathError); ok {
		return e.Err.Error()
	}
	return err.Error()
}

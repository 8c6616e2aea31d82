package exec

import (
	"path"
	"regexp"
	"strings"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// Bounds on what a request carries. The kernel takes no single argument above 128 KiB.
const (
	maxCommand = 128 << 10
	maxArgs    = 4096
	maxPath    = 4096
	maxStdin   = 1 << 20
)

// logName is what a service may be called too.
var logName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

var userName = regexp.MustCompile(`^([a-z_][a-z0-9_-]{0,31}|[0-9]{1,9})$`)

// check reports the first thing that is wrong with r, as an Invalid fault with the field it is about.
func (r Request) check() error {
	if err := checkCommand(r.Command); err != nil {
		return err
	}
	if r.Cwd != "" && (!path.IsAbs(r.Cwd) || len(r.Cwd) > maxPath || strings.ContainsRune(r.Cwd, 0)) {
		return fault.Field("cwd", "The folder must be an absolute path, such as /workspace.")
	}
	if r.User != "" && !userName.MatchString(r.User) {
		return fault.Field("user", "%.40q is not the name or the number of a user.", r.User)
	}
	if r.Log != "" && !logName.MatchString(r.Log) {
		return fault.Field("log", "%.40q cannot be a name in the log. Use lower-case letters, digits and hyphens.", r.Log)
	}
	if len(r.Stdin) > maxStdin {
		return fault.Field("stdin", "The input is larger than 1 MiB. Use a websocket, or a file.")
	}
	if r.Timeout < 0 || r.Timeout > MaxTimeout {
		return fault.Field("timeout", "The timeout must be between 0 and %d seconds.", int(MaxTimeout.Seconds()))
	}
	if r.MaxOutput < 0 || r.MaxOutput > MaxOutput {
		return fault.Field("max_output", "At most %d MiB of each stream can be kept.", MaxOutput>>20)
	}
	return sandbox.CheckEnv(r.Env)
}

func checkCommand(command []string) error {
	const field = "command"
	if len(command) == 0 || command[0] == "" {
		return fault.Field(field, "A command is needed.")
	}
	if len(command) > maxArgs {
		return fault.Field(field, "The command has more than %d arguments.", maxArgs)
	}
	size := 0
	for _, arg := range command {
		if strings.ContainsRune(arg, 0) {
			return fault.Field(field, "The command has a NUL byte in it.")
		}
		size += len(arg) + 1
	}
	if size > maxCommand {
		return fault.Field(field, "The command is larger than 128 KiB. Put it into a file, or send it as input.")
	}
	return nil
}

func checkSignal(name string) error {
	if wire.CheckSignal(name) != nil {
		return fault.Field("signal", "%.20q is not a signal that can be sent. Use one such as INT, TERM or KILL.", name)
	}
	return nil
}

func checkSize(cols, rows int) error {
	if wire.CheckSize(cols, rows) != nil {
		return fault.Field("cols", "A terminal has between 1 and %d columns and rows.", wire.MaxSide)
	}
	return nil
}

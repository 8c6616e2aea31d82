package shoutrrr

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/nicholas-fedor/shoutrrr/pkg/types"
	"golang.org/x/sys/unix"

	"sandboxd/internal/fault"
)

// How a child ends that has no result to tell.
const (
	exitBroken = 1
	exitMemory = 71
	exitLate   = 72
)

const (
	// memoryLimit is what Go may hold in a child, in bytes. The program itself takes some 10 MiB, and an answer of a service is a few
	// KiB. RLIMIT_DATA and RLIMIT_AS are left alone: they count what Go reserves too, and one cannot tell how a program ends at them.
	memoryLimit = 64 << 20
	lookEvery   = 20 * time.Millisecond // a fast server sends some 20 MiB meanwhile
	grace       = 2 * time.Second       // after the caller's limit, at which it kills the child
)

// Main is a child process: it sends the message that standard input tells of, and writes the result to standard output. It gives the
// exit code. It ends the process when it takes too long or too much memory, also without a caller.
func Main() int {
	out, err := takeOutput()
	if err != nil {
		return exitBroken
	}
	var r request
	if err := json.NewDecoder(os.Stdin).Decode(&r); err != nil {
		return exitBroken
	}
	debug.SetMemoryLimit(memoryLimit / 2) // so that garbage alone does not end it
	go watch(r.Limit + grace)             // it ends with the process
	if err := tell(out, send(r)); err != nil {
		return exitBroken
	}
	return 0
}

// takeOutput gives the standard output, and leads what else writes there, or to the standard error, nowhere: the library may.
func takeOutput() (*os.File, error) {
	own, err := unix.FcntlInt(uintptr(unix.Stdout), unix.F_DUPFD_CLOEXEC, unix.Stderr+1)
	if err != nil {
		return nil, fmt.Errorf("keep the standard output: %w", err)
	}
	nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	for _, fd := range []int{unix.Stdout, unix.Stderr} {
		if err := unix.Dup3(int(nowhere.Fd()), fd, 0); err != nil {
			return nil, fmt.Errorf("lead output nowhere: %w", err)
		}
	}
	return os.NewFile(uintptr(own), "result"), nowhere.Close()
}

// watch ends the process when it holds too much memory, or after limit.
func watch(limit time.Duration) {
	end, look := time.After(limit), time.Tick(lookEvery)
	for {
		select {
		case <-end:
			os.Exit(exitLate)
		case <-look:
			if held() > memoryLimit {
				os.Exit(exitMemory)
			}
		}
	}
}

// held is how much memory Go holds, in bytes: all that it has of the system, less what it has given back.
func held() uint64 {
	now := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(now)
	return now[0].Value.Uint64() - now[1].Value.Uint64()
}

// tell writes what has become of a message.
func tell(out *os.File, err error) error {
	r := result{Taken: err == nil}
	if err != nil {
		r.Kind, r.Message = fault.KindOf(err), fault.Message(err)
	}
	return errors.Join(json.NewEncoder(out).Encode(r), out.Close())
}

// send hands a message to the library.
func send(r request) (err error) {
	service, _, err := parse(r.Address)
	if err != nil {
		return err
	}
	defer func() {
		if recover() != nil {
			err = failed(service)
		}
	}()
	to, err := open(r.Address, service)
	if err != nil && service == "matrix" {
		return failed(service) // Check has found the address good, so it is the sign-in that failed
	}
	if err != nil {
		return err
	}
	params := types.Params{}
	if r.Title != "" {
		params.SetTitle(r.Title)
	}
	return problem(service, to.Send(r.Text, &params))
}

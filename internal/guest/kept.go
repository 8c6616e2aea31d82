package guest

import (
	"cmp"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sandboxd/internal/guest/thaw"
	"sandboxd/internal/wire"
)

// keptProcess is a program whose input and output outlive every connection. What it writes is kept until sandboxd says that it has it;
// what it reads is counted, so that sandboxd can say it again after a lost link. Safe for concurrent use.
type keptProcess struct {
	*process
	start  wire.KeptStart
	began  time.Time
	input  *keptInput
	output *spool
	stderr ring
	exited atomic.Bool   // the program itself
	over   chan struct{} // closed when it has, and its output is complete

	mu     sync.Mutex
	ended  time.Time
	how    exit
	reader chan struct{} // closed to end the present reading of its output; nil when there was none
}

// keeper has the kept processes of a sandbox. Safe for concurrent use.
type keeper struct {
	spawn   spawnFunc
	folders []string        // where their output may be
	serving *sync.WaitGroup // for what belongs to their programs
	turn    chan struct{}   // of starts

	mu     sync.Mutex
	byID   map[string]*keptProcess
	ending bool // none is started any more
}

func newKeeper(spawn spawnFunc, serving *sync.WaitGroup, home string) *keeper {
	return &keeper{spawn: spawn, folders: []string{"/var/tmp", "/tmp", home}, serving: serving, turn: make(chan struct{}, 1), byID: map[string]*keptProcess{}}
}

// begin starts a program. The same again, after a lost answer, is no error.
func (k *keeper) begin(start wire.KeptStart) error {
	k.turn <- struct{}{}
	defer func() { <-k.turn }()
	if is, err := k.admit(start); is || err != nil {
		return err
	}
	p, err := k.spawn(start.Exec())
	if err != nil {
		return err
	}
	one := &keptProcess{process: p, start: start, began: time.Now(), input: newKeptInput(p.stdin), output: newSpool(k.folders...), over: make(chan struct{})}
	k.serving.Go(one.live)
	if !k.add(one) {
		one.kill()
		return problem(wire.CodeUnavailable, "The sandbox is ending.")
	}
	return nil
}

// add is false when the end has begun meanwhile.
func (k *keeper) add(one *keptProcess) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.ending {
		k.byID[one.start.ID] = one
	}
	return !k.ending
}

// admit says whether a program is there already, or may not be started.
func (k *keeper) admit(start wire.KeptStart) (is bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ending {
		return false, problem(wire.CodeUnavailable, "The sandbox is ending.")
	}
	if old := k.byID[start.ID]; old != nil {
		if !reflect.DeepEqual(old.start, start) {
			return false, problem(wire.CodeConflict, "Another program is kept under that id.")
		}
		return true, nil
	}
	if len(k.byID) >= wire.MaxKept {
		return false, problem(wire.CodeConflict, "The sandbox keeps as many programs as it can. End one first.")
	}
	return false, nil
}

func (k *keeper) find(id string) (*keptProcess, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if one := k.byID[id]; one != nil {
		return one, nil
	}
	return nil, problem(wire.CodeNotFound, "No such program is kept. It ends with its sandbox.")
}

// list gives all, oldest first.
func (k *keeper) list() wire.Kepts {
	k.mu.Lock()
	all := slices.Collect(maps.Values(k.byID))
	k.mu.Unlock()
	l := wire.Kepts{}
	for _, one := range all {
		l = append(l, one.now())
	}
	slices.SortFunc(l, func(a, b wire.Kept) int {
		return cmp.Or(a.Started.Compare(b.Started), strings.Compare(a.ID, b.ID))
	})
	return l
}

// end ends a program and all that came of it, and forgets it. An unknown one is no error.
func (k *keeper) end(id string) {
	k.mu.Lock()
	one := k.byID[id]
	delete(k.byID, id)
	k.mu.Unlock()
	if one != nil {
		one.output.close()
		one.kill()
	}
}

// stop ends all, at the end of the sandbox: those that do not end in time are killed.
func (k *keeper) stop(grace time.Duration) {
	k.mu.Lock()
	k.ending = true
	all := slices.Collect(maps.Values(k.byID))
	k.mu.Unlock()
	var ending sync.WaitGroup
	for _, one := range all {
		ending.Go(func() {
			one.output.close() // so that nothing waits for a reader
			one.signal("TERM") // one that has ended needs none
			if !thaw.Wait(one.over, grace) {
				one.kill()
			}
		})
	}
	ending.Wait()
}

// live passes on what the program writes, until it has ended and that is complete.
func (o *keptProcess) live() {
	var pumps sync.WaitGroup
	for _, out := range o.process.output {
		to := io.Writer(o.output)
		if out.kind == wire.FrameStderr {
			to = &o.stderr
		}
		pumps.Go(func() { o.pour(out.file, to) })
	}
	how := o.wait()
	o.mu.Lock()
	o.how, o.ended = how, time.Now()
	o.mu.Unlock()
	o.exited.Store(true)
	for _, out := range o.process.output {
		out.file.SetReadDeadline(time.Now().Add(quiet))
	}
	pumps.Wait()
	close(o.over)
	o.close()
}

// pour reads one output until it is closed, is not wanted any more, or is still after the program has ended.
func (o *keptProcess) pour(from *os.File, to io.Writer) {
	var rest drain
	for {
		ended := o.exited.Load()
		if ended && !rest.more(from) {
			return
		}
		n, err := pourPiece(from, to)
		rest.read += n
		if err == errSpoolOver || rest.over(err, ended) {
			return
		}
	}
}

// pourPiece waits for bytes and passes them on. It has no buffer while it waits.
func pourPiece(from *os.File, to io.Writer) (int, error) {
	if err := awaitReadable(from); err != nil {
		return 0, err
	}
	buf := buffers.Get().(*buffer)
	defer buffers.Put(buf)
	n, err := from.Read(buf[:])
	if n > 0 {
		if _, lost := to.Write(buf[:n]); lost != nil {
			return n, lost
		}
	}
	return n, err
}

// now says how it stands.
func (o *keptProcess) now() wire.Kept {
	k := wire.Kept{ID: o.start.ID, Title: strings.Join(o.start.Command, " "), Started: o.began}
	k.Title = k.Title[:min(len(k.Title), maxKeptTitle)]
	k.Input, k.Closed = o.input.now()
	k.First, k.Last = o.output.bounds()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended.IsZero() {
		return k
	}
	k.Ended, k.Code, k.Signal = o.ended, o.how.code, o.how.signal
	return k
}

// maxKeptTitle bounds what a list says of a command.
const maxKeptTitle = 1024

// read begins a reading of the output and ends the one before: that connection may be lost without knowing it. The channel is closed
// when another one begins.
func (o *keptProcess) read() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reader != nil {
		close(o.reader)
	}
	o.reader = make(chan struct{})
	return o.reader
}

package files

import (
	"encoding/binary"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// watchFor is what counts as a change in a folder. Equal events that wait are one to the kernel, so a program that writes
// without end costs little.
const watchFor = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_MODIFY | unix.IN_ATTRIB |
	unix.IN_CLOSE_WRITE | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK

// watching is all watches, on one inotify instance, of which a machine has few: there is none without watches. Safe for
// concurrent use.
type watching struct {
	mu      sync.Mutex
	queue   *os.File // the instance; nil when there is none
	watches []*watch
	folders map[int32][]subscription
}

// subscription is one folder of one watch.
type subscription struct {
	watch  *watch
	folder string // as it was asked for
}

// watch is what one listener has not been told of yet. Safe for concurrent use.
type watch struct {
	news chan struct{} // holds one while there is something

	mu      sync.Mutex
	changed []string
}

func (w *watch) touch(folders ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range folders {
		if !slices.Contains(w.changed, f) {
			w.changed = append(w.changed, f)
		}
	}
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// take gives the changes.
func (w *watch) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.changed
	w.changed = nil
	return list
}

// begin makes a watch, and the instance when it is the first.
func (l *watching) begin() (*watch, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.watches) >= maxWatches {
		return nil, problem(wire.CodeUnavailable, "As many as may be watch the sandbox's files already.")
	}
	if l.queue == nil {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
		if err != nil {
			return nil, problem(wire.CodeUnavailable, "The sandbox's files cannot be watched now: %v.", err)
		}
		l.queue, l.folders = os.NewFile(uintptr(fd), "inotify"), map[int32][]subscription{}
		go l.listen(l.queue)
	}
	w := &watch{news: make(chan struct{}, 1)}
	l.watches = append(l.watches, w)
	return w, nil
}

// end ends a watch, and the instance with the last.
func (l *watching) end(w *watch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watches = slices.DeleteFunc(l.watches, func(x *watch) bool { return x == w })
	for number, list := range l.folders {
		list = slices.DeleteFunc(list, func(s subscription) bool { return s.watch == w })
		if l.folders[number] = list; len(list) == 0 {
			delete(l.folders, number)
			l.control(func(fd int) { unix.InotifyRmWatch(fd, uint32(number)) })
		}
	}
	if len(l.watches) == 0 && l.queue != nil {
		l.queue.Close()
		l.queue = nil
	}
}

// add puts the open folder dir on a watch.
func (l *watching) add(w *watch, dir int, folder string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.control(func(fd int) {
		number, err := unix.InotifyAddWatch(fd, ownFD(dir), watchFor)
		if err == nil {
			l.folders[int32(number)] = append(l.folders[int32(number)], subscription{w, folder})
		}
	})
}

func (l *watching) control(f func(fd int)) {
	if l.queue == nil {
		return
	}
	if raw, err := l.queue.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { f(int(fd)) })
	}
}

// listen reads the instance's events until it is closed.
func (l *watching) listen(queue *os.File) {
	var buf [16 << 10]byte
	for {
		n, err := queue.Read(buf[:])
		if err != nil {
			return
		}
		l.mu.Lock()
		if l.queue == queue {
			l.dispatch(buf[:n])
		}
		l.mu.Unlock()
	}
}

// Where the kernel has what in an inotify_event.
const (
	eventMask = 4
	eventName = 12
	eventHead = 16
)

// dispatch passes events to the watches. After an overflow everything may have changed.
func (l *watching) dispatch(b []byte) {
	for len(b) >= eventHead {
		number := int32(binary.NativeEndian.Uint32(b))
		mask := binary.NativeEndian.Uint32(b[eventMask:])
		b = b[min(len(b), eventHead+int(binary.NativeEndian.Uint32(b[eventName:]))):]
		if mask&unix.IN_Q_OVERFLOW != 0 {
			for _, list := range l.folders {
				tell(list)
			}
			continue
		}
		tell(l.folders[number])
		if mask&unix.IN_IGNORED != 0 {
			delete(l.folders, number)
		}
	}
}

func tell(list []subscription) {
	for _, s := range list {
		s.watch.touch(s.folder)
	}
}

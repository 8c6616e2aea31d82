package guest

import (
	"bufio"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/wire"
)

const (
	// portsPause is between two reads for a watcher. portsFresh is a little less: all watchers share a read.
	portsPause = time.Second
	portsFresh = 900 * time.Millisecond
	// maxPortLines bounds the lines that are read of the kernel's tables: a busy server has as many connections.
	maxPortLines = 1 << 18
	// maxLinks bounds the open files of programs that are searched for the owner of a port.
	maxLinks = 1 << 14
	// maxFound bounds the ports that are sorted: of more, only some are listed.
	maxFound = 16 * wire.MaxOpenPorts
	// ownerlessFor is how long a port stays without an owner before the search is repeated.
	ownerlessFor = 10 * time.Second
)

// listens is the kernel's word for a socket that takes connections.
const listens = "0A"

// ports tells which TCP ports are open. Safe for concurrent use.
type ports struct {
	tables []string                // the kernel's tables of sockets
	hidden func(inode string) bool // which sockets are the guest's own

	mu     sync.Mutex
	last   wire.Ports
	taken  time.Time        // of last
	owners map[string]owner // by inode, of the sockets in last
}

// owner is the program that has a socket; zero when it is not known.
type owner struct {
	pid  int
	name string
	seen time.Time // when it was searched for
}

// fresh reports whether the search need not be repeated.
func (o owner) fresh() bool {
	if o.pid == 0 {
		return time.Since(o.seen) < ownerlessFor
	}
	_, err := os.Stat("/proc/" + strconv.Itoa(o.pid))
	return err == nil
}

// opening is a socket that listens.
type opening struct {
	port  int
	addr  netip.Addr
	inode string
}

func newPorts(hidden func(inode string) bool) *ports {
	return &ports{tables: []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"}, hidden: hidden}
}

// list gives the open ports as they are now, give or take a second.
func (p *ports) list() wire.Ports {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken.IsZero() || time.Since(p.taken) > portsFresh {
		p.last, p.taken = p.look(), time.Now()
	}
	return slices.Clone(p.last)
}

// look reads the tables. It needs mu.
func (p *ports) look() wire.Ports {
	found := map[int]opening{}
	for _, table := range p.tables {
		f, err := os.Open(table)
		if err != nil {
			continue // without IPv6 there is none
		}
		for o := range openings(f) {
			if p.hidden(o.inode) {
				continue
			}
			before, ok := found[o.port]
			if reached(o.addr) && (ok && wider(o.addr, before.addr) || !ok && len(found) < maxFound) {
				found[o.port] = o
			}
		}
		f.Close()
	}
	l := make(wire.Ports, 0, min(len(found), wire.MaxOpenPorts))
	shown := map[string]bool{}
	for _, port := range slices.Sorted(maps.Keys(found)) {
		if len(l) == wire.MaxOpenPorts {
			break
		}
		o := found[port]
		shown[o.inode] = true
		l = append(l, wire.PortOpen{Port: port, Address: o.addr.String()})
	}
	p.learn(shown)
	for i := range l {
		w := p.owners[found[l[i].Port].inode]
		l[i].Process, l[i].PID = w.name, w.pid
	}
	return l
}

// reached reports whether DialPort reaches a socket. On other loopback addresses the engine's resolver listens.
func reached(a netip.Addr) bool {
	return !a.IsLoopback() || a == netip.IPv6Loopback() || a == netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// wider reports whether more can reach a than b.
func wider(a, b netip.Addr) bool { return reach(a) > reach(b) }

func reach(a netip.Addr) int {
	switch {
	case a.IsUnspecified():
		return 2
	case a.IsLoopback():
		return 0
	}
	return 1
}

// openings reads the sockets that listen from a table of the kernel's.
func openings(table io.Reader) func(yield func(opening) bool) {
	return func(yield func(opening) bool) {
		lines := bufio.NewScanner(table)
		for n := 0; n < maxPortLines && lines.Scan(); n++ {
			f := strings.Fields(lines.Text()) // 0: 0100007F:0BB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 0 4711 …
			if len(f) < 10 || f[3] != listens {
				continue
			}
			address, port, _ := strings.Cut(f[1], ":")
			number, err := strconv.ParseUint(port, 16, 16)
			addr, ok := kernelAddr(address)
			if err != nil || number == 0 || !ok {
				continue
			}
			if !yield(opening{int(number), addr, f[9]}) {
				return
			}
		}
	}
}

// kernelAddr reads an address as the kernel's tables write it: in words of four bytes, the last byte of each first.
func kernelAddr(text string) (netip.Addr, bool) {
	if len(text) != 8 && len(text) != 32 {
		return netip.Addr{}, false
	}
	b := make([]byte, len(text)/2)
	for i := range b {
		n, err := strconv.ParseUint(text[2*i:2*i+2], 16, 8)
		if err != nil {
			return netip.Addr{}, false
		}
		b[i/4*4+3-i%4] = byte(n)
	}
	addr, ok := netip.AddrFromSlice(b)
	return addr.Unmap(), ok
}

// learn finds the unknown owners of sockets with these inodes, and forgets the other sockets. It needs mu.
func (p *ports) learn(inodes map[string]bool) {
	owners := make(map[string]owner, len(inodes))
	unknown := map[string]bool{}
	for inode := range inodes {
		if who, ok := p.owners[inode]; ok && who.fresh() {
			owners[inode] = who
		} else {
			owners[inode], unknown[inode] = owner{seen: time.Now()}, true
		}
	}
	p.owners = owners
	if len(unknown) > 0 {
		p.search(unknown)
	}
}

// search looks through the open files of all programs for sockets. It needs mu.
func (p *ports) search(inodes map[string]bool) {
	env := newEnvirons()
	defer env.close()
	left := maxLinks
	for _, one := range processes() {
		path := "/proc/" + strconv.Itoa(one.pid)
		for _, link := range env.links(one.pid, &left) {
			inode := strings.TrimSuffix(strings.TrimPrefix(link, "socket:["), "]")
			if inodes[inode] {
				p.owners[inode] = owner{pid: one.pid, name: programName(path)}
				delete(inodes, inode)
			}
		}
		if len(inodes) == 0 || left <= 0 {
			return
		}
	}
}

// programName is the name of a process: from its command line, else the kernel's.
func programName(path string) string {
	const most = 4096
	f, err := os.Open(path + "/cmdline")
	if err == nil {
		defer f.Close()
		b, _ := io.ReadAll(io.LimitReader(f, most))
		program, _, _ := strings.Cut(string(b), "\x00")
		program, _, _ = strings.Cut(program, " ") // some write their title over it
		if name := filepath.Base(program); program != "" && name != "/" && name != "." {
			return strings.TrimSuffix(name, ":")
		}
	}
	return strings.TrimSpace(slurp(path + "/comm"))
}

func (p *ports) serveList(w http.ResponseWriter, _ *http.Request) {
	l := p.list()
	answer(w, &l)
}

// serveWatch sends the open ports whenever they change, until the request ends.
func (p *ports) serveWatch(w http.ResponseWriter, r *http.Request) {
	frames := newFramer(w)
	tick := time.NewTicker(portsPause)
	defer tick.Stop()
	var told wire.Ports
	for first := true; ; first = false {
		if l := p.list(); first || !slices.Equal(l, told) {
			b, err := wire.Encode(wire.MaxPorts, &l)
			if err != nil || frames.send(wire.FramePorts, b) != nil {
				return
			}
			told = l
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

package main

import (
	"net"
	"net/http"
	"sync"
	"syscall"
)

// maxQuiet bounds the connections of one server without a request, at half of the descriptors that this process may have or less.
const maxQuiet = 10_000

// quietConns are a server's connections on which no request is under way. When there are too many one of them is closed, so that
// who opens a lot of them takes neither descriptors from sandboxes nor the way in from everybody else. Safe for concurrent use.
type quietConns struct {
	most int

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func newQuietConns() *quietConns {
	q := &quietConns{most: maxQuiet, conns: make(map[net.Conn]struct{})}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil {
		q.most = int(min(maxQuiet, limit.Cur/2))
	}
	return q
}

// track is a server's ConnState.
func (q *quietConns) track(conn net.Conn, state http.ConnState) {
	if surplus := q.note(conn, state); surplus != nil {
		surplus.Close()
	}
}

// note counts conn in or out, and gives a connection that is to be closed for it, if there are too many.
func (q *quietConns) note(conn net.Conn, state http.ConnState) (surplus net.Conn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if state != http.StateNew && state != http.StateIdle {
		delete(q.conns, conn)
		return nil
	}
	if len(q.conns) >= q.most {
		for surplus = range q.conns { // any of them
			break
		}
		delete(q.conns, surplus)
	}
	q.conns[conn] = struct{}{}
	return surplus
}

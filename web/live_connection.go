package web

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"sandboxd/internal/fault"
)

// Bounds of a page's live connection.
const (
	maxChannels   = 16      // at once: the page's parts, its folders, a log, and those that are about to end
	maxChannelAsk = 1 << 20 // bytes: the paths of as many folders as may be watched
	maxTopic      = maxPath // bytes of any other topic
)

// channelAsk is what a page's script sends: it opens a channel, or closes one.
type channelAsk struct {
	ID    int    `json:"id"`    // of the channel; the script chooses it
	Topic string `json:"topic"` // address of what to follow (liveTopics); "" closes the channel

	Hidden *bool `json:"hidden,omitempty"` // says instead whether the page is hidden, as behind another tab
}

// channelEvent is what the script gets. The kinds are those of the channel's topic, and two more: "ended" on any channel,
// whose data is the problem as JSON, or "" when nothing more will come; and "alive" on channel 0, in answer to
// the closing of that: a page's ping.
type channelEvent struct {
	ID   int    `json:"id"`
	Kind string `json:"kind"`
	Data string `json:"data,omitempty"`
}

// topic is one thing that pages can follow.
type topic struct {
	path string // as in the route table
	open opener
}

// opener begins to follow something: it does all that can fail and gives what then tells of it. release is called at
// the very end.
type opener func(ctx context.Context, r *request) (p pump, release func(), err error)

// openLive serves a page's one connection for everything that it is told without asking. A browser has only a few HTTP
// connections to a host, and keeps those of pages that were left.
func (s *liveHandlers) openLive(ctx context.Context, r *request) (talk, func(), error) {
	if err := otherPerson(ctx, r); err != nil {
		return nil, nil, err
	}
	hold := func(ctx context.Context, conn *websocket.Conn) error {
		s.log.Debug("live connection opened", "request_id", r.id) // its end is in the access log
		l := &liveConnection{server: s.Server, request: r, conn: conn, channels: map[int]context.CancelFunc{}}
		r.hidden = l.hidden.Load
		return l.run(ctx)
	}
	return hold, func() {}, nil
}

// otherPerson refuses a page that was drawn for another user than the one who is signed in now.
func otherPerson(_ context.Context, r *request) error {
	if person := r.query("person"); person != "" && person != r.who.User.Name {
		return fault.New(fault.Conflict, "You are signed in as %s now.", r.who.User.Name)
	}
	return nil
}

// liveConnection serves the channels of one page.
type liveConnection struct {
	server  *Server
	request *request
	conn    *websocket.Conn
	hidden  atomic.Bool // the page is, as it said last

	writing sync.Mutex // guards writing to conn

	mu       sync.Mutex
	channels map[int]context.CancelFunc // until they have ended
}

// run reads what the page asks for until it is gone or ctx ends, and then waits for all channels.
func (l *liveConnection) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	l.conn.SetReadLimit(maxChannelAsk)
	for {
		_, text, err := l.conn.ReadMessage()
		if err != nil {
			return nil // the page is gone
		}
		var ask channelAsk
		if err := json.Unmarshal(text, &ask); err != nil {
			return nil // no script of ours
		}
		if ask.Hidden != nil {
			l.hidden.Store(*ask.Hidden)
			continue
		}
		if ask.Topic == "" {
			l.close(ask.ID)
			if ask.ID == 0 && l.send(channelEvent{Kind: "alive"}) != nil {
				return nil // the page is gone
			}
			continue
		}
		mine, err := l.enter(ctx, ask.ID)
		if err != nil {
			l.ended(ask.ID, err)
			continue
		}
		running.Go(func() {
			err := l.follow(mine, ask)
			closed := mine.Err() != nil
			l.leave(ask.ID)
			if !closed {
				l.ended(ask.ID, err)
			}
		})
	}
}

// enter makes room for a channel, whose context it gives.
func (l *liveConnection) enter(ctx context.Context, id int) (context.Context, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.channels[id] != nil {
		return nil, fault.New(fault.Conflict, "This channel is open.")
	}
	if len(l.channels) == maxChannels {
		return nil, fault.New(fault.Limited, "This page follows %d things. Close some first.", maxChannels)
	}
	ctx, l.channels[id] = context.WithCancel(ctx)
	return ctx, nil
}

// close ends a channel. One that is not open has ended by itself.
func (l *liveConnection) close(id int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if end := l.channels[id]; end != nil {
		end()
	}
}

func (l *liveConnection) leave(id int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.channels[id]()
	delete(l.channels, id)
}

// follow tells of a topic until the channel is closed or there is no more to tell.
func (l *liveConnection) follow(ctx context.Context, ask channelAsk) error {
	leave, err := l.server.follows.enter(l.request.who, followed)
	if err != nil {
		return err
	}
	defer leave()
	r, open, err := l.server.live.topicOf(l.request, ask.Topic)
	if err != nil {
		return err
	}
	return pumpTopic(ctx, r, open, channel{l, ask.ID})
}

// pumpTopic tells of a topic. A panic is an error: nothing else keeps it from ending the process.
func pumpTopic(ctx context.Context, r *request, open opener, out events) error {
	return rescued(func() error {
		p, release, err := open(ctx, r)
		if err != nil {
			return err
		}
		defer release()
		return p(ctx, out)
	})
}

// ended says that a channel has ended, and why.
func (l *liveConnection) ended(id int, err error) {
	var data []byte
	if err != nil {
		p := problemOf(err)
		p.RequestID = l.request.id
		if p.Status == http.StatusInternalServerError {
			l.server.report(l.request, p, err)
		}
		data, _ = json.Marshal(p) // texts and numbers only
	}
	_ = l.send(channelEvent{id, "ended", string(data)}) // a lost connection is the only way to fail
}

// send writes an event. It fails when the page is gone or takes nothing for a while; then the connection is closed.
func (l *liveConnection) send(e channelEvent) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // most of it is HTML, which would get much longer
	if err := enc.Encode(e); err != nil {
		return err
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	err := l.conn.SetWriteDeadline(time.Now().Add(writeLimit))
	if err == nil {
		err = l.conn.WriteMessage(websocket.TextMessage, b.Bytes())
	}
	if err != nil {
		l.conn.Close()
	}
	return err
}

// channel is one topic on a live connection. Safe for concurrent use.
type channel struct {
	connection *liveConnection
	id         int
}

// event implements events.
func (c channel) event(kind, data string) error {
	return c.connection.send(channelEvent{c.id, kind, data})
}

// topicOf finds the topic at an address, and makes the request for it that r, which opened the connection,
// stands for.
func (s *liveHandlers) topicOf(r *request, address string) (*request, opener, error) {
	u, err := url.ParseRequestURI(address)
	if err != nil {
		return nil, nil, fault.Wrap(err, fault.Invalid, "This is no address of a topic.")
	}
	if len(address) > maxTopic && !strings.HasSuffix(u.Path, filesPart) {
		return nil, nil, fault.New(fault.Invalid, "This address is too long.")
	}
	for _, t := range s.liveTopics() {
		if params, ok := matchPath(t.path, u.Path); ok {
			asked := r.http.WithContext(r.http.Context()) // a copy
			asked.URL = u
			param := func(name string) string { return params[name] }
			return &request{http: asked, head: http.Header{}, id: r.id, from: r.from, who: r.who, access: r.access, hidden: r.hidden, param: param}, t.open, nil
		}
	}
	return nil, nil, fault.New(fault.NotFound, "There is nothing to follow at this address.")
}

// matchPath compares a path with a pattern of the route table, and gives what stands for its parameters.
func matchPath(pattern, path string) (params map[string]string, ok bool) {
	wants, parts := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(wants) != len(parts) {
		return nil, false
	}
	params = map[string]string{}
	for i, want := range wants {
		name, isParam := strings.CutPrefix(want, ":")
		if !isParam && want != parts[i] || isParam && parts[i] == "" {
			return nil, false
		}
		params[name] = parts[i]
	}
	return params, true
}

package web

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/labstack/echo/v4"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// Times and bounds of websockets.
const (
	pongLimit  = 3 * beatEvery   // a peer that answers no ping for so long is gone
	closeLimit = 2 * time.Second // for the peer's last word
	maxMessage = 64 << 10        // what a viewer sends at once: keys, a paste
)

// talk is a conversation over a websocket. It ends when ctx does: the client is gone, or may not any more.
type talk func(ctx context.Context, conn *websocket.Conn) error

// socket adapts a websocket. begin does everything that can fail and gives the conversation to hold once the
// connection is upgraded, and release, which is called at the very end. Pings are sent meanwhile; talk must read, so
// that pongs are seen. what is the share that it counts in. subprotocols are those that the conversation speaks, if it has any.
func (s *liveHandlers) socket(what string, begin func(ctx context.Context, r *request) (t talk, release func(), err error), subprotocols ...string) echo.HandlerFunc {
	return s.upgrading(what, begin, writeLimit, subprotocols...)
}

// longSocket is socket, among commands, for what may be held up for long by a client that takes nothing: until patience is over.
func (s *liveHandlers) longSocket(begin func(ctx context.Context, r *request) (t talk, release func(), err error)) echo.HandlerFunc {
	return s.upgrading(commands, begin, patience)
}

func (s *liveHandlers) upgrading(
	what string, begin func(ctx context.Context, r *request) (t talk, release func(), err error), limit time.Duration, subprotocols ...string,
) echo.HandlerFunc {
	upgrader := websocket.Upgrader{
		HandshakeTimeout: writeLimit, ReadBufferSize: 4 << 10, WriteBufferSize: 32 << 10, WriteBufferPool: &sync.Pool{}, Subprotocols: subprotocols,
		CheckOrigin: func(*http.Request) bool { return true }, // checkOrigin has
		Error:       func(http.ResponseWriter, *http.Request, int, error) {},
	}
	return func(c echo.Context) error {
		r := requestOf(c)
		if err := s.checkSocket(r); err != nil {
			return err
		}
		return admit(s, r, what, begin, func(ctx context.Context, end func(), t talk) error {
			conn, err := upgrader.Upgrade(r.w, r.http, nil)
			if err != nil && ctx.Err() == nil {
				err = fault.Wrap(err, fault.Invalid, "The websocket handshake was not understood.")
			}
			if err != nil { // or the client has left
				return err
			}
			c.Response().Committed, c.Response().Status = true, http.StatusSwitchingProtocols // the framework does not see it
			if !r.tells {
				r.begins()
			}
			return s.converse(ctx, end, conn, limit, t)
		})
	}
}

// converse holds a conversation; limit is how long a ping may take to send.
func (s *liveHandlers) converse(ctx context.Context, end func(), conn *websocket.Conn, limit time.Duration, t talk) error {
	defer conn.Close()
	conn.SetReadLimit(maxMessage)
	_ = conn.SetReadDeadline(time.Now().Add(pongLimit)) // fails only on a closed connection, which reading finds
	conn.SetPongHandler(func(string) error { return conn.SetReadDeadline(time.Now().Add(pongLimit)) })
	defer context.AfterFunc(ctx, func() { hangUp(ctx, conn) })()
	defer s.keepBeating(ctx, end, func() error {
		return conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(limit))
	})()
	err := t(ctx, conn)
	var closed *websocket.CloseError
	if err != nil && ctx.Err() == nil && !errors.As(err, &closed) {
		return err // the upgrade is done: this only reaches the log
	}
	return nil
}

// maxCloseReason is what fits a close frame beside its code.
const maxCloseReason = 123

// hangUp ends a conversation from outside, and says why when that is the client's session or token.
func hangUp(ctx context.Context, conn *websocket.Conn) {
	end := websocket.FormatCloseMessage(websocket.CloseGoingAway, "")
	if cause := context.Cause(ctx); fault.Is(cause, fault.Unauthenticated) || fault.Is(cause, fault.Forbidden) {
		end = websocket.FormatCloseMessage(websocket.ClosePolicyViolation, text.OneLine(fault.Message(cause), maxCloseReason))
	}
	_ = conn.WriteControl(websocket.CloseMessage, end, time.Now().Add(closeLimit)) // a courtesy
	conn.Close()
}

// explained answers a request without an upgrade, at the address of a websocket, with why there is none now: a script is
// not told why a websocket was refused, and asks so afterwards.
func explained(why func(ctx context.Context, r *request) error, socket echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := requestOf(c)
		if websocket.IsWebSocketUpgrade(r.http) {
			return socket(c)
		}
		ctx, cancel := context.WithTimeout(r.http.Context(), handlerTime)
		defer cancel()
		if err := why(ctx, r); err != nil {
			return err
		}
		return errNoUpgrade
	}
}

// errNoUpgrade is for requests that are no websockets, at an address of one.
var errNoUpgrade = &statusError{http.StatusUpgradeRequired, "upgrade_required", "This address speaks websocket only."}

// checkSocket refuses requests that are no websocket, and websockets from pages of another origin.
func (s *liveHandlers) checkSocket(r *request) error {
	if !websocket.IsWebSocketUpgrade(r.http) {
		return errNoUpgrade
	}
	return s.checkOrigin(r)
}

// checkOrigin lets pages of the dashboard's own origin in, and programs, which have a token and send no Origin.
func (s *liveHandlers) checkOrigin(r *request) error {
	origin, ours := r.http.Header.Get("Origin"), s.cfg.Hosts.DashboardURL()
	scheme, _, _ := strings.Cut(ours, "://")
	if origin == "" && r.who.Token != "" || origin == ours || origin == scheme+"://"+r.http.Host {
		return nil
	}
	return fault.New(fault.Forbidden, "A page of another website may not open this websocket.")
}

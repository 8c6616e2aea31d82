package client

import (
	"context"
	"errors"
	"net/url"
	"strconv"

	"github.com/gorilla/websocket"

	"sandboxd/internal/fault"
	"sandboxd/internal/socket"
	"sandboxd/internal/text"
)

// dial opens a websocket, and tries again while the server is away: nothing has happened before it is open.
func (c *Client) dial(ctx context.Context, path string, query url.Values) (ws *websocket.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, headLimit)
	defer cancel()
	err = again(ctx, func() error {
		ws, err = c.dialOnce(ctx, path, query)
		return err
	})
	return ws, err
}

func (c *Client) dialOnce(ctx context.Context, path string, query url.Values) (*websocket.Conn, error) {
	d := websocket.Dialer{
		Proxy: c.transport.Proxy, NetDialContext: c.transport.DialContext, HandshakeTimeout: headLimit, ReadBufferSize: 64 << 10, WriteBufferSize: 64 << 10,
	}
	scheme := map[string]string{"http": "ws", "https": "wss"}[c.base.Scheme]
	ws, res, err := d.DialContext(ctx, c.at(scheme, path, query), c.header(nil))
	if err == nil {
		return ws, nil
	}
	if errors.Is(err, websocket.ErrBadHandshake) && res != nil {
		return nil, c.refusal(res)
	}
	return nil, c.unreachable(ctx, err)
}

// SSH opens the bytes of an SSH connection to a sandbox's server.
func (c *Client) SSH(ctx context.Context, name string) (*socket.Conn, error) {
	ws, err := c.dial(ctx, sandboxPath(name, "/ssh"), nil)
	if err != nil {
		return nil, err
	}
	return socket.New(ws, patienceFor), nil
}

// Tunnel connects to a port of a sandbox, which it wakes. NotFound when nothing listens there.
func (c *Client) Tunnel(ctx context.Context, name string, port int) (*socket.Conn, error) {
	ws, err := c.dial(ctx, sandboxPath(name, "/ports/"+strconv.Itoa(port)+"/tunnel"), nil)
	if err != nil {
		return nil, err
	}
	return socket.New(ws, patienceFor), nil
}

// HostKey gives the key by which the server's SSH is known: "ssh-ed25519 AAAA…".
func (c *Client) HostKey(ctx context.Context) (string, error) {
	var key struct {
		HostKey string `json:"host_key"`
	}
	if err := c.get(ctx, "/ssh/host-key", nil, &key); err != nil {
		return "", err
	}
	if key.HostKey == "" || key.HostKey != text.OneLine(key.HostKey, maxDetail) {
		return "", fault.New(fault.Unavailable, "The server's SSH host key cannot be read.")
	}
	return key.HostKey, nil
}

// whyClosed says why a websocket was closed by the server, in its own words where it has any.
func whyClosed(err error) error {
	var closed *websocket.CloseError
	if errors.As(err, &closed) && closed.Text != "" && closed.Code == websocket.ClosePolicyViolation {
		return fault.Wrap(err, fault.Forbidden, "%s", text.OneLine(closed.Text, maxDetail))
	}
	return fault.Wrap(err, fault.Unavailable, "The connection to the server was lost.")
}

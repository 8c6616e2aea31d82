package link

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// IDE says what a sandbox's VS Code is to be started with, by the sandbox's id. Its error is what a dial gives, such as
// Unavailable while it is being built.
type IDE func(ctx context.Context, id string) (wire.IDEStart, error)

var errNoIDE = fault.New(fault.Unavailable, "This sandboxd has no VS Code.")

// OfferIDE lets DialIDE work. It must be called before Run.
func (h *Hub) OfferIDE(of IDE) { h.ide = of }

// DialIDE connects to the HTTP server of VS Code in the sandbox, which is started when needed and answers when the dial
// returns. ctx is for connecting only. Kinds: Unavailable (it is being built, or cannot be started; the message says why),
// Conflict (it is switched off).
func (s *Session) DialIDE(ctx context.Context) (net.Conn, error) {
	if s.ide == nil {
		return nil, errNoIDE
	}
	start, err := s.ide(ctx, s.id)
	if err != nil {
		return nil, err
	}
	if err := start.Check(); err != nil {
		return nil, fault.Wrap(err, fault.Internal, "VS Code cannot be started with that.")
	}
	query := url.Values{wire.IDEVersion: {start.Version}, wire.IDEPorts: {start.Ports}}
	req, err := http.NewRequest(http.MethodPost, "http://guest"+wire.PathIDE+"/dial?"+query.Encode(), nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	return s.dial(ctx, req, "ide")
}

// IDE tells how VS Code stands in the sandbox. NotFound says that the guest is older than the question.
func (s *Session) IDE(ctx context.Context) (wire.IDEStatus, error) {
	var st wire.IDEStatus
	err := s.call(ctx, http.MethodGet, wire.PathIDE, nil, &st)
	return st, err
}

package link

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"sandboxd/internal/wire"
)

// follow requests path and gives the answer, frame by frame, to emit, until the guest ends it, emit fails or ctx ends. Only
// frames of one kind may come. Silence is no error.
func (s *transport) follow(ctx context.Context, path string, kind wire.FrameType, emit func(payload []byte) error) error {
	req, err := http.NewRequest(http.MethodGet, "http://guest"+path, nil)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	r, err := s.ask(ctx, req)
	if err != nil {
		return err
	}
	from, err := s.newStream(ctx, r)
	if err != nil {
		r.close()
		return err
	}
	defer from.Close()
	from.patience = 0
	frames := wire.NewFrameReader(from)
	for {
		got, payload, err := frames.Next()
		switch {
		case err == io.EOF:
			return nil
		case err == nil && ctx.Err() != nil:
			err = ctx.Err() // and drop the frames that came meanwhile
		case err == nil && got != kind:
			err = wire.ErrFrame
		}
		if err != nil {
			return s.failed(ctx, err)
		}
		if err := emit(payload); err != nil {
			return err
		}
	}
}

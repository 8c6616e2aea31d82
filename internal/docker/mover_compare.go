package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"sandboxd/internal/archive"
	"sandboxd/internal/wire"
)

// maxCompared bounds what a mover may send of a comparison, in bytes: ten thousand differences with the longest names.
const maxCompared = 64 << 20

var errCompared = errors.New("the mover sends more than it was asked for")

// atMost keeps what is written, up to a bound.
type atMost struct {
	bytes.Buffer
	left int
}

// Write implements io.Writer.
func (a *atMost) Write(b []byte) (int, error) {
	if a.left -= len(b); a.left < 0 {
		return 0, errCompared
	}
	return a.Buffer.Write(b)
}

// Compare implements sandbox.Home.
func (h *home) Compare(ctx context.Context, most int) (found []archive.Difference, more bool, err error) {
	sent := atMost{left: maxCompared}
	if _, err := h.job(ctx, wire.MoverJob{Do: wire.MoverCompare, Most: most + 1}, nil, &sent, func(archive.Stats) {}); err != nil {
		return nil, false, err
	}
	for in := json.NewDecoder(&sent); ; {
		var d archive.Difference
		switch err := in.Decode(&d); {
		case errors.Is(err, io.EOF):
			return found, false, nil
		case err != nil:
			return nil, false, h.lost(ctx, err)
		case len(found) == most:
			return found, true, nil
		}
		found = append(found, d)
	}
}

// Versions implements sandbox.Home.
func (h *home) Versions(ctx context.Context, path string, most int) (before, after []byte, err error) {
	sent := atMost{left: 4 * (most + 1<<10)} // base64 takes less
	if _, err := h.job(ctx, wire.MoverJob{Do: wire.MoverVersions, Path: path, Most: most}, nil, &sent, func(archive.Stats) {}); err != nil {
		return nil, nil, err
	}
	var v wire.FileVersions
	if err := json.NewDecoder(&sent).Decode(&v); err != nil {
		return nil, nil, h.lost(ctx, err)
	}
	return v.Before, v.After, nil
}

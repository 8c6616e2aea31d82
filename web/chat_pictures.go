package web

import (
	"context"
	"io"
	"net/http"
	"slices"

	"sandboxd/internal/access"
	"sandboxd/internal/chat"
)

// takePictures reads the pictures among files of a sandbox, so that the model sees them as they are now, whatever becomes of the files. What
// cannot be read, is no picture, or is too large together with those before stays a path: the agent can open it.
func (s *chatHandlers) takePictures(ctx context.Context, h access.Handle, list []chat.File) {
	room := int64(chat.MaxImage)
	for i, f := range list {
		if f.Path == "" || len(f.Data) > 0 || !slices.Contains(chat.PictureTypes, f.Type) {
			continue
		}
		data, err := s.picture(ctx, h, f.Path, room)
		if err != nil || http.DetectContentType(data) != f.Type {
			continue
		}
		list[i].Data = data
		room -= int64(len(data))
	}
}

// picture reads a file of at most so many bytes; a larger one gives nothing.
func (s *chatHandlers) picture(ctx context.Context, h access.Handle, path string, most int64) ([]byte, error) {
	c, err := s.cfg.Files.Read(ctx, h, path, 0, most+1)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if c.Size > most {
		return nil, nil
	}
	return io.ReadAll(c)
}

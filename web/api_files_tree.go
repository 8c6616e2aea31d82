package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
)

type makeFolderBody struct {
	Path        string `json:"path"`
	PathEncoded string `json:"path_encoded"`
	Parents     bool   `json:"parents"`
}

// apiMakeFolder makes a folder.
func (s *fileHandlers) apiMakeFolder(ctx context.Context, r *request, h access.Handle, in makeFolderBody) (reply, error) {
	path, err := pathInput("path", in.Path, in.PathEncoded)
	if err != nil {
		return reply{}, err
	}
	r.object = path
	if err := s.cfg.Files.Mkdir(ctx, h, path, in.Parents); err != nil {
		return reply{}, err
	}
	e, err := s.cfg.Files.Stat(ctx, h, path)
	return reply{status: http.StatusCreated, body: entryBody(e)}, err
}

type moveBody struct {
	From        []string `json:"from"`
	FromEncoded []string `json:"from_encoded"`
	To          string   `json:"to"`
	ToEncoded   string   `json:"to_encoded"`
	Overwrite   bool     `json:"overwrite"`
}

// apiMoveFiles moves or renames.
func (s *fileHandlers) apiMoveFiles(ctx context.Context, r *request, h access.Handle, in moveBody) (reply, error) {
	return carry(ctx, r, h, in, s.cfg.Files.Move)
}

// apiCopyFiles copies.
func (s *fileHandlers) apiCopyFiles(ctx context.Context, r *request, h access.Handle, in moveBody) (reply, error) {
	return carry(ctx, r, h, in, s.cfg.Files.Copy)
}

func carry(
	ctx context.Context, r *request, h access.Handle, in moveBody, do func(ctx context.Context, h access.Handle, from []string, to string, overwrite bool) error,
) (reply, error) {
	from, err := pathInputs("from", in.From, in.FromEncoded)
	if err != nil {
		return reply{}, err
	}
	to, err := pathInput("to", in.To, in.ToEncoded)
	if err != nil {
		return reply{}, err
	}
	r.object = strings.Join(from, ", ") + " to " + to
	return reply{status: http.StatusNoContent}, do(ctx, h, from, to, in.Overwrite)
}

// fileMode is permissions: in JSON a text such as "0644".
type fileMode uint32

// UnmarshalJSON reads it.
func (m *fileMode) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) != nil || text == "" {
		return fault.Field("mode", "The mode must be a text with an octal number, such as \"0644\".")
	}
	mode, err := parseMode(text)
	*m = fileMode(mode)
	return err
}

type changeModeBody struct {
	Path        string    `json:"path"`
	PathEncoded string    `json:"path_encoded"`
	Mode        *fileMode `json:"mode"`
}

// apiChangeMode sets permissions.
func (s *fileHandlers) apiChangeMode(ctx context.Context, r *request, h access.Handle, in changeModeBody) (reply, error) {
	path, err := pathInput("path", in.Path, in.PathEncoded)
	if err != nil {
		return reply{}, err
	}
	if in.Mode == nil {
		return reply{}, fault.Field("mode", "A mode is needed, such as \"0644\".")
	}
	r.object = fmt.Sprintf("%s to %04o", path, uint32(*in.Mode))
	return reply{status: http.StatusNoContent}, s.cfg.Files.Chmod(ctx, h, path, uint32(*in.Mode))
}

// apiTrash lists the trash.
func (s *fileHandlers) apiTrash(ctx context.Context, _ *request, h access.Handle) (reply, error) {
	list, err := s.cfg.Files.Trash(ctx, h)
	return reply{body: trashBody(list)}, err
}

type restoreBody struct {
	IDs        []string `json:"ids"`
	IDsEncoded []string `json:"ids_encoded"`
}

// apiRestoreFiles puts things from the trash back.
func (s *fileHandlers) apiRestoreFiles(ctx context.Context, _ *request, h access.Handle, in restoreBody) (reply, error) {
	ids, err := pathInputs("ids", in.IDs, in.IDsEncoded)
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusNoContent}, s.cfg.Files.Restore(ctx, h, ids)
}

// apiEmptyTrash deletes some things in the trash for good, or all.
func (s *fileHandlers) apiEmptyTrash(ctx context.Context, r *request, h access.Handle) (reply, error) {
	return reply{status: http.StatusNoContent}, s.cfg.Files.EmptyTrash(ctx, h, r.http.URL.Query()["id"])
}

package web

import (
	"context"
	"strconv"

	"github.com/a-h/templ"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
	"sandboxd/views"
)

// pageDisk shows the form for the limit of a sandbox's home; a script gets it as a sheet.
func (s *diskHandlers) pageDisk(ctx context.Context, r *request) (templ.Component, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return nil, err
	}
	box := h.Sandbox()
	return s.diskForm(r, box, views.Field{Value: exactSize(box.Spec.Limits.Disk)}), nil
}

func (s *diskHandlers) diskForm(r *request, box sandbox.Sandbox, limit views.Field) templ.Component {
	v := views.DiskLimit{Name: box.Name, ID: box.ID, Limit: limit, Next: r.origin(sandboxURL(box.Name))}
	if size, at, ok := s.cfg.Metrics.Size(box.ID); ok {
		v.Home, v.Sized = text.Size(size.Home), timeOf(at, s.cfg.Now())
	}
	if r.byScript() {
		return views.DiskLimitSheet(v)
	}
	v.Frame = s.frame(r, "Disk limit of "+box.Name, "sandboxes")
	return views.DiskLimitPage(v)
}

// submitDisk changes the limit of a home; an empty field lifts it.
func (s *diskHandlers) submitDisk(ctx context.Context, r *request) (string, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return "", err
	}
	var limit int64
	if text := r.field("disk"); text != "" {
		if limit, err = readDisk(text); err != nil {
			return "", err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, acceptTime)
	defer cancel()
	if _, err := s.cfg.Sandboxes.SetDisk(ctx, h.Ref(), limit); err != nil {
		return "", err
	}
	return r.back(sandboxURL(h.Name())), nil
}

func (s *diskHandlers) againDisk(ctx context.Context, r *request, cause error) (templ.Component, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return nil, err
	}
	return s.diskForm(r, h.Sandbox(), views.Field{Value: r.form("disk"), Fault: fault.Message(cause)}), nil
}

// exactSize is a number of bytes as a person would enter it, not rounded: "10 GiB", "1536 MiB"; "" for 0.
func exactSize(n int64) string {
	if n == 0 {
		return ""
	}
	unit := 0
	names := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	for n%1024 == 0 && unit < len(names)-1 {
		n /= 1024
		unit++
	}
	return strconv.FormatInt(n, 10) + " " + names[unit]
}

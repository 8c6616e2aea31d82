package web

import (
	"context"
	"strconv"

	"github.com/a-h/templ"

	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
	"sandboxd/views"
)

// pageSize shows the form for the limits of a sandbox; a script gets it as a sheet.
func (s *sizeHandlers) pageSize(ctx context.Context, r *request) (templ.Component, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return nil, err
	}
	box := h.Sandbox()
	l := box.Spec.Limits
	return s.sizeForm(r, box, views.SizeFields{
		CPUs: views.Field{Value: strconv.FormatFloat(l.CPUs, 'f', -1, 64)}, Memory: views.Field{Value: exactSize(l.Memory)}, Disk: views.Field{Value: exactSize(l.Disk)},
	}, ""), nil
}

func (s *sizeHandlers) sizeForm(r *request, box sandbox.Sandbox, size views.SizeFields, problem string) templ.Component {
	v := views.SizeForm{Name: box.Name, ID: box.ID, Size: size, Fault: problem, Next: r.origin(sandboxURL(box.Name))}
	v.Size.Limited = s.cfg.Pool != nil
	if size, at, ok := s.cfg.Metrics.Size(box.ID); ok {
		v.Home, v.Sized = text.Size(size.Home), timeOf(at, s.cfg.Now())
	}
	if r.byScript() {
		return views.SizeSheet(v)
	}
	v.Frame = s.frame(r, "Size of "+box.Name, "sandboxes")
	return views.SizePage(v)
}

// submitSize changes the limits that the form has: an empty one of cores or memory stays as it is, an empty one of the home is lifted.
func (s *sizeHandlers) submitSize(ctx context.Context, r *request) (string, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return "", err
	}
	l, err := readLimits(r)
	if err != nil {
		return "", err
	}
	var change sandbox.LimitsChange
	now := h.Sandbox().Spec.Limits
	if l.CPUs != 0 && l.CPUs != now.CPUs {
		change.CPUs = &l.CPUs
	}
	if l.Memory != 0 && l.Memory != now.Memory {
		change.Memory = &l.Memory
	}
	if s.cfg.Pool != nil && l.Disk != now.Disk {
		change.Disk = &l.Disk
	}
	ctx, cancel := context.WithTimeout(ctx, acceptTime)
	defer cancel()
	if _, err := s.cfg.Sandboxes.Resize(ctx, h.Ref(), change); err != nil {
		return "", err
	}
	return r.back(sandboxURL(h.Name())), nil
}

func (s *sizeHandlers) againSize(ctx context.Context, r *request, cause error) (templ.Component, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return nil, err
	}
	var size views.SizeFields
	problem := r.fill(map[string]*views.Field{"cpus": &size.CPUs, "memory": &size.Memory, "disk": &size.Disk}, cause)
	return s.sizeForm(r, h.Sandbox(), size, problem), nil
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

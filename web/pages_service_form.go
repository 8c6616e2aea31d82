package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"sandboxd/internal/catalog"
	"sandboxd/internal/exec"
	"sandboxd/internal/fault"
	"sandboxd/internal/services"
	"sandboxd/views"
)

// pageNewService shows the form for one more service; a script gets it as a sheet.
func (s *serviceHandlers) pageNewService(ctx context.Context, r *request) (templ.Component, error) {
	return s.serviceForm(ctx, r, views.ServiceForm{ServiceFields: views.ServiceFields{Auto: true}})
}

// pageEditService shows the form of a service that there is.
func (s *serviceHandlers) pageEditService(ctx context.Context, r *request) (templ.Component, error) {
	list, _, err := s.servicesOf(ctx, r)
	if err != nil {
		return nil, err
	}
	one, err := list.Find(r.param("service"))
	if err != nil {
		return nil, err
	}
	return s.serviceForm(ctx, r, views.ServiceForm{Was: one.Name, ServiceFields: serviceFields(one.Service)})
}

// servicesOf are the services of the sandbox that the path names, and its id.
func (s *serviceHandlers) servicesOf(ctx context.Context, r *request) (list services.List, id string, err error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return services.List{}, "", err
	}
	list, err = s.cfg.Services.List(ctx, h)
	return list, h.ID(), err
}

func (s *serviceHandlers) serviceForm(ctx context.Context, r *request, v views.ServiceForm) (templ.Component, error) {
	list, id, err := s.servicesOf(ctx, r)
	if err != nil {
		return nil, err
	}
	v.Box, v.ID, v.ETag = r.param("name"), id, list.ETag
	v.Next = r.origin(servicesURL(v.Box))
	if r.byScript() {
		return views.ServiceSheet(v), nil
	}
	v.Frame = s.frame(r, "Service of "+v.Box, "sandboxes")
	return views.ServiceFormPage(v), nil
}

// serviceFields shows what a service is declared as.
func serviceFields(d catalog.Service) views.ServiceFields {
	f := views.ServiceFields{
		Name: views.Field{Value: d.Name}, Command: views.Field{Value: commandText(d.Command)},
		Cwd: views.Field{Value: d.Cwd}, Env: views.Field{Value: envLines(d.Env)}, Auto: d.Autostart,
	}
	if d.Port != 0 {
		f.Port.Value = strconv.Itoa(d.Port)
	}
	if d.Health != nil {
		f.Health, f.Path.Value = true, d.Health.Path
		if d.Health.Interval != 0 {
			f.Interval.Value = catalog.After(d.Health.Interval).String()
		}
	}
	return f
}

func envLines(env map[string]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(env)) {
		fmt.Fprintf(&b, "%s=%s\n", key, env[key])
	}
	return b.String()
}

// readService reads a service from the posted form, with all that cannot be read. was is the one that it changes; its
// command is kept as it is declared when its text was left alone.
func readService(r *request, was catalog.Service) (d catalog.Service, faults []error) {
	d = catalog.Service{Name: r.field("name"), Cwd: r.field("cwd"), Autostart: r.field("autostart") != ""}
	d.Command = exec.Shell(strings.ReplaceAll(r.field("command"), "\r\n", "\n"))
	if len(was.Command) > 0 && r.field("command") == commandText(was.Command) {
		d.Command = was.Command
	}
	if r.field("command") == "" {
		faults = append(faults, fault.Field("command", "Enter a command."))
	}
	var err error
	if text := r.field("port"); text != "" {
		if d.Port, err = strconv.Atoi(text); err != nil || d.Port < 1 {
			faults = append(faults, fault.Field("port", "A port is a number from 1 to 65535."))
		}
	}
	if d.Env, err = readEnv(r.form("env")); err != nil {
		faults = append(faults, err)
	}
	if r.field("health") == "" {
		return d, faults
	}
	d.Health = &catalog.Health{Path: r.field("health_path")}
	if text := r.field("health_interval"); text != "" {
		if d.Health.Interval, err = parseSpan(text); err != nil {
			d.Health.Interval = 0
			faults = append(faults, fault.Field("health.interval", "%.40q is not a length of time, such as 10s or 1m.", text))
		}
	}
	return d, faults
}

// withService gives declared with the posted service at at, or as the last; else all that is wrong with it.
func withService(r *request, declared []catalog.Service, at int) ([]catalog.Service, error) {
	var before catalog.Service
	if at >= 0 {
		before = declared[at]
	}
	d, faults := readService(r, before)
	if at < 0 { // also one deleted meanwhile: the list's ETag tells
		at, declared = len(declared), append(declared, d)
	} else {
		declared[at] = d
	}
	for _, f := range catalog.ServiceFaults(declared, at) {
		if fault.FieldOf(f) != "health" || r.field("port") == "" { // a port that cannot be read is none that is missing
			faults = append(faults, f)
		}
	}
	return declared, errors.Join(faults...)
}

// submitNewService declares one more service.
func (s *serviceHandlers) submitNewService(ctx context.Context, r *request) (string, error) {
	return s.keepService(ctx, r, "")
}

// submitEditService changes a service, its name too.
func (s *serviceHandlers) submitEditService(ctx context.Context, r *request) (string, error) {
	return s.keepService(ctx, r, r.param("service"))
}

// keepService declares the posted service in the place of the one called was, or as the last.
func (s *serviceHandlers) keepService(ctx context.Context, r *request, was string) (string, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return "", err
	}
	box := h.Sandbox()
	list, err := s.cfg.Services.List(ctx, h)
	if err != nil {
		return "", err
	}
	declared := make([]catalog.Service, 0, len(list.Services)+1)
	at := -1
	for i, one := range list.Services {
		declared = append(declared, one.Service)
		if was != "" && one.Name == was {
			at = i
		}
	}
	if declared, err = withService(r, declared, at); err != nil {
		return "", err
	}
	seen := r.field("etag")
	_, err = s.cfg.Services.Put(ctx, h, declared, func(etag string) bool { return etag == cmp.Or(seen, list.ETag) && etag == list.ETag })
	if err != nil {
		return "", err
	}
	return r.back(servicesURL(box.Name)), nil
}

// againService shows the form again with its values, and the error beside its field.
func (s *serviceHandlers) againService(ctx context.Context, r *request, cause error) (templ.Component, error) {
	v := views.ServiceForm{Was: r.param("service"), ServiceFields: views.ServiceFields{
		Name: views.Field{Value: r.form("name")}, Command: views.Field{Value: r.form("command")}, Port: views.Field{Value: r.form("port")},
		Cwd: views.Field{Value: r.form("cwd")}, Env: views.Field{Value: r.form("env")}, Path: views.Field{Value: r.form("health_path")},
		Interval: views.Field{Value: r.form("health_interval")}, Health: r.field("health") != "", Auto: r.field("autostart") != "",
	}}
	if errors.Is(cause, services.ErrChanged) {
		v.Fault = "The services have been changed meanwhile. Saving again keeps the other changes and makes this one."
		return s.serviceForm(ctx, r, v)
	}
	for _, one := range eachOf(cause) {
		to := &v.Fault
		if field := v.FieldOf(fault.FieldOf(one)); field != nil {
			to = &field.Fault
		}
		*to = cmp.Or(*to, fault.Message(one)) // the first of a field
	}
	return s.serviceForm(ctx, r, v)
}

// eachOf gives the errors that were joined to err, or err alone.
func eachOf(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// pageDeleteService asks before a service goes; a script gets the question as a sheet.
func (s *serviceHandlers) pageDeleteService(ctx context.Context, r *request) (templ.Component, error) {
	list, id, err := s.servicesOf(ctx, r)
	if err != nil {
		return nil, err
	}
	one, err := list.Find(r.param("service"))
	if err != nil {
		return nil, err
	}
	name := r.param("name")
	v := views.DeleteService{Box: name, ID: id, Name: one.Name, Next: r.origin(servicesURL(name)), Lost: []string{"Its command, folder and environment."}}
	if one.State == services.Running {
		v.Lost = append(v.Lost, "Its program, which runs now, is ended.")
	}
	if url := s.cfg.Hosts.ServiceURL(one.Name, name); one.Port != 0 && url != "" {
		v.Lost = append(v.Lost, "Its address "+url)
	}
	if r.byScript() {
		return views.DeleteServiceSheet(v), nil
	}
	v.Frame = s.frame(r, "Delete "+one.Name, "sandboxes")
	return views.DeleteServicePage(v), nil
}

// submitDeleteService takes a service away.
func (s *serviceHandlers) submitDeleteService(ctx context.Context, r *request) (string, error) {
	h, err := named(ctx, s.Server, r)
	if err != nil {
		return "", err
	}
	box := h.Sandbox()
	if _, err := s.cfg.Services.Delete(ctx, h, r.param("service"), nil); err != nil {
		return "", err
	}
	return r.back(servicesURL(box.Name)), nil
}

package web

import (
	"context"
	"errors"
	"net/http"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/template"
)

// ownTemplateHandlers make and change templates, and keep the record of builds.
type ownTemplateHandlers struct{ *Server }

// errTemplateChanged is template.ErrChanged in HTTP's words.
var errTemplateChanged = &statusError{http.StatusPreconditionFailed, "precondition_failed",
	"The template has been changed by another user since you opened it. Nothing was saved; both versions are kept until you choose."}

// templateFileShape is one file of a template.
type templateFileShape struct {
	Path       string  `json:"path"`
	Size       int64   `json:"size"` // bytes
	Executable bool    `json:"executable"`
	Text       *string `json:"text"` // null for what is no text, or larger than 256 KiB
}

// templateFilesShape is all files of a template.
type templateFilesShape struct {
	Template string              `json:"template"`
	Origin   string              `json:"origin"` // "shipped", "own" or "git"; own ones can be changed
	ETag     string              `json:"etag"`
	Files    []templateFileShape `json:"files"`
	More     bool                `json:"more"` // there are more files than are listed
}

// filesReply answers with the files of a template, and their ETag.
func filesReply(r *request, status int, f template.Files) reply {
	out := templateFilesShape{Template: f.Template, Origin: string(f.Origin), ETag: f.ETag, Files: make([]templateFileShape, 0, len(f.List)), More: f.More}
	for _, one := range f.List {
		shape := templateFileShape{Path: one.Path, Size: one.Size, Executable: one.Executable}
		if one.IsText {
			shape.Text = &one.Text
		}
		out.Files = append(out.Files, shape)
	}
	r.head.Set("ETag", f.ETag)
	return reply{status: status, body: out}
}

// onlyAdmins refuses a script of a page that is not an admin's.
func onlyAdmins(r *request) error {
	if !r.isAdmin() {
		return fault.New(fault.Forbidden, "Only admins can make and change templates.")
	}
	return nil
}

// apiTemplateFiles answers with all files of a template.
func (s *ownTemplateHandlers) apiTemplateFiles(_ context.Context, r *request, _ none) (reply, error) {
	if err := onlyAdmins(r); err != nil {
		return reply{}, err
	}
	f, err := s.cfg.OwnTemplates.Files(r.param("name"))
	if err != nil {
		return reply{}, err
	}
	return filesReply(r, http.StatusOK, f), nil
}

// templateBody is all files of a template from now on, or the template that it is a copy of.
type templateBody struct {
	Files map[string]*string `json:"files"` // by path; null leaves a file as it is
	From  string             `json:"from"`
}

// apiPutTemplate makes or changes a template of one's own.
func (s *ownTemplateHandlers) apiPutTemplate(ctx context.Context, r *request, in templateBody) (reply, error) {
	if err := onlyAdmins(r); err != nil {
		return reply{}, err
	}
	match, fresh, err := r.conditions()
	if err != nil {
		return reply{}, err
	}
	name := r.param("name")
	if in.From != "" {
		if len(in.Files) > 0 || match != "" {
			return reply{}, fault.Field("from", "A copy is a new template: give from alone.")
		}
		f, err := s.cfg.OwnTemplates.Copy(ctx, in.From, name)
		if err != nil {
			return reply{}, err
		}
		return filesReply(r, http.StatusCreated, f), nil
	}
	made := false
	f, err := s.cfg.OwnTemplates.Put(ctx, name, template.Edit{Files: in.Files, Match: func(etag string) bool {
		made = etag == ""
		switch match {
		case "":
			return !fresh || made
		case "*":
			return !made
		}
		return match == etag
	}})
	if errors.Is(err, template.ErrChanged) {
		return reply{}, errTemplateChanged
	}
	if err != nil {
		return reply{}, err
	}
	if made {
		return filesReply(r, http.StatusCreated, f), nil
	}
	return filesReply(r, http.StatusOK, f), nil
}

// draftBody is a template as it is being written.
type draftBody struct {
	Name  string             `json:"name"`
	Files map[string]*string `json:"files"`
}

// checkedShape is what is wrong with it.
type checkedShape struct {
	Problems []templateProblem `json:"problems"`
}

// apiCheckTemplate says every mistake of a template that is being written. It keeps nothing.
func (s *ownTemplateHandlers) apiCheckTemplate(_ context.Context, r *request, in draftBody) (reply, error) {
	if err := onlyAdmins(r); err != nil {
		return reply{}, err
	}
	problems, err := s.cfg.OwnTemplates.Check(in.Name, template.Edit{Files: in.Files})
	if err != nil {
		return reply{}, err
	}
	out := checkedShape{Problems: make([]templateProblem, 0, len(problems))}
	for _, p := range problems {
		out.Problems = append(out.Problems, templateProblem{File: p.File, Line: p.Line, Message: p.Message})
	}
	return reply{body: out}, nil
}

// apiDeleteTemplate deletes a template that was made here.
func (s *ownTemplateHandlers) apiDeleteTemplate(ctx context.Context, r *request, _ none) (reply, error) {
	return reply{status: http.StatusNoContent}, s.cfg.OwnTemplates.Delete(ctx, r.param("name"))
}

// orderOf says for whom a build is.
func orderOf(r *request, o catalog.Order) catalog.Order {
	o.Why, o.By = catalog.WhyAsked, r.who.User.Name
	return o
}

package web

import (
	"cmp"
	"context"
	"math"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// templateShape is a template as programs see it.
type templateShape struct {
	Name        string           `json:"name"`
	Title       string           `json:"title"`
	Description string           `json:"description"`
	Icon        string           `json:"icon"`
	Profile     string           `json:"profile"`
	Size        sizeShape        `json:"size"`
	Ports       []portShape      `json:"ports"`
	Services    []string         `json:"services"`
	Problem     *templateProblem `json:"problem"` // null when it can be used
	Image       *templateImage   `json:"image"`   // null when it cannot
	standbyShape
	Readme string `json:"readme,omitempty"`
}

// standbyShape is how a template's sandboxes are kept while nobody uses them.
type standbyShape struct {
	FreezeAfter string `json:"freeze_after"` // "15m" or "never": the template's, else the server's
	StopAfter   string `json:"stop_after"`
	Pool        int    `json:"pool"`       // how many are kept made in advance
	PoolReady   int    `json:"pool_ready"` // how many of them can be claimed now
}

func (s *templateHandlers) standbyShape(e catalog.Entry, ready map[string]int) standbyShape {
	rest := s.templateRest(e.Name)
	return standbyShape{
		FreezeAfter: afterWord(rest.FreezeAfter), StopAfter: afterWord(rest.StopAfter),
		Pool: e.Template.Pool, PoolReady: ready[e.Name],
	}
}

// templateRest is when sandboxes of a template rest that say nothing themselves.
func (s *templateHandlers) templateRest(name string) sandbox.Resting {
	return s.cfg.Sandboxes.Resting(sandbox.Sandbox{Spec: sandbox.Spec{Template: name}})
}

// poolReady counts by template the sandboxes made in advance that can be claimed now.
func (s *templateHandlers) poolReady(ctx context.Context) (map[string]int, error) {
	boxes, _, err := s.cfg.Sandboxes.List(ctx, sandbox.Filter{Pooled: true, Up: true})
	if err != nil {
		return nil, err
	}
	ready := map[string]int{}
	for _, box := range boxes {
		ready[box.Spec.Template]++
	}
	return ready, nil
}

type sizeShape struct {
	CPUs   float64 `json:"cpus"`
	Memory int64   `json:"memory"` // bytes
	Pids   int64   `json:"pids"`
	Disk   int64   `json:"disk"` // bytes of a home, 0 for no limit
}

type portShape struct {
	Number int    `json:"number"`
	Title  string `json:"title"`
}

type templateProblem struct {
	File    string `json:"file"`
	Line    int    `json:"line"` // 0 when it is about the whole file
	Message string `json:"message"`
}

// templateImage is how a template's image stands.
type templateImage struct {
	State    string  `json:"state"`
	Problem  string  `json:"problem"`
	Step     int     `json:"step"` // while building
	Steps    int     `json:"steps"`
	Progress float64 `json:"progress"` // 0 to 1 while building

	Expected  int  `json:"expected_seconds"`  // that it takes to make it, when it is not there
	Measured  bool `json:"expected_measured"` // as the last time on this host; else it is an estimate
	Remaining int  `json:"remaining_seconds"` // while building
}

func newTemplateImage(st catalog.ImageStatus) *templateImage {
	image := &templateImage{
		State: string(st.State), Problem: st.Problem, Step: st.Step, Steps: st.Steps, Progress: math.Round(100*st.Progress) / 100,
		Expected: wholeSeconds(st.Expected.Time.Seconds()), Measured: st.Expected.IsMeasured(),
	}
	if st.State == catalog.ImageBuilding {
		image.Remaining = wholeSeconds(st.Expected.Time.Seconds() * (1 - st.Progress))
	}
	return image
}

func wholeSeconds(s float64) int { return int(math.Ceil(s)) }

func (s *templateHandlers) templateShape(ctx context.Context, e catalog.Entry, ready map[string]int) templateShape {
	t := e.Template
	out := templateShape{
		Name: e.Name, Title: t.Title, Description: t.Description, Icon: t.Icon, Profile: string(t.Profile),
		Size:  sizeShape{CPUs: t.Size.CPUs, Memory: t.Size.Memory, Pids: t.Size.Pids, Disk: t.Size.Disk},
		Ports: make([]portShape, 0, len(t.Ports)), Services: make([]string, 0, len(t.Services)),
		standbyShape: s.standbyShape(e, ready),
	}
	for _, p := range t.Ports {
		out.Ports = append(out.Ports, portShape{Number: p.Number, Title: p.Title})
	}
	for _, v := range t.Services {
		out.Services = append(out.Services, v.Name)
	}
	if e.Problem != nil {
		out.Problem = &templateProblem{File: e.Problem.File, Line: e.Problem.Line, Message: e.Problem.Message}
		return out
	}
	out.Image = newTemplateImage(s.imageStatus(ctx, e))
	return out
}

type templatesShape struct {
	Templates []templateShape `json:"templates"`
}

// apiTemplates lists all templates, broken ones with their problems.
func (s *templateHandlers) apiTemplates(ctx context.Context, _ *request, _ none) (reply, error) {
	ready, err := s.poolReady(ctx)
	if err != nil {
		return reply{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, imagesTime) // for all of them
	defer cancel()
	entries := s.cfg.Templates.List()
	out := templatesShape{Templates: make([]templateShape, 0, len(entries))}
	for _, e := range entries {
		out.Templates = append(out.Templates, s.templateShape(ctx, e, ready))
	}
	return reply{body: out}, nil
}

// entry finds a template, usable or broken.
func (s *templateHandlers) entry(name string) (catalog.Entry, error) {
	for _, e := range s.cfg.Templates.List() {
		if e.Name == name {
			return e, nil
		}
	}
	_, err := s.cfg.Templates.Template(name) // also says when a folder of templates cannot be read
	return catalog.Entry{}, cmp.Or(err, fault.New(fault.NotFound, "There is no template called %.64q.", name))
}

// apiTemplate answers with one template and its README.
func (s *templateHandlers) apiTemplate(ctx context.Context, r *request, _ none) (reply, error) {
	e, err := s.entry(r.param("name"))
	if err != nil {
		return reply{}, err
	}
	ready, err := s.poolReady(ctx)
	if err != nil {
		return reply{}, err
	}
	out := s.templateShape(ctx, e, ready)
	out.Readme = e.Readme
	return reply{body: out}, nil
}

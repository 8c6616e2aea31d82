package scrape_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/metrics"
	"sandboxd/internal/sandbox"
)

var (
	selector = regexp.MustCompile(`\b((?:sandboxd|go|process)_[a-z_]+)(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`(\w+)(=~|!~|!=|=)"([^"]*)"`)
	grouping = regexp.MustCompile(`\bby \(([^)]*)\)`)
)

// dashboard is a Grafana dashboard, as far as the test looks at it.
type dashboard struct {
	Templating struct {
		List []struct {
			Name       string
			Definition string
		}
	}
	Panels []struct {
		ID      int
		Title   string
		Type    string
		Targets []struct{ Expr string }
		GridPos struct{ X, Y, W, H int }
	}
}

func TestDashboard_AsksOnlyForWhatIsThere(t *testing.T) {
	text, err := os.ReadFile("../../../compose/grafana/sandboxd.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		h.rows = []sandbox.Sandbox{row("1", "otter", sandbox.Running)}
		h.sizes = map[string]metrics.Size{"1": {Home: 1}}
		r := h.run(t)
		h.measure("1", metrics.Point{Time: time.Now(), Measured: time.Second})
		use(r)
		f := read(t, r.Handler())
		asked := map[string]bool{}
		for _, v := range d.Templating.List {
			checkExpression(t, f, asked, v.Definition)
		}
		ids := map[int]bool{}
		for _, p := range d.Panels {
			if p.Title == "" || ids[p.ID] || p.GridPos.X+p.GridPos.W > 24 || p.Type != "row" && len(p.Targets) == 0 {
				t.Errorf("panel %d %q is not whole", p.ID, p.Title)
			}
			ids[p.ID] = true
			for _, target := range p.Targets {
				checkExpression(t, f, asked, target.Expr)
			}
		}
		for name := range f {
			if strings.HasPrefix(name, "sandboxd_") && !asked[name] && !asked[strings.TrimSuffix(name, "_duration_seconds")+"s_total"] {
				t.Errorf("no panel shows %s", name)
			}
		}
	})
}

// checkExpression fails for a name, a label or a value that no scrape has, and notes the names in asked.
func checkExpression(t *testing.T, f families, asked map[string]bool, expr string) {
	t.Helper()
	if strings.Count(expr, "(") != strings.Count(expr, ")") || strings.Count(expr, "{") != strings.Count(expr, "}") {
		t.Errorf("brackets of %s", expr)
	}
	labels := map[string][]string{"job": nil, "instance": nil, "le": nil} // of all series that it asks for
	for _, s := range selector.FindAllStringSubmatch(expr, -1) {
		name := strings.TrimSuffix(s[1], "_bucket")
		asked[name] = true
		family := f[name]
		if family == nil || (name != s[1]) != (family.GetMetric()[0].GetHistogram() != nil) {
			t.Errorf("there is no %s: %s", s[1], expr)
			continue
		}
		own := map[string][]string{"job": nil, "instance": nil}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				own[l.GetName()] = append(own[l.GetName()], l.GetValue())
				labels[l.GetName()] = nil
			}
		}
		for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
			values, there := own[m[1]]
			if !there {
				t.Errorf("%s has no label %s: %s", name, m[1], expr)
			}
			for _, v := range strings.Split(m[3], "|") {
				if name != "sandboxd_errors_total" && !strings.HasPrefix(v, "$") && !slices.Contains(values, v) {
					t.Errorf("%s has no %s=%q: %s", name, m[1], v, expr)
				}
			}
		}
	}
	for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
		for _, label := range strings.Split(g[1], ", ") {
			if _, there := labels[label]; !there {
				t.Errorf("nothing has the label %s: %s", label, expr)
			}
		}
	}
}

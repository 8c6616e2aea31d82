package catalog

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/fault"
)

// TestManifest_IsReadAsItWas writes a template with all fields, and values that YAML could take for others.
func TestManifest_IsReadAsItWas(t *testing.T) {
	full := Template{
		Name: "mine", Title: "yes", Description: "a: b # \"c\"\n- two", Icon: "server", Source: Source{Root: "12345678901234e5"}, Profile: Dev, Namespaces: true, IDE: true,
		Size:  Size{CPUs: 0.5, Memory: 1536 << 20, Pids: 512, Disk: 10 << 30},
		Env:   map[string]string{"PORT": "3000", "ON": "true", "EMPTY": "", "LINES": "a\nb ", "DATE": "2001-01-01", "HEX": "0x10", "TILDE": "~"},
		Ports: []Port{{Number: 3000, Title: "API: one"}, {Number: 8080, Title: "web"}},
		Services: []Service{
			{Name: "api", Command: []string{"sh", "-c", "a && b: c", "1"}, Port: 3000, Cwd: "/srv", Env: map[string]string{"A": "1"}, Autostart: true, Health: &Health{}},
			{Name: "web", Command: []string{"web"}, Port: 8080, Health: &Health{Path: "/x?y=1", Interval: 90 * time.Second}},
		},
		Standby: Standby{Rest: Rest{FreezeAfter: After(15 * time.Minute), StopAfter: Never}, Pool: 2},
	}
	for _, want := range []Template{full, {Name: "small", Title: "T", Description: "D", Icon: "box", Profile: Strict, Source: Source{Base: "base"}, Size: DefaultSize}} {
		text, err := Manifest(want)
		if err != nil {
			t.Fatal(err)
		}
		m, at, problems := parseManifest("template.yaml", text)
		if len(problems) > 0 {
			t.Fatalf("%v\n%s", problems, text)
		}
		got, problems := checkManifest("template.yaml", want.Name, m, at)
		if d := cmp.Diff(want, got); d != "" || len(problems) > 0 {
			t.Errorf("%v %s\n%s", problems, d, text)
		}
	}
}

// TestBuild_OfARootIsOnItsImageOrSaysThatItIsGone also builds a template that has the first one for a base.
func TestBuild_OfARootIsOnItsImageOrSaysThatItIsGone(t *testing.T) {
	dir := tree(t, join(minimal("mine", "root: \"12345678901234e5\"\n", onBase), minimal("top", "base: mine\n", onBase)))
	synctest.Test(t, func(t *testing.T) {
		engine := newFakeEngine()
		i := NewImages(open(t, dir), engine, ImageOptions{Log: slog.New(slog.DiscardHandler), Root: func(id string) string { return "roots:" + id }})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- i.Run(ctx) }()
		for _, name := range []string{"mine", "top"} {
			if _, err := i.Ensure(ctx, Template{Name: name}, nil); !fault.Is(err, fault.NotFound) || !strings.Contains(fault.Message(err), "mine was made with from a snapshot") {
				t.Errorf("%s without it: %v", name, err)
			}
		}
		engine.set(func() { engine.images["roots:12345678901234e5"] = true })
		if _, err := i.Ensure(ctx, Template{Name: "top"}, nil); err != nil {
			t.Fatal(err)
		}
		if b := engine.built[0]; b.Args[baseArg] != "roots:12345678901234e5" || b.Labels[LabelRoot] != "12345678901234e5" || len(engine.built) != 2 || len(engine.built[1].Labels) != 1 {
			t.Errorf("built %+v", engine.built)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestTemplate_HasARootOrABase(t *testing.T) {
	for what, files := range map[string]map[string]string{
		"neither base nor image":  minimal("mine", "base: base\nroot: \"12345678901234e5\"\n", onBase),
		"does not build on it":    minimal("mine", "root: \"12345678901234e5\"\n", "FROM scratch"),
		"not the id of an image":  minimal("mine", "root: latest\n", onBase),
		"not the id of an image ": minimal("mine", "root: \"\"\n", onBase),
	} {
		c := open(t, tree(t, join(minimal("base", "", "FROM scratch"), files)))
		if _, err := c.Template("mine"); !strings.Contains(fault.Message(err), strings.TrimSpace(what)) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

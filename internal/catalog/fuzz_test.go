package catalog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

func repeat(s string, n int) string { return strings.Repeat(s, n) }

func FuzzTemplate(f *testing.F) {
	for _, name := range []string{"base", "node-api", "python-ml", "data-analysis"} {
		text, err := os.ReadFile(filepath.Join("../../templates/sandbox", name, manifestFile))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("name: demo\nenv: {A: 1, B: .inf}\nservices: [{name: a, command: [x], port: 1e3}]\n"))
	f.Add([]byte(repeat("[", 1000)))
	f.Add([]byte("? a\n: - b\n  - !!set {c}\n--- |\n x"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, at, problems := parseManifest("template.yaml", text)
		if len(problems) == 0 {
			var tpl Template
			if tpl, problems = checkManifest("template.yaml", "demo", m, at); len(problems) == 0 {
				checkSound(t, tpl)
			}
		}
		count := strings.Count(string(text), "\n") + strings.Count(string(text), "\r") + 1
		for _, p := range problems {
			if p.Message == "" || p.Line < 0 || p.Line > count || len(p.Message) > 1000 || !utf8.ValidString(p.Message) {
				t.Errorf("problem is %+v, the file has %d lines", p, count)
			}
		}
	})
}

// checkSound checks what everybody behind the catalog relies on.
func checkSound(t *testing.T, tpl Template) {
	t.Helper()
	if tpl.Name != "demo" || tpl.Title == "" || !utf8.ValidString(tpl.Title+tpl.Description) || len(tpl.Env) > maxEnv {
		t.Errorf("template is %+v", tpl)
	}
	if s := tpl.Size; !(s.CPUs >= minCPUs && s.CPUs <= maxCPUs) || s.Memory < minMemory || s.Pids < minPids || s.Disk != 0 && s.Disk < minDisk {
		t.Errorf("size is %+v", s)
	}
	for _, p := range tpl.Ports {
		if p.Number < 1 || p.Number > 65535 {
			t.Errorf("port is %+v", p)
		}
	}
	for _, s := range tpl.Services {
		if s.Name == "" || len(s.Command) == 0 || strings.Contains(strings.Join(s.Command, ""), "\x00") {
			t.Errorf("service is %+v", s)
		}
	}
}

func FuzzDockerfile(f *testing.F) {
	f.Add([]byte("# escape=`\nARG A=b\nFROM ${A} AS c\nCOPY --from=c a `\n b\n"))
	f.Add([]byte("FROM --platform=x\nFROM \\\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, problems := parseDockerfile("Dockerfile", text)
		if len(problems) > 0 {
			return
		}
		if len(d.Steps) == 0 {
			t.Error("no steps and no problem")
		}
		for _, ref := range d.External {
			if CheckImage(ref) != nil {
				t.Errorf("%q is no reference", ref)
			}
		}
	})
}

func FuzzCleanLine(f *testing.F) {
	f.Add("\x1b[31mred\x1b[0m\t50%\r100%\r\n")
	f.Add("\x1b]0;title\x07a\u202eb\x00")
	f.Fuzz(func(t *testing.T, line string) {
		got := CleanLine(line)
		if !utf8.ValidString(got) || len(got) > maxLogLine+len("…") || strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Errorf("%q became %q", line, got)
		}
	})
}

// Each of these once took seconds, or would without a bound.
func TestTemplate_CostlyInputIsRefusedQuickly(t *testing.T) {
	for _, text := range []string{repeat("- ", 30_000), repeat("? ", 30_000), repeat("[", 60_000), repeat("a: [{b: ", 7000)} {
		if _, _, problems := parseManifest("template.yaml", []byte(text)); len(problems) != 1 || problems[0].Line != 1 {
			t.Errorf("%.20q has the problems %v", text, problems)
		}
	}
}

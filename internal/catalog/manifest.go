package catalog

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxManifest bounds a template.yaml, in bytes: a hundred times what one needs.
const maxManifest = 64 << 10

// maxDepth bounds how deeply a template.yaml nests: our own fields nest three deep.
const maxDepth = 16

// manifest is a template.yaml as it is written.
type manifest struct {
	Name        string            `yaml:"name"`
	Title       string            `yaml:"title"`
	Description string            `yaml:"description"`
	Icon        string            `yaml:"icon,omitempty"`
	Base        string            `yaml:"base,omitempty"`
	Root        string            `yaml:"root,omitempty"`
	Image       string            `yaml:"image,omitempty"`
	Profile     string            `yaml:"profile,omitempty"`
	Size        manifestSize      `yaml:"size"`
	Env         map[string]string `yaml:"env,omitempty"`
	Ports       []manifestPort    `yaml:"ports,omitempty"`
	Services    []manifestService `yaml:"services,omitempty"`
	Apart       manifestApart     `yaml:",inline"`
}

// manifestApart is what no image depends on: see apartLine.
type manifestApart struct {
	Namespaces  bool    `yaml:"user_namespaces,omitempty"`
	IDE         bool    `yaml:"ide,omitempty"`
	FreezeAfter string  `yaml:"freeze_after,omitempty"`
	StopAfter   string  `yaml:"stop_after,omitempty"`
	Pool        float64 `yaml:"pool,omitempty"` // so that a fraction is seen
}

type manifestSize struct {
	CPUs   float64 `yaml:"cpus"`
	Memory string  `yaml:"memory"`
	Pids   int64   `yaml:"pids"`
	Disk   string  `yaml:"disk,omitempty"`
}

type manifestPort struct {
	Port  int    `yaml:"port"`
	Title string `yaml:"title,omitempty"`
}

type manifestService struct {
	Name      string            `yaml:"name"`
	Command   []string          `yaml:"command"`
	Port      int               `yaml:"port,omitempty"`
	Cwd       string            `yaml:"cwd,omitempty"`
	Env       map[string]string `yaml:"env,omitempty"`
	Autostart bool              `yaml:"autostart,omitempty"`
	Health    *manifestHealth   `yaml:"health,omitempty"`
}

type manifestHealth struct {
	Path     string `yaml:"path,omitempty"`
	Interval string `yaml:"interval,omitempty"`
}

// parseManifest reads the text of file. The lines tell where each path ("$.size.memory") stands. With problems the
// manifest is of no use.
func parseManifest(file string, text []byte) (manifest, lines, []Problem) {
	p := problems{file: file}
	if len(text) > maxManifest {
		p.add(0, "The file is larger than %d KiB.", maxManifest>>10)
		return manifest{}, nil, p.sorted()
	}
	if checkTokens(&p, text); len(p.list) > 0 {
		return manifest{}, nil, p.sorted()
	}
	tree, err := parser.ParseBytes(text, 0)
	if err != nil {
		addYAML(&p, err)
		return manifest{}, nil, p.sorted()
	}
	if len(tree.Docs) != 1 || tree.Docs[0].Body == nil {
		p.add(0, "The file must hold one YAML document with at least name, title and description.")
		return manifest{}, nil, p.sorted()
	}
	var m manifest
	if err := yaml.NodeToValue(tree.Docs[0].Body, &m, yaml.Strict()); err != nil {
		addYAML(&p, err)
		return manifest{}, nil, p.sorted()
	}
	at := lines{}
	at.walk(tree.Docs[0].Body, "$")
	return m, at, nil
}

// checkTokens refuses what a template has no use for and what would let a small file cost much: references to other
// parts of the file, type tags and deep nesting.
func checkTokens(p *problems, text []byte) {
	flow, line, marks := 0, 0, 0 // marks counts the dashes and question marks of a line: each nests one deeper
	for _, t := range lexer.Tokenize(string(text)) {
		if t.Position.Line != line {
			line, marks = t.Position.Line, 0
		}
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType, token.TagType:
			p.add(line, "Anchors, aliases, merge keys and tags are not understood here. Write the value out.")
			return
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType:
			marks++
		}
		if max(flow, marks, t.Position.IndentNum/8) > maxDepth {
			p.add(line, "The file nests too deeply.")
			return
		}
	}
}

// addYAML adds what the YAML reader complains of, with its line.
func addYAML(p *problems, err error) {
	var at yaml.Error
	if !errors.As(err, &at) {
		p.add(0, "The file is not valid YAML: %s.", shorten(err.Error(), 200))
		return
	}
	line := 0
	if t := at.GetToken(); t != nil && t.Position != nil {
		line = t.Position.Line
	}
	p.add(line, "%s", yamlMessage(err, at))
}

func yamlMessage(err error, at yaml.Error) string {
	var unknown *yaml.UnknownFieldError
	var double *yaml.DuplicateKeyError
	var kind *yaml.TypeError
	var node *yaml.UnexpectedNodeTypeError
	key := ""
	if t := at.GetToken(); t != nil {
		key = shorten(t.Value, 60)
	}
	switch {
	case errors.As(err, &unknown):
		return fmt.Sprintf("There is no field %q here.", key)
	case errors.As(err, &double):
		return fmt.Sprintf("The field %q is written twice.", key)
	case errors.As(err, &kind):
		return fmt.Sprintf("%q is not %s.", key, kindName(kind))
	case errors.As(err, &node) && node.Expected == ast.SequenceType:
		return fmt.Sprintf("%q is not a list. Write [one, two], or a line with a dash for each.", key)
	case errors.As(err, &node) && node.Expected == ast.MappingType:
		return "Here must be fields, each with a name and a colon."
	}
	return "The file is not valid YAML: " + shorten(strings.TrimSpace(at.GetMessage()), 200) + "."
}

// kindName says in words what a field takes.
func kindName(e *yaml.TypeError) string {
	switch k := e.DstType.Kind().String(); k {
	case "bool":
		return "true or false"
	case "string":
		return "a text; put it into quotes"
	case "slice":
		return "a list"
	case "map", "struct":
		return "a set of fields"
	case "float64":
		return "a number"
	default:
		return "a whole number"
	}
}

// lines tells on which line the value at a path is written.
type lines map[string]int

// has tells whether the field at path is written at all.
func (l lines) has(path string) bool { return l[path] > 0 }

// of gives the line of path, or of the nearest path above it that is written.
func (l lines) of(path string) int {
	for path != "" {
		if line := l[path]; line > 0 {
			return line
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			break
		}
		path = path[:cut]
	}
	return 0
}

func (l lines) walk(n ast.Node, path string) {
	switch n := n.(type) {
	case *ast.MappingNode:
		for _, v := range n.Values {
			l.walk(v, path)
		}
	case *ast.MappingValueNode:
		at := path + "." + n.Key.GetToken().Value
		l[at] = n.Key.GetToken().Position.Line
		l.walk(n.Value, at)
	case *ast.SequenceNode:
		for i, v := range n.Values {
			at := fmt.Sprintf("%s[%d]", path, i)
			l[at] = v.GetToken().Position.Line
			l.walk(v, at)
		}
	}
}

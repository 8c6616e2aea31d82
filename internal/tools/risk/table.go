package risk

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
)

//go:embed table.yaml
var tableText []byte

// rules is table.yaml.
type rules struct {
	Commands []rule    `yaml:"commands"`
	Paths    []pattern `yaml:"paths"`
	Code     []pattern `yaml:"code"`

	byName map[string]*rule
}

// rule is what is known of some commands.
type rule struct {
	Names  []string         `yaml:"names"`
	Level  Level            `yaml:"level"`
	Why    string           `yaml:"why"`
	Sub    map[string]Level `yaml:"sub"`
	Writes int              `yaml:"writes"` // the word, of those that are no options, that is a file it writes to; 0 for none
	Takes  []string         `yaml:"takes"`  // options before the subcommand that have a value of their own
	When   []condition      `yaml:"when"`
	Of     *wrapping        `yaml:"of"`
}

// condition raises the level of some calls. All that it has must hold: an option, and an argument.
type condition struct {
	Commands []string `yaml:"commands"`
	Sub      []string `yaml:"sub"`
	Flags    []string `yaml:"flags"`
	Match    string   `yaml:"match"`
	Level    Level    `yaml:"level"`
	Why      string   `yaml:"why"`

	match *regexp.Regexp
}

// wrapping says where the command stands that another one runs.
type wrapping struct {
	Takes []string `yaml:"takes"` // options that have a value of their own
	Words int      `yaml:"words"` // that come before it
	More  bool     `yaml:"more"`  // it is given arguments that are not shown
}

// pattern is a regular expression with what it says.
type pattern struct {
	Match  string `yaml:"match"`
	Why    string `yaml:"why"`
	Logins bool   `yaml:"logins"` // also where it is no more than an argument

	pattern *regexp.Regexp
}

// UnmarshalYAML reads a level by its name.
func (l *Level) UnmarshalYAML(text []byte) error {
	for i, name := range levelNames {
		if strings.TrimSpace(string(text)) == name {
			*l = Level(i)
			return nil
		}
	}
	return fmt.Errorf("%q is no level", text)
}

// table gives the rules. They are part of the program, so what is wrong in them is found by every test.
var table = sync.OnceValue(func() *rules {
	t, err := readTable(tableText)
	if err != nil {
		panic(err)
	}
	return t
})

func readTable(text []byte) (*rules, error) {
	t := &rules{byName: map[string]*rule{}}
	if err := yaml.UnmarshalWithOptions(text, t, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("read the table of commands: %w", err)
	}
	for i := range t.Commands {
		r := &t.Commands[i]
		for _, name := range r.Names {
			t.byName[name] = r
		}
		for k := range r.When {
			if err := r.When[k].compile(); err != nil {
				return nil, fmt.Errorf("%s: %w", r.Names[0], err)
			}
		}
	}
	for _, list := range [][]pattern{t.Paths, t.Code} {
		for i := range list {
			re, err := regexp.Compile(list[i].Match)
			if err != nil {
				return nil, fmt.Errorf("read the table of commands: %w", err)
			}
			list[i].pattern = re
		}
	}
	return t, nil
}

func (c *condition) compile() (err error) {
	if c.Match != "" {
		c.match, err = regexp.Compile(c.Match)
	}
	return err
}

package catalog

import (
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sandboxd/internal/fault"
)

// How often a service may be checked.
const (
	minHealthInterval = time.Second
	maxHealthInterval = time.Hour
)

// maxHealthPath bounds what a check asks for, in bytes.
const maxHealthPath = 512

// mistake is one thing that is wrong with a service.
type mistake struct {
	field   string // "name", "port", "env.PATH", "command[2]"
	message string
}

// mistakes collects them.
type mistakes []mistake

func (m *mistakes) add(field, format string, args ...any) {
	*m = append(*m, mistake{field, fmt.Sprintf(format, args...)})
}

// CheckServices reports the first thing that is wrong with a list of services, as an Invalid fault that names the service
// and, as its field, the field of the service that is wrong.
func CheckServices(list []Service) error {
	if len(list) > maxServices {
		return fault.Field("services", "There are more than %d services.", maxServices)
	}
	names, ports := map[string]bool{}, map[int]string{}
	for _, s := range list {
		if m := s.mistakes(); len(m) > 0 {
			if m[0].field == "name" && s.Name != "" { // which says it itself
				return fault.Field(m[0].field, "%s", m[0].message)
			}
			return fault.Field(m[0].field, "Service %s: %s", named(s.Name), m[0].message)
		}
		if names[s.Name] {
			return twoOfName(s.Name)
		}
		if other := ports[s.Port]; s.Port != 0 && other != "" {
			return twoOfPort(other, s.Name, s.Port)
		}
		names[s.Name], ports[s.Port] = true, s.Name
	}
	return nil
}

// ServiceFaults gives all that is wrong with the service at i of a list, by itself and beside the others, as Invalid faults
// with its fields. For a form of that one: they do not name it.
func ServiceFaults(list []Service, i int) []error {
	var faults []error
	for _, m := range list[i].mistakes() {
		faults = append(faults, fault.Field(m.field, "%s", m.message))
	}
	for j, other := range list {
		if j == i {
			continue
		}
		if other.Name == list[i].Name {
			faults = append(faults, twoOfName(other.Name))
		}
		if other.Port != 0 && other.Port == list[i].Port {
			faults = append(faults, twoOfPort(other.Name, list[i].Name, other.Port))
		}
	}
	return faults
}

func twoOfName(name string) error { return fault.Field("name", "There are two services %q.", name) }

func twoOfPort(one, other string, port int) error {
	return fault.Field("port", "The services %s and %s have the same port %d.", named(one), named(other), port)
}

// named gives a service's name for a message, whatever it holds.
func named(name string) string {
	if name == "" {
		return "without a name"
	}
	if nameForm.MatchString(name) && len(name) <= maxName {
		return name
	}
	return fmt.Sprintf("%q", shorten(name, maxName))
}

// mistakes gives everything that is wrong with s by itself.
func (s Service) mistakes() mistakes {
	var m mistakes
	if wrong := nameMistake("The service's name", s.Name); wrong != "" {
		m.add("name", "%s", wrong)
	}
	if s.Port < 0 || s.Port > 65535 {
		m.add("port", "%s", portMistake(s.Port))
	}
	if s.Cwd != "" && (!path.IsAbs(s.Cwd) || path.Clean(s.Cwd) != s.Cwd || len(s.Cwd) > maxEnvValue ||
		strings.ContainsRune(s.Cwd, 0) || !utf8.ValidString(s.Cwd)) {
		m.add("cwd", "cwd must be an absolute path without dots, or left out for the home folder.")
	}
	m.env("env", s.Env)
	m.command(s.Command)
	if s.Health != nil {
		m.health(*s.Health, s.Port)
	}
	return m
}

func (m *mistakes) command(words []string) {
	if len(words) == 0 || len(words) > maxCommand || words[0] == "" {
		m.add("command", "command must be a list of 1 to %d words, the program first.", maxCommand)
		return
	}
	for i, word := range words {
		if len(word) > maxEnvValue || strings.ContainsRune(word, 0) || !utf8.ValidString(word) {
			m.add(fmt.Sprintf("command[%d]", i), "A word of the command is longer than %d bytes, or is not text.", maxEnvValue)
		}
	}
}

func (m *mistakes) health(h Health, port int) {
	if port == 0 {
		m.add("health", "health needs a port to look at. Give the service its port.")
	}
	if h.Path != "" {
		_, err := url.ParseRequestURI(h.Path)
		if err != nil || h.Path[0] != '/' || strings.ContainsAny(h.Path, " #") || len(h.Path) > maxHealthPath || !utf8.ValidString(h.Path) {
			m.add("health.path", "The path of health must be one to ask for, such as /healthz, or left out to be content with a connection.")
		}
	}
	if h.Interval != 0 && (h.Interval < minHealthInterval || h.Interval > maxHealthInterval) {
		m.add("health.interval", "The interval of health must be between %s and %s.", minHealthInterval, After(maxHealthInterval))
	}
}

func (m *mistakes) env(field string, env map[string]string) {
	if len(env) > maxEnv {
		m.add(field, "There are more than %d environment variables.", maxEnv)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(env)) {
		at, value := field+"."+key, env[key]
		switch {
		case !envForm.MatchString(key):
			m.add(at, "%q is not the name of an environment variable.", shorten(key, maxName))
		case strings.HasPrefix(key, ownEnv):
			m.add(at, "Variables that begin with %s are sandboxd's own.", ownEnv)
		case len(value) > maxEnvValue || strings.ContainsRune(value, 0) || !utf8.ValidString(value):
			m.add(at, "The value of %s is longer than %d bytes, or is not text.", key, maxEnvValue)
		}
	}
}

// nameMistake says what is wrong with a DNS label; "" when nothing is.
func nameMistake(what, name string) string {
	switch {
	case len(name) > maxName:
		return fmt.Sprintf("%s is longer than %d characters.", what, maxName)
	case !nameForm.MatchString(name) || strings.Contains(name, "--"):
		return fmt.Sprintf("%s %q is not a valid name: lowercase letters, digits and single hyphens, a letter first.", what, shorten(name, maxName))
	}
	return ""
}

func portMistake(port int) string {
	return fmt.Sprintf("Port %d does not exist. It is between 1 and 65535.", port)
}

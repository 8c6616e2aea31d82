package catalog

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/docker/go-units"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// What a template may ask for. The lower bounds are what a shell and the guest need to work at all, the upper ones
// what no machine of today has: a larger number is a slip of the pen.
const (
	minCPUs, maxCPUs     = 0.05, 512
	minMemory, maxMemory = int64(64 << 20), int64(16 << 40)
	minPids, maxPids     = int64(32), int64(1 << 20)
	minDisk, maxDisk     = int64(64 << 20), int64(1 << 50)
)

// How long and how many: what fits a card on a page, and what a guest is told in one message.
const (
	maxName        = 40
	maxTitle       = 60
	MaxDescription = 300
	maxEnv         = 64
	maxEnvValue    = 4096
	maxPorts       = 32
	maxServices    = 16
	maxCommand     = 64
	maxPool        = 20 // ready sandboxes of one template, which cost memory
)

// ownEnv begins the variables that sandboxd sets itself.
const ownEnv = "SANDBOXD_"

var (
	nameForm = regexp.MustCompile(`^[a-z]([a-z0-9-]*[a-z0-9])?$`)
	iconForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)
	rootForm = regexp.MustCompile(`^[0-9a-f]{16}$`)
	envForm  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
)

// checker turns a manifest into a template and collects every mistake on the way.
type checker struct {
	problems
	at lines
}

func (c *checker) bad(path, format string, args ...any) { c.add(c.at.of(path), format, args...) }

// checkManifest checks m, which was read from file in the template folder of this name.
func checkManifest(file, name string, m manifest, at lines) (Template, []Problem) {
	c := &checker{problems: problems{file: file}, at: at}
	c.identity(name, m)
	t := Template{
		Name: name, Title: m.Title, Description: strings.TrimSpace(m.Description), Icon: c.icon(m.Icon),
		Source: Source{Base: m.Base, Image: m.Image, Root: m.Root}, Size: c.size(m.Size), Env: m.Env, Profile: c.profile(m.Profile),
		Namespaces: m.Apart.Namespaces, IDE: m.Apart.IDE, Standby: c.standby(m.Apart),
	}
	if t.Namespaces && t.Profile == Strict {
		c.bad("$.user_namespaces", "A strict sandbox has no user namespaces. Leave user_namespaces out, or use the profile %s.", Dev)
	}
	c.origin(m)
	c.env(m.Env)
	t.Ports = c.ports(m.Ports)
	t.Services = c.services(m.Services)
	t.Ports = withServicePorts(t.Ports, t.Services)
	return t, c.sorted()
}

func (c *checker) identity(name string, m manifest) {
	switch {
	case m.Name == "":
		c.bad("$.name", "The field name is missing: it is %q, as the folder.", shorten(name, maxName))
	case m.Name != name:
		c.bad("$.name", "The name is %q, but the template is called %q, as its folder. Call the template %[1]s, or change this line.", shorten(m.Name, maxName), shorten(name, maxName))
	}
	c.name("$.name", "The name", name)
	c.text("$.title", "title", m.Title, maxTitle)
	c.text("$.description", "description", m.Description, MaxDescription)
	if strings.ContainsAny(m.Title, "\r\n") {
		c.bad("$.title", "The title has more than one line.")
	}
}

// name reports a faulty DNS label.
func (c *checker) name(path, what, name string) {
	if wrong := nameMistake(what, name); wrong != "" {
		c.bad(path, "%s", wrong)
	}
}

func (c *checker) text(path, field, value string, limit int) {
	switch {
	case text.Trim(value) == "":
		c.bad(path, "The field %s is missing or empty.", field)
	case utf8.RuneCountInString(value) > limit:
		c.bad(path, "The %s is longer than %d characters.", field, limit)
	case text.Unprintable(strings.ReplaceAll(value, "\n", " ")):
		c.bad(path, "The %s has a character that cannot be shown.", field)
	}
}

func (c *checker) icon(icon string) string {
	if icon == "" {
		return "box"
	}
	if !iconForm.MatchString(icon) {
		c.bad("$.icon", "The icon %q is not an icon's name: lowercase letters, digits and hyphens.", shorten(icon, maxName))
	}
	return icon
}

func (c *checker) profile(profile string) Profile {
	switch p := Profile(profile); p {
	case "":
		return Dev
	case Dev, Strict:
		return p
	}
	c.bad("$.profile", "There is no profile %q. It is %s or %s.", shorten(profile, maxName), Dev, Strict)
	return Dev
}

// origin checks where the image comes from: a Dockerfile of its own, on a base or not, or an image as it is.
func (c *checker) origin(m manifest) {
	if m.Base != "" {
		c.name("$.base", "The base", m.Base)
	}
	if m.Base != "" && m.Image != "" {
		c.bad("$.image", "A template has base or image, not both.")
	}
	if m.Root != "" && (m.Base != "" || m.Image != "") {
		c.bad("$.root", "A template that was made from a snapshot has root, and neither base nor image.")
	}
	if c.at.has("$.root") && !rootForm.MatchString(m.Root) {
		c.bad("$.root", "The root is not the id of an image that was made from a snapshot: 16 digits or letters from a to f, in quotes.")
	}
	if m.Image == "" {
		if c.at.has("$.image") {
			c.bad("$.image", "The image is empty. Leave the field out to build the Dockerfile.")
		}
		return
	}
	if err := CheckImage(m.Image); err != nil {
		c.bad("$.image", "The image %q is not an image reference, such as debian:trixie-slim.", shorten(m.Image, maxName))
	}
}

func (c *checker) size(m manifestSize) Size {
	s := DefaultSize
	if c.at.has("$.size.cpus") {
		if s.CPUs = m.CPUs; math.IsNaN(s.CPUs) || s.CPUs < minCPUs || s.CPUs > maxCPUs {
			c.bad("$.size.cpus", "cpus is %v. It must be between %v and %v.", m.CPUs, minCPUs, maxCPUs)
		}
	}
	if c.at.has("$.size.pids") {
		if s.Pids = m.Pids; s.Pids < minPids || s.Pids > maxPids {
			c.bad("$.size.pids", "pids is %d. It must be between %d and %d.", m.Pids, minPids, maxPids)
		}
	}
	c.bytes("$.size.memory", m.Memory, &s.Memory, minMemory, maxMemory)
	c.bytes("$.size.disk", m.Disk, &s.Disk, minDisk, maxDisk)
	return s
}

func (c *checker) standby(m manifestApart) Standby {
	if !(m.Pool >= 0 && m.Pool <= maxPool) || m.Pool != math.Trunc(m.Pool) {
		c.bad("$.pool", "pool is %v. It must be a whole number between 0 and %d.", m.Pool, maxPool)
		m.Pool = 0
	}
	rest := Rest{FreezeAfter: c.after("freeze_after", m.FreezeAfter), StopAfter: c.after("stop_after", m.StopAfter)}
	return Standby{Rest: rest, Pool: int(m.Pool)}
}

func (c *checker) after(field, text string) After {
	after, err := ParseAfter(field, text)
	if err != nil {
		c.bad("$."+field, "%s: %s", field, fault.Message(err))
	}
	return after
}

var bytesForm = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,3})?(KiB|MiB|GiB|TiB|[kKmMgGtT])$`)

// bytes reads a size such as 2GiB into to, when the field is written.
func (c *checker) bytes(path, text string, to *int64, least, most int64) {
	if !c.at.has(path) {
		return
	}
	field := path[strings.LastIndexByte(path, '.')+1:]
	n, err := units.RAMInBytes(text)
	if err != nil || !bytesForm.MatchString(text) {
		c.bad(path, "%s is %q. Write a number and a unit, such as 512MiB or 2GiB.", field, shorten(text, maxName))
		return
	}
	if n < least || n > most {
		c.bad(path, "%s is %s. It must be between %s and %s.", field, text, units.BytesSize(float64(least)), units.BytesSize(float64(most)))
		return
	}
	*to = n
}

func (c *checker) env(env map[string]string) {
	var m mistakes
	m.env("env", env)
	c.mistakes("$", m)
}

// mistakes reports the mistakes found below a path.
func (c *checker) mistakes(path string, m mistakes) {
	for _, wrong := range m {
		c.bad(path+"."+wrong.field, "%s", wrong.message)
	}
}

func (c *checker) ports(list []manifestPort) []Port {
	if len(list) > maxPorts {
		c.bad("$.ports", "There are more than %d ports.", maxPorts)
		return nil
	}
	var ports []Port
	seen := map[int]bool{}
	for i, p := range list {
		at := fmt.Sprintf("$.ports[%d]", i)
		c.port(at+".port", p.Port)
		if seen[p.Port] && p.Port > 0 {
			c.bad(at+".port", "Port %d is listed twice.", p.Port)
		}
		if utf8.RuneCountInString(p.Title) > maxTitle || text.Unprintable(p.Title) {
			c.bad(at+".title", "The title of port %d is longer than %d characters or cannot be shown.", p.Port, maxTitle)
		}
		seen[p.Port] = true
		ports = append(ports, Port{Number: p.Port, Title: p.Title})
	}
	return ports
}

func (c *checker) port(path string, port int) {
	if port < 1 || port > 65535 {
		c.bad(path, "%s", portMistake(port))
	}
}

func (c *checker) services(list []manifestService) []Service {
	if len(list) > maxServices {
		c.bad("$.services", "There are more than %d services.", maxServices)
		return nil
	}
	var services []Service
	names, ports := map[string]bool{}, map[int]string{}
	for i, m := range list {
		at := fmt.Sprintf("$.services[%d]", i)
		s := c.service(at, m)
		if names[m.Name] {
			c.bad(at+".name", "There are two services %q.", shorten(m.Name, maxName))
		}
		if other := ports[m.Port]; m.Port != 0 && other != "" {
			c.bad(at+".port", "The services %s and %s have the same port %d.", shorten(other, maxName), shorten(m.Name, maxName), m.Port)
		}
		names[m.Name], ports[m.Port] = true, m.Name
		services = append(services, s)
	}
	return services
}

func (c *checker) service(at string, m manifestService) Service {
	s := Service{Name: m.Name, Command: m.Command, Port: m.Port, Cwd: m.Cwd, Env: m.Env, Autostart: m.Autostart}
	s.Health = c.health(at+".health", m.Health)
	if c.at.has(at+".port") && m.Port == 0 {
		c.port(at+".port", m.Port)
	}
	c.mistakes(at, s.mistakes())
	return s
}

func (c *checker) health(at string, m *manifestHealth) *Health {
	if m == nil {
		if c.at.has(at) {
			c.bad(at, "health is empty. Write health: {} to try the port, or give a path.")
		}
		return nil
	}
	h := &Health{Path: m.Path}
	if m.Interval == "" && !c.at.has(at+".interval") {
		return h
	}
	interval, err := time.ParseDuration(m.Interval)
	if err != nil {
		c.bad(at+".interval", "interval is %q. Write a number and a unit, such as 10s or 1m.", shorten(m.Interval, maxName))
		return h
	}
	if h.Interval = interval; interval == 0 {
		h.Interval = -1 // written, and not to be taken for the default
	}
	return h
}

// withServicePorts adds the ports of services that are not listed themselves, titled as the service.
func withServicePorts(ports []Port, services []Service) []Port {
	for _, s := range services {
		listed := slices.ContainsFunc(ports, func(p Port) bool { return p.Number == s.Port })
		if s.Port != 0 && !listed {
			ports = append(ports, Port{Number: s.Port, Title: s.Name})
		}
	}
	return ports
}

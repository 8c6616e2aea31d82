package hostname

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"sandboxd/internal/fault"
)

// Kind says what a host leads to.
type Kind uint8

// The kinds of hosts. The zero value leads nowhere.
const (
	Unknown   Kind = iota
	Dashboard      // sandboxd's own pages and API
	Terminal       // a sandbox's terminal
	Port           // a port in a sandbox
	IDE            // a sandbox's VS Code
	Service        // the port of a service that is declared in a sandbox, by the service's name
)

// Target is where a host leads.
type Target struct {
	Kind    Kind
	Name    string // of the sandbox; "" for the dashboard
	Port    int    // 1 to 65535 for Port, else 0; once known, a Service's port is kept here
	Service string // name of the service
}

// Hosts makes and reads the hosts under one domain. It is a value; make it with New.
type Hosts struct {
	Scheme string // "http" or "https"
	Domain string // lower case, without port and trailing dot: "localhost", "box.example.com"
	Port   string // as browsers write it in a URL: "" when it is the scheme's default
}

// maxDomain leaves room for a label before the domain in the 253 characters of a host name.
const maxDomain = 253 - maxLabel - len(".")

// New reads the dashboard's public address, such as "http://localhost:8080" or "https://box.example.com". Sandboxes
// live one level below its host.
func New(public string) (Hosts, error) {
	u, err := url.Parse(public)
	if err != nil || u.Host == "" || u.Opaque != "" {
		return Hosts{}, fault.New(fault.Invalid, "The public address %q is not a URL such as https://box.example.com.", public)
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return Hosts{}, fault.New(fault.Invalid, "The public address %q must begin with http:// or https://.", public)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Path != "" && u.Path != "/" {
		return Hosts{}, fault.New(fault.Invalid, "The public address %q has more than scheme, host and port.", public)
	}
	domain := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if err := checkDomain(domain); err != nil {
		return Hosts{}, err
	}
	port := u.Port()
	if port != "" && parsePort(port) == 0 {
		return Hosts{}, fault.New(fault.Invalid, "The public address %q has a port that is none.", public)
	}
	if port == defaultPort(u.Scheme) {
		port = ""
	}
	return Hosts{Scheme: u.Scheme, Domain: domain, Port: port}, nil
}

// Local gives the hosts of a sandboxd that is reached directly: plain HTTP under domain, at the port of the address
// that it listens on.
func Local(domain, listen string) (Hosts, error) {
	_, port, err := net.SplitHostPort(listen)
	if err != nil || parsePort(port) == 0 {
		return Hosts{}, fault.New(fault.Invalid, "The address %q to listen on is not host:port.", listen)
	}
	return New("http://" + domain + ":" + port)
}

func checkDomain(domain string) error {
	if net.ParseIP(domain) != nil {
		return fault.New(fault.Invalid,
			"The domain %q is an address, and sandboxes need names below it. Use a name that leads there, or localhost.", domain)
	}
	if len(domain) > maxDomain {
		return fault.New(fault.Invalid, "The domain is too long: %d characters at most.", maxDomain)
	}
	last := ""
	for label := range strings.SplitSeq(domain, ".") {
		if !isDomainLabel(label) {
			return fault.New(fault.Invalid, "The domain %q is not a DNS name.", domain)
		}
		last = label
	}
	if isDigit(last[len(last)-1]) { // browsers read "box.1" as an address
		return fault.New(fault.Invalid, "The domain %q is not a DNS name: its last part ends in a digit.", domain)
	}
	return nil
}

func isDomainLabel(label string) bool {
	return label != "" && len(label) <= 63 && label[0] != '-' && label[len(label)-1] != '-' &&
		strings.IndexFunc(label, notNameRune) < 0
}

func defaultPort(scheme string) string {
	if scheme == "https" {
		return "443"
	}
	return "80"
}

// Host gives the host name of t in its one canonical form, without port. It is "" for an unknown target.
func (h Hosts) Host(t Target) string {
	switch t.Kind {
	case Dashboard:
		return h.Domain
	case Terminal:
		return t.Name + "." + h.Domain
	case Port:
		return strconv.Itoa(t.Port) + "-" + t.Name + "." + h.Domain
	case IDE:
		return codePrefix + t.Name + "." + h.Domain
	case Service:
		return t.Service + serviceMark + t.Name + "." + h.Domain
	default:
		return ""
	}
}

// Origin gives the web origin of t, exactly as browsers write it in an Origin header.
func (h Hosts) Origin(t Target) string {
	return h.Scheme + "://" + h.Authority(t)
}

// Authority gives the host of t with its port, if that is not the scheme's own: what browsers send as Host.
func (h Hosts) Authority(t Target) string {
	if h.Port == "" {
		return h.Host(t)
	}
	return h.Host(t) + ":" + h.Port
}

// DashboardURL gives the dashboard's address without a slash at its end: "http://localhost:8080".
func (h Hosts) DashboardURL() string { return h.Origin(Target{Kind: Dashboard}) }

// TerminalURL gives the address of a sandbox's terminal: "http://<name>.localhost:8080/".
func (h Hosts) TerminalURL(name string) string {
	return h.Origin(Target{Kind: Terminal, Name: name}) + "/"
}

// OwnPath begins the paths at a sandbox's hosts that are sandboxd's own and never reach the sandbox.
const OwnPath = "/.sandboxd"

// SignInPath is where a terminal that has a password of its own lets in who is signed in at the dashboard.
const SignInPath = OwnPath + "/sign-in"

// SignInURL gives that address: "http://<name>.localhost:8080/.sandboxd/sign-in".
func (h Hosts) SignInURL(name string) string {
	return h.Origin(Target{Kind: Terminal, Name: name}) + SignInPath
}

// PortURL gives the address of a port in a sandbox: "http://<port>-<name>.localhost:8080/".
func (h Hosts) PortURL(name string, port int) string {
	return h.Origin(Target{Kind: Port, Name: name, Port: port}) + "/"
}

// IDEURL gives the address of a sandbox's VS Code: "http://code-<name>.localhost:8080/".
func (h Hosts) IDEURL(name string) string {
	return h.Origin(Target{Kind: IDE, Name: name}) + "/"
}

// ServiceURL gives the address of a declared service of a sandbox: "http://<service>--<name>.localhost:8080/". It is "" for
// a service that has no address by its name: "xn", and one whose name and the sandbox's are longer than 61 characters
// together.
func (h Hosts) ServiceURL(service, name string) string {
	t := Target{Kind: Service, Name: name, Service: service}
	if !t.isService() {
		return ""
	}
	return h.Origin(t) + "/"
}

// SharePath is where a link to a shared port leads, at that port's host. The link's secret is its fragment.
const SharePath = OwnPath + "/share"

// ShareURL gives the link to a shared port with that secret: "http://<port>-<name>.localhost:8080/.sandboxd/share#<secret>".
func (h Hosts) ShareURL(name string, port int, secret string) string {
	return h.Origin(Target{Kind: Port, Name: name, Port: port}) + SharePath + "#" + secret
}

// Parse reads a Host header. Letter case and one trailing dot do not matter. A port is either left out or the public
// one: another port means another server's origin, and serving it would let that one speak as us. With the domain
// "localhost" (or below it) the loopback addresses lead to the dashboard too: an address cannot be rebound, a foreign
// name can. Everything else is NotFound. That a name parses does not mean that there is such a sandbox
// or such a service.
func (h Hosts) Parse(host string) (Target, error) {
	name, port, ok := splitHost(host)
	if !ok || !h.ourPort(port) {
		return Target{}, unknownHost()
	}
	if name == h.Domain || h.loopbackAlias(name) {
		return Target{Kind: Dashboard}, nil
	}
	label, found := strings.CutSuffix(name, "."+h.Domain)
	if !found {
		return Target{}, unknownHost()
	}
	return parseLabel(label)
}

// unknownHost does not repeat the host: it is the visitor's text.
func unknownHost() error { return fault.New(fault.NotFound, "No sandbox lives at this address.") }

// splitHost cuts a Host header into lower-case name or bracketed address, and port ("" when there is none).
func splitHost(host string) (name, port string, ok bool) {
	end := strings.IndexByte(host, ':')
	if strings.HasPrefix(host, "[") {
		end = strings.IndexByte(host, ']') + 1
		if end == 0 {
			return "", "", false
		}
	}
	name = host
	if end >= 0 {
		name, port = host[:end], host[end:]
	}
	if port != "" {
		if port[0] != ':' || parsePort(port[1:]) == 0 {
			return "", "", false
		}
		port = port[1:]
	}
	name = strings.TrimSuffix(asciiLower(name), ".")
	return name, port, name != ""
}

// asciiLower lowers ASCII letters only: Unicode's lowering would fold foreign letters (the Kelvin sign) into ours.
func asciiLower(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + ('a' - 'A')
		}
		return r
	}, s)
}

func (h Hosts) ourPort(port string) bool {
	return port == "" || port == h.Port || h.Port == "" && port == defaultPort(h.Scheme)
}

func (h Hosts) loopbackAlias(name string) bool {
	if h.Domain != "localhost" && !strings.HasSuffix(h.Domain, ".localhost") {
		return false
	}
	return name == "127.0.0.1" || name == "[::1]"
}

// parsePort reads a port in its one form, without sign or leading zero; 0 when it is none.
func parsePort(s string) int {
	if s == "" || len(s) > 5 || s[0] == '0' {
		return 0
	}
	for i := range len(s) {
		if !isDigit(s[i]) {
			return 0
		}
	}
	n, err := strconv.Atoi(s)
	if err != nil || n > 65535 {
		return 0
	}
	return n
}

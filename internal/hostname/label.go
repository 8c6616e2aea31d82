package hostname

import "strings"

// maxLabel is the longest part of a host name between two dots, by DNS.
const maxLabel = 63

// parseLabel reads what stands before the domain. By its beginning it is a port's (a digit) or the IDE's ("code-"), and else
// it is a sandbox's name. Only what is too long for one is a service's for certain.
func parseLabel(label string) (Target, error) {
	t := Target{Kind: Terminal, Name: label}
	switch {
	case label != "" && isDigit(label[0]):
		number, name, _ := strings.Cut(label, "-")
		t = Target{Kind: Port, Name: name, Port: parsePort(number)}
		if t.Port == 0 {
			return Target{}, unknownHost()
		}
	case strings.HasPrefix(label, codePrefix):
		t = Target{Kind: IDE, Name: strings.TrimPrefix(label, codePrefix)}
	case len(label) > MaxName:
		t.Kind = Service
		if len(t.Divide()) == 0 {
			return Target{}, unknownHost()
		}
		return t, nil
	}
	if CheckName(t.Name) != nil {
		return Target{}, unknownHost()
	}
	return t, nil
}

// Divide gives the ways to read a host that Parse has read as <service>-<name>, the longest name of a sandbox first. There
// are none where the host cannot be a service's. A sandbox whose name the whole is comes before all of them.
func (t Target) Divide() []Target {
	if t.Service != "" || t.Kind != Terminal && t.Kind != Service {
		return nil
	}
	var out []Target
	for i := range len(t.Name) {
		if t.Name[i] != '-' {
			continue
		}
		if d := (Target{Kind: Service, Name: t.Name[i+1:], Service: t.Name[:i]}); d.isService() {
			out = append(out, d)
		}
	}
	return out
}

// isService reports whether t is a service's, and has a host.
func (t Target) isService() bool {
	return t.Kind == Service && isServiceName(t.Service) && CheckName(t.Name) == nil && len(t.label()) <= maxLabel
}

// isServiceName reports whether a service of that name can have a host that begins with it.
func isServiceName(s string) bool {
	return s != "" && isLower(s[0]) && strings.IndexFunc(s, notNameRune) < 0 && !strings.HasSuffix(s, "-") && !strings.Contains(s, "--") &&
		!strings.HasPrefix(s+"-", codePrefix)
}

// label is what stands before the domain in a service's host.
func (t Target) label() string {
	if t.Service == "" {
		return t.Name
	}
	return t.Service + "-" + t.Name
}

// ServiceLabel gives what stands before the domain in a service's host, or "" for a service that has none: see ServiceURL.
// It is the name of the sandbox that would stand in the service's way.
func ServiceLabel(service, name string) string {
	if t := (Target{Kind: Service, Name: name, Service: service}); t.isService() {
		return t.label()
	}
	return ""
}
